//! From an agent to its policies in the contexts at hand.

use super::RepeatedPlans;
use crate::agent::Agent;
use crate::error::Result;
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, Context};
use crate::plan::Policy;
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
pub(super) fn behaviours(
    plans: &RepeatedPlans<'_>,
    agent: &Agent,
    contexts: &[Context],
) -> Result<Vec<Vec<Behaviour>>> {
    let planned = |mapping: &LinearMapping, share: f64| {
        let plans = plans.plan(contexts, &mapping.weights_of_all(contexts)?)?;
        let behaviour = |(policy, feature_expectations)| Behaviour { share, policy, feature_expectations };
        Ok(plans.into_iter().map(behaviour).collect::<Vec<_>>())
    };
    match agent {
        Agent::Planned(mapping) => Ok(planned(mapping, 1.0)?.into_iter().map(|only| vec![only]).collect()),
        Agent::Mixed(mixture) => {
            let mut all = vec![Vec::new(); contexts.len()];
            let drawn = mixture.mappings().iter().zip(mixture.shares()).filter(|entry| *entry.1 > 0.0);
            for (mapping, &share) in drawn {
                all.iter_mut().zip(planned(mapping, share)?).for_each(|(list, behaviour)| list.push(behaviour));
            }
            Ok(all)
        }
    }
}
