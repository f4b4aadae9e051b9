//! Methods from before contextual inverse reinforcement learning, through the same [`crate::learn::fit`], into the same
//! artefact and under the same scoring.
//!
//! | method | returns | guarantee |
//! |---|---|---|
//! | [`Projection`], [`MaxMargin`], [`FrankWolfe`] | a mixed policy near the expert's feature expectations | the value of a game, between bounds |
//! | [`Mwal`] | a mixed policy for the worst of all rewards | the same, and a regret bound |
//!
//! [`LargeMdp`] is the formulation under which they know of contexts.

mod apprenticeship;
pub(crate) mod frank_wolfe;
mod large_mdp;
pub(crate) mod max_margin;
pub(crate) mod mwal;
pub(crate) mod projection;

pub use apprenticeship::States;
pub use frank_wolfe::FrankWolfe;
pub use large_mdp::LargeMdp;
pub use max_margin::MaxMargin;
pub use mwal::Mwal;
pub use projection::Projection;
