//! Mirror descent without a step size to tune, on the unit sphere.
//!
//! AdaGrad in its norm form: W ← (W − g/√(Σ‖g‖²)) normalised, from a mapping that favours nothing; what is returned is the average
//! of the iterates with weights 1, 2, …, t, which forgets the start. The sphere suits a loss that is positively homogeneous
//! (only the direction of W matters, and W = 0 is excluded), but it is not convex: no bound is printed.

use super::batch::Batch;
use super::fit::{Algorithm, Run, Step};
use super::objective::Objective;
use super::problem::Problem;
use crate::error::Result;
use crate::optim::{dot, normalise};

/// Settings of adaptive mirror descent: there is no step size.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// What is minimised.
    pub objective: Objective,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

/// Steps to take over exact demonstrations where nothing is said, and the passes that may take; passes over noisy ones.
const STEPS: u64 = 1000;
const MOST_PASSES: u64 = 10;
const NOISY_PASSES: u64 = 3;

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    iterate: Vec<f64>,
    /// Σ ‖g‖².
    squares: f64,
    /// Σ t·W_{t+1} and Σ t.
    sum: Vec<f64>,
    weight: f64,
    regret: f64,
}

impl Algorithm for State {
    type Settings = Adaptive;

    fn start(own: &Adaptive, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        own.batch.check()?;
        own.objective.check(problem)?;
        let n = problem.n_parameters();
        let mut iterate = initial.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        normalise(&mut iterate);
        Ok(Self { iterate, squares: 0.0, sum: vec![0.0; n], weight: 0.0, regret: 0.0 })
    }

    fn step(&mut self, own: &Adaptive, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let indices = own.batch.indices(problem.len(), run.step, run.seed);
        let loss = problem.objective(own.objective, &self.iterate, &indices)?;
        let g = &loss.subgradient;
        self.squares += dot(g, g);
        let length = if self.squares > 0.0 { 1.0 / self.squares.sqrt() } else { 0.0 };
        self.iterate.iter_mut().zip(g).for_each(|(w, x)| *w -= length * x);
        normalise(&mut self.iterate);
        let t = run.step as f64;
        self.sum.iter_mut().zip(&self.iterate).for_each(|(sum, w)| *sum += t * w);
        self.weight += t;
        self.regret += loss.value;
        Ok(Step {
            batch_loss: Some(loss.value),
            step_size: Some(length),
            demonstrations: own.batch.seen(problem.len(), run.step),
            regret: Some(self.regret),
            ..Step::default()
        })
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        let n = problem.n_parameters();
        [&self.iterate, &self.sum].iter().all(|list| list.len() == n)
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        let mut mean = if self.weight > 0.0 { self.sum.clone() } else { self.iterate.clone() };
        normalise(&mut mean);
        Some(mean)
    }

    fn last_iterate(&self) -> Option<Vec<f64>> {
        Some(self.iterate.clone())
    }

    fn default_steps(own: &Adaptive, problem: &Problem<'_>) -> u64 {
        let pass = own.batch.steps_per_pass(problem.len());
        // More passes come nearer to the least loss on the demonstrations: that is worth having where they are exact, and
        // follows the noise where they are not.
        let passes = if problem.is_exact() { STEPS.div_ceil(pass).clamp(1, MOST_PASSES) } else { NOISY_PASSES };
        pass * passes
    }

    fn bound(&self, _own: &Adaptive, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        Ok((None, "the sphere is not convex: no bound holds".into()))
    }
}
