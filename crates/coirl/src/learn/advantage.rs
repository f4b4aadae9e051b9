//! What experts gain over acting at random, the yardstick of what demonstrations show:
//!
//! ```text
//! G_i = c_i ⊙ (μ*_i − μ^uniform_i),      Ḡ = mean of G_i.
//! ```
//!
//! ⟨W, Ḡ⟩ is what the experts gain over chance under W: linear in W, zero for W = 0 and, unlike a norm, with a sign. One
//! linear system per start and kernel.

use super::problem::Problem;
use crate::error::Result;
use crate::optim::norm;

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
        let (data, n) = (problem.data(), problem.n_parameters());
        let random = problem.planner().random_responses(&data.queries(&data.all()))?;
        let advantage = |(i, chance): (usize, &Vec<f64>)| {
            let mut difference = vec![0.0; n];
            data.add_difference(i, data.expectations(i)?, chance, 1.0, &mut difference);
            Ok(difference)
        };
        let each: Vec<Vec<f64>> = random.iter().enumerate().map(advantage).collect::<Result<_>>()?;
        let count = each.len() as f64;
        let mut mean = vec![0.0; n];
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
