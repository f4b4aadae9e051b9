//! Planning for one reward and for many, and the evaluation of policies. Knows no contexts and no learning.
//!
//! [`Planner::plan`] takes the process of one context and a reward and returns a [`Plan`]: policy, values, and a
//! [`Certificate`] that says what is guaranteed. [`Planner::plan_many`] does so for thousands of rewards on one kernel.
//! [`evaluate`] turns policies into values, occupancies and feature expectations.

mod absorption;
mod automatic;
mod average;
mod blocks;
mod buffers;
mod candidates;
mod certificate;
pub mod evaluate;
mod exact;
mod finite_horizon;
mod iterate;
mod lanes;
mod linear;
mod many;
mod memory;
mod occupancies;
mod planner;
mod policy;
mod problem;
mod real;
mod residual;
mod soft;
mod sweep;

pub use crate::simd::{Simd, processor_features};
pub(crate) use absorption::longest_expected_time;
pub use certificate::{Certificate, Status};
pub(crate) use exact::TIE_TOLERANCE;
pub use many::{ManyOptions, PlannedReward};
pub(crate) use memory::PolicyMemory;
pub use planner::{Accuracy, Limits, Method, Plan, Planner, Start};
pub use policy::Policy;
pub use residual::suboptimality_bound;
pub(crate) use soft::log_softmax;
pub use soft::{SoftMethod, SoftPlan, SoftPlanner};
