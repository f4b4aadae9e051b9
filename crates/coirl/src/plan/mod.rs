//! Planning for one reward and for many, and the evaluation of policies. Knows no contexts and no learning.
//!
//! [`Planner::plan`] takes the process of one context and a reward and returns a [`Plan`]: policy, values, and a
//! [`Certificate`] that says what is guaranteed. [`Planner::plan_many`] does so for thousands of rewards on one kernel.
//! [`evaluate`] turns policies into values, occupancies and feature expectations.

mod certificate;
pub mod evaluate;
mod kernels;
mod memory;
mod planner;
mod policy;
mod problem;
mod solve;
mod way;

pub use crate::simd::{Simd, processor_features};
pub use certificate::{Certificate, Status};
pub(crate) use memory::PolicyMemory;
pub use planner::{Accuracy, Limits, Method, Plan, Planner, Start};
pub use policy::Policy;
pub(crate) use solve::absorption::longest_expected_time;
pub(crate) use solve::exact::TIE_TOLERANCE;
pub use solve::many::{ManyOptions, PlannedReward};
pub use solve::residual::suboptimality_bound;
pub use solve::soft::{SoftMethod, SoftPlan, SoftPlanner, log_softmax};
pub use solve::soft_many::{SOFT_LANES, SoftBlock, SoftMany};
pub use way::Way;
