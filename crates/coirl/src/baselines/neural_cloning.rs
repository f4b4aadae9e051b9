//! Contextual behavioural cloning by a network, as the paper does it:
//!
//! ```text
//! minimise  −mean over demonstrated decisions of  log π_c(a | s),    π_c(a | s) ∝ exp(y_a),    y = network([c, s̃])
//! ```
//!
//! over the known actions of a state (or, unmasked, over all that are admissible). Decisions are those of [`Cloning`](super::Cloning), and so
//! are the [inputs](super::state_inputs), but that products of context and state are left to the network. With ∂loss/∂y_a = π(a | s) − 1[a was
//! taken] a step lets a mini-batch of decisions through the network and back. The loss is not convex and nothing is proved.

use super::cloning::cloned;
use super::maximum_entropy::ActionFit;
use super::state_inputs::StateInputs;
use crate::agent::{Agent, Choice, ClonedNetwork, scores};
use crate::demos::DemonstratedActions;
use crate::error::{Error, Result, check_length, check_positive};
use crate::learn::{Batch, Guarantee, Hidden, Learner, Problem, Record, Run, Start, Step};
use crate::network::{Architecture, Network, Standardisation};
use crate::optim::{Moments, Momentum, Optimiser};
use crate::plan::log_softmax;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Passes over the decisions by default, and the fewest steps.
const PASSES: u64 = 60;
const STEPS: u64 = 1000;
/// Components by default, at most.
const MOST_COMPONENTS: usize = 200;
/// Decisions that one thread looks at: a fixed number, so that sums over them do not depend on the threads.
const SHARE: usize = 256;

/// How steps become shorter; t counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StepDecay {
    /// α₀ · factorᵗ.
    Geometric {
        /// From one step to the next.
        factor: f64,
    },
    /// α₀ / (1 + rate · t).
    Inverse {
        /// Per step.
        rate: f64,
    },
    /// α₀ · (1 − t / T) in a run of T steps.
    Linear,
}

/// Settings of cloning by a network.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeuralCloning {
    /// Hidden layers.
    pub hidden: Hidden,
    /// Components of the dynamics; by default as many as explain 95 % of their variance, at most 200.
    pub components: Option<usize>,
    /// Take the likeliest action instead of drawing one.
    pub most_probable: bool,
    /// Choose among the known actions of a state only; else among all admissible ones.
    pub masked: bool,
    /// How a gradient becomes a direction.
    pub optimiser: Optimiser,
    /// α₀.
    pub step_size: f64,
    /// How steps become shorter.
    pub step_decay: StepDecay,
    /// Share of the parameters that a step of length one takes away.
    pub weight_decay: f64,
    /// Which decisions a step looks at.
    pub batch: Batch,
}

impl Default for NeuralCloning {
    fn default() -> Self {
        Self {
            hidden: Hidden::Simulator,
            components: None,
            most_probable: false,
            masked: true,
            optimiser: Optimiser::Adam,
            step_size: 1e-3,
            step_decay: StepDecay::Linear,
            weight_decay: 0.0,
            batch: Batch::WithoutReplacement { size: 32 },
        }
    }
}

impl NeuralCloning {
    /// As the paper trains it: among all actions, by plain descent with α = 0.1 / (1 + 10⁻⁷ t) on mini-batches of 32.
    pub fn paper() -> Self {
        Self {
            masked: false,
            optimiser: Optimiser::Sgd { momentum: 0.0 },
            step_size: 0.1,
            step_decay: StepDecay::Inverse { rate: 1e-7 },
            ..Self::default()
        }
    }

    /// The settings of the paper, with the network that it uses for patients.
    pub fn paper_patients() -> Self {
        Self { hidden: Hidden::RealLife, ..Self::paper() }
    }

    /// The network for contexts and states that are described by so many numbers together.
    pub fn architecture(&self, inputs: usize, n_actions: usize) -> Architecture {
        match &self.hidden {
            Hidden::Plain | Hidden::Simulator => Architecture::cloning_simulator(inputs, n_actions),
            Hidden::RealLife => Architecture::cloning_real_life(inputs, n_actions),
            Hidden::Layers(hidden) => {
                Architecture { inputs, hidden: hidden.clone(), outputs: n_actions, unit_output: false }
            }
        }
    }

    /// Steps in one pass over the decisions of a problem.
    pub fn steps_per_pass(&self, problem: &Problem<'_>) -> Result<u64> {
        let decisions = problem.data().actions().decisions(problem.model(), self.masked)?;
        Ok(self.batch.steps_per_pass(decisions.total() as usize))
    }

