//! How much the context matters to an expert: how different optimal policies are, and what one policy for everybody loses.

use super::plan_contexts;
use crate::error::{Error, Result};
use crate::model::{Cmdp, Context, StateId};
use crate::plan::{ManyOptions, Planner, Policy, evaluate};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Policies that are compared with each other, at most.
const MOST_COMPARED: usize = 200;

/// What contexts do to optimal behaviour. Values are means over contexts, from the model's start.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ContextEffect {
    /// Share of the states in which the optimal policies of two contexts differ, on average.
    pub disagreement: f64,
    /// Value of acting optimally in every context.
    pub expert_value: f64,
    /// Value of the one policy that is optimal for the mean reward.
    pub one_policy_value: f64,
    /// Value of a policy to compare with, such as one that acts at random.
    pub random_value: f64,
    /// (V_one − V_random) / (V_expert − V_random): below this, telling contexts apart does harm.
    pub one_policy_relative: f64,
}

/// Plans in every context for its own reward (row-major weights) and compares, the policies in `states`.
pub fn context_effect(
    model: &Cmdp,
    contexts: &[Context],
    weights: &[f64],
    random: &Policy,
    states: &[StateId],
) -> Result<ContextEffect> {
    if contexts.is_empty() || states.is_empty() {
        return Err(Error::shape("contexts and states to compare", "at least 1 each", 0));
    }
    let (n, k) = (contexts.len() as f64, model.n_features());
    let mut plans = Vec::with_capacity(contexts.len());
    plan_contexts(model, contexts, weights, &Planner::default(), ManyOptions::default(), |plan| {
        plans.push(plan);
        ControlFlow::Continue(())
    })?;
    let rows: Vec<&[f64]> = weights.chunks_exact(k).collect();
    let mean: Vec<f64> = (0..k).map(|j| rows.iter().map(|row| row[j]).sum::<f64>() / n).collect();
    let shared = model.mdp(&contexts[0])?;
    let one = Planner::default().plan(&shared, &shared.reward(&mean)?)?.policy;
    let value = |mu: &[f64], row: &[f64]| mu.iter().zip(row).map(|(x, w)| x * w).sum::<f64>();
    let values = |policy: &Policy| -> Result<f64> {
        let values: Vec<f64> = contexts
            .par_iter()
            .zip(&rows)
            .map(|(context, row)| Ok(value(&evaluate::feature_expectations(&model.mdp(context)?, policy)?, row)))
            .collect::<Result<_>>()?;
        Ok(values.iter().sum::<f64>() / n)
    };
    let expert = |(plan, row): (&crate::plan::PlannedReward, &&[f64])| {
        value(plan.feature_expectations.as_deref().unwrap_or_default(), row)
    };
    let expert_value = plans.iter().zip(&rows).map(expert).sum::<f64>() / n;
    let (one_policy_value, random_value) = (values(&one)?, values(random)?);
    let actions: Vec<_> = plans.iter().take(MOST_COMPARED).filter_map(|plan| plan.policy.actions()).collect();
    let differ = |a: &[crate::model::ActionId], b: &[crate::model::ActionId]| {
        states.iter().filter(|state| a[state.index()] != b[state.index()]).count()
    };
    let compared = actions.len() * actions.len().saturating_sub(1) / 2;
    let different: usize =
        actions.par_iter().enumerate().map(|(i, a)| actions[..i].iter().map(|b| differ(a, b)).sum::<usize>()).sum();
    Ok(ContextEffect {
        disagreement: different as f64 / (compared * states.len()) as f64,
        expert_value,
        one_policy_value,
        random_value,
        one_policy_relative: (one_policy_value - random_value) / (expert_value - random_value),
    })
}
