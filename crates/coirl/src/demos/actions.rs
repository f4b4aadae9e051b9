//! Which actions were taken where: how often each pair was chosen in each demonstration.

use super::Trajectory;
use crate::error::{Error, Result};
use crate::model::{Cmdp, Pairs};
use std::collections::BTreeMap;

/// The pairs of every demonstration with their counts; empty for demonstrations without trajectories.
#[derive(Debug, Clone)]
pub struct DemonstratedActions {
    counts: Vec<Vec<(usize, f64)>>,
    total: f64,
    left_out: f64,
    without_choice: f64,
}

impl DemonstratedActions {
    /// Counts the actions along the trajectories of every demonstration.
    pub fn count(pairs: &Pairs, trajectories: &[Vec<Trajectory>]) -> Result<Self> {
        let mut counts = Vec::with_capacity(trajectories.len());
        for of_demonstration in trajectories {
            let mut own = BTreeMap::new();
            for trajectory in of_demonstration {
                for t in 0..trajectory.actions.len() {
                    *own.entry(trajectory.pair(pairs, t)?).or_insert(0.0) += 1.0;
                }
            }
            counts.push(own.into_iter().collect::<Vec<_>>());
        }
        let total = counts.iter().flatten().map(|entry| entry.1).sum();
        Ok(Self { counts, total, left_out: 0.0, without_choice: 0.0 })
    }

    /// No actions of so many demonstrations.
    pub(super) fn none(n: usize) -> Self {
        Self { counts: vec![Vec::new(); n], total: 0.0, left_out: 0.0, without_choice: 0.0 }
    }

    /// Refuses data without actions, for a method that cannot do without.
    pub fn or_refuse(&self, method: &'static str) -> Result<&Self> {
        if self.total > 0.0 { Ok(self) } else { Err(Error::NoActions { method }) }
    }

    /// The decisions among them, which are all that tells one policy from another: where a state has a choice among its known actions
    /// (or, unmasked, among its admissible ones) and can be left. Masked, actions that are not known are left out.
    pub fn decisions(&self, model: &Cmdp, masked: bool) -> Result<Self> {
        self.or_refuse("cloning")?;
        let choices = |s: usize| model.pairs().of_state(s).filter(|&pair| !masked || model.is_known(pair));
        let with_choice: Vec<bool> =
            (0..model.n_states()).map(|s| choices(s).nth(1).is_some() && !model.dynamics().is_absorbing(s)).collect();
        let known = self.only(|pair| !masked || model.is_known(pair));
        if known.total == 0.0 {
            return Err(Error::NoKnownActions { demonstrated: self.total as u64 });
        }
        let left_out = self.total - known.total;
        let decisions = known.only(|pair| with_choice[model.pairs().state(pair).index()]);
        if decisions.total == 0.0 {
            return Err(Error::NoDecisions { demonstrated: self.total as u64 });
        }
        Ok(Self { left_out, without_choice: self.total - left_out - decisions.total, ..decisions })
    }

    /// Those of some pairs.
    fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = |own: &Vec<(usize, f64)>| own.iter().copied().filter(|entry| keep(entry.0)).collect::<Vec<_>>();
        let counts: Vec<_> = self.counts.iter().map(kept).collect();
        Self { total: counts.iter().flatten().map(|entry| entry.1).sum(), counts, ..*self }
    }

    /// Those of some demonstrations, in this order.
    pub(super) fn select(&self, indices: &[usize]) -> Self {
        let counts: Vec<_> = indices.iter().map(|&i| self.counts[i].clone()).collect();
        Self { total: counts.iter().flatten().map(|entry| entry.1).sum(), counts, ..*self }
    }

    /// How many actions were seen, but for those left out and those that were no decision.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// How many actions were left out, because they are not known.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// How many actions were seen altogether.
    pub fn seen(&self) -> f64 {
        self.total + self.left_out + self.without_choice
    }

    /// The pairs of a demonstration, ascending, with how often each was chosen.
    pub fn of_demonstration(&self, index: usize) -> &[(usize, f64)] {
        &self.counts[index]
    }

    /// Σ of a number per pair over the actions of a demonstration.
    pub fn sum(&self, index: usize, of_pair: impl Fn(usize) -> f64) -> f64 {
        self.counts[index].iter().map(|&(pair, count)| count * of_pair(pair)).sum()
    }

    /// Per action seen; nothing where none was.
    pub fn mean(&self, sum: f64) -> Option<f64> {
        (self.total > 0.0).then(|| sum / self.total)
    }
}
