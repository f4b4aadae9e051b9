//! Learning the dynamics from transitions that were seen.
//!
//! ```text
//! P̂(s' | s, a) = (n(s, a, s') + α p₀(s')) / (n(s, a) + α)                                    pooled, or by cluster
//! P̂_c = Σ cᵢ P̂ᵢ  with  P̂ᵢ maximising  Σ n(c, s, a, s') log Σ cᵢ Pᵢ(s' | s, a) + α Σ p₀ log Pᵢ          mixture
//! ```
//!
//! | what is learned | when | from |
//! |---|---|---|
//! | one kernel | contexts do not move the dynamics, or data are few | [`maximum_likelihood`] |
//! | one kernel per cluster of contexts, drawn to the pool | contexts of any kind | [`Structure::Clusters`] |
//! | base kernels of a mixture | contexts on the simplex | [`Structure::Mixture`] |
//!
//! [`estimate`] learns any of them from [`Observations`] and keeps how often each pair was seen ([`Support`]), so that
//! later steps can say how much of a policy stands on little. [`log_likelihood`] compares them on transitions kept apart.

mod clusters;
mod counts;
mod estimate;
mod held_out;
mod kmeans;
mod likelihood;
mod mixture;
mod observations;
mod prior;
mod start;
mod support;
mod tally;
mod unsupported;

pub use clusters::Centres;
pub use counts::{Transition, TransitionCounts};
pub use estimate::{Learned, Structure, estimate};
pub use held_out::{LogLikelihood, log_likelihood};
pub(crate) use kmeans::centres;
pub use likelihood::{LearnedKernel, maximum_likelihood};
pub use mixture::{ExpectationMaximisation, Maximised, MaximisedStatus};
pub use observations::Observations;
pub use prior::{Prior, PriorMean, Unseen};
pub use start::StartCounts;
pub use support::Support;
pub use unsupported::unsupported_share;
