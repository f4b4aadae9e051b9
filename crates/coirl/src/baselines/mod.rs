//! What the learners are compared with, through the same [`crate::methods::fit`], into the same files and under the same scores.
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
mod frank_wolfe;
mod large_mdp;
mod max_margin;
mod maximum_entropy;
mod maximum_entropy_per_context;
mod mwal;
mod neural_cloning;
mod principal_components;
mod projection;
mod state_inputs;
mod trivial;

pub use apprenticeship::States;
pub use cloning::Cloning;
pub use frank_wolfe::FrankWolfe;
pub use large_mdp::LargeMdp;
pub use max_margin::MaxMargin;
pub use maximum_entropy::MaximumEntropy;
pub use maximum_entropy_per_context::MaximumEntropyPerContext;
pub use mwal::Mwal;
pub use neural_cloning::{NeuralCloning, StepDecay};
pub use principal_components::PrincipalComponents;
pub use projection::Projection;
pub use trivial::{Majority, NearestContext, Uniform};
