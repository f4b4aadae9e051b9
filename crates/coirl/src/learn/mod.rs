//! From demonstrations to a mapping: the loss, one file per algorithm, and the loop they share.

mod adaptive;
mod batch;
mod fit;
mod mirror_descent;
mod problem;
mod record;
mod settings;

pub use adaptive::Adaptive;
pub use batch::Batch;
pub(crate) use fit::CHECKPOINT_VERSION;
pub use fit::{Watch, fit, resume};
pub use mirror_descent::{Average, Geometry, MirrorDescent, StepSize};
pub use problem::{Loss, Problem};
pub use record::{Checkpoint, Fitted, Patience, Record, Recorder, RunCertificate, Snapshot, Status};
pub use settings::{Method, Settings, Stop};
