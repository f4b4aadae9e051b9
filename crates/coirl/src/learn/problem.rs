//! What there is to learn from, and the loss
//!
//! ```text
//! Loss(W) = mean over demonstrations of  max_π f_W(c)·(μ^π_c − μ*_c),     g(W) = mean of  c ⊙ (μ^{π(W)}_c − μ*_c),
//! ```
//!
//! convex in W with subgradient g for exact demonstrations (Lemma 1), and Loss(W) = W·g(W). The loss is positively
//! homogeneous: it is compared and reported per ‖W‖₂. From sampled demonstrations it may be negative; nothing is clamped.
//! Each evaluation plans for all demonstrations asked for, in blocks.

use super::demonstrated_actions::DemonstratedActions;
use super::objective::Objective;
use crate::agent::Agent;
use crate::agent::Predictions;
use crate::contextual::RepeatedPlans;
use crate::demos::{
    Answer, Demonstration, Estimates, Estimator, Evidence, Expert, Origin, RecordedExpert, Reference, Train,
    Trajectory, Validation,
};
use crate::error::{Error, Result, check_length};
use crate::model::digest::{feed_numbers, sha256};
use crate::model::{Cmdp, Context, ContextSpace, Criterion, Dynamics, Mdp, StateId};
use crate::optim::{dot, norm};
use crate::plan::{Policy, evaluate, longest_expected_time};
use rayon::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The feature expectations closer than this are the same for a recorded expert.
const RECORDED_TOLERANCE: f64 = 1e-9;

/// A model with demonstrations, or with an expert to ask about a sequence of contexts.
pub struct Problem<'a> {
    model: &'a Cmdp,
    /// What the dynamics follow.
    contexts: Vec<Context>,
    /// What the mapping is given: the contexts, or a constant.
    inputs: Vec<Context>,
    origins: Vec<Origin>,
    /// Where the agent that is compared with a demonstration starts.
    comparisons: Vec<Comparison>,
    /// μ* of every context; empty where only an expert knows.
    demonstrated: Vec<Vec<f64>>,
    /// Trajectories of every demonstration; none where only its feature expectations are known.
    trajectories: Vec<Vec<Trajectory>>,
    exact: bool,
    bias_bound: f64,
    expert: Option<&'a dyn Expert>,
    recorded: Option<RecordedExpert>,
    /// Which actions were taken where, counted when first asked for.
    actions: OnceLock<DemonstratedActions>,
    planner_calls: AtomicU64,
    /// Nanoseconds of learners' steps: planning, and the rest.
    spent: [AtomicU64; 2],
    plans: RepeatedPlans<'a>,
}

/// Where an agent starts that is compared with a demonstration.
#[derive(Debug, Clone, PartialEq)]
enum Comparison {
    /// Where the demonstration starts.
    Origin,
    /// In every state of the demonstration, less where its action led: Σ γᵗ (e(s_t) − γ P(· | s_t, a_t)); see [`Estimator::Decisions`].
    Decisions(Vec<f64>),
}

