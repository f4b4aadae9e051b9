//! What a plan guarantees.
//!
//! Let v be any vector, Tv its Bellman backup and T_π v its sweep under a policy π, with v + lo ≤ T_π v and Tv ≤ v + hi.
//! For a discount γ < 1, monotonicity gives V* ≤ Tv + γ·hi/(1−γ) and V^π ≥ T_π v + γ·lo/(1−γ) (MacQueen 1966; Puterman
//! 1994, Theorem 6.6.3), hence V* − V^π ≤ max(Tv − T_π v) + γ(hi − lo)/(1−γ). At discount one with absorption, 1/(1−γ)
//! is replaced by the largest expected time to absorption over all policies. Rounding in the backups is added.

use crate::plan::kernels::sweep::Change;
use crate::plan::problem::Problem;
use serde::Serialize;

/// How planning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The policy is greedy for its own exactly evaluated values.
    Exact,
    /// The residual is within the tolerance asked for.
    Converged,
    /// The limit on sweeps came first, or sweeps that gain next to nothing; the bounds hold for what was reached.
    SweepLimit,
}

/// What is known about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[must_use]
pub struct Certificate {
    /// How planning ended.
    pub status: Status,
    /// Sup norm of the Bellman residual of the values, before rounding allowances.
    pub residual: f64,
    /// No policy is better than the returned one by more than this, in any state.
    pub suboptimality_bound: f64,
    /// The returned values are within this of the optimal ones, in every state.
    pub value_error_bound: f64,
    /// Passes over the kernel or over the rows of a policy.
    pub sweeps: usize,
}

impl Certificate {
    /// This certificate, with bounds that overflowed stated as what they are: none.
    pub(crate) fn sound(self) -> Self {
        let known = |bound: f64| if bound.is_nan() { f64::INFINITY } else { bound };
        Self {
            residual: known(self.residual),
            suboptimality_bound: known(self.suboptimality_bound),
            value_error_bound: known(self.value_error_bound),
            ..self
        }
    }
}

/// Largest rounding error of one backup.
pub(crate) fn backup_rounding(problem: &Problem<'_>, values: &[f64]) -> f64 {
    rounding(problem.max_row_entries(), crate::plan::kernels::linear::sup_norm(values) + problem.reward.max_abs())
}

/// How far rounding can move a backup of numbers of this size, in rows of at most `max_row` entries.
pub(crate) fn rounding(max_row: usize, size: f64) -> f64 {
    let operations = (max_row + 4) as f64;
    // Subnormal numbers are no nearer to each other than this, however small they are.
    operations * f64::EPSILON * size + operations * f64::from_bits(1)
}

/// By how much a unit of residual can grow into a difference of values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Horizon {
    /// γ < 1.
    Discount(f64),
    /// The largest expected number of steps before absorption.
    Absorption(f64),
}

impl Horizon {
    /// The bound on V* − V^π for values v with these changes under the backup and under the policy.
    pub(crate) fn suboptimality(self, backup: Change, policy: Change, greedy_gap: f64, rounding: f64) -> f64 {
        match self {
            Horizon::Discount(gamma) => {
                greedy_gap + (gamma * (backup.hi - policy.lo).max(0.0) + 2.0 * rounding) / (1.0 - gamma)
            }
            Horizon::Absorption(steps) => steps * (backup.hi.max(0.0) - policy.lo.min(0.0) + 2.0 * rounding),
        }
    }

    /// The bound on |v − V*|.
    pub(crate) fn value_error(self, backup: Change, rounding: f64) -> f64 {
        match self {
            Horizon::Discount(gamma) => (backup.sup_norm() + rounding) / (1.0 - gamma),
            Horizon::Absorption(steps) => steps * (backup.sup_norm() + rounding),
        }
    }
}
