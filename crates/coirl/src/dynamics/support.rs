//! How much was seen of each pair: what an estimate rests on.

use crate::model::Pairs;
use std::sync::Arc;

/// Observations per pair. Whole numbers for a kernel of its own; in a mixture an observation made in context c' counts
/// c·c' times for context c, since it speaks for base kernel i with weight c'ᵢ.
#[derive(Debug, Clone, PartialEq)]
pub struct Support {
    pairs: Arc<Pairs>,
    observations: Vec<f64>,
}

impl Support {
    pub(super) fn new(pairs: Arc<Pairs>, observations: Vec<f64>) -> Self {
        debug_assert_eq!(pairs.len(), observations.len());
        Self { pairs, observations }
    }

    /// The mean of several, weighted.
    pub(super) fn weighted<'s>(parts: impl IntoIterator<Item = (&'s Support, f64)>, pairs: &Arc<Pairs>) -> Self {
        let mut observations = vec![0.0; pairs.len()];
        for (part, weight) in parts {
            observations.iter_mut().zip(&part.observations).for_each(|(sum, n)| *sum += weight * n);
        }
        Self::new(pairs.clone(), observations)
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Arc<Pairs> {
        &self.pairs
    }

    /// Observations of a pair.
    pub fn of(&self, pair: usize) -> f64 {
        self.observations[pair]
    }

    /// Observations of all pairs together.
    pub fn total(&self) -> f64 {
        self.observations.iter().sum()
    }

    /// The pairs with fewer than `threshold` observations, ascending.
    pub fn thin(&self, threshold: f64) -> impl Iterator<Item = usize> + '_ {
        (0..self.observations.len()).filter(move |&pair| self.observations[pair] < threshold)
    }

    /// Number of pairs that were seen at all.
    pub fn n_seen(&self) -> usize {
        self.observations.iter().filter(|&&n| n > 0.0).count()
    }

    /// Share of the pairs that were never seen.
    pub fn share_unseen(&self) -> f64 {
        1.0 - self.n_seen() as f64 / self.observations.len() as f64
    }

    /// The pair with the fewest observations among those seen at all, the first of equals.
    pub fn thinnest_seen(&self) -> Option<usize> {
        let seen = (0..self.observations.len()).filter(|&pair| self.observations[pair] > 0.0);
        seen.min_by(|&a, &b| self.observations[a].total_cmp(&self.observations[b]))
    }
}
