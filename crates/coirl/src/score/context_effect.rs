//! How much the context matters to an expert: how different optimal policies are, and what one policy for everybody loses.

use super::Examination;
use crate::error::Result;
use crate::model::ActionId;
use rayon::prelude::*;

/// Policies that are compared with each other, at most.
const MOST_COMPARED: usize = 200;

/// What contexts do to optimal behaviour. Values are means over contexts, from the model's start.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ContextEffect {
    /// Share of the states with a choice in which the optimal policies of two contexts differ, on average; not a number
    /// for a single context.
    pub disagreement: f64,
    /// Value of acting optimally in every context.
    pub expert_value: f64,
    /// Value of the one policy that is optimal for the mean context.
    pub one_policy_value: f64,
    /// Value of acting at random, by known actions.
    pub random_value: f64,
    /// (V_one − V_random) / (V_expert − V_random): below this, telling contexts apart does harm.
    pub one_policy_relative: f64,
}

impl Examination<'_> {
    /// Compares the expert's policies in the test contexts with each other and with one for all.
    pub fn context_effect(&self) -> Result<ContextEffect> {
        let states = self.answers().choices();
        let actions: Vec<&[ActionId]> = self.answers().actions().take(MOST_COMPARED).collect();
        let differ = |a: &[ActionId], b: &[ActionId]| states.iter().filter(|&&s| a[s] != b[s]).count();
        let compared = actions.len() * actions.len().saturating_sub(1) / 2;
        let different: usize =
            actions.par_iter().enumerate().map(|(i, a)| actions[..i].iter().map(|b| differ(a, b)).sum::<usize>()).sum();
        let one = self.one_policy()?;
        Ok(ContextEffect {
            disagreement: different as f64 / (compared * states.len()) as f64,
            expert_value: self.expert_value(),
            one_policy_value: one.value,
            random_value: self.random_value(),
            one_policy_relative: one.relative_value,
        })
    }
}
