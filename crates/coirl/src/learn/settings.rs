//! Settings of a run: a method with its own, and what all methods share. What is left open resolves from the data; resolved, they are
//! saved beside the result.

use super::learner::Learner;
use super::problem::Problem;
use crate::error::{Error, Result};

/// About as many records are written by default, and never more often than every so many steps.
const RECORDS: u64 = 100;
const LEAST_BETWEEN_RECORDS: u64 = 5;
/// A record plans for every demonstration. With so many entries of the kernel to read for one, a step of one demonstration passes until
/// the next: the record must not cost many times what is learned.
const ENTRIES_PER_STEP: u64 = 300_000;
/// Records without a better validation loss after which early stopping ends a run, by default.
pub const PATIENCE: u64 = 10;

/// When to stop; whichever comes first.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Steps; defaults to the method's own number.
    pub max_steps: Option<u64>,
    /// Loss per ‖W‖₂ on the demonstrations.
    pub loss: Option<f64>,
    /// Gap of the methods that know one.
    pub gap: Option<f64>,
    /// Early stopping: records without anything better on the validation demonstrations. Defaults to 10 where there are some.
    pub patience: Option<u64>,
    /// What is better; defaults to a smaller loss.
    pub watched: Option<Watched>,
}

/// What early stopping looks at on validation demonstrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// The loss, or what a method has in its place.
    #[default]
    Loss,
    /// The share of the recorded actions that the agent would take, as in the paper's experiments with real patients.
    Accuracy,
}

/// A run, complete.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "M: Default + serde::Deserialize<'de>"))]
pub struct Settings<M> {
    /// The method.
    pub method: M,
    /// Seed of everything random.
    pub seed: u64,
    /// When to stop.
    pub stop: Stop,
    /// W₁, row-major; defaults to what the method starts from.
    pub initial: Option<Vec<f64>>,
    /// Steps between two records with a loss; 0 records the start and the end only. Defaults to about a hundred records, or fewer in
    /// large models.
    pub record_every: Option<u64>,
    /// Whether records have the loss on all demonstrations, which costs a plan for each; by default they do.
    pub record_loss: Option<bool>,
}

impl<M: Default> Settings<M> {
    /// The defaults of a method.
    pub fn new(method: M) -> Self {
        Self { method, ..Self::default() }
    }
}

impl<M: Clone> Settings<M> {
    /// What all methods share, with defaults that depend on the learner and on the data.
    pub fn shared_resolved_for<L: Learner>(&self, learner: &L, problem: &Problem<'_>, validated: bool) -> Result<Self> {
        let mut resolved = self.clone();
        let stop = &mut resolved.stop;
        let watched = *stop.watched.get_or_insert_default();
        let can_stop = watched == Watched::Accuracy || learner.can_be_validated();
        let can_stop = can_stop && self.record_every != Some(0);
        stop.patience = stop.patience.or((validated && can_stop).then_some(PATIENCE));
        resolved.record_loss.get_or_insert(true);
        if resolved.record_every.is_none() {
            resolved.record_every = Some(between_records(learner, problem, stop.max_steps)?);
        }
        Ok(resolved)
    }
}

/// Steps between two records by default.
fn between_records<L: Learner>(learner: &L, problem: &Problem<'_>, steps: Option<u64>) -> Result<u64> {
    let n = problem.len() as u64;
    let entries = n.saturating_mul(problem.mdp(0)?.kernel().n_entries() as u64);
    let per_pass = n.div_ceil(learner.demonstrations_per_step(problem).max(1));
    let worth_while = entries / ENTRIES_PER_STEP * per_pass / n;
    let steps = steps.map_or_else(|| learner.recorded_span(problem), Ok)?;
    Ok(steps.div_ceil(RECORDS).max(LEAST_BETWEEN_RECORDS).max(worth_while))
}

/// Refuses counts of nothing.
pub(crate) fn check_count(name: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        Ok(())
    } else {
        Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" })
    }
}
