//! Off-policy evaluation: what a policy would have reached, from the record of what others decided.
//!
//! | estimator | needs | right if |
//! |---|---|---|
//! | importance sampling | the behaviour policy b | b is right; unbiased |
//! | weighted, per-decision weighted | b | b is right and there are many effective stays; consistent |
//! | fitted Q evaluation | nothing | states are Markov and the policy's actions were tried in them |
//! | doubly robust, weighted doubly robust | b and Q | either is right |
//!
//! All of them assume that nothing unrecorded drives both decisions and outcomes. [`assess`] refuses numbers whose conditions fail.

mod assessment;
mod behaviour;
mod calibration;
mod doubly_robust;
mod empirical_model;
#[cfg(test)]
mod enumerated;
mod fitted_q;
mod importance_sampling;
mod kd_tree;
mod neighbours;
mod per_decision;
mod ratios;
mod record;
mod state_counts;
mod step_policy;
mod support;
mod weighted;
mod weighted_doubly_robust;

pub use assessment::{Assessment, AssessmentSettings, Outcome, assess, recorded_outcome};
pub use behaviour::{Behaviour, BehaviourSettings, Comparable};
pub use calibration::{Calibration, ReliabilityBin};
pub use fitted_q::{FittedQSettings, Sweeps};
pub use record::{Episode, Record};
pub use step_policy::StepPolicy;
