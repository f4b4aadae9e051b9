//! How good a mapping is: what it plans for the contexts at hand, and how that compares with an expert.

mod answers;
mod behaviour;
mod context_effect;
mod contexts;
mod examination;
mod predictions;
mod repeated;
mod score;
mod support;

pub use behaviour::{Behaviour, act};
pub use context_effect::ContextEffect;
pub use contexts::{plan_contexts, plan_mapping};
pub use examination::Examination;
pub use predictions::Predictions;
pub(crate) use repeated::RepeatedPlans;
pub use score::Score;
pub use support::unsupported_share;
