//! From demonstrations to a mapping: the loss, one file per algorithm, and the loop they share.

mod adaptive;
mod batch;
mod batch_ellipsoid;
mod bundle;
mod chance;
mod cutting_plane;
mod demonstrated_actions;
mod ellipsoid;
mod evolution;
mod fit;
mod likelihood;
mod mirror_descent;
mod neural;
mod objective;
mod online_dynamics;
mod problem;
mod record;
mod replay;
mod settings;

pub use adaptive::Adaptive;
pub use batch::Batch;
pub use batch_ellipsoid::{BatchEllipsoid, BatchTheorem};
pub use bundle::Bundle;
pub(crate) use chance::{Advantage, chance};
pub use cutting_plane::CuttingPlane;
pub(crate) use demonstrated_actions::DemonstratedActions;
pub use ellipsoid::Ellipsoid;
pub use evolution::{EvolutionStep, EvolutionStrategies, EvolutionTheorem, Perturbation, Policies, Region};
pub(crate) use fit::{Algorithm, CHECKPOINT_VERSION, Run, Step};
pub use fit::{Watch, fit, resume};
pub use mirror_descent::{Average, Geometry, MirrorDescent, StepSize};
pub use neural::{Hidden, Neural, NeuralGradient};
pub use objective::Objective;
pub use online_dynamics::{
    DynamicsLearning, Environment, FittedOnline, OnlineDynamics, Round, SimulatedEnvironment, THIN_SUPPORT, fit_online,
    unsupported_visits,
};
pub use problem::{Loss, Problem};
pub use record::{Checkpoint, Fitted, GameValue, Patience, Record, Recorder, RunCertificate, Snapshot, Status};
pub use replay::{ReplayedDescent, ReplayedEvolution};
pub use settings::{Method, Settings, Stop, Watched};
