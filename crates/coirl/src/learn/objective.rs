//! What learners of rewards minimise, as a function of the rewards themselves: whoever maps contexts to rewards propagates the rest.

use super::likelihood::likelihood;
use super::problem::Problem;
use crate::error::{Result, check_positive};
use crate::optim::dot;

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
                let length = (dot(weights, weights) / indices.len() as f64).sqrt();
                // Where nothing is rewarded every action is as good, at any temperature.
                let scaled = Some(temperature * length).filter(|scaled| scaled.is_normal()).unwrap_or(1.0);
                likelihood(problem, problem.demonstrated_actions()?, weights, indices, scaled)
            }
        }
    }
}

/// The loss given the rewards of contexts, and its gradient by each of them: (μ̂ − μ*)/n.
pub(super) fn loss(problem: &Problem<'_>, weights: &[f64], indices: &[usize]) -> Result<(f64, Vec<f64>)> {
    let share = 1.0 / indices.len() as f64;
    let mut upstream = Vec::with_capacity(weights.len());
    let agents = if weights.iter().all(|w| *w == 0.0) {
        problem.act_at_random(indices)?
    } else {
        problem.act_for(weights, indices)?.into_iter().map(|(_, mu)| mu).collect()
    };
    for (&i, mu) in indices.iter().zip(&agents) {
        let expert = problem.demonstrated(i)?;
        upstream.extend(mu.iter().zip(expert).map(|(mu, star)| share * (mu - star)));
    }
    Ok((dot(weights, &upstream), upstream))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::demos::{Demonstration, Estimator, Train, Trajectory};
    use crate::domains::Garnet;
    use crate::model::{Cmdp, Features, SparseRows};
    use crate::plan::Policy;

    /// Demonstrations by somebody who acts at random, so that no reward explains them and gradients do not vanish.
    fn demonstrated(model: &Cmdp) -> Train {
        let demonstration = |i: u64| {
            let context = model.context_space().sample(1, i).unwrap().remove(0);
            let mdp = model.mdp(&context).unwrap();
            let path = Trajectory::sample(&mdp, &Policy::uniform(mdp.pairs()), 12, 7, i).unwrap();
            Demonstration::from_trajectories(model, context, vec![path]).unwrap()
        };
        Train::new((0..3).map(demonstration).collect())
    }

    fn agrees_with_differences(
        model: &Cmdp,
        estimator: Estimator,
        of: impl Fn(&Problem<'_>, &[f64], &[usize]) -> Result<(f64, Vec<f64>)>,
    ) {
        let problem = Problem::new(model, &demonstrated(model), &estimator).unwrap();
        let weights: Vec<f64> = (0..3 * model.n_features()).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
        let indices = [0, 2, 1];
        let (_, gradient) = of(&problem, &weights, &indices).unwrap();
        // Small enough that no policy changes, except by chance of the seed.
        let h = 1e-6;
        for (j, g) in gradient.iter().enumerate() {
            let at = |by: f64| {
                let mut moved = weights.clone();
                moved[j] += by;
                of(&problem, &moved, &indices).unwrap().0
            };
            let difference = (at(h) - at(-h)) / (2.0 * h);
            assert!((g - difference).abs() < 1e-5 * (1.0 + g.abs()), "{j}: {g} and {difference}");
        }
        assert!(gradient.iter().any(|g| g.abs() > 1e-3));
    }

    #[test]
    fn gradients_by_rewards_agree_with_finite_differences() {
        let space = crate::model::ContextSpace::Simplex { dimension: 2 };
        let garnet = Garnet { n_states: 12, n_actions: 3, n_successors: 3, n_features: 4, ..Garnet::default() };
        let by_state = garnet.build().unwrap().with_context_space(space.clone()).unwrap();
        let n = by_state.pairs().len();
        let rows = SparseRows::new(
            4,
            (0..=n).map(|pair| 2 * pair).collect(),
            (0..n as u32).flat_map(|pair| [pair % 2, 2 + pair % 2]).collect(),
            (0..2 * n).map(|i| (i % 5) as f64 / 5.0 - 0.3).collect(),
        )
        .unwrap();
        let by_pair = Cmdp::new(
            by_state.dynamics().clone(),
            Features::per_pair(by_state.pairs(), rows).unwrap(),
            by_state.initial().to_vec(),
            by_state.criterion(),
        )
        .unwrap()
        .with_context_space(space)
        .unwrap();
        for model in [by_state, by_pair] {
            for estimator in [Estimator::ControlVariate, Estimator::Decisions] {
                agrees_with_differences(&model, estimator, loss);
            }
            // At a temperature that does not follow the length of the rewards, as a step takes it.
            agrees_with_differences(&model, Estimator::ControlVariate, |problem, weights, indices| {
                likelihood(problem, problem.demonstrated_actions()?, weights, indices, 0.2)
            });
        }
    }
}
