//! The registry of methods: every learner and every baseline by name, and runs of any of them.
//!
//! A method is one file (in [`learn`] or [`baselines`](crate::baselines)) and one line in the registry below:
//! the line is all that the command line, files, experiments and Python know it by.

mod online_dynamics;
mod references;
mod set;

pub use online_dynamics::{
    DynamicsLearning, Environment, FittedOnline, OnlineDynamics, Round, SimulatedEnvironment, THIN_SUPPORT, fit_online,
    unsupported_visits,
};
pub use references::{Reference, Rule, references};
pub use set::{Assignment, assigned};

use crate::baselines::{
    Cloning, FrankWolfe, Majority, MaxMargin, MaximumEntropy, MaximumEntropyPerContext, Mwal, NearestContext,
    NeuralCloning, Projection, Uniform,
};
use crate::error::Result;
use crate::learn::{
    self, Adaptive, BatchEllipsoid, Bundle, Choice, CuttingPlane, Ellipsoid, EvolutionStrategies, Geometry, Learner,
    MirrorDescent, Neural, OptimisticMirrorDescent, Problem, Record, Recorder, ReplayedDescent, ReplayedEvolution,
    Status, Watch, Watched,
};

/// A method of the registry.
pub struct Entry {
    /// What it is called on the command line.
    pub name: &'static str,
    /// One line: when to choose it.
    pub about: &'static str,
    /// For whom it is.
    pub kind: Kind,
    /// The method with its default settings.
    pub method: fn() -> Method,
}

/// For whom a method is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Learns from demonstrations.
    Demonstrations,
    /// Asks an expert about one context after the other.
    Interactive,
    /// What learners are compared with.
    Baseline,
    /// Asks an expert; there to reproduce the paper.
    Reproduction,
}

impl Entry {
    /// Whether it asks an expert about one context after the other.
    pub fn is_interactive(&self) -> bool {
        matches!(self.kind, Kind::Interactive | Kind::Reproduction)
    }
}

macro_rules! registry {
    ($($variant:ident($settings:ty), $kind:ident, $name:literal, $about:literal;)*) => {
        /// Which method, with its settings.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = $about] $variant($settings),)*
        }

        /// Every method with its default settings; the first is the default.
        const REGISTERED: &[Entry] = &[
            $(Entry {
                name: $name,
                about: $about,
                kind: Kind::$kind,
                method: || Method::$variant(<$settings>::default()),
            },)*
        ];

        $(impl From<$settings> for Method {
            fn from(settings: $settings) -> Self {
                Method::$variant(settings)
            }
        })*

        impl Method {
            /// What it is called on the command line.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Method::$variant(_) => $name,)*
                }
            }

            /// The settings with what was left open decided by the data.
            pub fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
                Ok(match self {
                    $(Method::$variant(own) => Method::$variant(Learner::resolved_for(own, problem)?),)*
                })
            }

            /// Number of steps by default.
            pub fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
                match self {
                    $(Method::$variant(own) => Learner::default_steps(own, problem),)*
                }
            }

            /// Steps in one pass over what the method learns from.
            pub fn steps_per_pass(&self, problem: &Problem<'_>) -> Result<u64> {
                match self {
                    $(Method::$variant(own) => Learner::steps_per_pass(own, problem),)*
                }
            }

            /// Whether a run can go on with demonstrations that arrive later: what it keeps does not depend on which ones it saw.
            pub fn is_stream(&self) -> bool {
                match self {
                    $(Method::$variant(own) => own.is_stream(),)*
                }
            }
        }

        impl Settings {
            /// The settings with everything that was left open decided by the data: what is saved beside the result.
            pub fn resolved_for(&self, problem: &Problem<'_>, validated: bool) -> Result<Self> {
                let resolved = Self { method: self.method.resolved_for(problem)?, ..self.clone() };
                match &resolved.method {
                    $(Method::$variant(own) => resolved.shared_resolved_for(own, problem, validated),)*
                }
            }
        }

        /// Learns with the method of the settings.
        pub fn fit(
            problem: &Problem<'_>,
            settings: &Settings,
            watch: Watch<'_>,
            recorder: &mut dyn Recorder,
        ) -> Result<Fitted> {
            let settings = settings.resolved_for(problem, watch.validation.is_some())?;
            match &settings.method {
                $(Method::$variant(own) => learn::run(own, problem, &settings, watch, recorder),)*
            }
        }

        /// Goes on from a checkpoint, to the same result as an uninterrupted run. The checkpoint must belong to this model and
        /// these demonstrations.
        pub fn resume(
            problem: &Problem<'_>,
            mut checkpoint: Checkpoint,
            watch: Watch<'_>,
            recorder: &mut dyn Recorder,
        ) -> Result<Fitted> {
            checkpoint.settings = checkpoint.settings.resolved_for(problem, watch.validation.is_some())?;
            match &checkpoint.settings.method.clone() {
                $(Method::$variant(own) => learn::resume(own, problem, checkpoint, watch, recorder),)*
            }
        }
    };
}

