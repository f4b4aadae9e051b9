//! The methods by name: the one place that knows them all.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use coirl::baselines::{
    Cloning, FrankWolfe, Majority, MaxMargin, MaximumEntropy, Mwal, NearestContext, NeuralCloning, Projection, States,
    StepDecay, Uniform,
};
use coirl::learn::{
    Adaptive, Average, Batch, BatchEllipsoid, Bundle, CuttingPlane, Ellipsoid, EvolutionStep, EvolutionStrategies,
    Geometry, Hidden, Method, MirrorDescent, Neural, NeuralGradient, Objective, Policies, ReplayedDescent,
    ReplayedEvolution, StepSize,
};
use coirl::nearest::nearest;
use coirl::network::Layer;

/// How much of the largest value an agent may miss before a simulated expert objects, where nothing is said.
const RELATIVE_TOLERANCE: f64 = 1e-3;

/// A method that can be typed.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// One line: when to choose it.
    pub(crate) about: &'static str,
    /// Whether it asks an expert about one context after the other; with a true mapping that is a simulated one.
    pub(crate) interactive: bool,
    /// The options of single methods that it has.
    takes: &'static [&'static str],
    /// From what was typed, and how much worse than the best an agent may be.
    build: fn(&MethodArgs, f64) -> Result<Method, Failure>,
}

