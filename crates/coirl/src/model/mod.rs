//! What is given: a contextual Markov decision process without its reward mapping.
//!
//! [`Cmdp`] owns the dynamics, the features, the start distribution and the optimality criterion (with its discount).
//! Fixing a context gives an [`Mdp`], the only thing the planners see. Constructors validate, so nothing invalid can
//! be held: a row that does not sum to one, a successor out of range or a discount of 1.2 is refused with its place.

mod cmdp;
mod context;
mod criterion;
pub mod digest;
mod dynamics;
mod features;
mod from_fn;
mod kernel;
mod known;
mod pairs;
mod proper;
mod restricted;

pub use cmdp::{Cmdp, Mdp, Names};
pub use context::{Context, ContextSpace};
pub use criterion::Criterion;
pub use dynamics::{Clusters, Dynamics, Mixture};
pub use features::{Features, Reward, SparseRows};
pub(crate) use kernel::Layout;
pub use kernel::{Kernel, KernelBuilder};
pub use pairs::{ActionId, Pairs, StateId};
