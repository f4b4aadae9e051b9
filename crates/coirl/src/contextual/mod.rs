//! Planning for contexts: the only place where learners meet planning.

mod contexts;
mod planner;

pub use contexts::{plan_contexts, plan_mapping};
pub(crate) use planner::RepeatedPlans;