    /// Steps by default.
    pub fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(self.steps_per_pass(problem)?.saturating_mul(PASSES).max(STEPS))
    }

    /// The descent of a step.
    fn descent(&self, run: Run) -> Momentum {
        let t = (run.step - 1) as f64;
        let shrunk = match self.step_decay {
            StepDecay::Geometric { factor } => factor.powf(t),
            StepDecay::Inverse { rate } => 1.0 / (1.0 + rate * t),
            StepDecay::Linear => 1.0 - t / run.last.max(run.step) as f64,
        };
        Momentum { step_size: self.step_size * shrunk, ..self.first_descent() }
    }

    fn first_descent(&self) -> Momentum {
        Momentum {
            optimiser: self.optimiser,
            step_size: self.step_size,
            decay: 1.0,
            weight_decay: self.weight_decay,
            largest_gradient: None,
        }
    }

    fn check(&self, architecture: &Architecture) -> Result<()> {
        self.batch.check()?;
        self.first_descent().check()?;
        match self.step_decay {
            StepDecay::Geometric { factor } => check_positive("decay of the step", factor)?,
            StepDecay::Inverse { rate } if rate >= 0.0 && rate.is_finite() => {}
            StepDecay::Inverse { rate } => {
                let reason = "expected a number of at least 0";
                return Err(Error::InvalidSetting { name: "rate of the decay", value: rate.to_string(), reason });
            }
            StepDecay::Linear => {}
        }
        if self.batch == Batch::InOrder && architecture.has_batch_normalisation() {
            let reason = "a batch of one has no spread to normalise by; choose batches of at least 2";
            return Err(Error::InvalidSetting { name: "batch", value: "in order".into(), reason });
        }
        Ok(())
    }
}

/// A demonstrated action that says something.
#[derive(Debug, Clone, Copy)]
struct Decision {
    demonstration: usize,
    pair: usize,
}

/// Every decision of a problem, and how many demonstrated actions were left out because they are not known.
#[derive(Debug)]
struct Decisions {
    list: Vec<Decision>,
    left_out: f64,
}

impl Decisions {
    fn new(problem: &Problem<'_>, actions: &DemonstratedActions) -> Self {
        let of = |i: usize| {
            let seen = actions.of_demonstration(i).iter();
            seen.flat_map(move |&(pair, n)| std::iter::repeat_n(Decision { demonstration: i, pair }, n as usize))
        };
        Self { list: (0..problem.len()).flat_map(of).collect(), left_out: actions.left_out() }
    }
}

/// The training demonstrations as the network sees them; a function of problem and settings.
#[derive(Debug)]
struct Design {
    states: StateInputs,
    decisions: Decisions,
}

impl Design {
    fn new(own: &NeuralCloning, problem: &Problem<'_>) -> Result<Self> {
        let actions = problem.data().actions().decisions(problem.model(), own.masked)?;
        let states = StateInputs::new(problem, &actions, own.components, MOST_COMPONENTS, own.masked)?;
        Ok(Self { states, decisions: Decisions::new(problem, &actions) })
    }

    /// The inputs of some decisions, row by row.
    fn rows(&self, problem: &Problem<'_>, decisions: &[Decision]) -> Vec<f64> {
        let mut rows = Vec::new();
        for decision in decisions {
            rows.extend_from_slice(problem.context(decision.demonstration).values());
            rows.extend_from_slice(self.states.of(problem.model().pairs().state(decision.pair).index()));
        }
        rows
    }
}

/// Σ log π and Σ π of decisions, given the outputs for each, and the gradient of −mean log π by these, row by row.
fn likelihood(problem: &Problem<'_>, masked: bool, decisions: &[Decision], outputs: &[f64]) -> (ActionFit, Vec<f64>) {
    let (model, pairs) = (problem.model(), problem.model().pairs());
    let (n, mut fit) = (decisions.len() as f64, ActionFit::default());
    let mut gradient = vec![0.0; outputs.len()];
    let rows = outputs.chunks_exact(pairs.n_actions()).zip(gradient.chunks_exact_mut(pairs.n_actions()));
    for (decision, (y, row)) in decisions.iter().zip(rows) {
        let state = pairs.state(decision.pair).index();
        let mut logs = scores(model, state, masked, |action| y[action]);
        log_softmax(&mut logs, 1.0);
        for (pair, log) in pairs.of_state(state).zip(logs) {
            row[pairs.action(pair).index()] = log.exp() / n;
            if pair == decision.pair {
                row[pairs.action(pair).index()] -= 1.0 / n;
                fit.add(ActionFit { log_likelihood: log, agreement: log.exp() });
            }
        }
    }
    (fit, gradient)
}

/// What the method keeps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    settings: NeuralCloning,
    network: Network,
    progress: Moments,
    /// Made from problem and settings when first needed.
    #[serde(skip)]
    design: OnceLock<Design>,
    /// Room for a gradient.
    #[serde(skip)]
    gradient: Vec<f32>,
}

impl State {
    fn design(&self, problem: &Problem<'_>) -> Result<&Design> {
        if let Some(design) = self.design.get() {
            return Ok(design);
        }
        let design = Design::new(&self.settings, problem)?;
        let inputs = problem.context(0).values().len() + design.states.width;
        check_length("inputs of the network", inputs, self.network.architecture().inputs)?;
        Ok(self.design.get_or_init(|| design))
    }

