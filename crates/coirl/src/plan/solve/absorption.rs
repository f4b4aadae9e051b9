//! The longest expected time to absorption over all policies: what 1/(1−γ) is to a discounted process.

use crate::error::{Error, Result};
use crate::model::Kernel;
use crate::plan::planner::{Limits, Method};
use crate::plan::problem::{Problem, RowReward};
use crate::plan::solve::iterate::iterate;

/// An upper bound on max over policies and states of the expected number of steps before absorption.
///
/// Found by planning for a reward of one per step. If the values w reached satisfy 1 + max_a P w ≤ w + hi with hi < 1,
/// then w/(1 − hi) is a super-solution, so the bound holds however far planning got.
pub(crate) fn longest_expected_time(kernel: &Kernel) -> Result<f64> {
    let mut steps = vec![1.0; kernel.n_states()];
    kernel.absorbing().for_each(|s| steps[s] = 0.0);
    let problem = Problem { kernel, gamma: 1.0, reward: RowReward::State(&steps) };
    let reached = iterate(&problem, Method::Automatic, steps.clone(), 1e-3, Limits::default());
    let longest = reached.values.iter().copied().fold(1.0, f64::max);
    let excess = reached.change.hi.max(0.0) + longest * 1e-12;
    if excess < 0.5 { Ok(longest / (1.0 - excess)) } else { Err(Error::EvaluationStalled { residual: excess }) }
}
