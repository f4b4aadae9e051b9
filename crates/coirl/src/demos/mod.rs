//! Demonstrations: what was seen of somebody acting, and the experts that can be asked.

mod actions;
mod demonstration;
mod demonstrations;
mod estimate;
mod expert;
mod split;
mod trajectory;

pub use crate::contextual::Origin;
pub use actions::DemonstratedActions;
pub use demonstration::{Demonstration, Evidence};
pub use demonstrations::Demonstrations;
pub use estimate::{Estimate, Estimates, Estimator, Reference, truncation_horizon};
pub use expert::{Answer, Expert, RecordedExpert, SimulatedExpert};
pub use split::{Split, Test, Train, Validation};
pub use trajectory::Trajectory;
