//! From a nearly optimal policy to the exact answer: policy iteration with evaluation to rounding, then the tie rule.

use crate::error::{Error, Result};
use crate::plan::certificate::{Certificate, Horizon, Status, backup_rounding};
use crate::plan::kernels::buffers::Buffers;
use crate::plan::kernels::linear::{Mixing, policy_values_where, sup_norm};
use crate::plan::kernels::sweep::{greedy, improve};
use crate::plan::planner::{Limits, Plan, start_value};
use crate::plan::policy::Policy;
use crate::plan::problem::Problem;
use crate::plan::solve::iterate::{Iterated, Progress, residual};
use crate::plan::solve::prioritised::Predecessors;
use crate::plan::solve::slow::improve_policy;

/// Actions whose Q-values differ by no more than this share of the largest |Q| count as equal.
pub(crate) const TIE_TOLERANCE: f64 = 1e-9;
/// What one step of a policy that takes the lowest of equal actions may give away, by its own values and as a share of the largest; ties
/// that add up to more are broken by rounding alone.
const MAX_TIE_GAP: f64 = 2.0 * TIE_TOLERANCE;
/// Gains below this share of the largest |V| are rounding.
pub(in crate::plan) const GAIN_TOLERANCE: f64 = 1e-12;

/// The exact plan of a problem on which an iteration got as far as `reached`.
pub(in crate::plan) fn finish_exactly(
    problem: &Problem<'_>,
    initial: &[f64],
    horizon: Horizon,
    reached: Iterated,
    limits: Limits,
) -> Result<Plan> {
    finish(problem, initial, horizon, reached, limits, &mut Buffers::lent(problem.kernel.n_entries()))
}

fn finish(
    problem: &Problem<'_>,
    initial: &[f64],
    horizon: Horizon,
    reached: Iterated,
    limits: Limits,
    buffers: &mut Buffers,
) -> Result<Plan> {
    let Buffers { q, matrix, scratch, .. } = buffers;
    let mixing = if reached.way.is_slow() { Mixing::Slow } else { Mixing::Unknown };
    let numbers = problem.numbers();
    // The evaluation starts from the backup, one step nearer than the values it was made from.
    let Iterated { values: mut backed, backed: mut values, mut choice, mut sweeps, way, .. } = reached;
    let mut better = Vec::new();
    let mut progress = Progress::new(values.len());
    let mut predecessors = None;
    // One evaluation is made whatever the limit: what follows needs its Q-values.
    let (optimal, mut backup) = loop {
        matrix.gather(problem, &choice);
        sweeps += evaluated(policy_values_where(mixing, matrix, &mut values, scratch))?;
        let backup = improve(numbers, &values, &mut backed, q);
        greedy(numbers.state_rows, q, &backed, &mut better);
        sweeps += 1;
        let threshold = GAIN_TOLERANCE * sup_norm(&values);
        let mut optimal = true;
        for s in 0..choice.len() {
            if backed[s] - values[s] > threshold && better[s] != choice[s] {
                choice[s] = better[s];
                optimal = false;
            }
        }
        // Gains that rounding makes up may lead from one policy to the next and back.
        if optimal || sweeps >= limits.max_sweeps || progress.stalls(residual(backup, problem.gamma), sweeps) {
            break (optimal, backup);
        }
        if mixing == Mixing::Slow {
            // Where better actions are found a step at a time, each step would take an evaluation.
            let predecessors = predecessors.get_or_insert_with(|| Predecessors::of(problem.kernel));
            sweeps += improve_policy(problem, predecessors, &mut values, &mut backed, q, &mut choice);
        }
    };
    let (mut chosen, mut own, mut greedy_gap) = (Vec::new(), backup, 0.0);
    for (attempt, ties) in [TIE_TOLERANCE, GAIN_TOLERANCE].into_iter().enumerate() {
        if attempt > 0 {
            // Back to the best policy, whose Q-values decide once more.
            matrix.gather(problem, &choice);
            sweeps += evaluated(policy_values_where(mixing, matrix, &mut values, scratch))?;
            backup = improve(numbers, &values, &mut backed, q);
            sweeps += 1;
        }
        chosen = lowest_of_ties(problem, q, ties);
        let reward = |s: usize| problem.reward.of_pair(s, chosen[s] as usize);
        let rows = problem.rows_of(&chosen);
        if rows != choice || (0..rows.len()).any(|s| reward(s) != matrix.reward[s]) {
            matrix.gather_rows(problem.kernel, problem.gamma, &rows, reward);
            sweeps += evaluated(policy_values_where(mixing, matrix, &mut values, scratch))?;
            backup = improve(numbers, &values, &mut backed, q);
            sweeps += 1;
        }
        let mut swept = vec![0.0; values.len()];
        own = matrix.sweep(&values, &mut swept);
        sweeps += 1;
        greedy_gap = backed.iter().zip(&swept).fold(0.0, |gap: f64, (best, own)| gap.max(best - own));
        // Where the discount is next to one, what ties give away adds up over the steps; then only rounding counts as a tie.
        if greedy_gap <= MAX_TIE_GAP * sup_norm(&values) {
            break;
        }
    }
    let rounding = backup_rounding(problem, &values);
    Ok(Plan {
        policy: Policy::from_pairs(problem.pairs(), &chosen),
        value: start_value(initial, &values),
        certificate: Certificate {
            status: if optimal { Status::Exact } else { Status::SweepLimit },
            residual: backup.sup_norm(),
            suboptimality_bound: horizon.suboptimality(backup, own, greedy_gap, rounding),
            value_error_bound: horizon.value_error(backup, rounding),
            sweeps,
        },
        values,
        way,
    })
}

