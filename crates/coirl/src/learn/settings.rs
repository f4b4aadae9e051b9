//! Settings of a run: one method with its own, and what all methods share. They are saved beside the result.

use super::adaptive::Adaptive;
use super::mirror_descent::MirrorDescent;
use crate::error::{Error, Result};

/// Which algorithm, with its settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Method {
    /// Mirror descent without a step size to tune; the default.
    Adaptive(Adaptive),
    /// Algorithm 1 of the paper.
    MirrorDescent(MirrorDescent),
}

impl Default for Method {
    fn default() -> Self {
        Method::Adaptive(Adaptive::default())
    }
}

/// When to stop; whichever comes first.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Steps; where nothing is said, as many as the method takes by default.
    pub max_steps: Option<u64>,
    /// Loss per ‖W‖₂ on the demonstrations.
    pub loss: Option<f64>,
    /// Gap of the methods that know one.
    pub gap: Option<f64>,
    /// Records without a better validation loss.
    pub patience: Option<u64>,
}

/// A run, complete.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The algorithm.
    pub method: Method,
    /// Seed of everything random.
    pub seed: u64,
    /// When to stop.
    pub stop: Stop,
    /// W₁, row-major; where nothing is said, what the method starts from.
    pub initial: Option<Vec<f64>>,
    /// Steps between two records with a loss; 0 records the start and the end only.
    pub record_every: u64,
}

impl Settings {
    /// The defaults of a method.
    pub fn new(method: Method) -> Self {
        Self { method, ..Self::default() }
    }
}

/// Refuses numbers that are not above zero.
pub(super) fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidSetting { name, value: value.to_string(), reason: "expected a number above 0" })
}

/// Refuses counts of nothing.
pub(super) fn check_count(name: &'static str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" }) }
}