    /// Σ log π and Σ π over decisions, as the network stands.
    fn fit_to(&self, design: &Design, problem: &Problem<'_>, decisions: &[Decision]) -> ActionFit {
        let part = |decisions: &[Decision]| {
            let rows = design.rows(problem, decisions);
            let outputs = self.network.outputs(rows.chunks_exact(self.network.architecture().inputs));
            likelihood(problem, self.settings.masked, decisions, &outputs).0
        };
        let parts: Vec<ActionFit> = decisions.par_chunks(SHARE).map(part).collect();
        let mut fit = ActionFit::default();
        parts.into_iter().for_each(|part| fit.add(part));
        fit
    }
}

impl Learner for NeuralCloning {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        if from.initial.is_some() {
            let reason = "cloning learns no mapping to start from";
            return Err(Error::InvalidSetting { name: "from.initial", value: "a mapping".into(), reason });
        }
        let design = Design::new(self, problem)?;
        let d = problem.context(0).values().len();
        let contexts = (0..problem.len()).map(|i| (problem.context(i).values(), 1.0));
        let Standardisation { mut shift, mut scale } = Standardisation::fitted(d, contexts);
        // States are described by standardised numbers already.
        shift.resize(d + design.states.width, 0.0);
        scale.resize(d + design.states.width, 1.0);
        let architecture = self.architecture(d + design.states.width, problem.model().n_actions());
        self.check(&architecture)?;
        Ok(State {
            settings: self.clone(),
            network: Network::untrained(architecture, Standardisation { shift, scale }, from.seed)?,
            progress: Moments::default(),
            design: OnceLock::from(design),
            gradient: Vec::new(),
        })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let design = state.design(problem)?;
        let all = &design.decisions.list;
        let batch: Vec<Decision> =
            self.batch.indices(all.len(), run.step, run.seed).into_iter().map(|i| all[i]).collect();
        let rows = design.rows(problem, &batch);
        let rows: Vec<&[f64]> = rows.chunks_exact(state.network.architecture().inputs).collect();
        let seen = self.batch.seen(all.len(), run.step).min(problem.len() as u64);
        let (pass, outputs) = state.network.learn(&rows);
        let (fit, upstream) = likelihood(problem, self.masked, &batch, &outputs);
        state.gradient.resize(state.network.parameters().len(), 0.0);
        state.network.gradient(&pass, &upstream, &mut state.gradient);
        state.network.take_statistics(&pass, batch.len());
        let descent = self.descent(run);
        state.progress.step(&descent, run.step, &mut state.gradient, state.network.parameters_mut());
        state.network.check_after_steps_from(self.step_size)?;
        Ok(Step::from(Record {
            batch_loss: Some(-fit.log_likelihood / batch.len() as f64),
            step_size: Some(descent.step_size),
            demonstrations: seen,
            ..Record::default()
        }))
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.network.architecture().outputs == problem.model().n_actions()
    }

    fn explained_actions(&self, state: &State, problem: &Problem<'_>) -> Result<Option<(f64, f64)>> {
        let design = state.design(problem)?;
        let Decisions { list, left_out } = &design.decisions;
        let (fit, n) = (state.fit_to(design, problem, list), list.len() as f64);
        Ok(Some((fit.log_likelihood / n, fit.agreement / (n + left_out))))
    }

    fn can_be_validated(&self) -> bool {
        true
    }

    /// −mean log π of the held-out decisions.
    fn validation_loss(&self, state: &State, problem: &Problem<'_>, validation: &Problem<'_>) -> Result<Option<f64>> {
        let design = state.design(problem)?;
        let held_out = Decisions::new(
            validation,
            &validation.data().actions().decisions(validation.model(), state.settings.masked)?,
        );
        let fit = state.fit_to(design, validation, &held_out.list);
        Ok(Some(-fit.log_likelihood / held_out.list.len() as f64))
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        let design = state.design(problem)?;
        let choice = Choice { masked: state.settings.masked, most_probable: state.settings.most_probable };
        let dimension = state.network.architecture().inputs - design.states.width;
        let cloned = ClonedNetwork::new(dimension, state.network.clone(), design.states.values.clone(), choice)?;
        Ok(Agent::ClonedNetwork(cloned))
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        // Without decisions the run does not start, and says why.
        Ok(self.default_steps(problem).unwrap_or(STEPS))
    }

    fn steps_per_pass(&self, problem: &Problem<'_>) -> Result<u64> {
        self.steps_per_pass(problem)
    }

    fn recorded_span(&self, problem: &Problem<'_>) -> Result<u64> {
        self.default_steps(problem)
    }

    fn guarantee(&self, _state: &State, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, cloned(&problem.data().actions().decisions(problem.model(), self.masked)?)))
    }
}