/// The loss of a mapping on some demonstrations.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Loss(W).
    pub value: f64,
    /// g(W), flattened as W.
    pub subgradient: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// From demonstrations, with feature expectations estimated where only trajectories are known.
    pub fn new(model: &'a Cmdp, train: &Train, estimator: &Estimator) -> Result<Self> {
        Self::with_reference(model, train, estimator, Reference::Uniform)
    }

    /// The problem that validation demonstrations pose, to watch a run by.
    pub fn validation(model: &'a Cmdp, validation: &Validation, estimator: &Estimator) -> Result<Self> {
        Self::from_demonstrations(model, validation.demonstrations(), estimator, Reference::Uniform)
    }

    /// The same, with a reference policy for the control variate.
    pub fn with_reference(model: &'a Cmdp, train: &Train, estimator: &Estimator, reference: Reference) -> Result<Self> {
        Self::from_demonstrations(model, train.demonstrations(), estimator, reference)
    }

    fn from_demonstrations(
        model: &'a Cmdp,
        demonstrations: &[Demonstration],
        estimator: &Estimator,
        reference: Reference,
    ) -> Result<Self> {
        let estimates = Estimates::new(model, estimator.clone(), reference)?;
        let mut estimated: Vec<_> =
            demonstrations.par_iter().map(|demo| estimates.estimate(demo)).collect::<Result<_>>()?;
        let contexts: Vec<Context> = demonstrations.iter().map(|demo| demo.context().clone()).collect();
        let mut problem = Self::over(model, contexts)?;
        problem.origins = demonstrations.iter().map(|demo| demo.origin().clone()).collect();
        problem.trajectories = demonstrations.iter().map(trajectories_of).collect();
        problem.comparisons = estimated
            .iter_mut()
            .map(|e| e.signed_start.take().map_or(Comparison::Origin, Comparison::Decisions))
            .collect();
        problem.exact =
            estimated.iter().all(|e| e.standard_error.as_ref().is_some_and(|s| s.iter().all(|&x| x == 0.0)));
        problem.bias_bound = estimated.iter().map(|e| e.bias_bound).fold(0.0, f64::max);
        problem.demonstrated = estimated.into_iter().map(|e| e.feature_expectations).collect();
        problem.recorded = Some(RecordedExpert::new(problem.demonstrated.clone(), RECORDED_TOLERANCE));
        Ok(problem)
    }

    /// A sequence of contexts about which an expert can be asked; for the interactive methods.
    pub fn interactive(model: &'a Cmdp, contexts: Vec<Context>, expert: &'a dyn Expert) -> Result<Self> {
        Ok(Self::over(model, contexts)?.with_expert(expert))
    }

    /// The same problem with an expert who judges instead of the record.
    pub fn with_expert(mut self, expert: &'a dyn Expert) -> Self {
        self.expert = Some(expert);
        self
    }

    fn over(model: &'a Cmdp, contexts: Vec<Context>) -> Result<Self> {
        let Some(first) = contexts.first() else {
            return Err(Error::shape("demonstrations", "at least 1", 0));
        };
        let d = first.values().len();
        contexts.iter().try_for_each(|context| check_length("context", d, context.values().len()))?;
        Ok(Self {
            model,
            origins: vec![Origin::Model; contexts.len()],
            comparisons: vec![Comparison::Origin; contexts.len()],
            trajectories: vec![Vec::new(); contexts.len()],
            inputs: contexts.clone(),
            contexts,
            demonstrated: Vec::new(),
            exact: true,
            bias_bound: 0.0,
            expert: None,
            recorded: None,
            actions: OnceLock::new(),
            planner_calls: AtomicU64::new(0),
            spent: Default::default(),
            plans: RepeatedPlans::new(model),
        })
    }

    /// The same problem for mappings that do not see the context: f is one vector of weights for all, while the dynamics
    /// still follow the context.
    pub fn without_context(mut self) -> Result<Self> {
        self.inputs = vec![ContextSpace::Any.context([1.0])?; self.contexts.len()];
        Ok(self)
    }

    /// The same problem, planned from scratch each time: nothing changes but the cost, which then does not depend on what was planned before.
    pub fn without_memory(mut self) -> Self {
        self.plans = self.plans.forgetful();
        self
    }

    /// Some of the demonstrations, in this order; one may be taken more than once.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        if let Some(index) = indices.iter().find(|&&i| i >= self.len()) {
            return Err(Error::shape("demonstration", format!("below {}", self.len()), index));
        }
        let mut selected = Self::over(self.model, indices.iter().map(|&i| self.contexts[i].clone()).collect())?;
        selected.inputs = indices.iter().map(|&i| self.inputs[i].clone()).collect();
        selected.origins = indices.iter().map(|&i| self.origins[i].clone()).collect();
        selected.comparisons = indices.iter().map(|&i| self.comparisons[i].clone()).collect();
        selected.trajectories = indices.iter().map(|&i| self.trajectories[i].clone()).collect();
        (selected.exact, selected.bias_bound, selected.expert) = (self.exact, self.bias_bound, self.expert);
        if self.has_demonstrations() {
            selected.demonstrated = indices.iter().map(|&i| self.demonstrated[i].clone()).collect();
            selected.recorded = Some(RecordedExpert::new(selected.demonstrated.clone(), RECORDED_TOLERANCE));
        }
        Ok(selected)
    }

    /// The model.
    pub fn model(&self) -> &'a Cmdp {
        self.model
    }

    /// Number of contexts, with or without their demonstrations.
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Never: a problem has at least one context.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Length d of what the mapping is given.
    pub fn dimension(&self) -> usize {
        self.inputs[0].values().len()
    }

    /// Number k of features.
    pub fn n_features(&self) -> usize {
        self.model.n_features()
    }

    /// Number dk of parameters.
    pub fn n_parameters(&self) -> usize {
        self.dimension() * self.n_features()
    }

    /// A context.
    pub fn context(&self, index: usize) -> &Context {
        &self.contexts[index]
    }

    /// What the mapping is given in a context: the context itself, or a constant.
    pub fn input(&self, index: usize) -> &Context {
        &self.inputs[index]
    }

    /// Where the demonstration of a context starts.
    pub fn origin(&self, index: usize) -> &Origin {
        &self.origins[index]
    }

    /// Whether every demonstration is exact, so that the lemmas hold.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// A bound on the bias of every estimated feature expectation.
    pub fn bias_bound(&self) -> f64 {
        self.bias_bound
    }

    /// Whether somebody can be asked, rather than the record.
    pub fn has_expert(&self) -> bool {
        self.expert.is_some()
    }

    /// Whether demonstrations are at hand, not only an expert.
    pub fn has_demonstrations(&self) -> bool {
        !self.demonstrated.is_empty()
    }

    /// μ* of a context.
    pub fn demonstrated(&self, index: usize) -> Result<&[f64]> {
        self.demonstrated.get(index).map(Vec::as_slice).ok_or_else(|| Error::InvalidSetting {
            name: "method",
            value: "from demonstrations".into(),
            reason: "there are no demonstrations, only an expert; choose one of the interactive methods",
        })
    }

    /// What was seen in a context, step by step; nothing where only feature expectations are known.
    pub fn trajectories(&self, index: usize) -> &[Trajectory] {
        &self.trajectories[index]
    }

    /// Share of the demonstrated actions that an agent would take itself; the likeliest where it draws them.
    pub fn accuracy(&self, agent: &Agent) -> Result<f64> {
        let all = || (0..self.len()).flat_map(|i| self.trajectories(i).iter().map(move |trajectory| (i, trajectory)));
        let contexts: Vec<Context> = all().map(|(i, _)| self.contexts[i].clone()).collect();
        let visits: Vec<&[StateId]> = all().map(|(_, path)| &path.states[..path.actions.len()]).collect();
        let taken: Vec<u32> = all().flat_map(|(_, path)| path.actions.iter().map(|action| action.0)).collect();
        Ok(Predictions::of(self.model, agent, &contexts, &visits)?.accuracy(&taken))
    }

    /// Refuses demonstrations without single actions.
    pub(super) fn check_actions(&self) -> Result<()> {
        self.demonstrated_actions()?.or_refuse("stopping by accuracy")
    }

    /// Which actions were taken where; none where only feature expectations are known.
    pub(crate) fn demonstrated_actions(&self) -> Result<&DemonstratedActions> {
        if let Some(actions) = self.actions.get() {
            return Ok(actions);
        }
        let actions = DemonstratedActions::of(self)?;
        Ok(self.actions.get_or_init(|| actions))
    }

    /// How many plans were made so far.
    pub fn planner_calls(&self) -> u64 {
        self.planner_calls.load(Ordering::Relaxed)
    }

    /// How many Bellman backups planning took so far: one for each sweep, state and action. Runs that plan with values beside it, for a
    /// likelihood or in one large process, count as far as they do it by sweeps.
    pub fn backups(&self) -> u64 {
        self.plans.backups()
    }

    /// Takes note of sweeps over all states and actions that were made elsewhere.
    pub(crate) fn count_sweeps(&self, sweeps: usize) {
        self.plans.count_sweeps(sweeps);
    }

    /// Takes note of plans that were made elsewhere for these contexts.
    pub(crate) fn count_plans(&self, plans: u64) {
        self.planner_calls.fetch_add(plans, Ordering::Relaxed);
    }

    /// Takes note of the time of a step that planned and did something else.
    pub(super) fn spent(&self, planning: Duration, rest: Duration) {
        for (sum, part) in self.spent.iter().zip([planning, rest]) {
            sum.fetch_add(u64::try_from(part.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// How long learners that train a network planned, and how long they did the rest. A clock: not part of any result.
    pub fn time_spent(&self) -> (Duration, Duration) {
        let read = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
        (read(&self.spent[0]), read(&self.spent[1]))
    }

    /// The process of a context, started where its demonstration starts.
    pub fn mdp(&self, index: usize) -> Result<Mdp<'a>> {
        self.origins[index].of(self.model.mdp(&self.contexts[index])?)
    }

    /// Every context, row by row.
    pub(crate) fn all_contexts(&self) -> Vec<f64> {
        self.contexts.iter().flat_map(|context| context.values()).copied().collect()
    }

    /// f_W(c) of one context, flattened W.
    pub(crate) fn weights_of(&self, mapping: &[f64], index: usize) -> Vec<f64> {
        let mut weights = Vec::with_capacity(self.n_features());
        self.weights(mapping, index, &mut weights);
        weights
    }

    /// f_W(c), flattened W.
    fn weights(&self, mapping: &[f64], index: usize, out: &mut Vec<f64>) {
        let (k, start) = (self.n_features(), out.len());
        out.resize(start + k, 0.0);
        for (x, row) in self.inputs[index].values().iter().zip(mapping.chunks_exact(k)) {
            out[start..].iter_mut().zip(row).for_each(|(sum, w)| *sum += x * w);
        }
    }

    /// The agent's policy in one context, with its feature expectations.
    pub fn act(&self, mapping: &[f64], index: usize) -> Result<(Policy, Vec<f64>)> {
        let mut plans = self.act_each(&[(mapping, index)])?;
        plans.pop().ok_or_else(|| Error::shape("plans", "1", 0))
    }

    /// The agent's feature expectations in some contexts.
    pub fn respond(&self, mapping: &[f64], indices: &[usize]) -> Result<Vec<Vec<f64>>> {
        let queries: Vec<(&[f64], usize)> = indices.iter().map(|&i| (mapping, i)).collect();
        self.respond_each(&queries)
    }

    /// The feature expectations of several agents, each in a context, planned together.
    pub fn respond_each(&self, queries: &[(&[f64], usize)]) -> Result<Vec<Vec<f64>>> {
        Ok(self.act_each(queries)?.into_iter().map(|(_, mu)| mu).collect())
    }

    fn act_each(&self, queries: &[(&[f64], usize)]) -> Result<Vec<(Policy, Vec<f64>)>> {
        let mut weights = Vec::with_capacity(queries.len() * self.n_features());
        queries.iter().for_each(|&(mapping, i)| self.weights(mapping, i, &mut weights));
        let indices: Vec<usize> = queries.iter().map(|&(_, i)| i).collect();
        self.act_for(&weights, &indices)
    }

    /// The agent's policies for rewards (row by row) in some contexts, with the feature expectations that are compared with the
    /// demonstrated ones.
    pub(crate) fn act_for(&self, weights: &[f64], indices: &[usize]) -> Result<Vec<(Policy, Vec<f64>)>> {
        self.count_plans(indices.len() as u64);
        let contexts: Vec<Context> = indices.iter().map(|&i| self.contexts[i].clone()).collect();
        let starts_like_the_model =
            |&i: &usize| self.comparisons[i] == Comparison::Origin && self.origins[i] == Origin::Model;
        if indices.iter().all(starts_like_the_model) {
            let plans = self.plans.plan(&contexts, weights)?;
            return Ok(plans.into_iter().map(|(policy, mu)| (policy, mu.to_vec())).collect());
        }
        let policies = self.plans.policies(&contexts, weights)?;
        let with_expectations = |(policy, &i): (Policy, &usize)| {
            let mu = self.compared_expectations(&policy, i)?;
            Ok((policy, mu))
        };
        policies.into_par_iter().zip(indices).map(with_expectations).collect()
    }

    /// The feature expectations of an agent that acts at random. Where nothing is rewarded all policies are optimal, so that they make a
    /// subgradient as any other; the first of equal actions would too, but it may be one whose consequences nobody knows.
    pub(super) fn act_at_random(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>> {
        let random = self.model.random_policy();
        indices.par_iter().map(|&i| self.compared_expectations(&random, i)).collect()
    }

    /// The feature expectations of a policy that are compared with those of a demonstration.
    fn compared_expectations(&self, policy: &Policy, index: usize) -> Result<Vec<f64>> {
        match &self.comparisons[index] {
            Comparison::Decisions(start) => {
                evaluate::feature_expectations_from(&self.model.mdp(&self.contexts[index])?, start, policy)
            }
            Comparison::Origin => evaluate::feature_expectations(&self.mdp(index)?, policy),
        }
    }

    /// The policies and values of agents for rewards (row by row) in some contexts.
    pub(crate) fn plan_for(&self, weights: &[f64], indices: &[usize]) -> Result<Vec<(Policy, Vec<f64>)>> {
        let contexts: Vec<Context> = indices.iter().map(|&i| self.contexts[i].clone()).collect();
        self.count_plans(indices.len() as u64);
        self.plans.values(&contexts, weights)
    }

    /// An objective and its gradient by W on some demonstrations.
    pub(super) fn objective(&self, objective: Objective, mapping: &[f64], indices: &[usize]) -> Result<Loss> {
        let mut weights = Vec::with_capacity(indices.len() * self.n_features());
        indices.iter().for_each(|&i| self.weights(mapping, i, &mut weights));
        let (value, upstream) = objective.of(self, &weights, indices)?;
        let mut subgradient = vec![0.0; self.n_parameters()];
        for (&i, by_weights) in indices.iter().zip(upstream.chunks_exact(self.n_features())) {
            for (x, row) in self.inputs[i].values().iter().zip(subgradient.chunks_exact_mut(self.n_features())) {
                row.iter_mut().zip(by_weights).for_each(|(sum, g)| *sum += x * g);
            }
        }
        Ok(Loss { value, subgradient })
    }

    /// Loss and subgradient on some demonstrations.
    pub fn loss(&self, mapping: &[f64], indices: &[usize]) -> Result<Loss> {
        let indifferent = mapping.iter().all(|w| *w == 0.0);
        let agents = if indifferent { self.act_at_random(indices)? } else { self.respond(mapping, indices)? };
        let mut subgradient = vec![0.0; self.n_parameters()];
        for (&i, agent) in indices.iter().zip(&agents) {
            self.add_difference(i, agent, self.demonstrated(i)?, 1.0 / indices.len() as f64, &mut subgradient);
        }
        Ok(Loss { value: dot(mapping, &subgradient), subgradient })
    }

    /// Loss(W) / ‖W‖₂ on all demonstrations; nothing for W = 0, whose loss of zero says nothing.
    pub fn unit_loss(&self, mapping: &[f64]) -> Result<Option<f64>> {
        let size = norm(mapping);
        if size == 0.0 {
            return Ok(None);
        }
        Ok(Some(self.loss(mapping, &self.all())?.value / size))
    }

    /// Every index.
    pub fn all(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    /// Adds `scale · c ⊙ (μ − μ*)`.
    pub(crate) fn add_difference(&self, index: usize, agent: &[f64], expert: &[f64], scale: f64, sum: &mut [f64]) {
        let k = self.n_features();
        for (x, row) in self.inputs[index].values().iter().zip(sum.chunks_exact_mut(k)) {
            for ((entry, mu), star) in row.iter_mut().zip(agent).zip(expert) {
                *entry += scale * x * (mu - star);
            }
        }
    }

    /// Asks about an agent in a context: the expert, or the record where there is none.
    pub(crate) fn ask(&self, index: usize, agent: &[f64]) -> Result<Answer> {
        let mdp = self.mdp(index)?;
        match (self.expert, &self.recorded) {
            (Some(expert), _) => expert.answer(index as u64, &self.contexts[index], &mdp, agent),
            (None, Some(record)) => record.answer(index as u64, &self.contexts[index], &mdp, agent),
            (None, None) => Err(Error::shape("experts", "at least 1", 0)),
        }
    }

    /// Whoever can judge single actions.
    pub(crate) fn expert(&self) -> Result<&'a dyn Expert> {
        self.expert.ok_or(Error::InvalidSetting {
            name: "expert",
            value: "none".into(),
            reason: "this method asks about single actions; give an expert, or a true mapping to simulate one",
        })
    }

    /// An upper bound on Σ γᵗ (or, for the average criterion, one): what 1/(1 − γ) is to a discounted process.
    pub fn horizon(&self) -> Result<f64> {
        match self.model.criterion() {
            Criterion::Discounted { discount } => Ok(1.0 / (1.0 - discount)),
            Criterion::FiniteHorizon { steps, discount } if discount < 1.0 => {
                Ok((1.0 - discount.powi(steps as i32)) / (1.0 - discount))
            }
            Criterion::FiniteHorizon { steps, .. } => Ok(steps as f64),
            Criterion::Average => Ok(1.0),
            Criterion::TotalReward => {
                let n = if matches!(self.model.dynamics(), Dynamics::Shared(_)) { 1 } else { self.len() };
                (0..n).try_fold(1.0, |most: f64, i| Ok(most.max(longest_expected_time(self.mdp(i)?.kernel())?)))
            }
        }
    }

    /// max |φ| · max ‖c‖∞ · horizon: a bound on every |entry of c ⊙ μ|. The paper's 1/(1 − γ) for features in [0, 1] and
    /// contexts on the simplex.
    pub fn entry_bound(&self) -> Result<f64> {
        let largest = |most: f64, context: &Context| context.values().iter().fold(most, |m, x| m.max(x.abs()));
        Ok(self.model.features().max_abs() * self.inputs.iter().fold(0.0, largest) * self.horizon()?)
    }

    /// max |φ| · k · max ‖c‖₁ · horizon: a bound on ‖c ⊙ μ‖₁. The paper's k/(1 − γ).
    pub fn sum_bound(&self) -> Result<f64> {
        let size = |context: &Context| context.values().iter().map(|x| x.abs()).sum::<f64>();
        let largest = self.inputs.iter().map(size).fold(0.0, f64::max);
        Ok(self.model.features().max_abs() * self.n_features() as f64 * largest * self.horizon()?)
    }

    /// A digest of everything that the result depends on besides the settings: dynamics, features, start, criterion,
    /// contexts, their starts and demonstrations.
    pub fn digest(&self) -> String {
        sha256(|sink| {
            self.model.feed(sink);
            for (i, context) in self.contexts.iter().enumerate() {
                feed_numbers(context.values(), sink);
                if self.inputs[i] != *context {
                    feed_numbers(self.inputs[i].values(), sink);
                }
                if let Comparison::Decisions(start) = &self.comparisons[i] {
                    feed_numbers(start, sink);
                }
                match &self.origins[i] {
                    Origin::Model => sink(b"model"),
                    Origin::States(states) => states.iter().for_each(|state| sink(&state.0.to_le_bytes())),
                }
                if let Some(mu) = self.demonstrated.get(i) {
                    feed_numbers(mu, sink);
                }
                for trajectory in &self.trajectories[i] {
                    sink(&(trajectory.actions.len() as u64).to_le_bytes());
                    trajectory.states.iter().for_each(|state| sink(&state.0.to_le_bytes()));
                    trajectory.actions.iter().for_each(|action| sink(&action.0.to_le_bytes()));
                }
            }
        })
    }
}

fn trajectories_of(demonstration: &Demonstration) -> Vec<Trajectory> {
    match demonstration.evidence() {
        Evidence::FeatureExpectations(_) => Vec::new(),
        Evidence::Trajectories(trajectories) => trajectories.clone(),
    }
}
