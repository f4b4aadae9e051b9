//! What every table of recorded decisions must satisfy: actions that exist, and a distribution over actions at every step.

use coirl::check::{check_finite, check_length};
use coirl::{Error, Result};

/// How far a row may be from summing to one: probabilities of single precision are welcome.
const ROW_TOLERANCE: f64 = 1e-5;

/// Refuses actions that do not exist.
pub(crate) fn check_actions(n_actions: usize, actions: &[u32]) -> Result<()> {
    match actions.iter().position(|&action| action as usize >= n_actions) {
        Some(step) => Err(Error::ActionOutOfRange { step, action: actions[step] as usize, n_actions }),
        None => Ok(()),
    }
}

/// Refuses rows [step, action] that are not distributions.
pub(crate) fn check_probabilities(n_steps: usize, n_actions: usize, probabilities: &[f64]) -> Result<()> {
    check_length("action probabilities [step, action]", n_steps * n_actions, probabilities.len())?;
    check_finite("action probabilities [step, action]", probabilities)?;
    for (step, row) in probabilities.chunks_exact(n_actions.max(1)).enumerate() {
        let sum: f64 = row.iter().sum();
        if (sum - 1.0).abs() > ROW_TOLERANCE || row.iter().any(|p| *p < 0.0) {
            return Err(Error::StepNotStochastic { step, sum });
        }
    }
    Ok(())
}
