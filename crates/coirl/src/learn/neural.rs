//! A network from context to reward, trained on the loss of the paper.
//!
//! ```text
//! Loss(θ) = mean over demonstrations of  max_π f_θ(c)·(μ^π_c − μ*_c),     ∂Loss/∂f_θ(c) = μ̂_c − μ*_c
//! ```
//!
//! with μ̂ of the policy planned for f_θ(c): the subgradient is the upstream gradient of the network and is propagated back to its
//! parameters. The likelihood of the demonstrated actions ([`Likelihood`](crate::objective::Likelihood)) is minimised in the same way, and learns more from the same
//! trajectories. Or the gradient is estimated from losses at perturbed parameters (evolution strategies). f is not linear in θ, so the
//! loss is not convex and nothing is proved. It is positively homogeneous in f, and from sampled demonstrations it can be negative:
//! outputs have unit length unless told otherwise, so that f can neither vanish nor grow. A step plans for its mini-batch in one block.

use super::batch::Batch;
use super::descent::{Descent, Estimation, Gradient, Policies};
use super::learner::Start;
use super::problem::Problem;
use crate::error::{Error, Result};
use crate::mapping::NeuralMapping;
use crate::network::{Architecture, Layer, Network, Standardisation};
use crate::objective::{Objective, ObjectiveChoice};
use crate::optim::{Moments, Momentum, Optimiser, Perturbation, StepRule, Time};

/// Steps by default, and passes if those take longer.
const STEPS: u64 = 300;
const PASSES: u64 = 5;
/// Widest layer by default: a model with thousands of features does not need as many units.
const WIDEST: usize = 512;
/// What is left of the first step at the last, by default.
const LAST_SHARE: f64 = 0.05;

/// The hidden layers of a network: of one from context to reward, or of one that clones.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Hidden {
    /// The widths of [`Architecture::simulator`], 512 at most, without batch normalisation, which mini-batches of a few dozen contexts do not gain
    /// from; for cloning [`Architecture::cloning_simulator`].
    #[default]
    Plain,
    /// [`Architecture::simulator`], or [`Architecture::cloning_simulator`].
    Simulator,
    /// [`Architecture::real_life`], or [`Architecture::cloning_real_life`].
    RealLife,
    /// These layers.
    Layers(#[serde(deserialize_with = "one_or_many")] Vec<Layer>),
}

/// A list of layers, or a single one.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Layer>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Form {
        Many(Vec<Layer>),
        One(Layer),
    }
    Ok(match serde::Deserialize::deserialize(deserializer)? {
        Form::Many(layers) => layers,
        Form::One(layer) => vec![layer],
    })
}

/// Where the gradient comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NeuralGradient {
    /// Propagated back through the network.
    #[default]
    Propagated,
    /// Differences of losses at θ ± σu with normal directions u.
    Antithetic {
        /// σ.
        deviation: f64,
        /// Pairs of losses.
        pairs: usize,
        /// Which policies perturbed networks are judged with.
        policies: Policies,
    },
}

/// Settings of a network; by default it learns from single actions where they are known.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Neural {
    /// Hidden layers.
    pub hidden: Hidden,
    /// Whether outputs have unit length.
    pub unit_output: bool,
    /// What is minimised.
    pub objective: ObjectiveChoice,
    /// Where the gradient comes from.
    pub gradient: NeuralGradient,
    /// How a gradient becomes a direction.
    pub optimiser: Optimiser,
    /// α₀ of the steps α₀·decayᵗ.
    pub step_size: f64,
    /// Factor from one step to the next; by default the last step is a twentieth of the first.
    pub step_decay: Option<f64>,
    /// Share of the parameters that a step of length one takes away.
    pub weight_decay: f64,
    /// Longer gradients are shortened to this length.
    pub largest_gradient: Option<f64>,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

impl Default for Neural {
    fn default() -> Self {
        Self {
            hidden: Hidden::Plain,
            unit_output: true,
            objective: ObjectiveChoice::Auto,
            gradient: NeuralGradient::Propagated,
            optimiser: Optimiser::Adam,
            step_size: 3e-3,
            step_decay: None,
            weight_decay: 0.0,
            largest_gradient: None,
            batch: Batch::WithoutReplacement { size: 32 },
        }
    }
}

impl Neural {
    /// As the paper trains it in the simulator: plain descent on its loss with α = 0.3·0.96ᵗ and mini-batches of 32 drawn with
    /// repetition; it takes 200 steps.
    pub fn paper() -> Self {
        Self {
            hidden: Hidden::Simulator,
            objective: ObjectiveChoice::Loss,
            optimiser: Optimiser::Sgd { momentum: 0.0 },
            step_size: 0.3,
            step_decay: Some(0.96),
            batch: Batch::WithReplacement { size: 32 },
            ..Self::default()
        }
    }

