//! The iterations behind the planners, for problems whose values are sums (discounted, or total reward until absorption).
//!
//! All of them repeat v ← max_a r + γP v, differ in what they do between two such backups, and stop on the *span* of the
//! change it makes (MacQueen 1966): a constant change shifts all values alike and does not touch the policy.
//!
//! * value iteration: nothing in between;
//! * modified policy iteration: a fixed number of sweeps of the current policy;
//! * policy iteration: the exact values of the current policy;
//! * automatic: see [`automatic`](crate::plan::solve::automatic).

use crate::plan::kernels::buffers::Buffers;
use crate::plan::kernels::linear::{Scratch, policy_values};
use crate::plan::kernels::sweep::{Change, PolicyMatrix, greedy, improve};
use crate::plan::problem::Problem;
use crate::plan::solve::automatic::automatic;
use crate::plan::{Limits, Method, Way};

/// Notices backups that get nowhere: where rounding, or a discount next to one, keeps the residual above its tolerance, no limit on
/// sweeps that a caller may have lifted is to be waited for.
#[derive(Debug)]
pub(in crate::plan) struct Progress {
    window: usize,
    backups: usize,
    least: f64,
    /// The least residual, and the sweeps, when the window began.
    before: (f64, usize),
}

/// What a sweep has to take off the least residual on average, as a share of it: at less, a digit takes tens of millions of them.
const LEAST_PROGRESS: f64 = 1e-7;

impl Progress {
    /// News takes a backup per state to cross a chain, so the window grows with their number.
    pub(in crate::plan) fn new(n_states: usize) -> Self {
        Self { window: 4 * n_states + 1000, backups: 0, least: f64::INFINITY, before: (f64::INFINITY, 0) }
    }

    /// Whether the window of backups that ends with this residual, after so many sweeps, was in vain.
    pub(in crate::plan) fn stalls(&mut self, residual: f64, sweeps: usize) -> bool {
        self.least = self.least.min(residual);
        self.backups += 1;
        if !self.backups.is_multiple_of(self.window) {
            return false;
        }
        let gained = (self.before.0 / self.least).ln();
        let enough = gained >= LEAST_PROGRESS * (sweeps - self.before.1) as f64;
        self.before = (self.least, sweeps);
        !enough
    }
}

/// Where an iteration stopped: `backed` is one backup of `values`, `choice` its greedy rows.
#[derive(Debug)]
pub(crate) struct Iterated {
    pub(crate) values: Vec<f64>,
    pub(crate) backed: Vec<f64>,
    pub(crate) choice: Vec<u32>,
    pub(crate) change: Change,
    pub(crate) sweeps: usize,
    pub(crate) converged: bool,
    /// Whether it stopped because more backups would gain next to nothing.
    pub(crate) stalled: bool,
    /// Which way it went.
    pub(crate) way: Way,
}

/// How far values are from a fixed point once the constant shift is made.
pub(in crate::plan) fn residual(change: Change, gamma: f64) -> f64 {
    // Where no change is a number there is no least and no largest.
    if change.lo > change.hi {
        return f64::INFINITY;
    }
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
        let mut buffers = Buffers::lent(problem.kernel.n_entries());
        return automatic(problem, values, tolerance, limits, &mut buffers);
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
        stalled: false,
        way: Way::Asked,
    };
    let mut progress = Progress::new(n);
    let mut matrix = PolicyMatrix::default();
    let mut scratch = Scratch::default();
    let mut evaluated: Vec<u32> = Vec::new();
    let mut q = Vec::new();
    loop {
        state.change = improve(numbers, &state.values, &mut state.backed, &mut q);
        state.sweeps += 1;
        let now = residual(state.change, gamma);
        state.converged = now <= tolerance;
        state.stalled = progress.stalls(now, state.sweeps);
        let done = state.converged || state.stalled || state.sweeps >= limits.max_sweeps || !now.is_finite();
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
                let mut progress = Progress::new(n);
                for sweep in 0..sweeps.min(limits.max_sweeps - state.sweeps) {
                    let change = matrix.sweep(&state.values, &mut state.backed);
                    std::mem::swap(&mut state.values, &mut state.backed);
                    state.sweeps += 1;
                    let now = residual(change, gamma);
                    if now == 0.0 || !now.is_finite() || progress.stalls(now, sweep) {
                        break;
                    }
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
