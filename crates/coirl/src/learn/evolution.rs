//! Evolution strategies: the subgradient estimated from losses at perturbed mappings.
//!
//! [`Perturbation`] has where losses are taken and how they make a gradient; one-sided is what the paper prints, forward
//! differences are the oracle of Theorem 2. F is the loss on the batch, re-solved at every perturbation (each costs a plan per demonstration, all planned in blocks),
//! or with the policies of the unperturbed mapping, as in the published code: then F is linear in W apart from its
//! normalisation, and the estimate a noisy copy of the subgradient at the price of one plan. The published runs live on the
//! simplex, reached by clipping negative entries and dividing by the sum, inside every perturbation as well, and judge
//! W/‖W‖₂. Theorem 2 is for the forward oracle, full batches and the best iterate.

use super::batch::Batch;
use super::descent::{Averaging, Descent, DescentStateOf, Estimation, Gradient, Policies};
use super::guarantee::Guarantee;
use super::learner::Start;
use super::mirror_descent::{check_schedule, one};
use super::problem::Problem;
use crate::error::{Result, check_not_negative, check_positive};
use crate::mapping::LinearMapping;
use crate::objective::{Loss, Objective};
use crate::optim::{MirrorMap, MirrorStep, Perturbation, Set, StepLength, Time};

/// Where mappings live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// Negative entries clipped, divided by the sum: the published way to the simplex.
    #[default]
    ClippedSimplex,
    /// The unit ball.
    Ball,
    /// The unit sphere.
    Sphere,
}

/// How long the steps are.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EvolutionStep {
    /// factor/√(2dk·t): the schedule of projected subgradients.
    InverseRoot {
        /// 0.1 in the published code.
        factor: f64,
    },
    /// initial · decayᵗ, t from 0.
    Schedule {
        /// First step.
        initial: f64,
        /// Factor from one to the next.
        #[serde(default = "one")]
        decay: f64,
    },
    /// D/((dk + 4)·√(T + 1)·L), Theorem 2, with D = 2 on the unit ball.
    Theorem,
}

/// Settings of evolution strategies; the default is the published form.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvolutionStrategies {
    /// Which policies perturbed mappings are judged with.
    pub policies: Policies,
    /// Where losses are taken.
    pub perturbation: Perturbation,
    /// Where mappings live.
    pub region: Region,
    /// Whether the loss is taken at W/‖W‖₂.
    pub unit_objective: bool,
    /// How long the steps are.
    pub step_size: EvolutionStep,
    /// Whether a step is taken only if it lowers the loss on its batch.
    pub accept_if_better: bool,
    /// Whether the best iterate is returned instead of the average.
    pub best: bool,
    /// A batch whose feature expectations are nearer than this to the agent's, in the 1-norm, changes nothing.
    pub indifference: f64,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

impl Default for EvolutionStrategies {
    fn default() -> Self {
        Self {
            policies: Policies::Fixed,
            perturbation: Perturbation::Antithetic { deviation: 1e-3, pairs: 250 },
            region: Region::ClippedSimplex,
            unit_objective: true,
            step_size: EvolutionStep::InverseRoot { factor: 0.1 },
            accept_if_better: false,
            best: false,
            indifference: 1e-3,
            batch: Batch::InOrder,
        }
    }
}

/// What Theorem 2 asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvolutionTheorem {
    /// T = 4(dk + 4)²D²L²/ε².
    pub steps: f64,
    /// ν = ε/(2L√dk).
    pub radius: f64,
    /// α = D/((dk + 4)·√(T + 1)·L).
    pub step_size: f64,
}

impl EvolutionTheorem {
    /// For a wanted accuracy ε, on the unit ball (D = 2).
    pub fn new(problem: &Problem<'_>, accuracy: f64) -> Result<Self> {
        check_positive("accuracy", accuracy)?;
        let n = problem.n_parameters() as f64;
        let (d, l) = (DIAMETER, lipschitz(problem)?);
        let steps = 4.0 * (n + 4.0).powi(2) * d * d * l * l / (accuracy * accuracy);
        let step_size = d / ((n + 4.0) * (steps + 1.0).sqrt() * l);
        Ok(Self { steps, radius: accuracy / (2.0 * l * n.sqrt()), step_size })
    }
}

/// Two points of the unit ball are no further apart.
const DIAMETER: f64 = 2.0;

/// L with respect to ‖·‖₂.
fn lipschitz(problem: &Problem<'_>) -> Result<f64> {
    Ok(2.0 * (problem.n_parameters() as f64).sqrt() * problem.entry_bound()?)
}

