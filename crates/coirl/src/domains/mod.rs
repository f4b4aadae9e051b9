//! Models that ship with the library: the paper's grid world and driving simulator, a sepsis simulator on published aggregates, and
//! random ones for tests and benchmarks.

mod driving;
mod garnet;
mod grid;
pub mod sepsis;

pub use driving::{Driving, DrivingActions, DrivingScene, Polarity};
pub use garnet::Garnet;
pub use grid::Grid;
pub use sepsis::{Inadmissible, Patient, Sepsis, SepsisDynamics};
