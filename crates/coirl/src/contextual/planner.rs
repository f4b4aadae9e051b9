//! Planning again and again in one model, for mappings that change a little.

use super::plan_contexts;
use crate::error::Result;
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, Planner, Policy, PolicyMemory};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Exact plans with their feature expectations from the model's start. Where one kernel serves all contexts, policies met
/// before are tried first; the results are those of planning afresh.
pub(crate) struct RepeatedPlans<'a> {
    model: &'a Cmdp,
    memory: PolicyMemory,
    forgetful: bool,
    backups: AtomicU64,
}

impl<'a> RepeatedPlans<'a> {
    pub(crate) fn new(model: &'a Cmdp) -> Self {
        Self { model, memory: PolicyMemory::default(), forgetful: false, backups: AtomicU64::new(0) }
    }

    /// The same without memory: every plan costs what it costs.
    pub(crate) fn forgetful(self) -> Self {
        Self { forgetful: true, ..self }
    }

    pub(crate) fn model(&self) -> &'a Cmdp {
        self.model
    }

    /// Bellman backups so far: one for each sweep and each pair of a state and an action. A policy that is met again costs the one sweep
    /// that confirms it.
    pub(crate) fn backups(&self) -> u64 {
        self.backups.load(Ordering::Relaxed)
    }

    /// Takes note of sweeps over all pairs.
    pub(crate) fn count_sweeps(&self, sweeps: usize) {
        self.backups.fetch_add(sweeps as u64 * self.model.pairs().len() as u64, Ordering::Relaxed);
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
            self.count_sweeps(plan.certificate.sweeps);
            plans.push((plan.policy, plan.values.unwrap_or_default()));
            ControlFlow::Continue(())
        })?;
        Ok(plans)
    }

    /// One plan per context; `weights` holds `n_features` numbers for each.
    pub(crate) fn plan(&self, contexts: &[Context], weights: &[f64]) -> Result<Vec<(Policy, Arc<[f64]>)>> {
        let k = self.model.n_features();
        let mdp = match self.model.dynamics() {
            Dynamics::Shared(_) if self.forgetful => None,
            Dynamics::Shared(_) => Some(self.model.shared_mdp()?),
            Dynamics::Mixture(_) | Dynamics::Clusters(_) => None,
        };
        let recall = |w: &[f64]| mdp.as_ref().map_or(Ok(None), |mdp| self.memory.recall(mdp, w));
        let mut plans: Vec<Option<(Policy, Arc<[f64]>)>> =
            weights.par_chunks_exact(k).map(recall).collect::<Result<_>>()?;
        self.count_sweeps(plans.iter().flatten().count());
        let missing: Vec<usize> = (0..plans.len()).filter(|&i| plans[i].is_none()).collect();
        let new_contexts: Vec<Context> = missing.iter().map(|&i| contexts[i].clone()).collect();
        let new_weights: Vec<f64> = missing.iter().flat_map(|&i| &weights[i * k..(i + 1) * k]).copied().collect();
        let mut at = missing.iter();
        plan_contexts(self.model, &new_contexts, &new_weights, &Planner::default(), ManyOptions::default(), |plan| {
            self.count_sweeps(plan.certificate.sweeps);
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
