//! Maximum likelihood with a Dirichlet prior,
//!
//! ```text
//! P̂(s' | s, a) = (n(s, a, s') + α p₀(s')) / (n(s, a) + α).
//! ```
//!
//! The row of a pair seen n times is a mean of its frequencies with weight n and of the prior's row with weight α, so its
//! error falls as 1/√n. A pair never seen has the prior's row where α is above zero; at α = 0 it is refused by name, or
//! follows p₀ if that was asked for ([`Unseen`]). Cost: one pass over the distinct transitions and the prior's rows.

use super::counts::TransitionCounts;
use super::prior::{Prior, Unseen};
use super::support::Support;
use crate::error::{Error, Result};
use crate::model::{Kernel, KernelBuilder};

/// A kernel with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedKernel {
    /// P̂.
    pub kernel: Kernel,
    /// How often each pair was seen.
    pub support: Support,
}

/// P̂ of the counts.
pub fn maximum_likelihood(counts: &TransitionCounts, prior: &Prior) -> Result<LearnedKernel> {
    prior.check(counts)?;
    let pairs = counts.pairs();
    let mut builder = KernelBuilder::new(pairs.clone());
    for state in 0..pairs.n_states() {
        let mean = prior.of_state(counts, state);
        for pair in pairs.of_state(state) {
            let row = posterior(counts.row(pair), &mean.of(pair), prior.strength);
            if row.is_empty() && prior.unseen == Unseen::Refused {
                return Err(Error::PairNeverSeen { state, action: pairs.action(pair).index() });
            }
            let row = if row.is_empty() { mean.of(pair).into_owned() } else { row };
            builder.push_row(row.into_iter().map(|(next, p)| (i64::from(next), p)))?;
        }
    }
    Ok(LearnedKernel { kernel: builder.finish()?, support: counts.support() })
}

/// (n + α p₀) / (Σn + α), successors ascending; empty where nothing is known.
fn posterior(seen: &[(u32, u64)], mean: &[(u32, f64)], strength: f64) -> Vec<(u32, f64)> {
    let mass = observed_and_believed(seen, mean, strength);
    let total: f64 = mass.iter().map(|entry| entry.1).sum();
    mass.into_iter().map(|(next, mass)| (next, mass / total)).collect()
}

/// n + α p₀ over the successors where it is not zero, ascending.
pub(super) fn observed_and_believed(seen: &[(u32, u64)], mean: &[(u32, f64)], strength: f64) -> Vec<(u32, f64)> {
    let mut mass: Vec<(u32, f64)> = seen.iter().map(|&(next, times)| (next, times as f64)).collect();
    mass.extend(mean.iter().map(|&(next, p)| (next, strength * p)).filter(|entry| entry.1 > 0.0));
    mass.sort_by_key(|entry| entry.0);
    mass.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 += later.1;
        }
        same
    });
    mass
}
