//! The automatic method: measures how fast backups converge and does what suits.
//!
//! * Where a backup takes off a good share of the span, backups go on over the rows that may still become the best of
//!   their state ([`Candidates`](crate::plan::kernels::candidates::Candidates)), of which soon only one per state is left.
//! * Where it does not, the current policy is evaluated by Krylov steps, as far as the next backup deserves.
//! * Where evaluated policies make no progress either and the discount is moderate, backups with a few policy sweeps between
//!   them go on patiently: long deterministic chains find a better policy a step at a time, and then that is the shorter way.
//!
//! Before that, models in which no state is ever returned to are solved in one pass where the numbers of their states show it.
//!
//! Either way the next backup over all rows decides, so the result is certified as in every other method.

use crate::plan::kernels::buffers::{Buffers, SingleBuffers};
use crate::plan::kernels::linear::{Scratch, krylov_values, policy_values, sup_norm};
use crate::plan::kernels::sweep::{Change, Numbers, PolicyMatrix, greedy, improve};
use crate::plan::problem::Problem;
use crate::plan::solve::iterate::{Iterated, Progress, residual};
use crate::plan::solve::one_pass::{one_pass, order_by_number};
use crate::plan::solve::slow::slow_mixing;
use crate::plan::{Limits, Way};

/// A step that leaves more than this share of the residual is slow.
const SLOW: f64 = 0.7;
/// A policy is evaluated to at most this share of the last backup's residual.
const EVALUATION_SHARE: f64 = 0.1;
/// Most products with the policy's matrix between two backups.
const MAX_PRODUCTS: usize = 60;
/// Backups within which a moderate discount alone brings the end: where evaluated policies make no progress, because in long
/// deterministic chains a better one is found a step at a time, that is the shorter way.
const PATIENT_BACKUPS: f64 = 200.0;
/// Policy sweeps between such backups.
const PATIENT_SWEEPS: usize = 8;
/// Share of the worst-case margin within which rows are kept. A q averages the error of its successors, so the worst case is
/// far off; what is dropped wrongly comes back with the next backup over all rows.
const CAUTION: f64 = 0.2;
/// Evaluations without progress after which policies are evaluated outright.
const MAX_STALLS: usize = 3;
/// Entries from which single precision saves more memory traffic than its detour costs.
const SINGLE_PRECISION_ENTRIES: usize = 2_000_000;
/// Cap of the sweeps in single precision, which is exhausted long before at the rates that are kept.
const MAX_SINGLE_SWEEPS: usize = 100;

/// Iterates from `values` until the residual is at most `tolerance`.
pub(in crate::plan) fn automatic(
    problem: &Problem<'_>,
    mut values: Vec<f64>,
    tolerance: f64,
    limits: Limits,
    buffers: &mut Buffers,
) -> Iterated {
    let n = values.len();
    let gamma = problem.gamma;
    let mut sweeps = 0;
    let mut way = Way::Backups;
    // What share of the residual the last step left, where that is known.
    let mut known_rate = None;
    if gamma < 1.0
        && let Some(order) = order_by_number(problem.kernel)
    {
        one_pass(problem, &order, &mut values);
        (sweeps, way) = (1, Way::OnePass);
    } else if gamma < 1.0 && problem.kernel.n_entries() >= SINGLE_PRECISION_ENTRIES {
        (sweeps, known_rate) = approach(problem, &mut values, tolerance, limits, &mut buffers.single);
    }
    let all = problem.numbers();
    let mut state = Iterated {
        values,
        backed: vec![0.0; n],
        choice: vec![0; n],
        change: Change::NONE,
        sweeps,
        converged: false,
        stalled: false,
        way,
    };
    let mut progress = Progress::new(n);
    let mut evaluated: Vec<u32> = Vec::new();
    let mut first = None;
    let mut before = f64::INFINITY;
    let mut least = f64::INFINITY;
    let mut stalls = 0;
    loop {
        state.change = improve(all, &state.values, &mut state.backed, &mut buffers.q);
        state.sweeps += 1;
        let now = residual(state.change, gamma);
        state.converged = now <= tolerance;
        state.stalled = progress.stalls(now, state.sweeps);
        if state.converged || state.stalled || state.sweeps >= limits.max_sweeps || !now.is_finite() {
            greedy(all.state_rows, &buffers.q, &state.backed, &mut state.choice);
            return state;
        }
        let rate = known_rate.take().unwrap_or(now / before);
        before = now;
        if rate > SLOW {
            greedy(all.state_rows, &buffers.q, &state.backed, &mut state.choice);
        }
        std::mem::swap(&mut state.values, &mut state.backed);
        if rate > SLOW {
            state.way = Way::KrylovSteps;
            if evaluated != state.choice {
                buffers.matrix.gather(problem, &state.choice);
                evaluated.clone_from(&state.choice);
            }
            // An evaluation to a share of the residual can be far off when the discount is near one. If the residual will
            // not fall, or Krylov steps get nowhere, the model mixes slowly.
            stalls += usize::from(now > 0.9 * least);
            least = least.min(now);
            if stalls > 0 && gamma < 1.0 && (tolerance / now).ln() / gamma.ln() <= PATIENT_BACKUPS {
                for _ in 0..PATIENT_SWEEPS {
                    buffers.matrix.sweep(&state.values, &mut state.backed);
                    std::mem::swap(&mut state.values, &mut state.backed);
                }
                state.sweeps += PATIENT_SWEEPS;
            } else {
                let goal = evaluation_goal(now, *first.get_or_insert(now)).max(0.5 * tolerance);
                let evaluated =
                    stalls < MAX_STALLS && evaluate(&buffers.matrix, &mut state, now, goal, &mut buffers.scratch);
                if !evaluated && gamma < 1.0 {
                    slow_mixing(problem, &mut state, tolerance, limits, buffers);
                    return state;
                }
                if !evaluated {
                    state.sweeps += policy_values(&buffers.matrix, &mut state.values, &mut buffers.scratch).products;
                }
            }
            // A backup alone is known to be slow here.
            before = 0.0;
        } else if rate > 0.0 {
            buffers.candidates.reset();
            buffers.candidates.drop_beyond(margin(state.change, rate), all, &buffers.q, &state.values);
            if !buffers.candidates.is_all() {
                before = follow_candidates(all, &mut state, now, 0.5 * tolerance, buffers);
            }
        }
    }
}