/// Every method; the first is the default. To add one, add an entry; one that asks an expert is `asks(entry(…))`.
pub(crate) const METHODS: &[Entry] = &[
    takes(
        &[OBJECTIVE, TEMPERATURE],
        entry("adaptive", "start here: mirror descent with nothing to tune", |args, _| {
            args.without_step_size()?;
            Ok(Method::Adaptive(Adaptive { objective: args.objective(args.usual_objective())?, batch: args.batch() }))
        }),
    ),
    takes(
        &[OBJECTIVE, TEMPERATURE, LAYERS, WEIGHT_DECAY, CLIP],
        entry("network", "rewards that are no linear function of the context", |args, _| {
            args.network(Neural { objective: args.usual_objective(), ..Neural::default() })
        }),
    ),
    takes(
        &[OBJECTIVE, TEMPERATURE, LAYERS, WEIGHT_DECAY, CLIP],
        entry("network-paper", "the same as the paper trains it; for --steps 200", |args, _| {
            args.network(Neural::paper())
        }),
    ),
    takes(
        &[OBJECTIVE, TEMPERATURE, LAYERS, WEIGHT_DECAY, CLIP],
        entry("network-patients", "the same as the paper trains it on patients", |args, _| {
            args.network(Neural::paper_patients())
        }),
    ),
    takes(
        &[OBJECTIVE, TEMPERATURE, LAYERS, WEIGHT_DECAY, CLIP],
        entry("network-es", "the same without back-propagation: slow", |args, _| {
            let policies = Policies::Fixed;
            let gradient = NeuralGradient::Antithetic { deviation: 1e-3, pairs: 50, policies };
            args.network(Neural { gradient, objective: args.usual_objective(), ..Neural::default() })
        }),
    ),
    entry("bundle", "few or noisy demonstrations: the least loss, with a gap", |args, _| {
        args.plain()?;
        Ok(Method::Bundle(Bundle::default()))
    }),
    entry("psgd", "Algorithm 1; for its bound --full-batch --average before", |args, _| {
        args.mirror_descent(Geometry::Ball)
    }),
    entry("psgd-sphere", "the same, normalised at every step as the paper prints it", |args, _| {
        args.mirror_descent(Geometry::Sphere)
    }),
    entry("ew", "no weight is negative; slow without --step-multiplier 100", |args, _| {
        args.mirror_descent(Geometry::Simplex)
    }),
    entry("es", "evolution strategies as published: one plan per step", |args, _| {
        args.evolution(EvolutionStrategies::default())
    }),
    entry("es-resolved", "the same, planning for every perturbation", |args, _| {
        args.evolution(EvolutionStrategies { policies: Policies::Resolved, ..EvolutionStrategies::default() })
    }),
    entry("es-literal", "the formula as the paper prints it; does not learn", |args, _| {
        args.evolution(EvolutionStrategies::literal())
    }),
    asks(entry("cutting-plane", "an expert is asked: fewest demonstrations", |args, _| {
        args.plain()?;
        Ok(Method::CuttingPlane(CuttingPlane::default()))
    })),
    asks(entry("ellipsoid", "an expert is asked: Algorithm 2, with its count", |args, tolerance| {
        args.plain()?;
        Ok(Method::Ellipsoid(Ellipsoid { tolerance }))
    })),
    takes(
        &[ROLL_OUTS, ROLL_OUT_LENGTH],
        asks(entry("batch-ellipsoid", "an expert judges single actions: Algorithm 3", |args, tolerance| {
            args.plain()?;
            let (horizon, batch) = (args.roll_out_length, args.roll_outs);
            Ok(Method::BatchEllipsoid(BatchEllipsoid { tolerance, horizon, batch, ..BatchEllipsoid::default() }))
        })),
    ),
    asks(entry("replayed-psgd", "an expert is asked: the paper's interactive PSGD", |args, _| {
        args.plain()?;
        Ok(Method::ReplayedDescent(ReplayedDescent::default()))
    })),
    asks(entry("replayed-es", "an expert is asked: the paper's interactive ES", |args, _| {
        args.plain()?;
        Ok(Method::ReplayedEvolution(ReplayedEvolution::default()))
    })),
    takes(
        &[LARGE_MDP],
        entry("projection", "apprenticeship learning, as the paper compares with", |args, _| {
            args.plain()?;
            Ok(Method::Projection(Projection { states: args.states() }))
        }),
    ),
    takes(
        &[LARGE_MDP],
        entry("max-margin", "the same by quadratic programmes: fewest plans", |args, _| {
            args.plain()?;
            Ok(Method::MaxMargin(MaxMargin { states: args.states() }))
        }),
    ),
    takes(
        &[LARGE_MDP],
        entry("frank-wolfe", "the same with away steps: a linear rate", |args, _| {
            args.plain()?;
            Ok(Method::FrankWolfe(FrankWolfe { states: args.states() }))
        }),
    ),
    takes(
        &[LARGE_MDP, POSITIVE],
        entry("mwal", "the same by multiplicative weights, with a bound", |args, _| {
            args.without_schedule()?;
            let step_multiplier = args.step_multiplier.unwrap_or(1.0);
            Ok(Method::Mwal(Mwal { states: args.states(), signed: !args.positive, step_multiplier }))
        }),
    ),
    takes(
        &[TEMPERATURE, PENALTY, GREEDY],
        entry("max-entropy", "baseline: maximum-entropy IRL, a stochastic policy", |args, _| {
            Ok(Method::MaximumEntropy(args.maximum_entropy()?))
        }),
    ),
    takes(
        &[TEMPERATURE, PENALTY, GREEDY],
        entry("max-entropy-per-context", "the same, context by context; the nearest acts", |args, _| {
            Ok(Method::MaximumEntropyPerContext(args.maximum_entropy()?))
        }),
    ),
    takes(
        &[PENALTY, GREEDY, COMPONENTS, UNMASKED],
        entry("bc", "baseline: behavioural cloning, from trajectories", |args, _| {
            args.plain()?;
            let defaults = Cloning::default();
            let penalty = args.penalty.unwrap_or(defaults.penalty);
            Ok(Method::Cloning(Cloning {
                penalty,
                components: args.components,
                most_probable: args.greedy,
                masked: !args.unmasked,
                ..defaults
            }))
        }),
    ),
    takes(
        &[GREEDY, COMPONENTS, UNMASKED],
        entry("bc-network", "the same by a network, as in the paper", |args, _| {
            args.neural_cloning(NeuralCloning::default())
        }),
    ),
    takes(
        &[GREEDY, COMPONENTS, UNMASKED],
        entry("bc-patients", "the same as the paper trains it on patients", |args, _| {
            args.neural_cloning(NeuralCloning::paper_patients())
        }),
    ),
    entry("majority", "baseline: the action seen most often in a state", |args, _| {
        args.plain()?;
        Ok(Method::Majority(Majority {}))
    }),
    entry("nearest", "baseline: what was seen in the nearest context", |args, _| {
        args.plain()?;
        Ok(Method::NearestContext(NearestContext {}))
    }),
    entry("uniform", "baseline: any action", |args, _| {
        args.plain()?;
        Ok(Method::Uniform(Uniform {}))
    }),
];

const OBJECTIVE: &str = "--objective";
const LAYERS: &str = "--layers";
const WEIGHT_DECAY: &str = "--weight-decay";
const CLIP: &str = "--clip";
const TEMPERATURE: &str = "--temperature";
const PENALTY: &str = "--penalty";
const GREEDY: &str = "--greedy";
const COMPONENTS: &str = "--components";
const UNMASKED: &str = "--unmasked";
const TOLERANCE: &str = "--tolerance";
const ROLL_OUTS: &str = "--roll-outs";
const ROLL_OUT_LENGTH: &str = "--roll-out-length";
const LARGE_MDP: &str = "--large-mdp";
const POSITIVE: &str = "--positive";

