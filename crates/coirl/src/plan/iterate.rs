//! The iterations behind the planners, for problems whose values are sums (discounted, or total reward until absorption).
//!
//! All of them repeat v ← max_a r + γP v, differ in what they do between two such backups, and stop on the *span* of the
//! change it makes (MacQueen 1966): a constant change shifts all values alike and does not touch the policy.
//!
//! * value iteration: nothing in between;
//! * modified policy iteration: a fixed number of sweeps of the current policy;
//! * policy iteration: the exact values of the current policy;
//! * automatic: see [`automatic`](super::automatic).

use super::automatic::automatic;
use super::linear::{Scratch, policy_values};
use super::problem::Problem;
use super::sweep::{Change, PolicyMatrix, greedy, improve};
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

/// How far values are from a fixed point once the constant shift is made.
pub(super) fn residual(change: Change, gamma: f64) -> f64 {
    if gamma < 1.0 { 0.5 * change.span() } else { change.sup_norm() }
}

/// Runs a method from `values` until the residual is at most `tolerance`.
pub(crate) fn iterate(
    problem: &Problem<'_>,
    method: Method,
    values: Vec<f64>,
    tolerance: f64,
    limits: Limits,
) -> Iterated {
    let gamma = problem.gamma;
    if method == Method::Automatic {
        return automatic(problem, values, tolerance, limits);
    }
    let n = values.len();
    let numbers = problem.numbers();
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
    let mut q = Vec::new();
    loop {
        state.change = improve(numbers, &state.values, &mut state.backed, &mut q);
        state.sweeps += 1;
        let now = residual(state.change, gamma);
        state.converged = now <= tolerance;
        let done = state.converged || state.sweeps >= limits.max_sweeps || !now.is_finite();
        if done || method != Method::ValueIteration {
            greedy(numbers.state_rows, &q, &state.backed, &mut state.choice);
        }
        if done {
            return state;
        }
        match method {
            // The automatic method left above; a backup is what all have in common.
            Method::ValueIteration | Method::Automatic => std::mem::swap(&mut state.values, &mut state.backed),
            Method::ModifiedPolicyIteration { sweeps } => {
                std::mem::swap(&mut state.values, &mut state.backed);
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
                    return state;
                }
                std::mem::swap(&mut state.values, &mut state.backed);
                matrix.gather(problem, &state.choice);
                state.sweeps += policy_values(&matrix, &mut state.values, &mut scratch).products;
                evaluated.clone_from(&state.choice);
            }
        }
    }
}
