//! Planning again and again in one model, for mappings that change a little.

use super::plan_contexts;
use crate::error::Result;
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, Planner, Policy, PolicyMemory};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Exact plans with their feature expectations from the model's start. Where one kernel serves all contexts, policies met
/// before are tried first; the results are those of planning afresh.
pub(crate) struct RepeatedPlans<'a> {
    model: &'a Cmdp,
    memory: PolicyMemory,
}

impl<'a> RepeatedPlans<'a> {
    pub(crate) fn new(model: &'a Cmdp) -> Self {
        Self { model, memory: PolicyMemory::default() }
    }

    pub(crate) fn model(&self) -> &'a Cmdp {
        self.model
    }

    /// One plan per context, for those who want feature expectations from another start only.
    pub(crate) fn policies(&self, contexts: &[Context], weights: &[f64]) -> Result<Vec<Policy>> {
        if matches!(self.model.dynamics(), Dynamics::Shared(_)) && PolicyMemory::suits(&self.model.shared_mdp()?) {
            return Ok(self.plan(contexts, weights)?.into_iter().map(|(policy, _)| policy).collect());
        }
        Ok(self.values(contexts, weights)?.into_iter().map(|(policy, _)| policy).collect())
    }

    /// One plan per context with the values of all states. Nothing is remembered.
    pub(crate) fn values(&self, contexts: &[Context], weights: &[f64]) -> Result<Vec<(Policy, Vec<f64>)>> {
        let options = ManyOptions { feature_expectations: false, values: true };
        let mut plans = Vec::with_capacity(contexts.len());
        plan_contexts(self.model, contexts, weights, &Planner::default(), options, |plan| {
            plans.push((plan.policy, plan.values.unwrap_or_default()));
            ControlFlow::Continue(())
        })?;
        Ok(plans)
    }

    /// One plan per context; `weights` holds `n_features` numbers for each.
    pub(crate) fn plan(&self, contexts: &[Context], weights: &[f64]) -> Result<Vec<(Policy, Arc<[f64]>)>> {
        let k = self.model.n_features();
        let mdp = match self.model.dynamics() {
            Dynamics::Shared(_) => Some(self.model.shared_mdp()?),
            Dynamics::Mixture(_) | Dynamics::Clusters(_) => None,
        };
        let recall = |w: &[f64]| mdp.as_ref().map_or(Ok(None), |mdp| self.memory.recall(mdp, w));
        let mut plans: Vec<Option<(Policy, Arc<[f64]>)>> =
            weights.par_chunks_exact(k).map(recall).collect::<Result<_>>()?;
        let missing: Vec<usize> = (0..plans.len()).filter(|&i| plans[i].is_none()).collect();
        let new_contexts: Vec<Context> = missing.iter().map(|&i| contexts[i].clone()).collect();
        let new_weights: Vec<f64> = missing.iter().flat_map(|&i| &weights[i * k..(i + 1) * k]).copied().collect();
        let mut at = missing.iter();
        plan_contexts(self.model, &new_contexts, &new_weights, &Planner::default(), ManyOptions::default(), |plan| {
            if let Some(&i) = at.next() {
                plans[i] = Some((plan.policy, plan.feature_expectations.unwrap_or_default().into()));
            }
            ControlFlow::Continue(())
        })?;
        let plans: Vec<(Policy, Arc<[f64]>)> = plans.into_iter().flatten().collect();
        if let Some(mdp) = &mdp {
            missing.iter().try_for_each(|&i| self.memory.remember(mdp, &plans[i].0, &plans[i].1))?;
        }
        Ok(plans)
    }
}
