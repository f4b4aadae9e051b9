//! What learners of rewards minimise, as a function of the rewards themselves: whoever maps contexts to rewards propagates the rest.

use super::likelihood::likelihood;
use super::problem::{Problem, dot};
use crate::error::{Result, check_positive};

/// Temperature where nothing is said, as a share of what a feature can add up to.
const SHARE_OF_LARGEST: f64 = 1e-3;

/// What is minimised.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Objective {
    /// The loss of the paper: mean of max_π f(c)·(μ^π − μ*).
    #[default]
    Loss,
    /// −mean log-probability of the demonstrated actions, Q/τ being their logits; from trajectories only.
    Likelihood {
        /// τ per unit length of the rewards; where nothing is said, a thousandth of the largest feature times the horizon.
        temperature: Option<f64>,
    },
}

impl Objective {
    /// The likelihood with the usual temperature.
    pub fn likelihood() -> Self {
        Objective::Likelihood { temperature: None }
    }

    pub(super) fn check(self, problem: &Problem<'_>) -> Result<()> {
        match self {
            Objective::Loss => problem.demonstrated(0).map(|_| ()),
            Objective::Likelihood { temperature } => {
                problem.demonstrated_actions()?.or_refuse("the likelihood")?;
                temperature.map_or(Ok(()), |temperature| check_positive("temperature", temperature))
            }
        }
    }

    /// The objective on some demonstrations given the rewards of their contexts (row by row), and its gradient by each of them.
    pub(super) fn of(self, problem: &Problem<'_>, weights: &[f64], indices: &[usize]) -> Result<(f64, Vec<f64>)> {
        match self {
            Objective::Loss => loss(problem, weights, indices),
            Objective::Likelihood { temperature } => {
                let temperature = match temperature {
                    Some(temperature) => temperature,
                    None => SHARE_OF_LARGEST * problem.model().features().max_abs() * problem.horizon()?,
                };
                let length = (dot(weights, weights) / indices.len() as f64).sqrt().max(f64::MIN_POSITIVE);
                likelihood(problem, problem.demonstrated_actions()?, weights, indices, temperature * length)
            }
        }
    }
}

/// The loss given the rewards of contexts, and its gradient by each of them: (μ̂ − μ*)/n.
pub(super) fn loss(problem: &Problem<'_>, weights: &[f64], indices: &[usize]) -> Result<(f64, Vec<f64>)> {
    let share = 1.0 / indices.len() as f64;
    let mut upstream = Vec::with_capacity(weights.len());
    for (&i, (_, mu)) in indices.iter().zip(problem.act_for(weights, indices)?) {
        let expert = problem.demonstrated(i)?;
        upstream.extend(mu.iter().zip(expert).map(|(mu, star)| share * (mu - star)));
    }
    Ok((dot(weights, &upstream), upstream))
}
