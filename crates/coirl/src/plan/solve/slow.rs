//! Models that mix slowly: one step moves little, so a backup carries news one step only, and Krylov steps have nothing to hold on to.
//!
//! Where no state is ever returned to, whatever the actions, one pass over the states is all there is to do. Otherwise there are two ways:
//!
//! * *Sweeps against the flow*: between two backups the greedy policy is swept a few times, each state after those it likely leads to. One sweep
//!   carries news along whole paths. Physics on a grid needs some twenty such rounds.
//! * *Policy iteration*, where the components of the greedy policy are small and its factors cost next to nothing, or where many rounds did not
//!   bring the end near: the policy is evaluated outright, by sparse factors where they stay small. Where better actions are found a step
//!   at a time (mazes, shortest paths), states are then improved in the order of what they have to gain, so that a gain travels all its way
//!   before the next evaluation. Values of a policy are a lower bound, and improving single states keeps them one: every policy is
//!   at least as good as the one before, and only an action that is better by more than rounding replaces another, so it ends.
//!
//! Both end with a backup over all rows, which certifies as everywhere.

use crate::plan::kernels::buffers::Buffers;
use crate::plan::kernels::linear::{Mixing, policy_values_where, sup_norm};
use crate::plan::kernels::order::{Components, against_the_flow};
use crate::plan::kernels::sweep::{greedy, improve};
use crate::plan::problem::Problem;
use crate::plan::solve::exact::GAIN_TOLERANCE;
use crate::plan::solve::iterate::{Iterated, residual};
use crate::plan::solve::one_pass::{one_pass, order};
use crate::plan::solve::prioritised::{Predecessors, improve_by_priority};
use crate::plan::{Limits, Way};

/// Sweeps of a policy between two backups.
const SWEEPS: usize = 8;
/// A policy is cheap to evaluate outright where Σ n^1.5 over its components is at most so many times the number of states.
const CHEAP_COMPONENTS: f64 = 8.0;
/// Rounds before their pace is judged (residuals hardly fall before the policy is about right), the rounds it is judged by, and those that
/// may lie ahead at that pace.
const PATIENT_ROUNDS: usize = 24;
const JUDGED_ROUNDS: usize = 4;
const MAX_ROUNDS_AHEAD: f64 = 40.0;
/// A new order is made when more than this share of the states has another action than the order was made for.
const CHANGED_SHARE: f64 = 0.05;
/// Improvements of single states between two evaluations, for each state, and the share of the largest gain below which they stop.
const IMPROVEMENTS: usize = 6;
const LEAST_GAIN: f64 = 1e-3;

/// Iterates from `state`, whose values and greedy choice are up to date, until the residual is at most `tolerance`.
pub(in crate::plan) fn slow_mixing(
    problem: &Problem<'_>,
    state: &mut Iterated,
    tolerance: f64,
    limits: Limits,
    buffers: &mut Buffers,
) {
    buffers.matrix.gather(problem, &state.choice);
    let components = Components::of_policy(&buffers.matrix);
    if components.starts.len() == components.states.len() + 1
        && let Some(order) = order(problem.kernel)
    {
        state.way = Way::OnePass;
        one_pass(problem, &order, &mut state.values);
        state.sweeps += 1;
        let done = back_up(problem, state, tolerance, limits, buffers);
        greedy(problem.numbers().state_rows, &buffers.q, &state.backed, &mut state.choice);
        if done {
            return;
        }
        std::mem::swap(&mut state.values, &mut state.backed);
    }
    state.way = Way::AgainstTheFlow;
    if is_cheap(&components) || !sweep_against_the_flow(problem, state, tolerance, limits, buffers) {
        state.way = Way::Policies;
        iterate_policies(problem, state, tolerance, limits, buffers);
    }
}

/// Whether the components of a policy are so small that its factors cost no more than some sweeps.
fn is_cheap(components: &Components) -> bool {
    let work: f64 = components.starts.windows(2).map(|c| ((c[1] - c[0]) as f64).powf(1.5)).sum();
    work <= CHEAP_COMPONENTS * components.states.len() as f64
}

/// A backup over all rows. Whether nothing is left to do, or nothing may be.
fn back_up(problem: &Problem<'_>, state: &mut Iterated, tolerance: f64, limits: Limits, buffers: &mut Buffers) -> bool {
    let all = problem.numbers();
    state.change = improve(all, &state.values, &mut state.backed, &mut buffers.q);
    state.sweeps += 1;
    let now = residual(state.change, problem.gamma);
    state.converged = now <= tolerance;
    state.converged || state.sweeps >= limits.max_sweeps || !now.is_finite()
}

