//! The experiments of the paper, as functions of their settings: what is compared, on what, and how each fares.

pub mod cohort;
pub mod sepsis;

use crate::demos::Estimator;
use crate::evaluate::Score;
use crate::learn::{Method, Settings, Stop};

/// A way to learn, as one of several that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// What it is called in tables and pictures.
    pub name: &'static str,
    /// How feature expectations are read off trajectories.
    pub estimator: Estimator,
    /// How it learns.
    pub method: Method,
    /// How long.
    pub length: Length,
    /// Whether generalised policy improvement over the policies of the training contexts is measured beside planning.
    pub improvement: bool,
}

/// How long a contender learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// What the method does where nothing is said.
    Usual,
    /// So many steps.
    Steps(u64),
    /// So many passes over the demonstrations, one step for each.
    Passes(u64),
}

impl Contender {
    /// A contender that learns as long as its method usually does.
    pub fn new(name: &'static str, estimator: Estimator, method: Method) -> Self {
        Self { name, estimator, method, length: Length::Usual, improvement: false }
    }

    /// The same for another length.
    pub fn lasting(self, length: Length) -> Self {
        Self { length, ..self }
    }

    /// The same with generalised policy improvement beside it.
    pub fn with_improvement(self) -> Self {
        Self { improvement: true, ..self }
    }

    fn settings(&self, demonstrations: usize, seed: u64) -> Settings {
        let max_steps = match self.length {
            Length::Usual => None,
            Length::Steps(steps) => Some(steps),
            Length::Passes(passes) => Some(passes.saturating_mul(demonstrations as u64)),
        };
        let stop = Stop { max_steps, ..Stop::default() };
        Settings { seed, stop, record_loss: false, ..Settings::new(self.method.clone()) }
    }
}

/// How an agent acts on the reward that was learned, or on which contexts it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acting {
    /// As the method has it, in contexts that nobody has seen.
    Test,
    /// As the method has it, in contexts that were learned from.
    Training,
    /// By generalised policy improvement, in contexts that nobody has seen.
    Improved,
}

/// How one contender fared.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Measurement {
    /// Whom it is about.
    pub contender: &'static str,
    /// Contexts learned from.
    pub contexts: usize,
    /// Seed of contexts, demonstrations and method.
    pub seed: u64,
    /// What was judged.
    pub acting: Acting,
    /// How it fared.
    pub score: Score,
}

/// Mean and standard deviation over seeds of a number of the measurements that are asked for; nothing where there are none.
pub fn over_seeds(
    measurements: &[Measurement],
    contender: &str,
    contexts: usize,
    acting: Acting,
    number: impl Fn(&Score) -> f64,
) -> Option<(f64, f64)> {
    let asked = |m: &&Measurement| m.contender == contender && m.contexts == contexts && m.acting == acting;
    let values: Vec<f64> = measurements.iter().filter(asked).map(|m| number(&m.score)).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (!values.is_empty()).then(|| (mean, spread.sqrt()))
}
