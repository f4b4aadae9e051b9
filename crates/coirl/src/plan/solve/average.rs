//! The average-reward criterion for unichain models: gain g and bias h with g + h(s) = max_a r(s, a) + Σ P h.
//!
//! Damped relative value iteration (Puterman 1994, 8.5.4) finds a nearly optimal policy, policy iteration finishes. A
//! policy is evaluated through a state x of its recurrent class: with the transitions into x cut, u = r + P u and w = 1 +
//! P w are the reward and the time collected until the return to x, so g = u(x)/w(x) and h = u − g·w. For every h,
//! min(Th − h) ≤ g* ≤ max(Th − h), which is the certificate.

use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Mdp, Reward};
use crate::plan::Way;
use crate::plan::certificate::{Certificate, Status, backup_rounding};
use crate::plan::evaluate::{converged, policy_matrix};
use crate::plan::kernels::linear::{ROUNDING, Scratch, policy_occupancy, policy_values, sup_norm};
use crate::plan::kernels::sweep::{Change, PolicyMatrix, greedy, improve};
use crate::plan::planner::{Accuracy, EXACT_START, LARGEST_HINT, Plan, Planner, Start, first_best_pairs};
use crate::plan::policy::Policy;
use crate::plan::problem::Problem;
use crate::plan::solve::exact::{TIE_TOLERANCE, lowest_of_ties};
use crate::plan::solve::iterate::{Progress, residual};

/// Share of a backup that a damped step takes; below one, periodic chains converge too.
const DAMPING: f64 = 0.9;
/// Gains of h below this share of its size are rounding.
const GAIN_TOLERANCE: f64 = 1e-12;
/// Damped steps before policy iteration takes over, when planning exactly.
const EXACT_START_SWEEPS: usize = 500;

/// Gain and bias of a policy.
pub(in crate::plan) struct Evaluated {
    pub(in crate::plan) gain: f64,
    pub(in crate::plan) bias: Vec<f64>,
}