fn evaluated(solved: crate::plan::kernels::linear::Solved) -> Result<usize> {
    if solved.converged { Ok(solved.products) } else { Err(Error::EvaluationStalled { residual: solved.residual }) }
}

/// In each state the lowest action whose Q-value ties with the best, from the q of every row; `ties` is a share of the largest |Q|.
pub(in crate::plan) fn lowest_of_ties(problem: &Problem<'_>, q: &[f64], ties: f64) -> Vec<u32> {
    let pairs = problem.pairs();
    // A row's q was made with the best reward among its pairs.
    let of_pair = |s: usize, pair: usize| {
        let row = problem.kernel.row_of(pair);
        q[row] + (problem.reward.of_pair(s, pair) - problem.reward.at(s, row))
    };
    let each = |s: usize| pairs.of_state(s).map(move |pair| of_pair(s, pair));
    let largest =
        (0..pairs.n_states()).flat_map(each).fold(0.0, |most: f64, x| if x.abs() > most { x.abs() } else { most });
    let tolerance = ties * largest;
    (0..pairs.n_states())
        .map(|s| {
            let best = each(s).fold(f64::NEG_INFINITY, f64::max);
            let range = pairs.of_state(s);
            range.clone().find(|&pair| of_pair(s, pair) >= best - tolerance).unwrap_or(range.start) as u32
        })
        .collect()
}

/// Q(s, a) = R + γ Σ P V for every pair.
pub(in crate::plan) fn pair_values(problem: &Problem<'_>, values: &[f64]) -> Vec<f64> {
    let kernel = problem.kernel;
    let expected: Vec<f64> = (0..kernel.n_rows())
        .map(|row| {
            let (next, p) = kernel.row(row);
            next.iter().zip(p).map(|(&s, p)| p * values[s as usize]).sum()
        })
        .collect();
    let mut q = Vec::with_capacity(problem.pairs().len());
    for s in 0..values.len() {
        for pair in problem.pairs().of_state(s) {
            q.push(problem.reward.of_pair(s, pair) + problem.gamma * expected[kernel.row_of(pair)]);
        }
    }
    q
}
