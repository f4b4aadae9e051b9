//! Which actions were taken where: how often each pair was chosen in each demonstration.

use super::problem::Problem;
use crate::error::{Error, Result};
use crate::model::Cmdp;
use std::collections::BTreeMap;

/// The pairs of every demonstration with their counts; empty for demonstrations without trajectories.
#[derive(Debug)]
pub(crate) struct DemonstratedActions {
    counts: Vec<Vec<(usize, f64)>>,
    total: f64,
    left_out: f64,
}

impl DemonstratedActions {
    pub(crate) fn of(problem: &Problem<'_>) -> Result<Self> {
        let pairs = problem.model().pairs();
        let mut counts = Vec::with_capacity(problem.len());
        for i in 0..problem.len() {
            let mut own = BTreeMap::new();
            for trajectory in problem.trajectories(i) {
                for t in 0..trajectory.actions.len() {
                    *own.entry(trajectory.pair(pairs, t)?).or_insert(0.0) += 1.0;
                }
            }
            counts.push(own.into_iter().collect::<Vec<_>>());
        }
        let total = counts.iter().flatten().map(|entry| entry.1).sum();
        Ok(Self { counts, total, left_out: 0.0 })
    }

    /// The same for a method that cannot do without.
    pub(crate) fn needed(problem: &Problem<'_>, method: &'static str) -> Result<Self> {
        let actions = Self::of(problem)?;
        actions.or_refuse(method)?;
        Ok(actions)
    }

    /// An error that names the method, where there are none.
    pub(crate) fn or_refuse(&self, method: &'static str) -> Result<()> {
        if self.total > 0.0 { Ok(()) } else { Err(Error::NoActions { method }) }
    }

    /// Those that are known; an error where none is.
    pub(crate) fn known(self, model: &Cmdp) -> Result<Self> {
        let kept = |own: Vec<(usize, f64)>| own.into_iter().filter(|entry| model.is_known(entry.0)).collect::<Vec<_>>();
        let counts: Vec<_> = self.counts.into_iter().map(kept).collect();
        let total: f64 = counts.iter().flatten().map(|entry| entry.1).sum();
        if total == 0.0 {
            return Err(Error::NoKnownActions { demonstrated: self.total as u64 });
        }
        Ok(Self { counts, total, left_out: self.left_out + self.total - total })
    }

    /// How many actions were seen, but for those left out.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    /// How many actions were left out, because they are not known.
    pub(crate) fn left_out(&self) -> f64 {
        self.left_out
    }

    /// The pairs of a demonstration, ascending, with how often each was chosen.
    pub(crate) fn of_demonstration(&self, index: usize) -> &[(usize, f64)] {
        &self.counts[index]
    }

    /// Σ of a number per pair over the actions of a demonstration.
    pub(crate) fn sum(&self, index: usize, of_pair: impl Fn(usize) -> f64) -> f64 {
        self.counts[index].iter().map(|&(pair, count)| count * of_pair(pair)).sum()
    }

    /// Per action seen; nothing where none was.
    pub(crate) fn mean(&self, sum: f64) -> Option<f64> {
        (self.total > 0.0).then(|| sum / self.total)
    }
}