/// The entry of a method that has options of its own.
const fn takes(takes: &'static [&'static str], entry: Entry) -> Entry {
    Entry { takes, ..entry }
}

/// The entry of a method that asks an expert.
const fn asks(entry: Entry) -> Entry {
    Entry { interactive: true, ..entry }
}

const fn entry(
    name: &'static str,
    about: &'static str,
    build: fn(&MethodArgs, f64) -> Result<Method, Failure>,
) -> Entry {
    Entry { name, about, interactive: false, takes: &[], build }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArgs {
    /// Which method; see the table below
    #[arg(long, value_name = "NAME", default_value = METHODS[0].name)]
    method: String,
    /// Demonstrations per step, in shuffled passes [default: one, in order]; for bc-network decisions [default: 32]
    #[arg(long, value_name = "N", conflicts_with = "full_batch")]
    batch_size: Option<usize>,
    /// Draw every mini-batch afresh, so that a demonstration may be drawn twice
    #[arg(long, requires = "batch_size")]
    repetition: bool,
    /// All demonstrations at every step
    #[arg(long)]
    full_batch: bool,
    /// Factor on the step size of the theory [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, conflicts_with = "step_size")]
    step_multiplier: Option<f64>,
    /// The theory's constant step, for the number of steps of this run
    #[arg(long, conflicts_with = "step_size")]
    constant_step: bool,
    /// First step of a schedule in place of the theory's; for bc-network [default: 1e-3, to zero at the end]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    step_size: Option<f64>,
    /// Factor from one step of the schedule to the next [default: 1]
    #[arg(long, value_name = "D", allow_negative_numbers = true, requires = "step_size")]
    step_decay: Option<f64>,
    /// Return the mean of the iterates before each step (the theorem), after each step (the published code), or the last
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = AverageArg::After)]
    average: AverageArg,
    /// Plan for projection, max-margin, frank-wolfe and mwal in one process with all contexts in its state, as published
    #[arg(long)]
    large_mdp: bool,
    /// No weight of the reward that mwal guards against is negative
    #[arg(long)]
    positive: bool,
    /// How much value an agent may miss before an expert objects [default: 1e-3 of the largest value]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Roll-outs per cut of batch-ellipsoid [default: the theorem's]
    #[arg(long, value_name = "N")]
    roll_outs: Option<usize>,
    /// Transitions of a roll-out of batch-ellipsoid [default: the theorem's]
    #[arg(long, value_name = "H")]
    roll_out_length: Option<usize>,
    /// What adaptive and networks minimise: the loss of the paper, or the negative log-likelihood of single actions, which learns more from
    /// the same trajectories [default: likelihood from trajectories, loss with --estimator or from feature expectations]
    #[arg(long, value_name = "NAME", value_enum)]
    objective: Option<ObjectiveArg>,
    /// Hidden layers of a network, "336,336,336"; a width with "n" is normalised over the batch [default: three of eight times the
    /// features]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    layers: Option<Vec<String>>,
    /// Share of the weights of a network that a step of length one takes away [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    weight_decay: Option<f64>,
    /// Shorten gradients of a network to this length
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// What a unit of entropy is worth to max-entropy [default: 1]; below which differences in value --objective likelihood takes actions
    /// for alike [default: a thousandth of what a feature can add up to]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Weight of the squared norm in max-entropy [default: 1e-4] and bc [default: 1e-3]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    penalty: Option<f64>,
    /// Components of the dynamics that describe a state to bc [default: at most 64] and bc-network [at most 200]
    #[arg(long, value_name = "N")]
    components: Option<usize>,
    /// Let bc and bc-network choose among all admissible actions of a state, not among the known ones only
    #[arg(long)]
    unmasked: bool,
    /// Take the best action (max-entropy) or the likeliest (bc, bc-network) instead of drawing one
    #[arg(long)]
    greedy: bool,
    /// Whether single actions are known of every demonstration, and are to be learned from.
    #[arg(skip)]
    sees_actions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ObjectiveArg {
    Loss,
    Likelihood,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AverageArg {
    Before,
    After,
    Last,
}

impl MethodArgs {
    /// The method that was typed.
    pub(crate) fn entry(&self) -> Result<&'static Entry, Failure> {
        METHODS.iter().find(|entry| entry.name == self.method).ok_or_else(|| {
            let names: Vec<&str> = METHODS.iter().map(|entry| entry.name).collect();
            let meant = nearest(&self.method, &names).unwrap_or_default();
            let all = names.join(", ");
            Failure::refused(format!(
                "--method {}: there is no such method; did you mean {meant}? (all: {all})",
                self.method
            ))
        })
    }

    /// The same for data in which single actions are known, or are not.
    pub(crate) fn seeing_actions(&self, sees_actions: bool) -> Self {
        Self { sees_actions, ..self.clone() }
    }

    /// The method with its settings; `scale` is the largest value there can be.
    pub(crate) fn resolve(&self, entry: &Entry, scale: f64) -> Result<(Method, f64), Failure> {
        let given = [
            (OBJECTIVE, self.objective.is_some()),
            (LAYERS, self.layers.is_some()),
            (WEIGHT_DECAY, self.weight_decay.is_some()),
            (CLIP, self.clip.is_some()),
            (TEMPERATURE, self.temperature.is_some()),
            (PENALTY, self.penalty.is_some()),
            (GREEDY, self.greedy),
            (COMPONENTS, self.components.is_some()),
            (UNMASKED, self.unmasked),
            (TOLERANCE, self.tolerance.is_some()),
            (ROLL_OUTS, self.roll_outs.is_some()),
            (ROLL_OUT_LENGTH, self.roll_out_length.is_some()),
            (LARGE_MDP, self.large_mdp),
            (POSITIVE, self.positive),
        ];
        // Whoever asks an expert has one who tolerates something.
        let takes = |entry: &Entry, flag: &str| entry.takes.contains(&flag) || (flag == TOLERANCE && entry.interactive);
        if let Some((flag, _)) = given.iter().find(|(flag, given)| *given && !takes(entry, flag)) {
            let with: Vec<&str> = METHODS.iter().filter(|other| takes(other, flag)).map(|other| other.name).collect();
            let with = with.join(", ");
            return Err(Failure::refused(format!("--method {} has no {flag}; these have: {with}", entry.name)));
        }
        let tolerance = self.tolerance.unwrap_or(RELATIVE_TOLERANCE * scale);
        Ok(((entry.build)(self, tolerance)?, tolerance))
    }

    /// How apprentices plan in the large MDP.
    fn states(&self) -> States {
        if self.large_mdp { States::Joint } else { States::Separate }
    }

    /// Which demonstrations a step looks at.
    pub(crate) fn batch(&self) -> Batch {
        match (self.batch_size, self.full_batch) {
            (Some(size), _) if self.repetition => Batch::WithReplacement { size },
            (Some(size), _) => Batch::WithoutReplacement { size },
            (None, true) => Batch::Full,
            (None, false) => Batch::InOrder,
        }
    }

    /// Refuses options of methods that step.
    fn plain(&self) -> Result<(), Failure> {
        self.without_step_size()?;
        self.without_batches()
    }

    fn without_batches(&self) -> Result<(), Failure> {
        if self.batch() == Batch::InOrder {
            return Ok(());
        }
        Err(Failure::refused(format!("--method {} has no batches to set", self.method)))
    }

    /// What is minimised where nothing is said.
    fn usual_objective(&self) -> Objective {
        if self.sees_actions { Objective::likelihood() } else { Objective::Loss }
    }

    /// What is minimised, where that can be chosen.
    fn objective(&self, usual: Objective) -> Result<Objective, Failure> {
        let objective = match self.objective {
            None => usual,
            Some(ObjectiveArg::Loss) => Objective::Loss,
            Some(ObjectiveArg::Likelihood) => Objective::likelihood(),
        };
        match (objective, self.temperature) {
            (Objective::Likelihood { .. }, temperature) => Ok(Objective::Likelihood { temperature }),
            (Objective::Loss, None) => Ok(Objective::Loss),
            (Objective::Loss, Some(_)) => Err(Failure::refused("--temperature goes with --objective likelihood")),
        }
    }

    /// A network with what was typed in place of its usual settings.
    fn network(&self, usual: Neural) -> Result<Method, Failure> {
        if self.step_multiplier.is_some() || self.constant_step || self.average != AverageArg::After {
            let method = &self.method;
            return Err(Failure::refused(format!("--method {method} takes --step-size and --step-decay only")));
        }
        let hidden = match &self.layers {
            None => usual.hidden,
            Some(layers) => Hidden::Layers(layers.iter().map(|layer| layer_of(layer)).collect::<Result<_, _>>()?),
        };
        Ok(Method::Neural(Neural {
            hidden,
            objective: self.objective(usual.objective)?,
            step_size: self.step_size.unwrap_or(usual.step_size),
            step_decay: self.step_decay.or(usual.step_decay),
            weight_decay: self.weight_decay.unwrap_or(usual.weight_decay),
            largest_gradient: self.clip,
            batch: if self.batch() == Batch::InOrder { usual.batch } else { self.batch() },
            ..usual
        }))
    }

    fn neural_cloning(&self, defaults: NeuralCloning) -> Result<Method, Failure> {
        if self.step_multiplier.is_some() || self.constant_step || self.average != AverageArg::After {
            return Err(Failure::refused(format!(
                "--method {} has no step of a theory and no average; it takes --step-size and --step-decay",
                self.method
            )));
        }
        Ok(Method::NeuralCloning(NeuralCloning {
            components: self.components,
            most_probable: self.greedy,
            masked: defaults.masked && !self.unmasked,
            step_size: self.step_size.unwrap_or(defaults.step_size),
            step_decay: self.step_decay.map_or(defaults.step_decay, |factor| StepDecay::Geometric { factor }),
            batch: if self.batch() == Batch::InOrder { defaults.batch } else { self.batch() },
            ..defaults
        }))
    }

    fn maximum_entropy(&self) -> Result<MaximumEntropy, Failure> {
        self.plain()?;
        let defaults = MaximumEntropy::default();
        Ok(MaximumEntropy {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            penalty: self.penalty.unwrap_or(defaults.penalty),
            greedy: self.greedy,
            ..defaults
        })
    }

    /// Refuses every option of methods that step but the factor on the theory's step.
    fn without_schedule(&self) -> Result<(), Failure> {
        if self.step_size.is_some() || self.constant_step || self.average != AverageArg::After {
            return Err(Failure::refused(format!(
                "--method {} has the theory's constant step and an average of its own; it takes --step-multiplier",
                self.method
            )));
        }
        self.without_batches()
    }

    fn evolution(&self, defaults: EvolutionStrategies) -> Result<Method, Failure> {
        let step_size = match (self.step_size, self.step_multiplier) {
            (Some(initial), _) => EvolutionStep::Schedule { initial, decay: self.step_decay.unwrap_or(1.0) },
            (None, Some(factor)) => EvolutionStep::InverseRoot { factor: 0.1 * factor },
            (None, None) => defaults.step_size,
        };
        if self.constant_step || self.average != AverageArg::After {
            return Err(Failure::refused(format!("--method {} has its own average and no constant step", self.method)));
        }
        Ok(Method::EvolutionStrategies(EvolutionStrategies { step_size, batch: self.batch(), ..defaults }))
    }

    fn without_step_size(&self) -> Result<(), Failure> {
        if self.step_multiplier.or(self.step_size).is_none() && !self.constant_step && self.average == AverageArg::After
        {
            return Ok(());
        }
        Err(Failure::refused(format!("--method {} has no step size and no average to set", self.method)))
    }

    fn mirror_descent(&self, geometry: Geometry) -> Result<Method, Failure> {
        let step_size = match self.step_size {
            Some(initial) => StepSize::Schedule { initial, decay: self.step_decay.unwrap_or(1.0) },
            None if self.constant_step => StepSize::Constant { multiplier: self.step_multiplier.unwrap_or(1.0) },
            None => StepSize::Theory { multiplier: self.step_multiplier.unwrap_or(1.0) },
        };
        let average = match self.average {
            AverageArg::Before => Average::BeforeUpdate,
            AverageArg::After => Average::AfterUpdate,
            AverageArg::Last => Average::Last,
        };
        Ok(Method::MirrorDescent(MirrorDescent { geometry, step_size, average, batch: self.batch() }))
    }
}

/// "336", or "336n" for one that is normalised over the batch.
fn layer_of(typed: &str) -> Result<Layer, Failure> {
    let (digits, normalised) = match typed.trim().strip_suffix('n') {
        Some(digits) => (digits, true),
        None => (typed.trim(), false),
    };
    match digits.parse() {
        Ok(width) if normalised => Ok(Layer::normalised(width)),
        Ok(width) => Ok(Layer::leaky(width)),
        Err(_) => Err(Failure::refused(format!("--layers {typed}: expected a width such as 336 or 336n"))),
    }
}
