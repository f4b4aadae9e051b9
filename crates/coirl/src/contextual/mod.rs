//! Planning for contexts: the only place where learners meet planning.
//!
//! A [`ContextualPlanner`] holds a model and answers with policies, feature expectations and values for rewards in contexts. It
//! remembers policies, counts its work and leaves the planning itself to a [`Backend`]; [`Cpu`] is the one there is.

mod backend;
mod contexts;
mod origin;
mod planner;

pub use backend::{Backend, Cpu};
pub use contexts::{plan_contexts, plan_mapping};
pub use origin::{Origin, Query};
pub use planner::{ContextualPlanner, Response};