pub(in crate::plan) fn plan(planner: &Planner, mdp: &Mdp<'_>, reward: &Reward, start: Start<'_>) -> Result<Plan> {
    let problem = Problem::new(mdp, reward)?;
    let n = mdp.n_states();
    let mut bias = match start {
        Start::Cold => problem.first_values(),
        Start::Values(values) => {
            check_length("start values", n, values.len())?;
            check_finite("start values", values)?;
            if sup_norm(values) < LARGEST_HINT { values.to_vec() } else { problem.first_values() }
        }
        Start::Policy(policy) => evaluate(mdp, reward, policy)?.bias,
    };
    let exact = planner.accuracy == Accuracy::Exact;
    let (tolerance, max_sweeps) = match planner.accuracy {
        Accuracy::Exact => (EXACT_START * problem.reward.max_abs(), planner.limits.max_sweeps.min(EXACT_START_SWEEPS)),
        Accuracy::Tolerance(tolerance) => (tolerance, planner.limits.max_sweeps),
    };
    let mut backed = vec![0.0; n];
    let mut choice = Vec::new();
    let mut q = Vec::new();
    let numbers = problem.numbers();
    let mut sweeps = 0;
    let mut change;
    let mut progress = Progress::new(n);
    let converged = loop {
        change = improve(numbers, &bias, &mut backed, &mut q);
        sweeps += 1;
        let now = half_span(change);
        if now <= tolerance || sweeps >= max_sweeps || progress.stalls(now, sweeps) || !now.is_finite() {
            break now <= tolerance;
        }
        let origin = bias[0];
        bias.iter_mut().zip(&backed).for_each(|(h, th)| *h += DAMPING * (th - *h) - origin);
    };
    greedy(numbers.state_rows, &q, &backed, &mut choice);
    if !exact {
        let status = if converged { Status::Converged } else { Status::SweepLimit };
        let policy = Policy::from_pairs(mdp.pairs(), &first_best_pairs(&problem, &choice));
        return Ok(finished(&problem, status, policy, change, change, 0.0, change.mid(), bias, sweeps));
    }
    let mut evaluated;
    let mut best = Vec::new();
    let mut optimal = false;
    let mut progress = Progress::new(n);
    loop {
        let policy = Policy::from_pairs(mdp.pairs(), &first_best_pairs(&problem, &choice));
        evaluated = evaluate(mdp, reward, &policy)?;
        let now = half_span(improve(numbers, &evaluated.bias, &mut backed, &mut q));
        greedy(numbers.state_rows, &q, &backed, &mut best);
        sweeps += 2;
        let threshold = GAIN_TOLERANCE * (sup_norm(&evaluated.bias) + problem.reward.max_abs());
        let better = |s: usize| backed[s] - evaluated.gain - evaluated.bias[s] > threshold && best[s] != choice[s];
        let switched: Vec<usize> = (0..n).filter(|&s| better(s)).collect();
        if switched.is_empty() {
            optimal = true;
        }
        switched.iter().for_each(|&s| choice[s] = best[s]);
        if optimal || sweeps >= planner.limits.max_sweeps || progress.stalls(now, sweeps) {
            break;
        }
    }
    let mut chosen = lowest_of_ties(&problem, &q, TIE_TOLERANCE);
    match evaluate(mdp, reward, &Policy::from_pairs(mdp.pairs(), &chosen)) {
        Ok(tied) => evaluated = tied,
        // Ties may join actions into a policy that falls apart; then the policy found first stands.
        Err(Error::NotUnichain { .. }) => chosen = first_best_pairs(&problem, &choice),
        Err(other) => return Err(other),
    }
    let change = improve(numbers, &evaluated.bias, &mut backed, &mut q);
    let mut matrix = PolicyMatrix::default();
    let pair_reward = |s: usize| problem.reward.of_pair(s, chosen[s] as usize);
    matrix.gather_rows(problem.kernel, 1.0, &problem.rows_of(&chosen), pair_reward);
    let mut swept = vec![0.0; n];
    let own = matrix.sweep(&evaluated.bias, &mut swept);
    let gap = backed.iter().zip(&swept).fold(0.0, |gap: f64, (best, own)| gap.max(best - own));
    let status = if optimal { Status::Exact } else { Status::SweepLimit };
    let policy = Policy::from_pairs(mdp.pairs(), &chosen);
    Ok(finished(&problem, status, policy, change, own, gap, evaluated.gain, evaluated.bias, sweeps + 2))
}

/// How far the changes of a backup are from one gain in all states.
fn half_span(change: Change) -> f64 {
    residual(change, 0.0)
}

#[allow(clippy::too_many_arguments)] // the pieces of one result
fn finished(
    problem: &Problem<'_>,
    status: Status,
    policy: Policy,
    backup: Change,
    own: Change,
    gap: f64,
    gain: f64,
    bias: Vec<f64>,
    sweeps: usize,
) -> Plan {
    let rounding = backup_rounding(problem, &bias);
    Plan {
        policy,
        value: gain,
        certificate: Certificate {
            status,
            residual: (backup.hi - gain).abs().max((gain - backup.lo).abs()),
            suboptimality_bound: gap.max(backup.hi - own.lo) + 2.0 * rounding,
            value_error_bound: (backup.hi - gain).max(gain - backup.lo) + rounding,
            sweeps,
        },
        values: bias,
        way: Way::Asked,
    }
}

