//! The policy for a new context: transferred where that is good enough, planned where it is not.
//!
//! 1. If improving over so many known policies would take longer than planning, the answer is planned. What takes longer is
//!    estimated from the sizes of the model and the library and from the sweeps that the first known context took, not measured, so that the same
//!    question has the same answer.
//! 2. If the theorem's bound is within the wanted one, the transferred policy is the answer.
//! 3. Otherwise one backup of its exactly evaluated values bounds what it can lose, usually by far less.
//! 4. If that is still too much, planning starts from those values. The plan is that of planning from scratch.

use super::basis::{Basis, coefficients};
use super::bounds::{Constants, TheoremBound};
use super::known::KnownContexts;
use super::library::{Choice, PolicyLibrary, check_criterion, empty};
use super::nearest::NearestContexts;
use crate::contextual::plan_mapping;
use crate::error::{Error, Result, check_length};
use crate::mapping::{LearnedMapping, RewardMapping};
use crate::model::digest::sha256;
use crate::model::{ActionId, Cmdp, Context, Dynamics, Mdp, Reward, StateId};
use crate::plan::{ManyOptions, Plan, Planner, Policy, Start, TIE_TOLERANCE, evaluate, suboptimality_bound};

/// What a multiplication of the improvement costs in multiplications of planning, which finds its kernel in the cache, and what it
/// costs to evaluate a policy in sweeps over its rows. From `cargo bench --bench transfer`.
const IMPROVEMENT_COST: f64 = 2.0;
const EVALUATION_SWEEPS: f64 = 300.0;

/// Up to this discount ties lose millionths of the largest value at most, and the theorem's bound is told as it is proved.
const TIES_COUNT_FROM: f64 = 0.999;

/// What a policy whose actions tie with the best of their states can lose, for rewards of at most this size.
fn loss_by_ties(largest_reward: f64, discount: f64) -> f64 {
    if discount <= TIES_COUNT_FROM {
        return 0.0;
    }
    // The known policy's share and that of the improvement over it.
    2.0 * TIE_TOLERANCE * largest_reward / (1.0 - discount) / (1.0 - discount)
}

/// What is known about the contexts of one mapping in one model, and how to act in others.
#[derive(Debug)]
pub struct Transfer<'a> {
    model: &'a Cmdp,
    mapping: LearnedMapping,
    knowledge: Knowledge<'a>,
    /// Sweeps that planning took in the first context, alone.
    sweeps: Option<usize>,
}

/// What is transferred from, by the dynamics of the model.
#[derive(Debug)]
pub(crate) enum Knowledge<'a> {
    /// One library for all contexts.
    Shared(Box<PolicyLibrary<'a>>),
    /// One per cluster.
    Clusters(Vec<PolicyLibrary<'a>>),
    /// Policies only.
    Mixture(Box<NearestContexts>),
}

/// How a policy was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By generalised policy improvement.
    Improved,
    /// From the nearest known context.
    Nearest,
    /// By planning, from the transferred policy where there was one.
    Planned {
        /// Sweeps of planning.
        sweeps: usize,
        /// Whether it started from a transferred policy.
        warm: bool,
    },
}

/// Where a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// The theorem.
    Theorem,
    /// A backup of the policy's values.
    Residual,
    /// The certificate of a plan.
    Certificate,
}

/// A policy for a context. Its bound is relative to the mapping, not to an expert.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The policy.
    pub policy: Policy,
    /// V^π in every state.
    pub values: Vec<f64>,
    /// ξ·V^π.
    pub value: f64,
    /// How it was obtained.
    pub how: How,
    /// No policy is better by more than this for the mapping's reward, in any state.
    pub bound: f64,
    /// Where that comes from.
    pub bound_by: BoundBy,
    /// The theorem's bound of the transferred policy, where anything is known.
    pub theorem: Option<TheoremBound>,
}

/// What planning would have gained.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Gap {
    /// V* − V^π from the start.
    pub from_start: f64,
    /// The largest V* − V^π of any state.
    pub largest: f64,
    /// Sweeps of planning from scratch.
    pub sweeps: usize,
}

