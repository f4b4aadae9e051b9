//! What was learned, as a way to act: by planning for a reward, or otherwise. [`crate::agent::act`] turns it into policies.

mod behaviour;
mod choice;
mod cloned;
mod cloned_network;
mod habits;
mod known_contexts;
mod mixture;
mod predictions;
mod soft;

pub use behaviour::{Behaviour, act};
pub(crate) use behaviour::{behaviours, following, policies};
pub use choice::Choice;
pub(crate) use choice::scores;
pub(crate) use cloned::linear;
pub use cloned::{ClonedPolicy, Inputs};
pub use cloned_network::ClonedNetwork;
pub use habits::NearestActions;
pub use known_contexts::KnownContexts;
pub use mixture::Mixture;
pub use predictions::{Confidence, Predictions};
pub use soft::{NearestWeights, SoftMapping};

use crate::error::{Error, Result};
use crate::mapping::{LearnedMapping, LinearMapping, NeuralMapping, RewardMapping};
use crate::model::ActionId;

/// How to act in a context that nobody has seen.
#[derive(Debug, Clone, PartialEq)]
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
    /// The same by a network.
    ClonedNetwork(ClonedNetwork),
    /// Does what was done in the nearest context that was seen.
    Copied(NearestActions),
    /// Takes one action per state, whatever the context.
    Fixed(Vec<ActionId>),
    /// Takes every known action with equal probability.
    Uniform,
}

impl Agent {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Agent::Planned(_) => "planned",
            Agent::Neural(_) => "neural",
            Agent::Mixed(_) => "mixed",
            Agent::Soft(_) => "soft",
            Agent::Nearest(_) => "nearest",
            Agent::Cloned(_) => "cloned",
            Agent::ClonedNetwork(_) => "cloned_network",
            Agent::Copied(_) => "copied",
            Agent::Fixed(_) => "fixed",
            Agent::Uniform => "uniform",
        }
    }

    /// Whether it keeps the contexts that it was learned from: of people, it is then as confidential as they are.
    pub fn keeps_contexts(&self) -> bool {
        matches!(self, Agent::Nearest(_) | Agent::Copied(_))
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

    /// The mapping that the agent plans for, of agents that plan for one.
    pub fn planned_for(&self) -> Option<LearnedMapping> {
        match self {
            Agent::Planned(mapping) => Some(mapping.clone().into()),
            Agent::Neural(mapping) => Some(mapping.clone().into()),
            _ => None,
        }
    }

    /// The mapping from context to reward, whatever its form; an error for agents that act without one.
    pub fn reward(&self) -> Result<&dyn RewardMapping> {
        match self {
            Agent::Neural(mapping) => Ok(mapping),
            _ => Ok(self.mapping()?),
        }
    }
}
