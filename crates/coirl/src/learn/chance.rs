//! Acting at random, the yardstick of what demonstrations show:
//!
//! ```text
//! G_i = c_i ⊙ (μ*_i − μ^uniform_i),      Ḡ = mean of G_i.
//! ```
//!
//! ⟨W, Ḡ⟩ is what the experts gain over chance under W: linear in W, zero for W = 0 and, unlike a norm, with a sign. One
//! linear system per start and kernel.

use super::problem::Problem;
use crate::demos::Origin;
use crate::error::Result;
use crate::model::Dynamics;
use crate::optim::norm;
use crate::plan::evaluate;
use rayon::prelude::*;

/// Ḡ with its length and the standard error of that length over the demonstrations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Advantage {
    /// Ḡ, flattened as W.
    pub(crate) mean: Vec<f64>,
    /// ‖Ḡ‖₂.
    pub(crate) size: f64,
    /// Standard error of Ḡ as a length; zero for a single demonstration, about whose spread nothing is known.
    pub(crate) noise: f64,
}

impl Advantage {
    /// From what every demonstration gains over chance.
    pub(crate) fn of(problem: &Problem<'_>) -> Result<Self> {
        let each = advantages_over_chance(problem)?;
        let count = each.len() as f64;
        let mut mean = vec![0.0; problem.n_parameters()];
        for advantage in &each {
            mean.iter_mut().zip(advantage).for_each(|(sum, x)| *sum += x / count);
        }
        let squares: f64 = each
            .iter()
            .map(|advantage| advantage.iter().zip(&mean).map(|(x, mean)| (x - mean).powi(2)).sum::<f64>())
            .sum();
        let noise = if count > 1.0 { (squares / (count * (count - 1.0))).sqrt() } else { 0.0 };
        Ok(Self { size: norm(&mean), mean, noise })
    }
}

/// μ of acting at random from the start of every demonstration.
pub(crate) fn chance(problem: &Problem<'_>) -> Result<Vec<Vec<f64>>> {
    let uniform = problem.model().random_policy();
    let shared = match problem.model().dynamics() {
        Dynamics::Shared(_) => Some(evaluate::feature_expectations(&problem.model().shared_mdp()?, &uniform)?),
        Dynamics::Mixture(_) | Dynamics::Clusters(_) => None,
    };
    let of = |i: usize| match (&shared, problem.origin(i)) {
        (Some(mu), Origin::Model) => Ok(mu.clone()),
        _ => evaluate::feature_expectations(&problem.mdp(i)?, &uniform),
    };
    (0..problem.len()).into_par_iter().map(of).collect()
}

/// G of every demonstration.
fn advantages_over_chance(problem: &Problem<'_>) -> Result<Vec<Vec<f64>>> {
    let advantage = |(i, chance): (usize, Vec<f64>)| {
        let mut difference = vec![0.0; problem.n_parameters()];
        problem.add_difference(i, problem.demonstrated(i)?, &chance, 1.0, &mut difference);
        Ok(difference)
    };
    chance(problem)?.into_iter().enumerate().map(advantage).collect()
}
