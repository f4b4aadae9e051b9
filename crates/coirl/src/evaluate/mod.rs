//! How good a mapping is: what it plans for the contexts at hand, and how that compares with an expert.

mod contexts;
mod examination;
mod repeated;

pub use contexts::{plan_contexts, plan_mapping};
pub use examination::{Examination, Score};
pub(crate) use repeated::RepeatedPlans;
