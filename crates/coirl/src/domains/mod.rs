//! Models that ship with the library: the paper's grid world and driving simulator, and random ones for tests and
//! benchmarks.

mod driving;
mod garnet;
mod grid;

pub use driving::{Driving, DrivingActions, Polarity};
pub use garnet::Garnet;
pub use grid::Grid;
