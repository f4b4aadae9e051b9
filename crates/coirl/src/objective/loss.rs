//! The loss of the paper,
//!
//! ```text
//! Loss = mean over demonstrations of  max_π f(c)·(μ^π_c − μ*_c),     ∂Loss/∂f(c) = (μ̂_c − μ*_c)/n,
//! ```
//!
//! with μ̂ of the policy planned for f(c): convex in f with this subgradient for exact demonstrations (Lemma 1), and positively
//! homogeneous, so that it is compared and reported per unit of the mapping's size. From sampled demonstrations it may be negative;
//! nothing is clamped. Each evaluation plans for all demonstrations asked for, in blocks.

use super::Objective;
use crate::contextual::{ContextualPlanner, Query};
use crate::demos::Demonstrations;
use crate::error::Result;
use crate::optim::dot;

/// The loss of the paper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss;

impl Loss {
    /// (μ̂ − μ*)/n of agents that act in the contexts of some demonstrations, row by row.
    fn gradient<'m>(
        data: &Demonstrations,
        agents: impl Iterator<Item = &'m [f64]>,
        indices: &[usize],
    ) -> Result<Vec<f64>> {
        let share = 1.0 / indices.len() as f64;
        let mut gradient = Vec::new();
        for (&i, mu) in indices.iter().zip(agents) {
            gradient.extend(mu.iter().zip(data.expectations(i)?).map(|(mu, star)| share * (mu - star)));
        }
        Ok(gradient)
    }
}

impl Objective for Loss {
    fn check(&self, data: &Demonstrations) -> Result<()> {
        data.expectations(0).map(drop)
    }

    fn value_and_gradient(
        &self,
        planner: &ContextualPlanner<'_>,
        data: &Demonstrations,
        weights: &[f64],
        indices: &[usize],
    ) -> Result<(f64, Vec<f64>)> {
        let queries = data.queries(indices);
        let gradient = if weights.iter().all(|w| *w == 0.0) {
            // Where nothing is rewarded all policies are optimal, so that acting at random makes a subgradient as any other; the first of
            // equal actions would too, but it may be one whose consequences are not known.
            let random = planner.random_responses(&queries)?;
            Self::gradient(data, random.iter().map(Vec::as_slice), indices)?
        } else {
            let agents = planner.best_responses(&queries, weights)?;
            Self::gradient(data, agents.iter().map(|agent| &*agent.feature_expectations), indices)?
        };
        Ok((dot(weights, &gradient), gradient))
    }

    /// All of them planned for at once.
    fn values(
        &self,
        planner: &ContextualPlanner<'_>,
        data: &Demonstrations,
        choices: &[Vec<f64>],
        indices: &[usize],
    ) -> Result<Vec<f64>> {
        let own = data.queries(indices);
        let queries: Vec<Query<'_>> = choices.iter().flat_map(|_| own.iter().copied()).collect();
        let agents = planner.best_responses(&queries, &choices.concat())?;
        let value = |(weights, agents): (&Vec<f64>, &[crate::contextual::Response])| {
            let agents = agents.iter().map(|agent| &*agent.feature_expectations);
            Ok(dot(weights, &Self::gradient(data, agents, indices)?))
        };
        choices.iter().zip(agents.chunks(indices.len().max(1))).map(value).collect()
    }
}
