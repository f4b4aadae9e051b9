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

use super::Objective;
use crate::contextual::ContextualPlanner;
use crate::demos::Demonstrations;
use crate::error::{Result, check_positive};
use crate::model::{Cmdp, Context};
use crate::optim::dot;
use crate::plan::{Policy, evaluate, log_softmax};
use rayon::prelude::*;

/// The default temperature, as a share of what a feature can add up to.
const SHARE_OF_LARGEST: f64 = 1e-3;

/// −mean log-probability of the demonstrated actions, Q/τ being their logits; from trajectories only.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Likelihood {
    /// τ per unit length of the rewards; by default a thousandth of the largest feature times the horizon.
    pub temperature: Option<f64>,
}

impl Objective for Likelihood {
    fn check(&self, data: &Demonstrations) -> Result<()> {
        data.actions().or_refuse("the likelihood")?;
        self.temperature.map_or(Ok(()), |temperature| check_positive("temperature", temperature))
    }

    fn value_and_gradient(
        &self,
        planner: &ContextualPlanner<'_>,
        data: &Demonstrations,
        weights: &[f64],
        indices: &[usize],
    ) -> Result<(f64, Vec<f64>)> {
        let temperature = match self.temperature {
            Some(temperature) => temperature,
            None => SHARE_OF_LARGEST * planner.model().features().max_abs() * data.horizon(planner.model())?,
        };
        let length = (dot(weights, weights) / indices.len() as f64).sqrt();
        // Where nothing is rewarded every action is as good, at any temperature.
        let scaled = Some(temperature * length).filter(|scaled| scaled.is_normal()).unwrap_or(1.0);
        let contexts: Vec<&Context> = indices.iter().map(|&i| &data.contexts()[i]).collect();
        let plans = planner.values(&contexts, weights)?;
        of_plans(planner.model(), data, weights, indices, &plans, scaled)
    }
}

/// −mean log π over the decisions of some demonstrations given the optimal policies and values of their rewards, and its gradient by the
/// reward weights of each, row by row.
pub(super) fn of_plans(
    model: &Cmdp,
    data: &Demonstrations,
    weights: &[f64],
    indices: &[usize],
    plans: &[(Policy, Vec<f64>)],
    temperature: f64,
) -> Result<(f64, Vec<f64>)> {
    let actions = data.actions();
    let decisions: f64 = indices.iter().map(|&i| actions.sum(i, |_| 1.0)).sum();
    let share = 1.0 / decisions.max(1.0);
    let each: Vec<(f64, Vec<f64>)> = plans
        .par_iter()
        .zip(weights.par_chunks_exact(model.n_features()))
        .zip(indices)
        .map(|(((policy, values), w), &i)| {
            let (context, taken) = (&data.contexts()[i], actions.of_demonstration(i));
            of_demonstration(model, context, taken, w, policy, values, temperature)
        })
        .collect::<Result<_>>()?;
    let value = -share * each.iter().map(|(log, _)| log).sum::<f64>();
    Ok((value, each.into_iter().flat_map(|(_, gradient)| gradient).map(|g| share / temperature * g).collect()))
}

/// Σ log π of a demonstration, and the gradient of its negative by the reward weights, times τ.
fn of_demonstration(
    model: &Cmdp,
    context: &Context,
    taken: &[(usize, f64)],
    weights: &[f64],
    policy: &Policy,
    values: &[f64],
    temperature: f64,
) -> Result<(f64, Vec<f64>)> {
    let mdp = model.mdp(context)?;
    let (pairs, gamma) = (mdp.pairs(), mdp.criterion().discount());
    let reward = mdp.reward(weights)?;
    let mut start = vec![0.0; mdp.n_states()];
    let mut gradient = vec![0.0; weights.len()];
    let mut log_likelihood = 0.0;
    let same_state = |a: &(usize, f64), b: &(usize, f64)| pairs.state(a.0) == pairs.state(b.0);
    for seen in taken.chunk_by(same_state) {
        let s = pairs.state(seen[0].0).index();
        // Among what is known: what nobody takes is no alternative.
        let choices: Vec<usize> = model.known_of_state(s).collect();
        let seen: Vec<(usize, f64)> = seen.iter().copied().filter(|entry| model.is_known(entry.0)).collect();
        let q = |pair: usize| {
            let next: f64 = mdp.kernel().successors(pair).map(|(next, p)| p * values[next]).sum();
            reward.at(s, pair) + gamma * next
        };
        let mut logs: Vec<f64> = choices.iter().map(|&pair| q(pair)).collect();
        log_softmax(&mut logs, temperature);
        let visits: f64 = seen.iter().map(|entry| entry.1).sum();
        let mut excess: Vec<f64> = logs.iter().map(|log| visits * log.exp()).collect();
        for (at, n) in seen.iter().filter_map(|&(pair, n)| Some((choices.binary_search(&pair).ok()?, n))) {
            log_likelihood += n * logs[at];
            excess[at] -= n;
        }
        for (pair, excess) in choices.into_iter().zip(excess).filter(|(_, excess)| *excess != 0.0) {
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
