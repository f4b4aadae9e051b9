//! A network from context to reward, trained on the loss of the paper.
//!
//! ```text
//! Loss(θ) = mean over demonstrations of  max_π f_θ(c)·(μ^π_c − μ*_c),     ∂Loss/∂f_θ(c) = μ̂_c − μ*_c
//! ```
//!
//! with μ̂ of the policy planned for f_θ(c): the subgradient is the upstream gradient of the network and is propagated back to its
//! parameters. The likelihood of the demonstrated actions ([`Objective`]) is minimised in the same way, and learns more from the same
//! trajectories. Or the gradient is estimated from losses at perturbed parameters (evolution strategies). f is not linear in θ, so the
//! loss is not convex and nothing is proved. It is positively homogeneous in f, and from sampled demonstrations it can be negative:
//! outputs have unit length unless told otherwise, so that f can neither vanish nor grow. A step plans for its mini-batch in one block.

use super::batch::Batch;
use super::evolution::Policies;
use super::fit::{Algorithm, Run, Step};
use super::objective::{Objective, loss};
use super::problem::Problem;
use super::settings::check_count;
use crate::agent::Agent;
use crate::error::{Error, Result, check_positive, check_room};
use crate::mapping::{NeuralMapping, RewardMapping};
use crate::model::Context;
use crate::network::{Architecture, Layer, Network, Standardisation};
use crate::optim::{Descent, Optimiser, Progress};
use crate::optim::{dot, norm};
use crate::random::stream;
use rand::RngExt;
use rand_distr::StandardNormal;
use std::time::Instant;

/// Steps where nothing is said, and passes if those take longer.
const STEPS: u64 = 300;
const PASSES: u64 = 5;
/// Widest layer where nothing is said: a model with thousands of features does not need as many units.
const WIDEST: usize = 512;
/// What is left of the first step at the last, where nothing is said.
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
    Layers(Vec<Layer>),
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

/// Settings of a network; the default learns from single actions.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Neural {
    /// Hidden layers.
    pub hidden: Hidden,
    /// Whether outputs have unit length.
    pub unit_output: bool,
    /// What is minimised.
    pub objective: Objective,
    /// Where the gradient comes from.
    pub gradient: NeuralGradient,
    /// How a gradient becomes a direction.
    pub optimiser: Optimiser,
    /// α₀ of the steps α₀·decayᵗ.
    pub step_size: f64,
    /// Factor from one step to the next; where nothing is said, the last step is a twentieth of the first.
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
            objective: Objective::likelihood(),
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
            objective: Objective::Loss,
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

    fn descent(&self, last: u64) -> Descent {
        let decay = self.step_decay.unwrap_or_else(|| LAST_SHARE.powf(1.0 / last.max(1) as f64));
        Descent {
            optimiser: self.optimiser,
            step_size: self.step_size,
            decay,
            weight_decay: self.weight_decay,
            largest_gradient: self.largest_gradient,
        }
    }

    fn check(&self, architecture: &Architecture) -> Result<()> {
        self.batch.check()?;
        self.descent(STEPS).check()?;
        if self.batch == Batch::InOrder && architecture.has_batch_normalisation() {
            let reason = "a batch of one has no spread to normalise by; choose batches of at least 2";
            return Err(Error::InvalidSetting { name: "batch", value: "in order".into(), reason });
        }
        match self.gradient {
            NeuralGradient::Propagated => Ok(()),
            NeuralGradient::Antithetic { deviation, pairs, .. } => {
                check_positive("deviation", deviation)?;
                check_count("pairs", pairs)?;
                check_room("pairs", &[pairs])
            }
        }
    }
}

/// What the method keeps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    mapping: NeuralMapping,
    progress: Progress,
    /// Room for a gradient.
    #[serde(skip)]
    gradient: Vec<f32>,
}

