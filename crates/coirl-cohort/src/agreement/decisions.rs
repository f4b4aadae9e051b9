//! Recorded decisions beside what an agent would have done.

use super::{Answers, dose_levels};
use crate::recorded_steps::{check_actions, check_probabilities};
use coirl::check::{check_finite, check_length};
use coirl::{Error, Result};
use std::collections::BTreeMap;

/// One entry per step of all patients, in any order.
#[derive(Debug, Clone, Copy)]
pub struct Decisions<'a> {
    /// Whose step it is.
    pub patients: &'a [u64],
    /// What was done.
    pub recorded: &'a [u32],
    /// Number of actions.
    pub n_actions: usize,
    /// The agent's probability of each action, row-major [step, action]; a deterministic agent has rows of zeros and a one.
    pub probabilities: &'a [f64],
    /// Scores that rank actions of equal probability, such as Q values, row-major [step, action]. They order what a deterministic
    /// agent leaves at probability zero.
    pub scores: Option<&'a [f64]>,
    /// The agent's probability of what was done at every step, where that is not the one in `probabilities`: of an agent that ranks actions by one
    /// policy and believes in another.
    pub of_recorded: Option<&'a [f64]>,
    /// Levels of each dose where actions are combinations of them, the first dose most significant: with `[5, 5]` action 7 is level 1
    /// of the first dose and 2 of the second. Empty where actions are not doses.
    pub levels: &'a [usize],
}

/// A label per patient.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// What the labels say: age group, sex.
    pub name: String,
    /// Label of each patient; a patient without one is in no group.
    pub labels: BTreeMap<u64, String>,
}

impl Decisions<'_> {
    /// Refuses tables that do not fit together.
    pub(super) fn check(&self) -> Result<()> {
        let n_steps = self.patients.len();
        if n_steps == 0 {
            return Err(Error::shape("recorded decisions", "at least one step", 0));
        }
        check_length("recorded actions", n_steps, self.recorded.len())?;
        check_actions(self.n_actions, self.recorded)?;
        check_probabilities(n_steps, self.n_actions, self.probabilities)?;
        if let Some(scores) = self.scores {
            check_length("action scores [step, action]", n_steps * self.n_actions, scores.len())?;
            check_finite("action scores [step, action]", scores)?;
        }
        if let Some(own) = self.of_recorded {
            check_length("probabilities of recorded actions", n_steps, own.len())?;
            check_finite("probabilities of recorded actions", own)?;
        }
        dose_levels::check(self.levels, self.n_actions)
    }

    /// Whether the agent's first action is the recorded one at every step, and −ln of its probability of that, which is at least `floor`.
    pub(crate) fn answers(&self, floor: f64) -> Answers {
        let steps = 0..self.patients.len();
        Answers {
            same: steps
                .clone()
                .map(|step| self.first_three(step).first() == Some(&(self.recorded[step] as usize)))
                .collect(),
            log_loss: steps.map(|step| -self.probability(step).max(floor).ln()).collect(),
        }
    }

    /// The agent's probability of the recorded action.
    pub(super) fn probability(&self, step: usize) -> f64 {
        self.of_recorded.map_or_else(|| self.row(step)[self.recorded[step] as usize], |own| own[step])
    }

    pub(super) fn row(&self, step: usize) -> &[f64] {
        &self.probabilities[step * self.n_actions..(step + 1) * self.n_actions]
    }

    /// The agent's first three actions, fewer where fewer are ranked.
    pub(super) fn first_three(&self, step: usize) -> Vec<usize> {
        let row = self.row(step);
        let scores = self.scores.map(|scores| &scores[step * self.n_actions..(step + 1) * self.n_actions]);
        let score = |action: usize| scores.map_or(0.0, |scores| scores[action]);
        // A stable sort keeps the order of the numbers among equals.
        let mut ranked: Vec<usize> = (0..row.len()).filter(|&action| row[action] > 0.0 || scores.is_some()).collect();
        ranked.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(score(b).total_cmp(&score(a))));
        ranked.truncate(3);
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_ranked_by_probability_then_score_then_number() {
        let certain = [0.0, 0.0, 0.0, 1.0];
        let q = [0.1, 0.9, 0.9, 0.5];
        let decisions = |probabilities, scores| Decisions {
            patients: &[1],
            recorded: &[0],
            n_actions: 4,
            probabilities,
            scores,
            of_recorded: None,
            levels: &[],
        };
        assert_eq!(decisions(&certain, None).first_three(0), [3]);
        assert_eq!(decisions(&certain, Some(&q)).first_three(0), [3, 1, 2]);
        assert_eq!(decisions(&[0.2, 0.4, 0.0, 0.4], None).first_three(0), [1, 3, 0]);
    }
}