impl EvolutionStrategies {
    /// The formula as the paper prints it, with ν = ρ = 10⁻³ and m = 500.
    pub fn literal() -> Self {
        let perturbation = Perturbation::OneSided { radius: 1e-3, scale: 1e-3, samples: 500 };
        Self { perturbation, policies: Policies::Resolved, ..Self::default() }
    }

    /// The algorithm of Theorem 2 for a wanted accuracy: forward differences, full batches, the best iterate. The theorem's
    /// number of steps is left to the stop rules; see [`EvolutionTheorem`].
    pub fn of_theorem(problem: &Problem<'_>, accuracy: f64) -> Result<Self> {
        let radius = EvolutionTheorem::new(problem, accuracy)?.radius;
        Ok(Self {
            policies: Policies::Resolved,
            perturbation: Perturbation::Forward { radius },
            region: Region::Ball,
            unit_objective: false,
            step_size: EvolutionStep::Theorem,
            accept_if_better: false,
            best: true,
            indifference: 0.0,
            batch: Batch::Full,
        })
    }
}

impl Region {
    fn set(self) -> Set {
        match self {
            Region::ClippedSimplex => Set::ClippedSimplex,
            Region::Ball => Set::Ball,
            Region::Sphere => Set::Sphere,
        }
    }
}

impl Descent for EvolutionStrategies {
    type Mapping = LinearMapping;
    type Rule = MirrorStep;

    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<LinearMapping> {
        check_not_negative("indifference", self.indifference)?;
        self.perturbation.check()?;
        match self.step_size {
            EvolutionStep::InverseRoot { factor } => check_positive("step factor", factor)?,
            EvolutionStep::Schedule { initial, decay } => check_schedule(initial, decay)?,
            EvolutionStep::Theorem => {}
        }
        let n = problem.n_parameters();
        let mut first = from.initial.map_or_else(|| vec![1.0 / n as f64; n], <[f64]>::to_vec);
        self.region.set().project(&mut first);
        problem.linear(&first)
    }

    fn objective(&self, _problem: &Problem<'_>) -> Box<dyn Objective> {
        Box::new(Loss)
    }

    fn rule(&self, problem: &Problem<'_>) -> Result<MirrorStep> {
        let (step_size, n) = (self.step_size, problem.n_parameters() as f64);
        let l = if step_size == EvolutionStep::Theorem { lipschitz(problem)? } else { 0.0 };
        let length = StepLength::scheduled(move |time: Time| match step_size {
            EvolutionStep::InverseRoot { factor } => factor / (2.0 * n * time.step as f64).sqrt(),
            EvolutionStep::Schedule { initial, decay } => initial * decay.powf((time.step - 1) as f64),
            EvolutionStep::Theorem if l > 0.0 => DIAMETER / ((n + 4.0) * (time.last as f64 + 1.0).sqrt() * l),
            EvolutionStep::Theorem => 0.0,
        });
        Ok(MirrorStep { map: MirrorMap::Euclidean(self.region.set()), length })
    }

    fn batch(&self) -> Batch {
        self.batch
    }

    fn gradient(&self) -> Gradient {
        Gradient::Estimated(Estimation {
            perturbation: self.perturbation,
            policies: self.policies,
            within: (self.region == Region::ClippedSimplex).then_some(Set::ClippedSimplex),
            unit: self.unit_objective,
            indifference: self.indifference,
            only_if_better: self.accept_if_better,
        })
    }

    fn averaging(&self) -> Averaging {
        if self.best { Averaging::Best } else { Averaging::AfterUpdate }
    }

    fn default_steps(&self, problem: &Problem<'_>) -> u64 {
        self.batch.default_steps(problem.len())
    }

    fn guarantee(
        &self,
        _state: &DescentStateOf<Self>,
        problem: &Problem<'_>,
        steps: u64,
    ) -> Result<(Option<f64>, Guarantee)> {
        let Perturbation::Forward { radius } = self.perturbation else {
            return Ok((None, Guarantee::none("forward_differences_only")));
        };
        let covered = self.policies == Policies::Resolved
            && self.batch == Batch::Full
            && self.best
            && self.region == Region::Ball
            && self.step_size == EvolutionStep::Theorem
            && problem.data().is_exact();
        if !covered {
            return Ok((None, Guarantee::none("theorem_conditions")));
        }
        // Nesterov & Spokoiny (2017), Theorem 6: ν L √n from smoothing, and (n + 4) D L / √(T + 1) from T steps.
        let (n, l) = (problem.n_parameters() as f64, lipschitz(problem)?);
        let value = radius * l * n.sqrt() + (n + 4.0) * DIAMETER * l / (steps as f64 + 1.0).sqrt();
        Ok((Some(value), Guarantee::holds("best_iterate")))
    }
}
