//! What was learned, as a way to act. Every method returns a [`ContextualPolicy`]; [`Agent`] holds those that files can hold, and any
//! other. [`act`] turns one into the policies of contexts.

mod behaviour;
mod choice;
mod cloned;
mod cloned_network;
mod habits;
mod known_contexts;
mod mixture;
mod predictions;
mod soft;

pub use behaviour::{Acting, Behaviour, ContextualPolicy, act, policies};
pub(crate) use behaviour::{behaviours, following};
pub use choice::Choice;
pub(crate) use choice::scores;
pub(crate) use cloned::linear;
pub use cloned::{ClonedPolicy, Inputs};
pub use cloned_network::ClonedNetwork;
pub use habits::{NearestActions, UniformPolicy};
pub use known_contexts::KnownContexts;
pub use mixture::Mixture;
pub use predictions::{Confidence, Predictions};
pub use soft::{NearestWeights, SoftMapping};

use crate::error::{Error, Result};
use crate::mapping::{LearnedMapping, LinearMapping, NeuralMapping, RewardMapping};
use crate::model::{ActionId, Cmdp, Context, StateId};
use std::sync::Arc;

/// How to act in any context, as methods return it. All but the last can be written to files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Agent {
    /// Plans for the reward that a mapping gives the context.
    Planned(LinearMapping),
    /// Plans for the reward that a network gives the context.
    Neural(NeuralMapping),
    /// Draws one of several mappings when an episode begins, and plans for it.
    Mixed(Mixture),
    /// Follows the soft policy of the reward that a mapping gives the context.
    Soft(SoftMapping),
    /// Acts on the reward of the nearest context that has one.
    Nearest(NearestWeights),
    /// Scores the actions by context and state.
    Cloned(ClonedPolicy),
    /// Scores the actions by a network.
    ClonedNetwork(ClonedNetwork),
    /// Does what was done in the nearest context that was seen.
    Copied(NearestActions),
    /// Takes one action per state, whatever the context.
    Fixed(Vec<ActionId>),
    /// Takes every known action with equal probability.
    Uniform,
    /// A policy from outside this crate.
    Own(OwnPolicy),
}

/// A policy from outside this crate. Two are the same where they are the same object.
#[derive(Debug, Clone)]
pub struct OwnPolicy(Arc<dyn ContextualPolicy>);

impl PartialEq for OwnPolicy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<LinearMapping> for Agent {
    fn from(mapping: LinearMapping) -> Self {
        Agent::Planned(mapping)
    }
}

impl From<NeuralMapping> for Agent {
    fn from(mapping: NeuralMapping) -> Self {
        Agent::Neural(mapping)
    }
}

impl Agent {
    /// An agent that acts by a policy of your own; of a [`RewardMapping`], by planning for it.
    pub fn own(policy: impl ContextualPolicy + 'static) -> Self {
        Agent::Own(OwnPolicy(Arc::new(policy)))
    }

    /// Its kind in a word, and the policy.
    fn parts(&self) -> (&'static str, &dyn ContextualPolicy) {
        match self {
            Agent::Planned(mapping) => ("planned", mapping),
            Agent::Neural(mapping) => ("neural", mapping),
            Agent::Mixed(mixture) => ("mixed", mixture),
            Agent::Soft(soft) => ("soft", soft),
            Agent::Nearest(nearest) => ("nearest", nearest),
            Agent::Cloned(cloned) => ("cloned", cloned),
            Agent::ClonedNetwork(cloned) => ("cloned_network", cloned),
            Agent::Copied(copied) => ("copied", copied),
            Agent::Fixed(actions) => ("fixed", actions),
            Agent::Uniform => ("uniform", &UniformPolicy),
            Agent::Own(own) => ("own", &*own.0),
        }
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        self.parts().0
    }

    /// W of a linear mapping from context to reward; an error for agents that act without one, or on a network.
    pub fn mapping(&self) -> Result<&LinearMapping> {
        match self {
            Agent::Planned(mapping) => Ok(mapping),
            Agent::Soft(soft) => Ok(soft.mapping()),
            Agent::Neural(_) => Err(Error::NotLinear),
            _ => Err(Error::NoMapping { agent: self.kind() }),
        }
    }

    /// The mapping that the agent plans for, as later steps store it.
    pub fn planned_for(&self) -> Option<LearnedMapping> {
        match self {
            Agent::Planned(mapping) => Some(mapping.clone().learned()),
            Agent::Neural(mapping) => Some(mapping.clone().into()),
            _ => None,
        }
    }

    /// The mapping from context to reward, whatever its form; an error for agents that act without one.
    pub fn reward_mapping(&self) -> Result<&dyn RewardMapping> {
        self.reward().ok_or(Error::NoMapping { agent: self.kind() })
    }
}

impl ContextualPolicy for Agent {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        self.parts().1.acting(model, contexts)
    }

    fn plans_for(&self) -> Option<&dyn RewardMapping> {
        self.parts().1.plans_for()
    }

    fn reward(&self) -> Option<&dyn RewardMapping> {
        self.parts().1.reward()
    }

    fn probabilities_at(&self, model: &Cmdp, context: &Context, states: &[StateId]) -> Result<Option<Vec<f64>>> {
        self.parts().1.probabilities_at(model, context, states)
    }

    fn keeps_contexts(&self) -> bool {
        self.parts().1.keeps_contexts()
    }
}
