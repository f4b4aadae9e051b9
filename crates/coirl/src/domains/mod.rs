//! Models that ship with the library: the paper's grid world and driving simulator, a sepsis simulator on published aggregates,
//! random ones for tests and benchmarks, and three that mix slowly: a pendulum, a maze and an epidemic.

mod driving;
mod epidemic;
mod garnet;
mod grid;
mod maze;
mod pendulum;
pub mod sepsis;

pub use driving::{Driving, DrivingActions, DrivingScene, Polarity};
pub use epidemic::Epidemic;
pub use garnet::Garnet;
pub use grid::Grid;
pub use maze::Maze;
pub use pendulum::Pendulum;
pub use sepsis::{Inadmissible, Patient, Sepsis, SepsisDynamics};
