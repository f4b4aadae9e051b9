//! The contextual planner: a model, and plans for rewards in its contexts, again and again while a mapping changes a little.

use super::backend::{Backend, Cpu};
use super::origin::Query;
use crate::error::{Result, check_length};
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{ManyOptions, PlannedReward, Policy, PolicyMemory, evaluate};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Exact plans for rewards in contexts among the known pairs of a model, by a [`Backend`]. Where one kernel serves all contexts, policies met before are tried first;
/// the results are those of planning afresh. Counts what it does.
pub struct ContextualPlanner<'a> {
    model: &'a Cmdp,
    /// The model among its known pairs, where some are not known; made when first planned for.
    known: OnceLock<Option<Cmdp>>,
    backend: Box<dyn Backend>,
    /// None where every plan is to cost what it costs.
    memory: Option<PolicyMemory>,
    plans: AtomicU64,
    backups: AtomicU64,
    nanoseconds: AtomicU64,
}

/// What is optimal for a reward in a context.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Response {
    /// The policy.
    pub policy: Policy,
    /// μ, from the start that was asked about.
    pub feature_expectations: Arc<[f64]>,
}

impl<'a> ContextualPlanner<'a> {
    /// Plans on this machine's processor.
    pub fn new(model: &'a Cmdp) -> Self {
        Self::with_backend(model, Box::new(Cpu::default()))
    }

    /// Plans with another back end.
    pub fn with_backend(model: &'a Cmdp, backend: Box<dyn Backend>) -> Self {
        let (plans, backups, nanoseconds) = Default::default();
        let (known, memory) = (OnceLock::new(), Some(PolicyMemory::default()));
        Self { model, known, backend, memory, plans, backups, nanoseconds }
    }

    /// Plans from scratch each time: nothing changes but the cost, which then does not depend on what was planned before.
    pub fn without_memory(self) -> Self {
        Self { memory: None, ..self }
    }

