//! From a nearly optimal policy to the exact answer: policy iteration with evaluation to rounding, then the tie rule.

use super::certificate::{Certificate, Horizon, Status, backup_rounding};
use super::iterate::Iterated;
use super::linear::{Scratch, policy_values, sup_norm};
use super::planner::{Limits, Plan, first_best_pairs, start_value};
use super::policy::Policy;
use super::problem::Problem;
use super::sweep::{PolicyMatrix, improve};
use crate::error::{Error, Result};

/// Actions whose Q-values differ by no more than this share of the largest |Q| count as equal.
pub(crate) const TIE_TOLERANCE: f64 = 1e-9;
/// Gains below this share of the largest |V| are rounding.
const GAIN_TOLERANCE: f64 = 1e-12;

pub(super) fn finish_exactly(
    problem: &Problem<'_>,
    initial: &[f64],
    horizon: Horizon,
    reached: Iterated,
    limits: Limits,
) -> Result<Plan> {
    let Iterated { mut values, mut backed, mut choice, mut sweeps, .. } = reached;
    let mut matrix = PolicyMatrix::default();
    let mut scratch = Scratch::default();
    let mut greedy = choice.clone();
    // The plain evaluation starts from the backup, one step nearer than the values it was made from.
    std::mem::swap(&mut values, &mut backed);
    let mut optimal = false;
    while !optimal && sweeps < limits.max_sweeps {
        matrix.gather(problem, &choice);
        sweeps += evaluated(policy_values(&matrix, &mut values, &mut scratch))?;
        improve(problem.numbers(), &values, &mut backed, &mut greedy);
        sweeps += 1;
        let threshold = GAIN_TOLERANCE * sup_norm(&values);
        optimal = true;
        for s in 0..choice.len() {
            if backed[s] - values[s] > threshold && greedy[s] != choice[s] {
                choice[s] = greedy[s];
                optimal = false;
            }
        }
    }
    let chosen = lowest_of_ties(problem, &values);
    let rows = problem.rows_of(&chosen);
    if rows != choice || chosen != first_best_pairs(problem, &choice) {
        let reward = |s: usize| problem.reward.of_pair(s, chosen[s] as usize);
        matrix.gather_rows(problem.kernel, problem.gamma, &rows, reward);
        sweeps += evaluated(policy_values(&matrix, &mut values, &mut scratch))?;
    }
    let backup = improve(problem.numbers(), &values, &mut backed, &mut greedy);
    let mut swept = vec![0.0; values.len()];
    let policy_change = matrix.sweep(&values, &mut swept);
    sweeps += 2;
    let greedy_gap = backed.iter().zip(&swept).fold(0.0, |gap: f64, (best, own)| gap.max(best - own));
    let rounding = backup_rounding(problem, &values);
    Ok(Plan {
        policy: Policy::from_pairs(problem.pairs(), &chosen),
        value: start_value(initial, &values),
        certificate: Certificate {
            status: if optimal { Status::Exact } else { Status::SweepLimit },
            residual: backup.sup_norm(),
            suboptimality_bound: horizon.suboptimality(backup, policy_change, greedy_gap, rounding),
            value_error_bound: horizon.value_error(backup, rounding),
            sweeps,
        },
        values,
    })
}

fn evaluated(solved: super::linear::Solved) -> Result<usize> {
    if solved.converged { Ok(solved.products) } else { Err(Error::EvaluationStalled { residual: solved.residual }) }
}

/// In each state the lowest action whose Q-value ties with the best.
pub(super) fn lowest_of_ties(problem: &Problem<'_>, values: &[f64]) -> Vec<u32> {
    let q = pair_values(problem, values);
    let tolerance = TIE_TOLERANCE * sup_norm(&q);
    let pairs = problem.pairs();
    (0..values.len())
        .map(|s| {
            let range = pairs.of_state(s);
            let best = q[range.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            range.clone().find(|&pair| q[pair] >= best - tolerance).unwrap_or(range.start) as u32
        })
        .collect()
}

/// Q(s, a) = R + γ Σ P V for every pair.
pub(super) fn pair_values(problem: &Problem<'_>, values: &[f64]) -> Vec<f64> {
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
