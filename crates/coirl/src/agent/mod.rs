//! What was learned, as a way to act: by planning for a reward, or otherwise. [`crate::evaluate::act`] turns it into policies.

mod mixture;

pub use mixture::Mixture;

use crate::error::{Error, Result};
use crate::mapping::LinearMapping;

/// How to act in a context that nobody has seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Agent {
    /// Plans for the reward that a mapping gives the context.
    Planned(LinearMapping),
    /// Draws one of several mappings when an episode begins, and plans for it.
    Mixed(Mixture),
}

impl Agent {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Agent::Planned(_) => "planned",
            Agent::Mixed(_) => "mixed",
        }
    }

    /// The mapping from context to reward; an error for agents that act without one.
    pub fn mapping(&self) -> Result<&LinearMapping> {
        match self {
            Agent::Planned(mapping) => Ok(mapping),
            Agent::Mixed(_) => Err(Error::NoMapping { agent: self.kind() }),
        }
    }
}
