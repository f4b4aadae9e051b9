//! Mirror descent without a step size to tune, on the unit sphere.
//!
//! AdaGrad in its norm form: W ← (W − g/√(Σ‖g‖²)) normalised, from a mapping that favours nothing; what is returned is the average
//! of the iterates with weights 1, 2, …, t, which forgets the start. The sphere suits a loss that is positively homogeneous
//! (only the direction of W matters, and W = 0 is excluded), but it is not convex: no bound is printed. The first step has length one
//! whatever its gradient, so that gradients within rounding of zero, as those of a run that starts at the truth, count as zero.

use super::batch::Batch;
use super::descent::{Averaging, Descent};
use super::learner::Start;
use super::problem::Problem;
use crate::error::Result;
use crate::mapping::LinearMapping;
use crate::objective::{Objective, ObjectiveChoice};
use crate::optim::{MirrorMap, MirrorStep, Set, StepLength, normalise};

/// Settings of adaptive mirror descent: there is no step size.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// What is minimised.
    pub objective: ObjectiveChoice,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

/// Steps over exact demonstrations by default, and the passes that may take; passes over noisy ones.
const STEPS: u64 = 1000;
const MAX_PASSES: u64 = 10;
const NOISY_PASSES: u64 = 3;

/// Rounding errors of a plan's feature expectations, in units of machine precision times the horizon, the condition of its linear system;
/// however long the horizon, a larger share than this is not taken for rounding.
const ROUNDING: f64 = 16.0;
const MOST_ROUNDING: f64 = 1e-9;

/// The length of a gradient by W, ‖W‖₂ = 1, that is made of rounding error alone.
///
/// Entries of c ⊙ μ are at most M, so that a gradient of the loss has entries of at most 2M, known to a relative error of a few times
/// machine precision and horizon. The likelihood divides by its temperature, which by default is a share of what a feature can add up to.
pub(super) fn rounding_of_gradients(problem: &Problem<'_>, objective: ObjectiveChoice) -> Result<f64> {
    let horizon = problem.horizon()?;
    let temperature = match objective.resolved_for(problem.data()) {
        ObjectiveChoice::Likelihood { temperature: Some(temperature) } => temperature,
        ObjectiveChoice::Likelihood { temperature: None } => problem.model().features().max_abs() * horizon,
        _ => 1.0,
    };
    let largest = problem.entry_bound()? * (problem.n_parameters() as f64).sqrt();
    let rounding = (ROUNDING * f64::EPSILON * horizon).min(MOST_ROUNDING) * largest / temperature;
    // Where every feature is zero there is no scale.
    Ok(if rounding.is_finite() { rounding } else { 0.0 })
}

impl Descent for Adaptive {
    type Mapping = LinearMapping;
    type Rule = MirrorStep;
    const WITHOUT_BOUND: &'static str = "not_convex";

    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<LinearMapping> {
        let mut first = from.initial.map_or_else(|| vec![1.0; problem.n_parameters()], <[f64]>::to_vec);
        normalise(&mut first);
        problem.linear(&first)
    }

    fn objective(&self, problem: &Problem<'_>) -> Box<dyn Objective> {
        self.objective.objective(problem.data())
    }

    fn rule(&self, problem: &Problem<'_>) -> Result<MirrorStep> {
        let negligible = rounding_of_gradients(problem, self.objective)?;
        Ok(MirrorStep { map: MirrorMap::Euclidean(Set::Sphere), length: StepLength::AdaGradNorm { negligible } })
    }

    fn batch(&self) -> Batch {
        self.batch
    }

    fn averaging(&self) -> Averaging {
        Averaging::LinearWeights
    }

    fn default_steps(&self, problem: &Problem<'_>) -> u64 {
        let pass = self.batch.steps_per_pass(problem.len());
        // More passes come nearer to the least loss on the demonstrations: that is worth having where they are exact, and
        // follows the noise where they are not.
        let exact = problem.data().is_exact();
        let passes = if exact { STEPS.div_ceil(pass).clamp(1, MAX_PASSES) } else { NOISY_PASSES };
        pass * passes
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
        Ok(Self { objective: self.objective.resolved_for(problem.data()), ..*self })
    }
}
