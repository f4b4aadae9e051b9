//! How well dynamics foresee transitions: Σ n(c, s, a, s') log P_c(s' | s, a), to compare estimates on transitions that
//! none of them was learned from. Cost: one look-up per distinct (context, state, action, next).

use super::observations::Observations;
use crate::error::{Error, Result};
use crate::model::Dynamics;
use rayon::prelude::*;

/// A sum of log-probabilities. Compare `impossible` first: dynamics that call fewer of the transitions impossible foresee
/// them better, whatever the sums over the rest.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct LogLikelihood {
    /// Σ log P over the transitions with probability above zero.
    pub possible: f64,
    /// All transitions.
    pub transitions: u64,
    /// Transitions among them with probability zero.
    pub impossible: u64,
}

impl LogLikelihood {
    /// Σ log P: −∞ where something happened that the dynamics call impossible.
    pub fn total(&self) -> f64 {
        if self.impossible > 0 { f64::NEG_INFINITY } else { self.possible }
    }

    /// Per transition.
    pub fn mean(&self) -> f64 {
        self.total() / self.transitions as f64
    }
}

/// log P of the transitions, each in its own context.
pub fn log_likelihood(dynamics: &Dynamics, observations: &Observations) -> Result<LogLikelihood> {
    if dynamics.pairs() != observations.pairs() {
        let reason = "its states, actions or admissible pairs differ from those of the transitions".into();
        return Err(Error::IncompatibleKernels { kernel: 0, reason });
    }
    let contexts = observations.contexts();
    let assigned: Vec<usize> = match dynamics {
        Dynamics::Clusters(clusters) => contexts.iter().map(|c| clusters.assign(c)).collect::<Result<_>>()?,
        Dynamics::Shared(_) | Dynamics::Mixture(_) => Vec::new(),
    };
    let of_pair = |pair: usize| -> Result<(f64, u64)> {
        let (mut sum, mut impossible) = (0.0, 0);
        for &((context, next), times) in observations.row(pair) {
            let (context, next) = (context as usize, next as usize);
            let p = match dynamics {
                Dynamics::Shared(kernel) => kernel.probability(pair, next),
                Dynamics::Clusters(clusters) => clusters.kernels()[assigned[context]].probability(pair, next),
                Dynamics::Mixture(mixture) => mixture.probability(&contexts[context], pair, next)?,
            };
            if p > 0.0 {
                sum += times as f64 * p.ln();
            } else {
                impossible += times;
            }
        }
        Ok((sum, impossible))
    };
    // Summed in the order of the pairs, whatever the threads.
    let parts = (0..observations.pairs().len()).into_par_iter().map(of_pair).collect::<Result<Vec<_>>>()?;
    Ok(LogLikelihood {
        possible: parts.iter().map(|part| part.0).sum(),
        transitions: observations.n_transitions(),
        impossible: parts.iter().map(|part| part.1).sum(),
    })
}
