//! What the learners are compared with, through the same [`crate::learn::fit`], into the same files and under the same scores.
//!
//! | method | returns | guarantee |
//! |---|---|---|
//! | [`Projection`], [`MaxMargin`], [`FrankWolfe`] | a mixed policy near the expert's feature expectations | the value of a game, between bounds |
//! | [`Mwal`] | a mixed policy for the worst of all rewards | the same, and a regret bound |
//! | [`MaximumEntropy`] | a reward, acted on softly | the optimum of a convex problem |
//! | [`Cloning`] | a stochastic policy | the optimum of a convex problem |
//! | [`NeuralCloning`] | the same by a network, as in the paper | – |
//! | [`Majority`], [`NearestContext`], [`Uniform`] | what takes no learning at all | – |
//!
//! [`LargeMdp`] is the formulation under which apprentices know of contexts.

mod apprenticeship;
mod cloning;
pub(crate) mod frank_wolfe;
mod large_mdp;
pub(crate) mod max_margin;
mod maximum_entropy;
mod maximum_entropy_per_context;
pub(crate) mod mwal;
mod neural_cloning;
mod principal_components;
pub(crate) mod projection;
mod state_inputs;
mod trivial;

pub use apprenticeship::States;
pub use cloning::Cloning;
pub(crate) use cloning::State as CloningState;
pub use frank_wolfe::FrankWolfe;
pub use large_mdp::LargeMdp;
pub use max_margin::MaxMargin;
pub use maximum_entropy::MaximumEntropy;
pub(crate) use maximum_entropy::State as MaximumEntropyState;
pub(crate) use maximum_entropy_per_context::State as MaximumEntropyPerContextState;
pub use mwal::Mwal;
pub(crate) use neural_cloning::State as NeuralCloningState;
pub use neural_cloning::{NeuralCloning, StepDecay};
pub use principal_components::PrincipalComponents;
pub use projection::Projection;
pub(crate) use trivial::State as TrivialState;
pub use trivial::{Majority, NearestContext, Uniform};