impl State {
    /// The mean of the directions, weighted by how the loss differs along them.
    fn estimate(
        &mut self,
        own: &Neural,
        problem: &Problem<'_>,
        indices: &[usize],
        upstream: &[f64],
        run: Run,
        (deviation, pairs, policies): (f64, usize, Policies),
    ) -> Result<()> {
        let rows: Vec<&[f64]> = indices.iter().map(|&i| problem.input(i).values()).collect();
        let centre = self.mapping.network().parameters().to_vec();
        let mut sum = vec![0.0_f64; centre.len()];
        for pair in 0..pairs as u64 {
            let mut rng = stream(run.seed, "perturbation of a network", run.step.wrapping_mul(1 << 20) + pair);
            let direction: Vec<f32> = centre.iter().map(|_| rng.sample(StandardNormal)).collect();
            let mut at = |by: f32| -> Result<f64> {
                let moved = self.mapping.network_mut().parameters_mut().iter_mut().zip(&centre).zip(&direction);
                moved.for_each(|((theta, x), u)| *theta = x + by * u);
                let (_, weights) = self.mapping.network().learn(&rows);
                match policies {
                    Policies::Fixed => Ok(dot(&weights, upstream)),
                    Policies::Resolved => Ok(own.objective.of(problem, &weights, indices)?.0),
                }
            };
            let slope = (at(deviation as f32)? - at(-deviation as f32)?) / (2.0 * deviation * pairs as f64);
            sum.iter_mut().zip(&direction).for_each(|(sum, u)| *sum += slope * f64::from(*u));
        }
        self.mapping.network_mut().parameters_mut().copy_from_slice(&centre);
        self.gradient.iter_mut().zip(&sum).for_each(|(g, x)| *g = *x as f32);
        Ok(())
    }
}

impl Algorithm for State {
    type Settings = Neural;

    fn start(own: &Neural, problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Result<Self> {
        if initial.is_some() {
            let reason = "a network does not start from a matrix";
            return Err(Error::InvalidSetting { name: "initial", value: "a mapping".into(), reason });
        }
        let architecture = own.architecture(problem.dimension(), problem.n_features());
        own.check(&architecture)?;
        own.objective.check(problem)?;
        let rows = (0..problem.len()).map(|i| (problem.input(i).values(), 1.0));
        let standard = Standardisation::fitted(problem.dimension(), rows);
        let mapping = NeuralMapping::new(Network::untrained(architecture, standard, seed)?.near_ones());
        Ok(Self { mapping, progress: Progress::default(), gradient: Vec::new() })
    }

    fn step(&mut self, own: &Neural, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let began = Instant::now();
        let indices = own.batch.indices(problem.len(), run.step, run.seed);
        let rows: Vec<&[f64]> = indices.iter().map(|&i| problem.input(i).values()).collect();
        let network = self.mapping.network();
        let (pass, weights) = network.learn(&rows);
        Network::check_outputs_after_steps_from(&weights, own.step_size)?;
        let planning = Instant::now();
        let (value, upstream) = own.objective.of(problem, &weights, &indices)?;
        let mut planned = planning.elapsed();
        self.gradient.resize(network.parameters().len(), 0.0);
        match own.gradient {
            NeuralGradient::Propagated => network.gradient(&pass, &upstream, &mut self.gradient),
            NeuralGradient::Antithetic { deviation, pairs, policies } => {
                let estimating = Instant::now();
                self.estimate(own, problem, &indices, &upstream, run, (deviation, pairs, policies))?;
                if policies == Policies::Resolved {
                    planned += estimating.elapsed();
                }
            }
        }
        let network = self.mapping.network_mut();
        network.take_statistics(&pass, rows.len());
        let descent = own.descent(run.last);
        self.progress.step(&descent, run.step, &mut self.gradient, network.parameters_mut());
        network.check_after_steps_from(own.step_size)?;
        problem.spent(planned, began.elapsed() - planned);
        Ok(Step {
            batch_loss: Some(value),
            step_size: Some(descent.length(run.step)),
            demonstrations: own.batch.seen(problem.len(), run.step),
            ..Step::default()
        })
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        let network = self.mapping.network().architecture();
        (network.inputs, network.outputs) == (problem.dimension(), problem.n_features())
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        None
    }

    fn has_loss(&self) -> bool {
        true
    }

    /// Per mean length of the rewards, which is one unless outputs were left as they come.
    fn unit_loss(&self, problem: &Problem<'_>) -> Result<Option<f64>> {
        let inputs: Vec<Context> = (0..problem.len()).map(|i| problem.input(i).clone()).collect();
        let weights = self.mapping.weights_of_all(&inputs)?;
        let lengths = weights.chunks_exact(problem.n_features()).map(norm).sum::<f64>();
        let size = lengths / problem.len() as f64;
        if size == 0.0 {
            return Ok(None);
        }
        Ok(Some(loss(problem, &weights, &problem.all())?.0 / size))
    }

    fn agent(&self, _problem: &Problem<'_>) -> Result<Agent> {
        Ok(Agent::Neural(self.mapping.clone()))
    }

    fn default_steps(own: &Neural, problem: &Problem<'_>) -> u64 {
        own.batch.steps_per_pass(problem.len()).saturating_mul(PASSES).max(STEPS)
    }

    fn bound(&self, _own: &Neural, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        Ok((None, "the loss of a network is not convex: no bound holds".into()))
    }
}
