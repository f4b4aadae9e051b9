//! From demonstrations to a mapping.
//!
//! ```text
//!   demonstrations ─┐
//!   planner ────────┼─ Problem ──→ Learner ──→ state ──step──→ state ──→ … ──→ Agent
//!   expert ─────────┘                 │
//!                                     └─ descent: mapping · objective · step rule
//! ```
//!
//! Read `descent.rs` first: it is Algorithm 1 of the paper, and PSGD, EW, evolution strategies, adaptive descent and networks are that
//! one learner over different parts. Then `learner.rs`, the trait that all learners implement, and `run.rs`, the loop that gives each
//! of them checkpoints, exact resume, records, stop rules, early stopping and scores.
//!
//! | part | where | knows of |
//! |---|---|---|
//! | what was seen | [`demos`](crate::demos) | contexts, trajectories |
//! | plans | [`contextual`](crate::contextual) | the model, contexts |
//! | mapping, with its pull-back | [`mapping`](crate::mapping) | contexts |
//! | objective, with its gradient by rewards | [`objective`](crate::objective) | plans, demonstrations |
//! | optimisers and sets | [`optim`](crate::optim) | numbers |
//! | learners | here, one file each | all of the above |
//!
//! The learners that ask an expert are files of their own over the same parts: [`Ellipsoid`] (Algorithm 2), [`BatchEllipsoid`]
//! (Algorithm 3), [`CuttingPlane`], [`ReplayedDescent`] and [`ReplayedEvolution`]; so is [`Bundle`]. What learners are compared with is
//! in [`baselines`](crate::baselines), and [`methods`](crate::methods) is the registry of all of them.

mod adaptive;
mod advantage;
mod batch;
mod batch_ellipsoid;
mod bundle;
mod choice;
mod cutting_plane;
mod descent;
mod ellipsoid;
mod evolution;
mod guarantee;
mod learner;
mod mirror_descent;
mod neural;
mod optimistic_mirror_descent;
mod problem;
mod record;
mod replay;
mod run;
mod settings;

pub use adaptive::Adaptive;
pub(crate) use advantage::Advantage;
pub use batch::Batch;
pub use batch_ellipsoid::{BatchEllipsoid, BatchTheorem};
pub use bundle::Bundle;
pub use choice::{Candidate, Choice, Chooser, ErrorKind, Explained, Form, FormChoice, StandardErrors};
pub use cutting_plane::CuttingPlane;
pub use descent::{Averaging, Descent, DescentState, DescentStateOf, Estimation, Gradient, Policies};
pub use ellipsoid::Ellipsoid;
pub use evolution::{EvolutionStep, EvolutionStrategies, EvolutionTheorem, Region};
pub use guarantee::{GameRewards, GameValue, Guarantee, GuaranteeStatus};
pub use learner::{Learner, Run, Start, Step};
pub use mirror_descent::{Average, Geometry, MirrorDescent, StepSize};
pub use neural::{Hidden, Neural, NeuralGradient, NeuralStep};
pub use optimistic_mirror_descent::OptimisticMirrorDescent;
pub use problem::{LossValue, Problem};
pub use record::{Checkpoint, Fitted, Patience, Record, Recorder, RunCertificate, Snapshot, Status};
pub use replay::{ReplayedDescent, ReplayedEvolution};
pub(crate) use run::CHECKPOINT_VERSION;
pub use run::{Watch, resume, run};
pub use settings::{PATIENCE, Settings, Stop, Watched};
