//! How good a mapping is: what it plans for the contexts at hand, and how that compares with an expert.

mod behaviour;
mod contexts;
mod examination;
mod repeated;

pub use behaviour::{Behaviour, act};
pub use contexts::{plan_contexts, plan_mapping};
pub use examination::{Examination, Score};
pub(crate) use repeated::RepeatedPlans;
