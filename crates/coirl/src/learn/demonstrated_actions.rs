//! Which actions were taken where: how often each pair was chosen in each demonstration.

use super::problem::Problem;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// The pairs of every demonstration with their counts; empty for demonstrations without trajectories.
#[derive(Debug)]
pub(crate) struct DemonstratedActions {
    counts: Vec<Vec<(usize, f64)>>,
    total: f64,
    left_out: f64,
    without_choice: f64,
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
        Ok(Self { counts, total, left_out: 0.0, without_choice: 0.0 })
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

    /// The decisions among them, which are all that tells one policy from another: where a state has a choice among its known actions
    /// (or, unmasked, among its admissible ones) and can be left. Masked, actions that are not known are left out.
    pub(crate) fn decisions(problem: &Problem<'_>, masked: bool) -> Result<Self> {
        let (model, all) = (problem.model(), Self::needed(problem, "cloning")?);
        let choices = |s: usize| model.pairs().of_state(s).filter(|&pair| !masked || model.is_known(pair));
        let with_choice: Vec<bool> =
            (0..model.n_states()).map(|s| choices(s).nth(1).is_some() && !model.dynamics().is_absorbing(s)).collect();
        let demonstrated = all.total;
        let known = all.only(|pair| !masked || model.is_known(pair));
        if known.total == 0.0 {
            return Err(Error::NoKnownActions { demonstrated: demonstrated as u64 });
        }
        let left_out = demonstrated - known.total;
        let decisions = known.only(|pair| with_choice[model.pairs().state(pair).index()]);
        if decisions.total == 0.0 {
            return Err(Error::NoDecisions { demonstrated: demonstrated as u64 });
        }
        Ok(Self { left_out, without_choice: demonstrated - left_out - decisions.total, ..decisions })
    }

    /// Those of some pairs.
    fn only(self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = |own: Vec<(usize, f64)>| own.into_iter().filter(|entry| keep(entry.0)).collect::<Vec<_>>();
        let counts: Vec<_> = self.counts.into_iter().map(kept).collect();
        Self { total: counts.iter().flatten().map(|entry| entry.1).sum(), counts, ..self }
    }

    /// What was not learned from because it is not known, in words; nothing where all is.
    pub(crate) fn left_out_in_words(&self) -> Option<String> {
        let (out, all) = (self.left_out, self.total + self.left_out + self.without_choice);
        (out > 0.0).then(|| format!("{out} of {all} demonstrated actions are not known and were left out"))
    }

    /// How many actions were seen, but for those left out and those that were no decision.
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
