//! Policies of contexts: what every method returns, and what becomes of it in the contexts at hand.

use crate::contextual::{ContextualPlanner, Response};
use crate::error::{Error, Result, check_length};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context, Dynamics, StateId};
use crate::plan::{Policy, SoftPlanner, evaluate};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// A way to act in any context: by planning for a reward, or by a policy of its own.
///
/// Every [`RewardMapping`] is one, by planning for what it gives a context.
pub trait ContextualPolicy: Debug + Send + Sync {
    /// What to do in each of these contexts.
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting>;

    /// The mapping that is planned for, of policies that plan for one.
    fn plans_for(&self) -> Option<&dyn RewardMapping> {
        None
    }

    /// The mapping from context to reward that it acts on, whether it plans for it or follows it softly.
    fn reward(&self) -> Option<&dyn RewardMapping> {
        self.plans_for()
    }

    /// The probability of every action at some states of a context, row-major, where that is cheaper than the whole policy.
    fn probabilities_at(&self, _model: &Cmdp, _context: &Context, _states: &[StateId]) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Whether it keeps the contexts that it was learned from: of people, it is then as confidential as they are.
    fn keeps_contexts(&self) -> bool {
        false
    }
}

/// What is done in a list of contexts.
#[derive(Debug, Clone, PartialEq)]
pub enum Acting {
    /// One of several rewards is drawn when an episode begins, and planned for: the probability of each, with its weights in every
    /// context, row by row.
    Planning(Vec<(f64, Vec<f64>)>),
    /// A policy for each context.
    Following(Vec<Policy>),
    /// One policy, whatever the context.
    Always(Policy),
}

/// A policy that an agent follows in a context, with the probability that it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    /// Its probability; drawn once, when an episode begins.
    pub share: f64,
    /// What it does.
    pub policy: Policy,
    /// μ from the model's start.
    pub feature_expectations: Arc<[f64]>,
}

impl<M: RewardMapping + Debug> ContextualPolicy for M {
    fn acting(&self, _model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        Ok(Acting::Planning(vec![(1.0, self.weights_of_all(contexts)?)]))
    }

    fn plans_for(&self) -> Option<&dyn RewardMapping> {
        Some(self)
    }
}

/// How a policy acts in each of these contexts: one policy, or several of which one is drawn when an episode begins.
pub fn act(model: &Cmdp, agent: &dyn ContextualPolicy, contexts: &[Context]) -> Result<Vec<Vec<Behaviour>>> {
    behaviours(&ContextualPlanner::new(model), agent, contexts)
}

/// How a policy acts in each of these contexts, planned for by a planner that may have been used before.
pub(crate) fn behaviours(
    planner: &ContextualPlanner<'_>,
    agent: &dyn ContextualPolicy,
    contexts: &[Context],
) -> Result<Vec<Vec<Behaviour>>> {
    match acting(planner.model(), agent, contexts)? {
        Acting::Planning(rewards) => {
            let borrowed: Vec<&Context> = contexts.iter().collect();
            let planned = |weights: &[f64]| planner.responses(&borrowed, weights);
            drawn(contexts.len(), rewards, planned, |share, Response { policy, feature_expectations }| Behaviour {
                share,
                policy,
                feature_expectations,
            })
        }
        Acting::Following(policies) => following(planner.model(), contexts, &policies),
        Acting::Always(policy) => following(planner.model(), contexts, &[policy]),
    }
}

/// The policies of an agent in each context with the probability of each, where it does not matter what they lead to.
pub fn policies(model: &Cmdp, agent: &dyn ContextualPolicy, contexts: &[Context]) -> Result<Vec<Vec<(f64, Policy)>>> {
    let alone = |policies: Vec<Policy>| policies.into_iter().map(|policy| vec![(1.0, policy)]).collect();
    match acting(model, agent, contexts)? {
        Acting::Planning(rewards) => {
            let (planner, borrowed) = (ContextualPlanner::new(model), contexts.iter().collect::<Vec<_>>());
            drawn(
                contexts.len(),
                rewards,
                |weights| planner.policies(&borrowed, weights),
                |share, policy| (share, policy),
            )
        }
        Acting::Following(policies) => Ok(alone(policies)),
        Acting::Always(policy) => Ok(alone(vec![policy; contexts.len()])),
    }
}

/// What an agent does, with as many answers as there are contexts.
fn acting(model: &Cmdp, agent: &dyn ContextualPolicy, contexts: &[Context]) -> Result<Acting> {
    let acting = agent.acting(model, contexts)?;
    match &acting {
        Acting::Planning(rewards) => {
            let numbers = contexts.len() * model.n_features();
            rewards.iter().try_for_each(|(_, weights)| check_length("weights of an agent", numbers, weights.len()))?;
        }
        Acting::Following(policies) => check_length("policies of an agent", contexts.len(), policies.len())?,
        Acting::Always(_) => {}
    }
    Ok(acting)
}

/// For each of n contexts what is planned for each reward that may be drawn.
fn drawn<P, B: Clone>(
    n: usize,
    rewards: Vec<(f64, Vec<f64>)>,
    planned: impl Fn(&[f64]) -> Result<Vec<P>>,
    behaviour: impl Fn(f64, P) -> B,
) -> Result<Vec<Vec<B>>> {
    let mut all = vec![Vec::with_capacity(rewards.len()); n];
    for (share, weights) in rewards.iter().filter(|(share, _)| *share > 0.0) {
        all.iter_mut().zip(planned(weights)?).for_each(|(list, plan)| list.push(behaviour(*share, plan)));
    }
    Ok(all)
}

/// These policies, one per context; the first is that of all contexts beyond them.
pub(crate) fn following(model: &Cmdp, contexts: &[Context], policies: &[Policy]) -> Result<Vec<Vec<Behaviour>>> {
    if contexts.is_empty() {
        return Ok(Vec::new());
    }
    let Some(first) = policies.first() else {
        return Err(Error::shape("policies", "at least 1", 0));
    };
    // One policy on one kernel goes the same way in every context.
    let shared: Option<Arc<[f64]>> = match (policies, model.dynamics()) {
        ([only], Dynamics::Shared(_)) => Some(evaluate::feature_expectations(&model.shared_mdp()?, only)?.into()),
        _ => None,
    };
    let behaviour = |(i, context): (usize, &Context)| {
        let policy = policies.get(i).unwrap_or(first);
        let feature_expectations = match &shared {
            Some(mu) => mu.clone(),
            None => evaluate::feature_expectations(&model.mdp(context)?, policy)?.into(),
        };
        Ok(vec![Behaviour { share: 1.0, policy: policy.clone(), feature_expectations }])
    };
    contexts.par_iter().enumerate().map(behaviour).collect()
}

/// Policies of their own, made context by context.
pub(super) fn each(contexts: &[Context], policy: impl Fn(&Context) -> Result<Policy> + Send + Sync) -> Result<Acting> {
    Ok(Acting::Following(contexts.par_iter().map(policy).collect::<Result<_>>()?))
}

/// The soft policies of rewards in contexts, among known pairs.
pub(super) fn soft_policies<'w>(
    model: &Cmdp,
    contexts: &[Context],
    weights: impl Fn(&Context) -> Result<Cow<'w, [f64]>> + Send + Sync,
    temperature: f64,
) -> Result<Acting> {
    let known = model.among_known()?;
    each(contexts, |context| {
        let mdp = known.as_ref().unwrap_or(model).mdp(context)?;
        let policy = SoftPlanner::at(temperature).plan(&mdp, &mdp.reward(&weights(context)?)?)?.policy;
        Ok(policy.over(mdp.pairs(), model.pairs()))
    })
}