impl<'a> Transfer<'a> {
    /// With no context known so far. For the discounted criterion.
    pub fn new(model: &'a Cmdp, mapping: impl Into<LearnedMapping>) -> Result<Self> {
        let mapping = mapping.into();
        check_criterion(model)?;
        if let Some(dimension) = model.context_space().dimension().or(model.dynamics().context_dimension()) {
            check_length("contexts of the mapping", dimension, mapping.dimension())?;
        }
        let basis = Basis::of(&mapping);
        let knowledge = match model.dynamics() {
            Dynamics::Shared(_) => Knowledge::Shared(Box::new(PolicyLibrary::shared(model, &basis)?)),
            Dynamics::Mixture(_) => Knowledge::Mixture(Box::new(NearestContexts::new(model, mapping.clone())?)),
            Dynamics::Clusters(clusters) => {
                let libraries = (0..clusters.kernels().len()).map(|i| PolicyLibrary::of_cluster(model, i, &basis));
                Knowledge::Clusters(libraries.collect::<Result<_>>()?)
            }
        };
        Ok(Self { model, mapping, knowledge, sweeps: None })
    }

    /// The mapping.
    pub fn mapping(&self) -> &LearnedMapping {
        &self.mapping
    }

    /// What is known: one list, or one per cluster.
    pub fn known(&self) -> Vec<&KnownContexts> {
        match &self.knowledge {
            Knowledge::Shared(library) => vec![library.known()],
            Knowledge::Clusters(libraries) => libraries.iter().map(PolicyLibrary::known).collect(),
            Knowledge::Mixture(nearest) => vec![nearest.known()],
        }
    }

    /// Number of known contexts.
    pub fn n_contexts(&self) -> usize {
        self.known().iter().map(|known| known.len()).sum()
    }

    /// Number of distinct policies, counted per cluster.
    pub fn n_policies(&self) -> usize {
        self.known().iter().map(|known| known.n_policies()).sum()
    }

    /// What a theorem's bound is per unit of ‖c − c_j‖∞; nothing for networks, whose bounds do not follow from contexts.
    pub fn bound_rate(&self) -> Option<f64> {
        let constants = self.constants();
        match (&self.mapping, &self.knowledge) {
            (LearnedMapping::Neural(_), _) => None,
            (_, Knowledge::Mixture(_)) => Some(constants.nearest_rate()),
            (_, Knowledge::Shared(_) | Knowledge::Clusters(_)) => Some(constants.improvement_rate()),
        }
    }

    /// What a context is in a library: itself, or its reward weights where the mapping is a network.
    fn coefficients(&self, context: &Context) -> Result<Vec<f64>> {
        Ok(coefficients(&self.mapping, std::slice::from_ref(context))?.concat())
    }

    /// The constants of the theorems.
    pub fn constants(&self) -> &Constants {
        match &self.knowledge {
            Knowledge::Shared(library) => library.constants(),
            Knowledge::Clusters(libraries) => libraries[0].constants(),
            Knowledge::Mixture(nearest) => nearest.constants(),
        }
    }

    /// Plans for some contexts and remembers the policies.
    pub fn learn(&mut self, contexts: &[Context]) -> Result<()> {
        let options = ManyOptions { feature_expectations: false, values: false };
        let plans = plan_mapping(self.model, &self.mapping, contexts, options)?;
        if let (None, Some(first)) = (self.sweeps, contexts.first()) {
            // Many contexts are planned for in blocks, whose sweeps say little about one.
            let (mdp, reward) = self.problem(first)?;
            self.sweeps = Some(Planner::default().plan(&mdp, &reward)?.certificate.sweeps);
        }
        let policies: Vec<Policy> = plans.into_iter().map(|plan| plan.policy).collect();
        self.remember(contexts, &policies)
    }

    /// Remembers the optimal policies of some contexts.
    pub fn remember(&mut self, contexts: &[Context], policies: &[Policy]) -> Result<()> {
        check_length("policies to remember", contexts.len(), policies.len())?;
        let known = coefficients(&self.mapping, contexts)?;
        let plans = || known.iter().map(Vec::as_slice).zip(policies);
        match &mut self.knowledge {
            Knowledge::Shared(library) => library.add(plans()),
            Knowledge::Mixture(nearest) => {
                contexts.iter().zip(policies).try_for_each(|(context, policy)| nearest.add(context, policy))
            }
            Knowledge::Clusters(libraries) => {
                let clusters = contexts.iter().map(|context| cluster_of(self.model, context));
                let clusters: Vec<usize> = clusters.collect::<Result<_>>()?;
                for (i, library) in libraries.iter_mut().enumerate() {
                    library.add(plans().zip(&clusters).filter(|(_, cluster)| **cluster == i).map(|(plan, _)| plan))?;
                }
                Ok(())
            }
        }
    }

