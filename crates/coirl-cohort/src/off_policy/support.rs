//! How much of a policy nobody has ever tried.

use super::{Record, StepPolicy};

/// Mean over the recorded steps of the probability that the policy does what was never recorded in the step's state.
pub(super) fn unseen_share(record: &Record, policy: &StepPolicy) -> f64 {
    let (counts, n) = (record.pair_counts(), record.n_actions());
    let of_step = |step: usize| -> f64 {
        let first = record.states()[step] as usize * n;
        let unseen = policy.row(step).iter().zip(&counts[first..first + n]).filter(|(_, count)| **count == 0);
        unseen.map(|(share, _)| share).sum()
    };
    (0..record.n_steps()).map(of_step).sum::<f64>() / record.n_steps() as f64
}
