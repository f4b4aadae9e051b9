//! How good a mapping is: what it plans for the contexts at hand, and how that compares with an expert. For recorded stays, whose
//! truth nobody knows: how well actions match the record ([`matching`]), and what an agent would have reached ([`off_policy`]).

mod answers;
mod behaviour;
mod context_effect;
mod contexts;
mod examination;
mod interval;
pub mod matching;
pub mod off_policy;
mod patients;
mod predictions;
mod recorded_steps;
mod repeated;
mod resampling;
mod score;
mod support;

pub(crate) use behaviour::policies;
pub use behaviour::{Behaviour, act};
pub use context_effect::ContextEffect;
pub use contexts::{plan_contexts, plan_mapping};
pub use examination::Examination;
pub use interval::Interval;
pub(crate) use interval::{check_level, check_resamples};
pub use predictions::{Confidence, Predictions};
pub(crate) use repeated::RepeatedPlans;
pub use resampling::{Estimate, Resampling};
pub use score::Score;
pub use support::unsupported_share;
