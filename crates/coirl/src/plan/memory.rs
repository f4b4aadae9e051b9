//! Policies met before, and whether one of them is the answer.
//!
//! Learning plans again and again on one kernel for rewards that change a little, and the optimal policies repeat. Of a policy
//! met twice its successor features ψ are kept; for new weights w its values are ψ·w, and a single backup tells whether
//! it is optimal. If it is, the answer is exactly what planning would give, at a hundredth of the price; if not, nothing
//! but that backup is lost. The candidate is the policy whose values are the highest on average over all states.

use crate::error::Result;
use crate::model::{Criterion, Mdp};
use crate::plan::evaluate;
use crate::plan::kernels::buffers::Buffers;
use crate::plan::kernels::linear::sup_norm;
use crate::plan::kernels::sweep::improve;
use crate::plan::policy::{Policy, pairs_of};
use crate::plan::problem::Problem;
use crate::plan::solve::exact::{GAIN_TOLERANCE, TIE_TOLERANCE, lowest_of_ties};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

/// Bytes of successor features that may be kept.
const MEMORY_BYTES: usize = 128 << 20;
/// Successor features of more features than this cost more than they save.
const MAX_FEATURES: usize = 32;

/// A policy with its feature expectations.
pub(crate) type KnownPlan = (Policy, Arc<[f64]>);

/// Policies of one process. Shared between threads; what it returns does not depend on what it holds, only how fast.
#[derive(Default)]
pub(crate) struct PolicyMemory {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    entries: Vec<Entry>,
    by_policy: HashMap<Arc<[u32]>, usize>,
    met_once: HashSet<Arc<[u32]>>,
}

struct Entry {
    chosen: Arc<[u32]>,
    /// ψ, one column per feature.
    successor_features: Vec<f64>,
    /// The mean of ψ over all states.
    mean: Vec<f64>,
    feature_expectations: Arc<[f64]>,
}

impl PolicyMemory {
    /// Whether policies of this process are worth remembering.
    pub(crate) fn suits(mdp: &Mdp<'_>) -> bool {
        let k = mdp.features().n_features();
        matches!(mdp.criterion(), Criterion::Discounted { .. })
            && k <= MAX_FEATURES
            && mdp.n_states() * k * 8 <= MEMORY_BYTES / 16
    }

    /// The exact plan for these weights, if a policy met before is it.
    pub(crate) fn recall(&self, mdp: &Mdp<'_>, weights: &[f64]) -> Result<Option<KnownPlan>> {
        let Ok(known) = self.known.read() else { return Ok(None) };
        let value = |entry: &Entry| entry.mean.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
        let best = known.entries.iter().map(|entry| (value(entry), entry)).reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((_, entry)) = best else { return Ok(None) };
        let n = mdp.n_states();
        let mut values = vec![0.0; n];
        for (column, w) in entry.successor_features.chunks_exact(n).zip(weights) {
            values.iter_mut().zip(column).for_each(|(v, x)| *v += w * x);
        }
        let reward = mdp.reward(weights)?;
        let problem = Problem::new(mdp, &reward)?;
        let mut backed = vec![0.0; n];
        let mut buffers = Buffers::lent(problem.kernel.n_entries());
        improve(problem.numbers(), &values, &mut backed, &mut buffers.q);
        let threshold = GAIN_TOLERANCE * sup_norm(&values);
        let optimal = backed.iter().zip(&values).all(|(best, own)| best - own <= threshold);
        let chosen = optimal.then(|| lowest_of_ties(&problem, &buffers.q, TIE_TOLERANCE));
        // Ties may be broken differently for other weights.
        let found = chosen.and_then(|chosen| match *chosen == *entry.chosen {
            true => Some(entry),
            false => known.by_policy.get(chosen.as_slice()).map(|&at| &known.entries[at]),
        });
        Ok(found.map(|entry| (Policy::from_pairs(mdp.pairs(), &entry.chosen), entry.feature_expectations.clone())))
    }

    /// Takes note of the exact plan for some weights; keeps it from the second time on.
    pub(crate) fn remember(&self, mdp: &Mdp<'_>, policy: &Policy, feature_expectations: &[f64]) -> Result<()> {
        let Policy::Stationary(actions) = policy else { return Ok(()) };
        if !Self::suits(mdp) {
            return Ok(());
        }
        let chosen: Arc<[u32]> = pairs_of(mdp.pairs(), actions)?.into();
        {
            let Ok(mut known) = self.known.write() else { return Ok(()) };
            let entry_bytes = 8 * mdp.n_states() * (mdp.features().n_features() + 1);
            let full = (known.entries.len() + 1) * entry_bytes > MEMORY_BYTES;
            if full || known.by_policy.contains_key(&chosen) {
                return Ok(());
            }
            if !known.met_once.remove(&chosen) {
                if known.met_once.len() * 4 * chosen.len() <= MEMORY_BYTES {
                    known.met_once.insert(chosen);
                }
                return Ok(());
            }
        }
        let (n, k) = (mdp.n_states(), mdp.features().n_features());
        let rows = evaluate::successor_features(mdp, policy)?;
        let successor_features: Vec<f64> =
            (0..k).flat_map(|j| (0..n).map(move |s| (s, j))).map(|(s, j)| rows[s * k + j]).collect();
        let mean = successor_features.chunks_exact(n).map(|column| column.iter().sum::<f64>() / n as f64).collect();
        let entry = Entry {
            chosen: chosen.clone(),
            successor_features,
            mean,
            feature_expectations: feature_expectations.into(),
        };
        if let Ok(mut known) = self.known.write() {
            let at = known.entries.len();
            if known.by_policy.insert(chosen, at).is_none() {
                known.entries.push(entry);
            }
        }
        Ok(())
    }
}
