//! Scores of agents against a known truth, on test contexts.

mod answers;
mod context_effect;
mod examination;
#[allow(clippy::module_inception)] // a score is what the room is about
mod score;

pub use context_effect::ContextEffect;
pub use examination::Examination;
pub use score::Score;
