//! Settings of a run: one method with its own, and what all methods share. They are saved beside the result.

use super::adaptive::Adaptive;
use super::batch_ellipsoid::BatchEllipsoid;
use super::bundle::Bundle;
use super::cutting_plane::CuttingPlane;
use super::ellipsoid::Ellipsoid;
use super::evolution::EvolutionStrategies;
use super::mirror_descent::MirrorDescent;
use super::neural::Neural;
use super::replay::{ReplayedDescent, ReplayedEvolution};
use crate::baselines::{
    Cloning, FrankWolfe, Majority, MaxMargin, MaximumEntropy, Mwal, NearestContext, NeuralCloning, Projection, Uniform,
};
use crate::error::{Error, Result};

/// Which algorithm, with its settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Method {
    /// Mirror descent without a step size to tune; the default.
    Adaptive(Adaptive),
    /// Algorithm 1 of the paper.
    MirrorDescent(MirrorDescent),
    /// A network from context to reward.
    Neural(Neural),
    /// A proximal bundle method on the full loss.
    Bundle(Bundle),
    /// Evolution strategies.
    EvolutionStrategies(EvolutionStrategies),
    /// Algorithm 2: an expert demonstrates where the agent does badly.
    Ellipsoid(Ellipsoid),
    /// Algorithm 3: an expert judges single actions and shows roll-outs.
    BatchEllipsoid(BatchEllipsoid),
    /// Asks an expert and keeps to the centre of what the answers allow.
    CuttingPlane(CuttingPlane),
    /// Asks an expert; the paper's PSGD over all demonstrations given.
    ReplayedDescent(ReplayedDescent),
    /// Asks an expert; the paper's evolution strategy over all demonstrations given.
    ReplayedEvolution(ReplayedEvolution),
    /// Apprenticeship learning by Frank-Wolfe steps with away steps.
    FrankWolfe(FrankWolfe),
    /// Apprenticeship learning by the maximum margin.
    MaxMargin(MaxMargin),
    /// Apprenticeship learning by multiplicative weights.
    Mwal(Mwal),
    /// Apprenticeship learning by projection.
    Projection(Projection),
    /// Maximum-entropy inverse reinforcement learning of a mapping.
    MaximumEntropy(MaximumEntropy),
    /// The same with weights of their own for every context that was seen.
    MaximumEntropyPerContext(MaximumEntropy),
    /// Behavioural cloning.
    Cloning(Cloning),
    /// Behavioural cloning by a network, as in the paper.
    NeuralCloning(NeuralCloning),
    /// The action taken most often in a state.
    Majority(Majority),
    /// The action taken most often in a state of the nearest context.
    NearestContext(NearestContext),
    /// Any action.
    Uniform(Uniform),
}

impl Default for Method {
    fn default() -> Self {
        Method::Adaptive(Adaptive::default())
    }
}

/// When to stop; whichever comes first.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Steps; where nothing is said, as many as the method takes by default.
    pub max_steps: Option<u64>,
    /// Loss per ‖W‖₂ on the demonstrations.
    pub loss: Option<f64>,
    /// Gap of the methods that know one.
    pub gap: Option<f64>,
    /// Records without anything better on the validation demonstrations.
    pub patience: Option<u64>,
    /// What is better.
    pub watched: Watched,
}

/// What is watched on validation demonstrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// The loss, or what a method has in its place.
    #[default]
    Loss,
    /// The share of the recorded actions that the agent would take, as in the paper's experiments with real patients.
    Accuracy,
}

/// A run, complete.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The algorithm.
    pub method: Method,
    /// Seed of everything random.
    pub seed: u64,
    /// When to stop.
    pub stop: Stop,
    /// W₁, row-major; where nothing is said, what the method starts from.
    pub initial: Option<Vec<f64>>,
    /// Steps between two records with a loss; 0 records the start and the end only.
    pub record_every: u64,
    /// Whether records have the loss on all demonstrations, which costs a plan for each.
    pub record_loss: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (method, stop) = (Method::default(), Stop::default());
        Self { method, seed: 0, stop, initial: None, record_every: 0, record_loss: true }
    }
}

impl Settings {
    /// The defaults of a method.
    pub fn new(method: Method) -> Self {
        Self { method, ..Self::default() }
    }
}

/// Refuses counts of nothing.
pub(super) fn check_count(name: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        Ok(())
    } else {
        Err(Error::InvalidSetting { name, value: "0".into(), reason: "expected at least 1" })
    }
}
