//! The iterations behind the planners, for problems whose values are sums (discounted, or total reward until absorption).
//!
//! All of them repeat v ← max_a r + γP v, differ in what they do between two such backups, and stop on the *span* of the
//! change it makes (MacQueen 1966): a constant change shifts all values alike and does not touch the policy.
//!
//! * value iteration: nothing in between;
//! * modified policy iteration: a fixed number of sweeps of the current policy;
//! * policy iteration: the exact values of the current policy;
//! * automatic: sweeps of the current policy while each takes off a good share of the span, Krylov steps otherwise, as
//!   far as the next backup deserves.

use super::linear::{Scratch, policy_values, reduce_value_residual};
use super::problem::Problem;
use super::sweep::{Change, PolicyMatrix, improve};
use super::{Limits, Method};

/// Where an iteration stopped: `backed` is one backup of `values`, `choice` its greedy rows.
#[derive(Debug)]
pub(crate) struct Iterated {
    pub(crate) values: Vec<f64>,
    pub(crate) backed: Vec<f64>,
    pub(crate) choice: Vec<u32>,
    pub(crate) change: Change,
    pub(crate) sweeps: usize,
    pub(crate) converged: bool,
}

impl Iterated {
    /// How far the values are from a fixed point, once the constant shift is made.
    pub(crate) fn residual(&self, gamma: f64) -> f64 {
        residual(self.change, gamma)
    }
}

fn residual(change: Change, gamma: f64) -> f64 {
    if gamma < 1.0 { 0.5 * change.span() } else { change.sup_norm() }
}

/// A sweep of the policy is worth less than a backup from here on.
const EVALUATION_SHARE: f64 = 0.1;
/// Rate of the span above which Krylov steps replace sweeps.
const KRYLOV_RATE: f64 = 0.7;
/// Most products with the policy's matrix between two backups.
const MAX_PRODUCTS: usize = 60;

/// Runs a method from `values` until the residual is at most `tolerance`.
pub(crate) fn iterate(
    problem: &Problem<'_>,
    method: Method,
    values: Vec<f64>,
    tolerance: f64,
    limits: Limits,
) -> Iterated {
    let n = values.len();
    let gamma = problem.gamma;
    let mut state = Iterated {
        values,
        backed: vec![0.0; n],
        choice: vec![0; n],
        change: Change::NONE,
        sweeps: 0,
        converged: false,
    };
    let mut matrix = PolicyMatrix::default();
    let mut scratch = Scratch::default();
    let mut evaluated: Vec<u32> = Vec::new();
    loop {
        state.change = improve(problem, &state.values, &mut state.backed, &mut state.choice);
        state.sweeps += 1;
        state.converged = state.residual(gamma) <= tolerance;
        if state.converged || state.sweeps >= limits.max_sweeps || !state.change.sup_norm().is_finite() {
            return state;
        }
        std::mem::swap(&mut state.values, &mut state.backed);
        match method {
            Method::ValueIteration => {}
            Method::ModifiedPolicyIteration { sweeps } => {
                matrix.gather(problem, &state.choice);
                for _ in 0..sweeps {
                    matrix.sweep(&state.values, &mut state.backed);
                    std::mem::swap(&mut state.values, &mut state.backed);
                    state.sweeps += 1;
                }
            }
            Method::PolicyIteration => {
                if evaluated == state.choice {
                    // The policy is its own greedy policy; what is left of the residual is rounding.
                    std::mem::swap(&mut state.values, &mut state.backed);
                    return state;
                }
                matrix.gather(problem, &state.choice);
                state.sweeps += policy_values(&matrix, &mut state.values, &mut scratch).products;
                evaluated.clone_from(&state.choice);
            }
            Method::Automatic => {
                if evaluated != state.choice {
                    matrix.gather(problem, &state.choice);
                    evaluated.clone_from(&state.choice);
                }
                evaluate_as_deserved(&matrix, &mut state, tolerance, &mut scratch);
            }
        }
    }
}

/// Brings the policy's own residual to a share of the last backup's, by whichever steps are fast on this problem.
fn evaluate_as_deserved(matrix: &PolicyMatrix, state: &mut Iterated, tolerance: f64, scratch: &mut Scratch) {
    let gamma = matrix.gamma;
    let goal = (EVALUATION_SHARE * residual(state.change, gamma)).max(0.5 * tolerance);
    let mut last = residual(state.change, gamma);
    for _ in 0..MAX_PRODUCTS {
        let change = matrix.sweep(&state.values, &mut state.backed);
        std::mem::swap(&mut state.values, &mut state.backed);
        state.sweeps += 1;
        let now = residual(change, gamma);
        if now * gamma <= goal {
            return;
        }
        let rate = now / last;
        last = now;
        if rate > KRYLOV_RATE {
            let factor = (goal / now).clamp(1e-12, 0.5);
            if gamma < 1.0 {
                let shift = gamma * change.mid() / (1.0 - gamma);
                state.values.iter_mut().for_each(|x| *x += shift);
            }
            state.sweeps += reduce_value_residual(matrix, &mut state.values, factor, MAX_PRODUCTS, scratch);
            return;
        }
    }
}
