//! Understanding what was learned: what demonstrations can teach before a fit, and what a fitted mapping says after it.
//!
//! | question | answered by |
//! |---|---|
//! | can these demonstrations be learned from? | [`check`], with [`LeastLoss`] |
//! | what makes up this reward, and why this action and not the next best? | [`Contributions`] |
//! | which entries of W do the demonstrations determine? | [`determine`] |
//! | how much would W change with other demonstrations? | [`bootstrap`] |
//! | is the context of any use? | [`context_helps`] |
//!
//! **Scale and sign.** A mapping and its positive multiples explain the same behaviour, so W is shown with ‖W‖₂ = 1. Its sign
//! is not a convention: −W wants the opposite, and has another loss.

mod basis;
mod bootstrap;
mod bounds;
mod context_helps;
mod contributions;
mod demonstrations;
mod determined;
mod feasible;
mod least_loss;
mod progress;
mod repeats;
mod span;
mod support;
mod tail;

pub use crate::resampling::Interval;
pub use bootstrap::{Bootstrap, BootstrapSettings, bootstrap};
pub use bounds::{Bounds, BoundsKind};
pub use context_helps::{ContextHelps, ContextHelpsSettings, Verdict, context_helps};
pub use contributions::{Choice, Contributions, Terms};
pub use demonstrations::{Check, CheckSettings, Finding, Level, Topic, check};
pub use determined::{Determination, DeterminationSettings, Entry, Reason, determine};
pub use least_loss::LeastLoss;
pub use progress::Progress;
pub use support::Support;
