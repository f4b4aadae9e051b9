//! How good a mapping is: what it plans for the contexts at hand, and how that compares with an expert.

mod behaviour;
mod context_effect;
mod contexts;
mod examination;
mod repeated;
mod support;

pub use behaviour::{Behaviour, act};
pub use context_effect::{ContextEffect, context_effect};
pub use contexts::{plan_contexts, plan_mapping};
pub use examination::{Examination, Score};
pub(crate) use repeated::RepeatedPlans;
pub use support::unsupported_share;
