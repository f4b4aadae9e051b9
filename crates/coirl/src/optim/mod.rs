//! Optimisers and sets, for whatever is minimised: nothing here knows of an MDP, a context or a demonstration.

mod centre;
mod ellipsoid;
mod lbfgs;
mod momentum;
mod simplex_qp;
mod vectors;

pub use centre::Centre;
pub(crate) use centre::LEAST_MARGIN;
pub use ellipsoid::EllipsoidSet;
pub(crate) use ellipsoid::{cuts_to_shrink, log_unit_ball};
pub(crate) use lbfgs::{Evaluation, Lbfgs};
pub use momentum::Optimiser;
pub(crate) use momentum::{Descent, Progress};
pub(crate) use simplex_qp::least_on_simplex;
pub(crate) use vectors::{dot, norm, norm_inf, normalise};