    /// Leaves out policies that are not needed on these contexts, where the actions stay as they are; returns how many.
    pub fn prune(&mut self, contexts: &[Context]) -> Result<usize> {
        let asked = coefficients(&self.mapping, contexts)?;
        let model = self.model;
        match &mut self.knowledge {
            Knowledge::Shared(library) => library.prune(&asked),
            Knowledge::Clusters(libraries) => {
                let mut dropped = 0;
                for (i, library) in libraries.iter_mut().enumerate().filter(|(_, library)| !library.known().is_empty())
                {
                    let mut own = Vec::new();
                    for (context, coefficients) in contexts.iter().zip(&asked) {
                        own.extend((cluster_of(model, context)? == i).then(|| coefficients.clone()));
                    }
                    dropped += library.prune(&own)?;
                }
                Ok(dropped)
            }
            Knowledge::Mixture(nearest) => nearest.prune(contexts),
        }
    }

    /// The library that serves a context.
    fn library(&self, context: &Context) -> Result<Option<&PolicyLibrary<'a>>> {
        match &self.knowledge {
            Knowledge::Shared(library) => Ok(Some(library)),
            Knowledge::Mixture(_) => Ok(None),
            Knowledge::Clusters(libraries) => {
                let cluster = cluster_of(self.model, context)?;
                if libraries[cluster].known().is_empty() {
                    let place = if self.n_contexts() == 0 { String::new() } else { format!(" in cluster {cluster}") };
                    return Err(Error::EmptyLibrary { place });
                }
                Ok(Some(&libraries[cluster]))
            }
        }
    }

    /// The theorem's bound in a context.
    pub fn bound(&self, context: &Context) -> Result<TheoremBound> {
        match (self.library(context)?, &self.knowledge) {
            (Some(library), _) => library.bound(&self.coefficients(context)?),
            (None, Knowledge::Mixture(nearest)) => nearest.bound(context),
            (None, _) => Err(empty()),
        }
    }

    /// The transferred action in one state, with what it is worth at least where a library knows.
    pub fn act(&self, context: &Context, state: StateId) -> Result<(ActionId, Option<f64>)> {
        match (self.library(context)?, &self.knowledge) {
            (Some(library), _) => {
                library.act(&self.coefficients(context)?, state).map(|choice| (choice.action, Some(choice.value)))
            }
            (None, Knowledge::Mixture(nearest)) => nearest.act(context, state).map(|action| (action, None)),
            (None, _) => Err(empty()),
        }
    }

    /// The transferred policy.
    pub fn policy(&self, context: &Context) -> Result<Policy> {
        match (self.library(context)?, &self.knowledge) {
            (Some(library), _) => {
                let choices: Vec<Choice> = library.improve(&self.coefficients(context)?)?;
                Ok(Policy::Stationary(choices.iter().map(|choice| choice.action).collect()))
            }
            (None, Knowledge::Mixture(nearest)) => Ok(nearest.transfer(context)?.0),
            (None, _) => Err(empty()),
        }
    }

    /// The process and the reward of a context.
    fn problem(&self, context: &Context) -> Result<(Mdp<'a>, Reward)> {
        let mdp = self.model.mdp(context)?;
        let reward = mdp.reward(&self.mapping.weights(context)?)?;
        Ok((mdp, reward))
    }

    /// The transferred policy with its value and bound: the theorem's where that is at most `wanted`, otherwise the
    /// smaller of that and what a backup says.
    pub fn transfer(&self, context: &Context, wanted: Option<f64>) -> Result<Prediction> {
        let theorem = self.bound(context)?;
        let policy = self.policy(context)?;
        let (mdp, reward) = self.problem(context)?;
        let values = evaluate::values(&mdp, &reward, &policy)?;
        // The theorem is about policies that are optimal where they are known. Plans take the lowest of actions that tie, and where the
        // discount is next to one, ties add up.
        let proved = theorem.bound + loss_by_ties(reward.max_abs(), mdp.criterion().discount());
        let (mut bound, mut bound_by) = (proved, BoundBy::Theorem);
        if !wanted.is_some_and(|wanted| proved <= wanted) {
            let residual = suboptimality_bound(&mdp, &reward, &values, &policy)?;
            if residual < bound {
                (bound, bound_by) = (residual, BoundBy::Residual);
            }
        }
        let how = if matches!(self.knowledge, Knowledge::Mixture(_)) { How::Nearest } else { How::Improved };
        let value = mdp.initial().iter().zip(&values).map(|(p, v)| p * v).sum();
        Ok(Prediction { policy, values, value, how, bound, bound_by, theorem: Some(theorem) })
    }

    /// The optimal policy, planned from a transferred one where there is one.
    pub fn plan(&self, context: &Context, from: Option<&Prediction>) -> Result<Prediction> {
        let (mdp, reward) = self.problem(context)?;
        let start = from.map_or(Start::Cold, |prediction| Start::Values(&prediction.values));
        let Plan { policy, values, value, certificate, .. } = Planner::default().plan_from(&mdp, &reward, start)?;
        let how = How::Planned { sweeps: certificate.sweeps, warm: from.is_some() };
        let (bound, bound_by) = (certificate.suboptimality_bound, BoundBy::Certificate);
        let theorem = from.and_then(|prediction| prediction.theorem);
        Ok(Prediction { policy, values, value, how, bound, bound_by, theorem })
    }

    /// Whether planning from scratch is estimated to take less than improving over all known policies. Nothing is estimated before a
    /// context was planned for here.
    pub fn planning_is_cheaper(&self, context: &Context) -> Result<bool> {
        let (Some(library), Some(sweeps)) = (self.library(context)?, self.sweeps) else {
            return Ok(false);
        };
        let mdp = self.model.mdp(context)?;
        let (rows, entries) = (mdp.kernel().n_rows() as f64, mdp.kernel().n_entries() as f64);
        let improvement = IMPROVEMENT_COST * rows * (library.known().n_policies() * library.known().size()) as f64;
        let evaluation = EVALUATION_SWEEPS * entries / rows * mdp.n_states() as f64;
        Ok(improvement + evaluation > entries * sweeps as f64)
    }

    /// The transferred policy if that is cheaper than planning and its bound is at most `wanted` (whatever it is, where nothing is
    /// wanted), otherwise the planned one. Plans from scratch where nothing is known.
    pub fn predict(&self, context: &Context, wanted: Option<f64>) -> Result<Prediction> {
        match self.planning_is_cheaper(context) {
            Ok(true) | Err(Error::EmptyLibrary { .. }) => return self.plan(context, None),
            Ok(false) => {}
            Err(error) => return Err(error),
        }
        match self.transfer(context, wanted) {
            Ok(transferred) if wanted.is_none_or(|wanted| transferred.bound <= wanted) => Ok(transferred),
            Ok(transferred) => self.plan(context, Some(&transferred)),
            Err(Error::EmptyLibrary { .. }) => self.plan(context, None),
            Err(error) => Err(error),
        }
    }

    /// The prediction for a context; what had to be planned is remembered for the next ones.
    pub fn predict_and_learn(&mut self, context: &Context, wanted: Option<f64>) -> Result<Prediction> {
        let prediction = self.predict(context, wanted)?;
        if let How::Planned { .. } = prediction.how {
            self.remember(std::slice::from_ref(context), std::slice::from_ref(&prediction.policy))?;
        }
        Ok(prediction)
    }

    /// What is lost by a policy, found by planning from scratch.
    pub fn realised_gap(&self, context: &Context, values: &[f64]) -> Result<Gap> {
        let (mdp, reward) = self.problem(context)?;
        check_length("values", mdp.n_states(), values.len())?;
        let plan = Planner::default().plan(&mdp, &reward)?;
        let lost = |(best, own): (&f64, &f64)| best - own;
        let each: Vec<f64> = plan.values.iter().zip(values).map(lost).collect();
        Ok(Gap {
            from_start: mdp.initial().iter().zip(&each).map(|(p, gap)| p * gap).sum(),
            largest: each.iter().copied().fold(0.0, f64::max),
            sweeps: plan.certificate.sweeps,
        })
    }

    /// Identifies the model and the mapping that everything known belongs to.
    pub fn digest(&self) -> String {
        sha256(|sink| {
            self.model.feed(sink);
            self.mapping.feed(sink);
        })
    }

    pub(crate) fn model(&self) -> &'a Cmdp {
        self.model
    }

    pub(crate) fn knowledge(&self) -> &Knowledge<'a> {
        &self.knowledge
    }

    pub(crate) fn knowledge_mut(&mut self) -> &mut Knowledge<'a> {
        &mut self.knowledge
    }
}

/// The cluster of a context, in a model that has clusters.
fn cluster_of(model: &Cmdp, context: &Context) -> Result<usize> {
    match model.dynamics() {
        Dynamics::Clusters(clusters) => clusters.assign(context),
        Dynamics::Shared(_) | Dynamics::Mixture(_) => Ok(0),
    }
}
