//! How likely the demonstrated actions are to somebody who mostly does what is best:
//!
//! ```text
//! π_c(a | s) ∝ exp(Q_c(s, a) / τ),     Q_c(s, a) of the policy that is optimal for f(c)
//! ```
//!
//! (Neu & Szepesvári 2007; Ramachandran & Amir 2007.) Every decision counts by itself, and one that is clear already counts for little:
//! for τ → 0 what is left are the decisions in which the agent differs, as in [`Estimator::Decisions`](crate::demos::Estimator). With
//! the optimal policy held fixed, ∂Q(s, a)/∂f = φ(s, a) + γ E[ψ(s′)], so that
//!
//! ```text
//! −∂ log-likelihood/∂f · τ = Σ (N_s π(a | s) − n(s, a)) (φ(s, a) + γ Σ P(s′ | s, a) ψ(s′))
//! ```
//!
//! is the feature expectations from a start with signed weights: one linear system, whatever the number of features or decisions.

use super::demonstrated_actions::DemonstratedActions;
use super::problem::Problem;
use crate::error::Result;
use crate::plan::{Policy, evaluate, log_softmax};
use rayon::prelude::*;

/// −mean log π over the decisions of some demonstrations, and its gradient by the reward weights of each, row by row.
pub(super) fn likelihood(
    problem: &Problem<'_>,
    actions: &DemonstratedActions,
    weights: &[f64],
    indices: &[usize],
    temperature: f64,
) -> Result<(f64, Vec<f64>)> {
    let k = problem.n_features();
    let decisions: f64 = indices.iter().map(|&i| actions.sum(i, |_| 1.0)).sum();
    let share = 1.0 / decisions.max(1.0);
    let plans = problem.plan_for(weights, indices)?;
    let each: Vec<(f64, Vec<f64>)> = plans
        .par_iter()
        .zip(weights.par_chunks_exact(k))
        .zip(indices)
        .map(|(((policy, values), w), &i)| {
            of_demonstration(problem, actions.of_demonstration(i), w, i, policy, values, temperature)
        })
        .collect::<Result<_>>()?;
    let value = -share * each.iter().map(|(log, _)| log).sum::<f64>();
    Ok((value, each.into_iter().flat_map(|(_, gradient)| gradient).map(|g| share / temperature * g).collect()))
}

/// Σ log π of a demonstration, and the gradient of its negative by the reward weights, times τ.
fn of_demonstration(
    problem: &Problem<'_>,
    taken: &[(usize, f64)],
    weights: &[f64],
    index: usize,
    policy: &Policy,
    values: &[f64],
    temperature: f64,
) -> Result<(f64, Vec<f64>)> {
    let mdp = problem.model().mdp(problem.context(index))?;
    let (pairs, gamma) = (mdp.pairs(), mdp.criterion().discount());
    let reward = mdp.reward(weights)?;
    let mut start = vec![0.0; mdp.n_states()];
    let mut gradient = vec![0.0; weights.len()];
    let mut log_likelihood = 0.0;
    let same_state = |a: &(usize, f64), b: &(usize, f64)| pairs.state(a.0) == pairs.state(b.0);
    for seen in taken.chunk_by(same_state) {
        let s = pairs.state(seen[0].0).index();
        let choices = pairs.of_state(s);
        let q = |pair: usize| {
            let next: f64 = mdp.kernel().successors(pair).map(|(next, p)| p * values[next]).sum();
            reward.at(s, pair) + gamma * next
        };
        let mut logs: Vec<f64> = choices.clone().map(q).collect();
        log_softmax(&mut logs, temperature);
        let visits: f64 = seen.iter().map(|entry| entry.1).sum();
        let mut excess: Vec<f64> = logs.iter().map(|log| visits * log.exp()).collect();
        for &(pair, n) in seen {
            log_likelihood += n * logs[pair - choices.start];
            excess[pair - choices.start] -= n;
        }
        for (pair, excess) in choices.zip(excess).filter(|(_, excess)| *excess != 0.0) {
            mdp.features().add_scaled(s, pair, excess, &mut gradient);
            mdp.kernel().successors(pair).for_each(|(next, p)| start[next] += excess * gamma * p);
        }
    }
    if start.iter().any(|x| *x != 0.0) {
        let later = evaluate::feature_expectations_from(&mdp, &start, policy)?;
        gradient.iter_mut().zip(&later).for_each(|(g, x)| *g += x);
    }
    Ok((log_likelihood, gradient))
}