    /// The model.
    pub fn model(&self) -> &'a Cmdp {
        self.model
    }

    /// The model that is planned in: what nobody takes, no plan takes.
    pub fn planned_model(&self) -> Result<&Cmdp> {
        if let Some(known) = self.known.get() {
            return Ok(known.as_ref().unwrap_or(self.model));
        }
        let known = self.model.among_known()?;
        Ok(self.known.get_or_init(|| known).as_ref().unwrap_or(self.model))
    }

    /// Number of plans made so far.
    pub fn plans(&self) -> u64 {
        self.plans.load(Ordering::Relaxed)
    }

    /// Bellman backups so far: one for each sweep and each pair of a state and an action. A policy that is met again costs the one sweep
    /// that confirms it. Plans whose values are solved for count as far as they are made by sweeps.
    pub fn backups(&self) -> u64 {
        self.backups.load(Ordering::Relaxed)
    }

    /// Time spent planning so far. A clock: not part of any result.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    /// Takes note of plans that were made elsewhere for these contexts.
    pub fn count_plans(&self, plans: u64) {
        self.plans.fetch_add(plans, Ordering::Relaxed);
    }

    /// Takes note of sweeps over all states and actions that were made elsewhere.
    pub fn count_sweeps(&self, sweeps: usize) {
        self.backups.fetch_add(sweeps as u64 * self.model.pairs().len() as u64, Ordering::Relaxed);
    }

    /// The policies that are optimal for rewards (`weights`, row by row) with their feature expectations, one per query; from memory
    /// where that knows them.
    pub fn best_responses(&self, queries: &[Query<'_>], weights: &[f64]) -> Result<Vec<Response>> {
        let contexts: Vec<&Context> = queries.iter().map(|query| query.context).collect();
        if !queries.iter().all(Query::starts_like_the_model) {
            let evaluated = |(policy, query): (Policy, &Query<'_>)| {
                let feature_expectations = query.feature_expectations(self.model, &policy)?.into();
                Ok(Response { policy, feature_expectations })
            };
            return self.policies(&contexts, weights)?.into_par_iter().zip(queries).map(evaluated).collect();
        }
        let (began, k) = (Instant::now(), self.model.n_features());
        check_length("weights", contexts.len() * k, weights.len())?;
        let model = self.planned_model()?;
        let remembering = match (model.dynamics(), &self.memory) {
            (Dynamics::Shared(_), Some(memory)) => Some((memory, model.shared_mdp()?)),
            _ => None,
        };
        let recall = |w: &[f64]| match &remembering {
            Some((memory, mdp)) => memory.recall(mdp, w),
            None => Ok(None),
        };
        let mut found: Vec<_> = weights.par_chunks_exact(k).map(recall).collect::<Result<_>>()?;
        self.count_sweeps(found.iter().flatten().count());
        let missing: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_none()).collect();
        let new_contexts: Vec<&Context> = missing.iter().map(|&i| contexts[i]).collect();
        let new_weights: Vec<f64> = missing.iter().flat_map(|&i| &weights[i * k..(i + 1) * k]).copied().collect();
        let plans = self.backend.plan(model, &new_contexts, &new_weights, ManyOptions::default())?;
        check_length("plans of the back end", missing.len(), plans.len())?;
        self.note(&plans, contexts.len(), began);
        for (&i, PlannedReward { policy, feature_expectations, .. }) in missing.iter().zip(plans) {
            let mu: Arc<[f64]> = feature_expectations.unwrap_or_default().into();
            if let Some((memory, mdp)) = &remembering {
                memory.remember(mdp, &policy, &mu)?;
            }
            found[i] = Some((policy, mu));
        }
        let response = |(policy, feature_expectations)| Response { policy, feature_expectations };
        Ok(found.into_iter().flatten().map(response).collect())
    }

    /// Optimal policies with their feature expectations from the model's own start.
    pub fn responses(&self, contexts: &[&Context], weights: &[f64]) -> Result<Vec<Response>> {
        let queries: Vec<Query<'_>> = contexts.iter().map(|context| Query::from_the_start(context)).collect();
        self.best_responses(&queries, weights)
    }

    /// The feature expectations of acting at random, by known actions, from the start of each query.
    pub fn random_responses(&self, queries: &[Query<'_>]) -> Result<Vec<Vec<f64>>> {
        let random = self.model.random_policy();
        let shared = match self.model.dynamics() {
            Dynamics::Shared(_) if queries.iter().any(Query::starts_like_the_model) => {
                Some(evaluate::feature_expectations(&self.model.shared_mdp()?, &random)?)
            }
            _ => None,
        };
        let of = |query: &Query<'_>| match &shared {
            Some(mu) if query.starts_like_the_model() => Ok(mu.clone()),
            _ => query.feature_expectations(self.model, &random),
        };
        queries.par_iter().map(of).collect()
    }

    /// Optimal policies alone, where feature expectations are wanted from another start or not at all.
    pub fn policies(&self, contexts: &[&Context], weights: &[f64]) -> Result<Vec<Policy>> {
        if matches!(self.model.dynamics(), Dynamics::Shared(_)) && PolicyMemory::suits(&self.model.shared_mdp()?) {
            return Ok(self.responses(contexts, weights)?.into_iter().map(|response| response.policy).collect());
        }
        Ok(self.values(contexts, weights)?.into_iter().map(|(policy, _)| policy).collect())
    }

    /// Optimal policies with the values of all states. Nothing is remembered.
    pub fn values(&self, contexts: &[&Context], weights: &[f64]) -> Result<Vec<(Policy, Vec<f64>)>> {
        let (began, wanted) = (Instant::now(), ManyOptions { feature_expectations: false, values: true });
        let plans = self.backend.plan(self.planned_model()?, contexts, weights, wanted)?;
        check_length("plans of the back end", contexts.len(), plans.len())?;
        self.note(&plans, contexts.len(), began);
        Ok(plans.into_iter().map(|plan| (plan.policy, plan.values.unwrap_or_default())).collect())
    }

    /// Takes note of what the back end did for so many contexts.
    fn note(&self, made: &[PlannedReward], contexts: usize, began: Instant) {
        self.count_sweeps(made.iter().map(|plan| plan.certificate.sweeps).sum());
        self.count_plans(contexts as u64);
        let spent = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(spent, Ordering::Relaxed);
    }
}