    /// As the paper trains it on patients: another network, and α = 0.2·0.95ᵗ.
    pub fn paper_patients() -> Self {
        Self { hidden: Hidden::RealLife, step_size: 0.2, step_decay: Some(0.95), ..Self::paper() }
    }

    /// The network for contexts of `dimension` numbers and so many features.
    pub fn architecture(&self, dimension: usize, n_features: usize) -> Architecture {
        let architecture = match &self.hidden {
            Hidden::Plain => {
                let mut simulator = Architecture::simulator(dimension, n_features);
                for layer in &mut simulator.hidden {
                    layer.batch_normalisation = false;
                    layer.width = layer.width.min(WIDEST);
                }
                simulator
            }
            Hidden::Simulator => Architecture::simulator(dimension, n_features),
            Hidden::RealLife => Architecture::real_life(dimension, n_features),
            Hidden::Layers(hidden) => {
                Architecture { inputs: dimension, hidden: hidden.clone(), outputs: n_features, unit_output: true }
            }
        };
        Architecture { unit_output: self.unit_output, ..architecture }
    }

    /// The step rule of a run of so many steps.
    fn momentum(&self, last: u64) -> Momentum {
        let decay = self.step_decay.unwrap_or_else(|| LAST_SHARE.powf(1.0 / last.max(1) as f64));
        Momentum {
            optimiser: self.optimiser,
            step_size: self.step_size,
            decay,
            weight_decay: self.weight_decay,
            largest_gradient: self.largest_gradient,
        }
    }

    fn check(&self, architecture: &Architecture) -> Result<()> {
        self.momentum(STEPS).check()?;
        if self.batch == Batch::InOrder && architecture.has_batch_normalisation() {
            let reason = "a batch of one has no spread to normalise by; choose batches of at least 2";
            return Err(Error::InvalidSetting { name: "batch", value: "in order".into(), reason });
        }
        match self.gradient {
            NeuralGradient::Propagated => Ok(()),
            NeuralGradient::Antithetic { deviation, pairs, .. } => {
                Perturbation::Antithetic { deviation, pairs }.check()
            }
        }
    }
}

/// The steps of a network: their decay follows from the length of the run.
pub struct NeuralStep(Neural);

impl StepRule<f32> for NeuralStep {
    type State = Moments;

    fn start(&self, _point: &[f32]) -> Moments {
        Moments::default()
    }

    fn step(&self, state: &mut Moments, point: &mut [f32], gradient: &mut [f32], time: Time) -> Result<f64> {
        self.0.momentum(time.last).step(state, point, gradient, time)
    }

    fn fits(&self, state: &Moments, n: usize) -> bool {
        self.0.momentum(STEPS).fits(state, n)
    }
}

impl Descent for Neural {
    type Mapping = NeuralMapping;
    type Rule = NeuralStep;
    const WITHOUT_BOUND: &'static str = "network_not_convex";

    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<NeuralMapping> {
        if from.initial.is_some() {
            let reason = "a network does not start from a matrix";
            return Err(Error::InvalidSetting { name: "initial", value: "a mapping".into(), reason });
        }
        let dimension = problem.data().dimension();
        let architecture = self.architecture(dimension, problem.n_features());
        self.check(&architecture)?;
        let rows = (0..problem.len()).map(|i| (problem.data().input(i).values(), 1.0));
        let standard = Standardisation::fitted(dimension, rows);
        Ok(NeuralMapping::new(Network::untrained(architecture, standard, from.seed)?.near_ones()))
    }

    fn objective(&self, problem: &Problem<'_>) -> Box<dyn Objective> {
        self.objective.objective(problem.data())
    }

    fn rule(&self, _problem: &Problem<'_>) -> Result<NeuralStep> {
        Ok(NeuralStep(self.clone()))
    }

    fn batch(&self) -> Batch {
        self.batch
    }

    fn gradient(&self) -> Gradient {
        match self.gradient {
            NeuralGradient::Propagated => Gradient::PulledBack,
            NeuralGradient::Antithetic { deviation, pairs, policies } => Gradient::Estimated(Estimation {
                perturbation: Perturbation::Antithetic { deviation, pairs },
                policies,
                within: None,
                unit: false,
                indifference: 0.0,
                only_if_better: false,
            }),
        }
    }

    fn default_steps(&self, problem: &Problem<'_>) -> u64 {
        self.batch.steps_per_pass(problem.len()).saturating_mul(PASSES).max(STEPS)
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
        Ok(Self { objective: self.objective.resolved_for(problem.data()), ..self.clone() })
    }
}