/// Gain and bias of a stationary policy; the bias is zero in the first state of its recurrent class.
pub(in crate::plan) fn evaluate(mdp: &Mdp<'_>, reward: &Reward, policy: &Policy) -> Result<Evaluated> {
    let (anchor, mut matrix) = cut_matrix(mdp, policy, |s, pair| reward.at(s, pair))?;
    let mut scratch = Scratch::default();
    let mut collected = matrix.reward.clone();
    converged(policy_values(&matrix, &mut collected, &mut scratch))?;
    matrix.reward.iter_mut().for_each(|r| *r = 1.0);
    let mut elapsed = matrix.reward.clone();
    converged(policy_values(&matrix, &mut elapsed, &mut scratch))?;
    let gain = collected[anchor] / elapsed[anchor];
    let mut bias: Vec<f64> = collected.iter().zip(&elapsed).map(|(u, w)| u - gain * w).collect();
    bias[anchor] = 0.0;
    Ok(Evaluated { gain, bias })
}

/// The long-run shares of the states.
pub(in crate::plan) fn stationary_distribution(mdp: &Mdp<'_>, policy: &Policy) -> Result<Vec<f64>> {
    let (anchor, matrix) = cut_matrix(mdp, policy, |_, _| 0.0)?;
    let mut start = vec![0.0; mdp.n_states()];
    start[anchor] = 1.0;
    let (mut visits, solved) = policy_occupancy(&matrix, &start, ROUNDING, &mut Scratch::default());
    converged(solved)?;
    let total: f64 = visits.iter().sum();
    visits.iter_mut().for_each(|d| *d /= total);
    Ok(visits)
}

/// A recurrent state, and the policy's matrix without the transitions into it.
fn cut_matrix(mdp: &Mdp<'_>, policy: &Policy, reward: impl Fn(usize, usize) -> f64) -> Result<(usize, PolicyMatrix)> {
    let keep_loops = policy_matrix(mdp, policy, |_, _| 0.0, &[])?;
    let anchor = recurrent_state(&keep_loops)?;
    Ok((anchor, policy_matrix(mdp, policy, reward, &[anchor])?))
}

/// The first state of the only recurrent class, by Tarjan's strongly connected components: a class is recurrent iff no
/// edge leaves it.
fn recurrent_state(matrix: &PolicyMatrix) -> Result<usize> {
    const UNSEEN: usize = usize::MAX;
    let n = matrix.len();
    let mut index = vec![UNSEEN; n];
    let mut low = vec![0; n];
    let mut component = vec![UNSEEN; n];
    let mut stack: Vec<usize> = Vec::new();
    let mut calls: Vec<(usize, usize)> = Vec::new();
    let (mut counter, mut n_components) = (0, 0);
    let mut closed: Vec<usize> = Vec::new();
    for root in 0..n {
        if index[root] != UNSEEN {
            continue;
        }
        calls.push((root, 0));
        while let Some(&mut (s, ref mut edge)) = calls.last_mut() {
            if *edge == 0 {
                index[s] = counter;
                low[s] = counter;
                counter += 1;
                stack.push(s);
            }
            let next = matrix.row(s).0;
            if let Some(&to) = next.get(*edge) {
                *edge += 1;
                let to = to as usize;
                if index[to] == UNSEEN {
                    calls.push((to, 0));
                } else if component[to] == UNSEEN {
                    low[s] = low[s].min(index[to]);
                }
                continue;
            }
            calls.pop();
            if let Some(&(parent, _)) = calls.last() {
                low[parent] = low[parent].min(low[s]);
            }
            if low[s] == index[s] {
                let at = stack.iter().rposition(|&x| x == s).unwrap_or(0);
                let members = stack.split_off(at);
                members.iter().for_each(|&m| component[m] = n_components);
                let stays = |&m: &usize| matrix.row(m).0.iter().all(|&to| component[to as usize] == n_components);
                if members.iter().all(stays) {
                    closed.push(members.into_iter().min().unwrap_or(s));
                }
                n_components += 1;
            }
        }
    }
    match closed[..] {
        [only] => Ok(only),
        [first, second, ..] => Err(Error::NotUnichain { first: first.min(second), second: first.max(second) }),
        [] => Err(Error::NotUnichain { first: 0, second: 0 }),
    }
}
