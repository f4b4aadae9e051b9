//! Optimisers and sets, for whatever is minimised: nothing here knows of an MDP, a context or a demonstration.
//!
//! | file | what |
//! |---|---|
//! | [`mirror`](MirrorStep) | mirror descent on balls, spheres and simplices; AdaGrad in its norm form |
//! | [`momentum`](Momentum) | SGD with momentum and Adam, for many parameters |
//! | [`evolution`](Perturbation) | gradients estimated from values |
//! | [`lbfgs`](Lbfgs) | smooth convex functions |
//! | [`bundle`](ProximalBundle) | convex functions from their cuts, with a certified gap |
//! | [`hull`](Hull) | the nearest point of a convex hull: Frank–Wolfe steps, away steps, all shares at once |
//! | [`simplex_qp`](least_on_simplex) | quadratic programmes over the simplex |
//! | [`ellipsoid`](EllipsoidSet), [`centre`](Centre) | sets that cuts shrink, and their centres |

mod bundle;
mod centre;
mod ellipsoid;
mod evolution;
mod hull;
mod lbfgs;
mod mirror;
mod momentum;
mod number;
mod simplex_qp;
mod step;
mod vectors;

pub use bundle::{BundleRule, BundleStep, ProximalBundle};
pub use centre::Centre;
pub(crate) use centre::LEAST_MARGIN;
pub use ellipsoid::EllipsoidSet;
pub(crate) use ellipsoid::{cuts_to_shrink, log_unit_ball};
pub use evolution::Perturbation;
pub use hull::Hull;
pub use lbfgs::{Accepted, Evaluation, Lbfgs};
pub(crate) use mirror::drop_negligible;
pub use mirror::{MirrorMap, MirrorState, MirrorStep, Set, StepLength};
pub use momentum::{Moments, Momentum, Optimiser};
pub use number::Number;
pub use simplex_qp::least_on_simplex;
pub use step::{StepRule, Time};
pub use vectors::{dot, norm, norm_inf, normalise};
