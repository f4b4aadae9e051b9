//! Whether patients survive: the simulator's kernel at discount one, with one earned on survival and nothing elsewhere.
//!
//! Survival is left for the end at once, so that it earns once; death and *unknown* earn nothing. The value of a policy is the
//! probability that it brings a patient to survival: an inadmissible action, whose consequences nobody knows, does not count as doing so.

use super::Inadmissible;
use super::data::{Data, N_STATES, SURVIVAL, UNKNOWN};
use super::kernels;
use crate::error::Result;
use crate::model::{Cmdp, Criterion, Dynamics, Features, KernelBuilder};

/// The process: the states and actions of the simulator, one feature, total reward.
pub(super) fn model(data: &Data) -> Result<Cmdp> {
    let pairs = kernels::pairs(data, Inadmissible::Unknown)?;
    let simulator = kernels::published(data, &pairs)?;
    let mut builder = KernelBuilder::new(pairs.clone());
    for s in 0..N_STATES {
        for pair in pairs.of_state(s) {
            if s == SURVIVAL {
                builder.push_row([(UNKNOWN as i64, 1.0)].into_iter())?;
            } else {
                builder.push_row(simulator.successors(pair).map(|(next, p)| (next as i64, p)))?;
            }
        }
    }
    let mut survived = vec![0.0; N_STATES];
    survived[SURVIVAL] = 1.0;
    let mut initial = data.start.clone();
    initial.resize(N_STATES, 0.0);
    let features = Features::per_state(N_STATES, 1, survived)?;
    Cmdp::new(Dynamics::Shared(builder.finish()?), features, initial, Criterion::TotalReward)
}