registry! {
    Choice(Choice), Demonstrations, "choice", "start here: soft-optimal experts, likelihood to convergence";
    Adaptive(Adaptive), Demonstrations, "adaptive", "mirror descent without a step size to tune";
    Neural(Neural), Demonstrations, "network", "rewards that are no linear function of the context";
    Bundle(Bundle), Demonstrations, "bundle", "few or noisy demonstrations: the least loss, with a gap";
    MirrorDescent(MirrorDescent), Demonstrations, "psgd", "Algorithm 1: projected subgradients on the unit ball";
    OptimisticMirrorDescent(OptimisticMirrorDescent), Demonstrations, "optimistic", "mirror descent that foresees its gradients";
    EvolutionStrategies(EvolutionStrategies), Demonstrations, "es", "evolution strategies as published: one plan per step";
    CuttingPlane(CuttingPlane), Interactive, "cutting-plane", "an expert is asked: fewest demonstrations";
    Ellipsoid(Ellipsoid), Interactive, "ellipsoid", "an expert is asked: Algorithm 2, with its count";
    BatchEllipsoid(BatchEllipsoid), Interactive, "batch-ellipsoid", "an expert judges single actions: Algorithm 3";
    ReplayedDescent(ReplayedDescent), Reproduction, "replayed-psgd", "an expert is asked: the paper's interactive PSGD";
    ReplayedEvolution(ReplayedEvolution), Reproduction, "replayed-es", "an expert is asked: the paper's interactive ES";
    Projection(Projection), Baseline, "projection", "apprenticeship learning, as the paper compares with";
    MaxMargin(MaxMargin), Baseline, "max-margin", "apprenticeship by quadratic programmes: fewest plans";
    FrankWolfe(FrankWolfe), Baseline, "frank-wolfe", "apprenticeship with away steps: a linear rate";
    Mwal(Mwal), Baseline, "mwal", "apprenticeship by multiplicative weights, with a bound";
    MaximumEntropy(MaximumEntropy), Baseline, "max-entropy", "maximum-entropy IRL, a stochastic policy";
    MaximumEntropyPerContext(MaximumEntropyPerContext), Baseline, "max-entropy-per-context", "maximum entropy context by context; the nearest acts";
    Cloning(Cloning), Baseline, "bc", "behaviour cloning, from trajectories";
    NeuralCloning(NeuralCloning), Baseline, "bc-network", "behaviour cloning by a network, as in the paper";
    Majority(Majority), Baseline, "majority", "the action seen most often in a state";
    NearestContext(NearestContext), Baseline, "nearest", "what was seen in the nearest context";
    Uniform(Uniform), Baseline, "uniform", "any action";
}

/// Settings of a run of a registered method.
pub type Settings = learn::Settings<Method>;
/// The result of a run of a registered method.
pub type Fitted = learn::Fitted<Method>;
/// What is needed to go on with a run of a registered method.
pub type Checkpoint = learn::Checkpoint<Method>;

/// The settings of a run with what its data decided: for fits of parts of the same demonstrations, which need not decide it again.
pub fn settled(fitted: &Fitted) -> Settings {
    let mut settings = fitted.settings.clone();
    if let (Method::Choice(own), Some(explained)) = (&mut settings.method, &fitted.certificate.explained) {
        own.mapping = explained.form.into();
        own.penalty = Some(explained.penalty);
    }
    // Nothing stops other fits by validation: they go as far as the mapping that was kept had gone.
    if fitted.status == Status::ValidationStalled {
        settings.stop.max_steps = best_record(fitted).or(Some(fitted.steps));
    }
    settings
}

/// The step of the record that validation demonstrations liked best, the first of equals.
fn best_record(fitted: &Fitted) -> Option<u64> {
    let liked = |record: &Record| match fitted.settings.stop.watched {
        Some(Watched::Accuracy) => record.validation_accuracy,
        _ => record.validation_loss.map(|loss| -loss),
    };
    let rated = fitted.history.iter().filter_map(|record| Some((record.step, liked(record)?)));
    let best = rated.reduce(|best, own| if own.1 > best.1 { own } else { best });
    best.map(|(step, _)| step).filter(|step| *step > 0)
}

impl Default for Method {
    fn default() -> Self {
        (REGISTERED[0].method)()
    }
}

/// A second name for a method with other settings.
const EXPONENTIAL_WEIGHTS: Entry = Entry {
    name: "ew",
    about: "Algorithm 1 by exponential weights: no weight is negative",
    kind: Kind::Demonstrations,
    method: || Method::MirrorDescent(MirrorDescent { geometry: Geometry::Simplex, ..MirrorDescent::default() }),
};

/// Every method that can be named; the first is the default.
pub fn methods() -> impl Iterator<Item = &'static Entry> {
    let after = REGISTERED.iter().position(|entry| entry.name == "psgd").map_or(0, |at| at + 1);
    REGISTERED[..after].iter().chain([&EXPONENTIAL_WEIGHTS]).chain(&REGISTERED[after..])
}

/// The method of this name.
pub fn method(name: &str) -> Option<&'static Entry> {
    methods().find(|entry| entry.name == name)
}

/// Settings as the paper has them, by the name of their preset.
fn preset(method: &Method, name: &str) -> Option<Method> {
    match (method, name) {
        (Method::Neural(_), "paper") => Some(Neural::paper().into()),
        (Method::Neural(_), "paper_patients") => Some(Neural::paper_patients().into()),
        (Method::EvolutionStrategies(_), "literal") => Some(EvolutionStrategies::literal().into()),
        (Method::NeuralCloning(_), "paper") => Some(NeuralCloning::paper().into()),
        (Method::NeuralCloning(_), "paper_patients") => Some(NeuralCloning::paper_patients().into()),
        _ => None,
    }
}
