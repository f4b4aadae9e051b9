//! Uncertainty by resampling: intervals, and estimates with intervals.

mod estimate;
mod interval;

pub use estimate::{Estimate, Resampling};
pub use interval::{Interval, check_level, check_resamples};
