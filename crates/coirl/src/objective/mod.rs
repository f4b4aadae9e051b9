//! What learners of rewards minimise, as a function of the rewards themselves: a mapping pulls the gradient back to its parameters.
//!
//! | objective | of | gradient by f(c) |
//! |---|---|---|
//! | [`Loss`] | the paper: mean of max_π f(c)·(μ^π − μ*) | μ̂ − μ* |
//! | [`Likelihood`] | −mean log-probability of the demonstrated actions, π ∝ exp(Q/τ) of the hard Q | one linear system |
//! | [`Choices`] | the same of soft-optimal experts, or the dual of matching features; rewards of any length | one linear system |

mod choices;
mod information;
mod likelihood;
mod loss;

pub(crate) use choices::choices_of;
pub use choices::{Choices, Precision, Term, Warm};
pub(crate) use information::{Information, Planned};
pub use likelihood::Likelihood;
pub use loss::Loss;

use crate::contextual::ContextualPlanner;
use crate::demos::Demonstrations;
use crate::error::Result;

/// What is minimised.
pub trait Objective: Send + Sync {
    /// Refuses data that it cannot be taken on.
    fn check(&self, data: &Demonstrations) -> Result<()>;

    /// The value on some demonstrations given the rewards of their contexts (row by row), and its gradient by each of them.
    fn value_and_gradient(
        &self,
        planner: &ContextualPlanner<'_>,
        data: &Demonstrations,
        weights: &[f64],
        indices: &[usize],
    ) -> Result<(f64, Vec<f64>)>;

    /// The values alone, for several choices of the rewards.
    fn values(
        &self,
        planner: &ContextualPlanner<'_>,
        data: &Demonstrations,
        choices: &[Vec<f64>],
        indices: &[usize],
    ) -> Result<Vec<f64>> {
        choices.iter().map(|weights| Ok(self.value_and_gradient(planner, data, weights, indices)?.0)).collect()
    }
}

/// Which objective, as a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ObjectiveChoice {
    /// The likelihood where single actions are known of every demonstration, unless an estimator of feature expectations was chosen;
    /// else the loss.
    #[default]
    Auto,
    /// [`Loss`].
    Loss,
    /// [`Likelihood`]; from trajectories only.
    Likelihood {
        /// τ per unit length of the rewards; by default a thousandth of the largest feature times the horizon.
        #[serde(default)]
        temperature: Option<f64>,
    },
}

impl ObjectiveChoice {
    /// The likelihood with the default temperature.
    pub fn likelihood() -> Self {
        ObjectiveChoice::Likelihood { temperature: None }
    }

    /// The choice that the data make, where it was left to them.
    pub fn resolved_for(self, data: &Demonstrations) -> Self {
        match self {
            ObjectiveChoice::Auto if data.prefer_actions() => Self::likelihood(),
            ObjectiveChoice::Auto => ObjectiveChoice::Loss,
            chosen => chosen,
        }
    }

    /// The objective itself.
    pub fn objective(self, data: &Demonstrations) -> Box<dyn Objective> {
        match self.resolved_for(data) {
            ObjectiveChoice::Likelihood { temperature } => Box::new(Likelihood { temperature }),
            ObjectiveChoice::Loss | ObjectiveChoice::Auto => Box::new(Loss),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::likelihood::of_plans;
    use super::*;
    use crate::demos::{Demonstration, Estimator, Reference, Trajectory};
    use crate::domains::Garnet;
    use crate::model::{Cmdp, Features, SparseRows};
    use crate::plan::Policy;

    /// Demonstrations by somebody who acts at random, so that no reward explains them and gradients do not vanish.
    fn demonstrated(model: &Cmdp) -> Vec<Demonstration> {
        let demonstration = |i: u64| {
            let context = model.context_space().sample(1, i).unwrap().remove(0);
            let mdp = model.mdp(&context).unwrap();
            let path = Trajectory::sample(&mdp, &Policy::uniform(mdp.pairs()), 12, 7, i).unwrap();
            Demonstration::from_trajectories(model, context, vec![path]).unwrap()
        };
        (0..3).map(demonstration).collect()
    }

    fn agrees_with_differences(
        model: &Cmdp,
        estimator: Estimator,
        of: impl Fn(&ContextualPlanner<'_>, &Demonstrations, &[f64], &[usize]) -> Result<(f64, Vec<f64>)>,
    ) {
        let data = Demonstrations::new(model, &demonstrated(model), &estimator, Reference::Uniform).unwrap();
        let planner = ContextualPlanner::new(model);
        let weights: Vec<f64> = (0..3 * model.n_features()).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
        let indices = [0, 2, 1];
        let (_, gradient) = of(&planner, &data, &weights, &indices).unwrap();
        // Small enough that no policy changes, except by chance of the seed.
        let h = 1e-6;
        for (j, g) in gradient.iter().enumerate() {
            let at = |by: f64| {
                let mut moved = weights.clone();
                moved[j] += by;
                of(&planner, &data, &moved, &indices).unwrap().0
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
                agrees_with_differences(&model, estimator, |planner, data, weights, indices| {
                    Loss.value_and_gradient(planner, data, weights, indices)
                });
            }
            // At a temperature that does not follow the length of the rewards, as a step takes it.
            agrees_with_differences(&model, Estimator::ControlVariate, |planner, data, weights, indices| {
                let contexts: Vec<_> = indices.iter().map(|&i| &data.contexts()[i]).collect();
                let plans = planner.values(&contexts, weights)?;
                of_plans(planner.model(), data, weights, indices, &plans, 0.2)
            });
        }
    }
}
