//! From an agent to its policies in the contexts at hand.

use crate::agent::Agent;
use crate::contextual::RepeatedPlans;
use crate::error::{Error, Result};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context, Dynamics};
use crate::plan::{Policy, SoftPlanner, evaluate};
use rayon::prelude::*;
use std::sync::Arc;

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

/// How an agent acts in each of these contexts: one policy, or several of which one is drawn when an episode begins.
pub fn act(model: &Cmdp, agent: &Agent, contexts: &[Context]) -> Result<Vec<Vec<Behaviour>>> {
    behaviours(&RepeatedPlans::new(model), agent, contexts)
}

/// The same with plans that remember policies.
pub(crate) fn behaviours(
    plans: &RepeatedPlans<'_>,
    agent: &Agent,
    contexts: &[Context],
) -> Result<Vec<Vec<Behaviour>>> {
    let model = plans.model();
    let planned = |weights: &[f64], share: f64| {
        let plans = plans.plan(contexts, weights)?;
        let behaviour = |(policy, feature_expectations)| Behaviour { share, policy, feature_expectations };
        Ok(plans.into_iter().map(behaviour).collect::<Vec<_>>())
    };
    let alone = |behaviours: Vec<Behaviour>| behaviours.into_iter().map(|only| vec![only]).collect();
    let each = || -> Result<Vec<Vec<Behaviour>>> {
        let behaviour = |context: &Context| {
            let policy = own_policy(model, agent, context)?;
            let feature_expectations = evaluate::feature_expectations(&model.mdp(context)?, &policy)?.into();
            Ok(vec![Behaviour { share: 1.0, policy, feature_expectations }])
        };
        contexts.par_iter().map(behaviour).collect()
    };
    match agent {
        Agent::Planned(mapping) => Ok(alone(planned(&mapping.weights_of_all(contexts)?, 1.0)?)),
        Agent::Neural(mapping) => Ok(alone(planned(&mapping.weights_of_all(contexts)?, 1.0)?)),
        Agent::Nearest(nearest) if nearest.temperature().is_none() => {
            let rows: Vec<&[f64]> = contexts.iter().map(|context| nearest.weights(context)).collect::<Result<_>>()?;
            Ok(alone(planned(&rows.concat(), 1.0)?))
        }
        Agent::Soft(_) | Agent::Nearest(_) | Agent::Cloned(_) | Agent::ClonedNetwork(_) | Agent::Copied(_) => each(),
        Agent::Fixed(actions) => following(model, contexts, &[Policy::stationary(model.pairs(), actions.clone())?]),
        Agent::Uniform => following(model, contexts, &[model.random_policy()]),
        Agent::Mixed(mixture) => {
            let mut all = vec![Vec::new(); contexts.len()];
            let drawn = mixture.mappings().iter().zip(mixture.shares()).filter(|entry| *entry.1 > 0.0);
            for (mapping, &share) in drawn {
                let weights = mapping.weights_of_all(contexts)?;
                all.iter_mut().zip(planned(&weights, share)?).for_each(|(list, behaviour)| list.push(behaviour));
            }
            Ok(all)
        }
    }
}

/// The policies of an agent in each context with the probability of each, for those who do not ask what they lead to.
pub(crate) fn policies(model: &Cmdp, agent: &Agent, contexts: &[Context]) -> Result<Vec<Vec<(f64, Policy)>>> {
    let plans = RepeatedPlans::new(model);
    let planned = |weights: &[f64]| plans.policies(contexts, weights);
    let alone = |policies: Vec<Policy>| policies.into_iter().map(|policy| vec![(1.0, policy)]).collect();
    match agent {
        Agent::Planned(mapping) => Ok(alone(planned(&mapping.weights_of_all(contexts)?)?)),
        Agent::Neural(mapping) => Ok(alone(planned(&mapping.weights_of_all(contexts)?)?)),
        Agent::Nearest(nearest) if nearest.temperature().is_none() => {
            let rows: Vec<&[f64]> = contexts.iter().map(|context| nearest.weights(context)).collect::<Result<_>>()?;
            Ok(alone(planned(&rows.concat())?))
        }
        Agent::Mixed(mixture) => {
            let mut all = vec![Vec::new(); contexts.len()];
            let drawn = mixture.mappings().iter().zip(mixture.shares()).filter(|entry| *entry.1 > 0.0);
            for (mapping, &share) in drawn {
                let own = planned(&mapping.weights_of_all(contexts)?)?;
                all.iter_mut().zip(own).for_each(|(list, policy)| list.push((share, policy)));
            }
            Ok(all)
        }
        _ => {
            let own = contexts.par_iter().map(|context| own_policy(model, agent, context));
            Ok(alone(own.collect::<Result<_>>()?))
        }
    }
}

/// The policy of an agent that does not plan.
fn own_policy(model: &Cmdp, agent: &Agent, context: &Context) -> Result<Policy> {
    match agent {
        Agent::Soft(soft) => soft_policy(model, context, &soft.mapping().weights(context)?, soft.temperature()),
        Agent::Nearest(nearest) => {
            soft_policy(model, context, nearest.weights(context)?, nearest.temperature().unwrap_or_default())
        }
        Agent::Cloned(cloned) => cloned.policy(model, context),
        Agent::ClonedNetwork(cloned) => cloned.policy(model, context),
        Agent::Copied(copied) => Policy::stationary(model.pairs(), copied.actions(context)?.to_vec()),
        Agent::Fixed(actions) => Policy::stationary(model.pairs(), actions.clone()),
        Agent::Uniform => Ok(model.random_policy()),
        Agent::Planned(_) | Agent::Neural(_) | Agent::Mixed(_) => {
            Err(Error::InvalidSetting { name: "agent", value: agent.kind().into(), reason: "it plans" })
        }
    }
}

/// These policies, one per context; the first is that of all contexts beyond them.
pub(crate) fn following(model: &Cmdp, contexts: &[Context], policies: &[Policy]) -> Result<Vec<Vec<Behaviour>>> {
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

fn soft_policy(model: &Cmdp, context: &Context, weights: &[f64], temperature: f64) -> Result<Policy> {
    let mdp = model.mdp(context)?;
    Ok(SoftPlanner::at(temperature).plan(&mdp, &mdp.reward(weights)?)?.policy)
}
