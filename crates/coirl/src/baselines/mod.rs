//! What the learners are compared with, through the same [`crate::learn::fit`], the same files and the same scores: maximum-entropy
//! inverse reinforcement learning, behavioural cloning, and what takes no learning at all.

mod cloning;
mod demonstrated_actions;
mod lbfgs;
mod maximum_entropy;
mod maximum_entropy_per_context;
mod principal_components;
mod trivial;

pub use cloning::Cloning;
pub(crate) use cloning::State as CloningState;
pub use maximum_entropy::MaximumEntropy;
pub(crate) use maximum_entropy::State as MaximumEntropyState;
pub(crate) use maximum_entropy_per_context::State as MaximumEntropyPerContextState;
pub use principal_components::PrincipalComponents;
pub(crate) use trivial::State as TrivialState;
pub use trivial::{Majority, NearestContext, Uniform};
