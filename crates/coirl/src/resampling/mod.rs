//! Uncertainty by resampling patients: intervals, folds, and what a table of recorded steps must hold for them.

mod estimate;
mod interval;
pub(crate) mod patients;
pub(crate) mod recorded_steps;

pub use estimate::{Estimate, Resampling};
pub use interval::Interval;
pub(crate) use interval::{check_level, check_resamples};