/// Rounds of sweeps and a backup. Whether that was the end of it; otherwise it was too slow.
fn sweep_against_the_flow(
    problem: &Problem<'_>,
    state: &mut Iterated,
    tolerance: f64,
    limits: Limits,
    buffers: &mut Buffers,
) -> bool {
    let rows = problem.numbers().state_rows;
    let mut ordered_for: Vec<u32> = Vec::new();
    let mut residuals = Vec::new();
    loop {
        buffers.matrix.gather(problem, &state.choice);
        let changed = ordered_for.iter().zip(&state.choice).filter(|(old, new)| old != new).count();
        if ordered_for.is_empty() || changed as f64 > CHANGED_SHARE * state.choice.len() as f64 {
            buffers.ordered.set_order(against_the_flow(&buffers.matrix));
            ordered_for.clone_from(&state.choice);
        }
        buffers.ordered.set_policy(&buffers.matrix);
        buffers.ordered.sweep(&mut state.values, SWEEPS);
        state.sweeps += SWEEPS;
        let done = back_up(problem, state, tolerance, limits, buffers);
        greedy(rows, &buffers.q, &state.backed, &mut state.choice);
        if done {
            return true;
        }
        let now = residual(state.change, problem.gamma);
        residuals.push(now);
        std::mem::swap(&mut state.values, &mut state.backed);
        if state.change.mid().abs() > state.change.span() {
            // All values go the same way. Sweeps in place would carry what they have in common on unevenly.
            let shift = problem.gamma * state.change.mid() / (1.0 - problem.gamma);
            state.values.iter_mut().for_each(|v| *v += shift);
        }
        if residuals.len() > PATIENT_ROUNDS {
            let before = residuals[residuals.len() - 1 - JUDGED_ROUNDS];
            let rate = (now / before).ln() / JUDGED_ROUNDS as f64;
            let ahead = (tolerance / now).ln() / rate;
            if !(0.0..=MAX_ROUNDS_AHEAD).contains(&ahead) {
                return false;
            }
        }
    }
}

/// Policy iteration with improvements by priority in between.
fn iterate_policies(
    problem: &Problem<'_>,
    state: &mut Iterated,
    tolerance: f64,
    limits: Limits,
    buffers: &mut Buffers,
) {
    let predecessors = Predecessors::of(problem.kernel);
    loop {
        buffers.matrix.gather(problem, &state.choice);
        let solved = policy_values_where(Mixing::Slow, &buffers.matrix, &mut state.values, &mut buffers.scratch);
        state.sweeps += solved.products;
        if back_up(problem, state, tolerance, limits, buffers) {
            // Equal actions may change places here; the policy that was evaluated is one of them.
            greedy(problem.numbers().state_rows, &buffers.q, &state.backed, &mut state.choice);
            return;
        }
        state.sweeps += improve_values(problem, &predecessors, &mut state.values, &state.backed);
        if back_up(problem, state, tolerance, limits, buffers) {
            greedy(problem.numbers().state_rows, &buffers.q, &state.backed, &mut state.choice);
            return;
        }
        if !take_better(problem, &mut state.choice, &state.backed, &buffers.q) {
            // The policy is its own greedy policy; what is left of the residual is rounding.
            greedy(problem.numbers().state_rows, &buffers.q, &state.backed, &mut state.choice);
            state.stalled = true;
            return;
        }
        std::mem::swap(&mut state.values, &mut state.backed);
    }
}

/// Improves single states of the values of a policy, whose backup is `backed`, the largest gains first. Returns the work in sweeps.
fn improve_values(problem: &Problem<'_>, predecessors: &Predecessors, values: &mut [f64], backed: &[f64]) -> usize {
    let n = values.len();
    let largest = backed.iter().zip(&*values).fold(0.0, |most: f64, (new, old)| most.max(new - old));
    improve_by_priority(problem, predecessors, values, backed, LEAST_GAIN * largest, IMPROVEMENTS * n)
        .div_ceil(n.max(1))
}

/// A better policy than `choice`, whose `values` have the backup `backed`, by improvements of single states that travel all their way. Leaves
/// the values that it was chosen by, their backup and the q of every row. Returns the work in sweeps.
pub(in crate::plan) fn improve_policy(
    problem: &Problem<'_>,
    predecessors: &Predecessors,
    values: &mut [f64],
    backed: &mut [f64],
    q: &mut Vec<f64>,
    choice: &mut [u32],
) -> usize {
    let sweeps = improve_values(problem, predecessors, values, backed);
    improve(problem.numbers(), values, backed, q);
    take_better(problem, choice, backed, q);
    sweeps + 1
}

/// Takes the best row of each state where it is better than the present one by more than rounding. Whether there is any.
fn take_better(problem: &Problem<'_>, choice: &mut [u32], backed: &[f64], q: &[f64]) -> bool {
    let rows = problem.numbers().state_rows;
    let threshold = GAIN_TOLERANCE * sup_norm(backed);
    let mut any = false;
    for (s, row) in choice.iter_mut().enumerate() {
        let best = backed[s];
        if best - q[*row as usize] > threshold {
            *row = (rows[s]..rows[s + 1]).find(|&row| q[row as usize] == best).unwrap_or(*row);
            any = true;
        }
    }
    any
}