/// Moves `values` towards the optimal ones, up to a constant, in single precision: half the memory traffic, and twice the
/// values in a cache. Stops near `tolerance`, or where single precision or backups give no more. Rewards are scaled to one
/// and values kept around zero to make the most of the digits. Returns the number of sweeps, and the rate of the last where it
/// was good.
fn approach(
    problem: &Problem<'_>,
    values: &mut [f64],
    tolerance: f64,
    limits: Limits,
    buffers: &mut SingleBuffers,
) -> (usize, Option<f64>) {
    let scale = problem.reward.max_abs();
    let double = problem.numbers();
    let inverse = 1.0 / scale;
    if !(inverse.is_finite() && inverse > 0.0) {
        return (0, None);
    }
    let SingleBuffers { candidates, q, reward, values: v, backed } = buffers;
    candidates.reset();
    reward.clear();
    reward.extend(double.reward.iter().map(|r| (r * inverse) as f32));
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    let centre = 0.5 * (low + high);
    v.clear();
    v.extend(values.iter().map(|x| ((x - centre) * inverse) as f32));
    backed.clone_from(v);
    let all = Numbers {
        state_rows: double.state_rows,
        row_start: double.row_start,
        next: double.next,
        p: problem.kernel.single_precision(),
        gamma: problem.gamma as f32,
        reward,
        reward_per_row: double.reward_per_row,
    };
    let mut before = f64::INFINITY;
    let mut slow_sweeps = 0;
    let mut sweeps = 0;
    let mut known_rate = None;
    while sweeps < MAX_SINGLE_SWEEPS.min(limits.max_sweeps) {
        let change = improve(candidates.numbers(all), v, backed, q);
        sweeps += 1;
        std::mem::swap(v, backed);
        let span = change.span();
        let rate = span / before;
        before = span;
        if rate > 0.0 && rate < SLOW {
            known_rate = Some(rate);
            candidates.drop_beyond(margin(change, rate) as f32, all, q, v);
        }
        let shift = change.mid() as f32;
        v.iter_mut().for_each(|x| *x -= shift);
        let floor = 2.0 * f64::from(f32::EPSILON) * f64::from(sup_norm(v));
        slow_sweeps = if rate > SLOW { slow_sweeps + 1 } else { 0 };
        // The double-precision backup that follows changes by less again, at the rate of the sweeps; it should not miss its goal by a hair.
        let next_span = span * known_rate.unwrap_or(1.0);
        if next_span <= 1.4 * tolerance * inverse || span <= floor || slow_sweeps == 2 || !span.is_finite() {
            break;
        }
    }
    values.iter_mut().zip(v.iter()).for_each(|(value, x)| *value = f64::from(*x) * scale);
    (sweeps, known_rate)
}

/// How far below the best of its state a row may be and still become it.
fn margin(change: Change, rate: f64) -> f64 {
    CAUTION * change.span() / (1.0 - rate)
}

/// Backups over fewer and fewer candidates, until their residual is at `goal` or they slow down. Returns the residual
/// reached.
fn follow_candidates(
    all: Numbers<'_, f64>,
    state: &mut Iterated,
    mut before: f64,
    goal: f64,
    buffers: &mut Buffers,
) -> f64 {
    loop {
        let numbers = buffers.candidates.numbers(all);
        let change = improve(numbers, &state.values, &mut state.backed, &mut buffers.q);
        state.sweeps += 1;
        std::mem::swap(&mut state.values, &mut state.backed);
        let now = residual(change, all.gamma);
        let rate = now / before;
        if !(now > goal && rate <= SLOW) {
            return now;
        }
        before = now;
        buffers.candidates.drop_beyond(margin(change, rate), all, &buffers.q, &state.values);
    }
}

/// How well a policy deserves to be evaluated. Policy iteration converges quadratically near the end, so the nearer the
/// backups are to their fixed point, the more an evaluation is worth.
fn evaluation_goal(now: f64, first: f64) -> f64 {
    now * (now / first).clamp(1e-3, EVALUATION_SHARE)
}

/// Sweeps of the policy until its own residual is at `goal`; Krylov steps from where a sweep leaves too much of it. Whether those got
/// anywhere.
fn evaluate(matrix: &PolicyMatrix, state: &mut Iterated, mut before: f64, goal: f64, scratch: &mut Scratch) -> bool {
    let gamma = matrix.gamma;
    for _ in 0..MAX_PRODUCTS {
        let change = matrix.sweep(&state.values, &mut state.backed);
        std::mem::swap(&mut state.values, &mut state.backed);
        state.sweeps += 1;
        let now = residual(change, gamma);
        if now * gamma <= goal {
            return true;
        }
        if now > SLOW * before {
            if gamma < 1.0 {
                let shift = gamma * change.mid() / (1.0 - gamma);
                state.values.iter_mut().for_each(|x| *x += shift);
            }
            let factor = (goal / now).clamp(1e-12, 0.5);
            let solved = krylov_values(matrix, &mut state.values, factor, MAX_PRODUCTS, scratch);
            state.sweeps += solved.products;
            return solved.converged;
        }
        before = now;
    }
    true
}
