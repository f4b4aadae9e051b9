//! Contextual behavioural cloning: a multinomial logistic model of the demonstrated actions (the paper uses a network).
//!
//! ```text
//! minimise  −mean over demonstrated actions of  log π_c(a | s)  +  λ/2 ‖θ‖²,    π_c(a | s) ∝ exp(θ_a · x(c, s))
//! ```
//!
//! over the known actions of a state (or, unmasked, over all that are admissible). An agent that keeps to the known actions gives any other
//! probability zero whatever θ: a demonstrated action that is not known says nothing about θ, and is left out and counted. Nor does
//! one in a state with a single choice or without a way out: neither is a decision.
//!
//! The inputs are the context and [what is known of the state](super::state_inputs); see [`crate::agent::ClonedPolicy`] for how they
//! are put together. The constant of each action is not penalised. The objective is convex and minimised by L-BFGS; a step
//! costs one product per visited state, action and input.

use super::maximum_entropy::{ActionFit, check_penalty};
use super::state_inputs::StateInputs;
use crate::agent::{Agent, Choice, ClonedPolicy, Inputs, linear, scores};
use crate::demos::DemonstratedActions;
use crate::error::{Error, Result, check_positive};
use crate::learn::{Guarantee, Learner, Problem, Record, Run, Start, Step};
use crate::network::Standardisation;
use crate::optim::{Evaluation, Lbfgs};
use crate::optim::{dot, norm_inf};
use crate::plan::log_softmax;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Iterations by default.
const STEPS: u64 = 500;
/// Components by default, at most: every one is multiplied with every number of a context.
const MOST_COMPONENTS: usize = 64;

/// Settings of behavioural cloning.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cloning {
    /// λ.
    pub penalty: f64,
    /// Components of the dynamics; by default as many as explain 95 % of their variance, at most 64.
    pub components: Option<usize>,
    /// Whether products of context and state inputs are inputs too.
    pub interactions: bool,
    /// Take the likeliest action instead of drawing one.
    pub most_probable: bool,
    /// Choose among the known actions of a state only; else among all admissible ones.
    pub masked: bool,
    /// Stop where no entry of the gradient is larger than this.
    pub gradient_tolerance: f64,
}

impl Default for Cloning {
    fn default() -> Self {
        Self {
            penalty: 1e-3,
            components: None,
            interactions: true,
            most_probable: false,
            masked: true,
            gradient_tolerance: 1e-6,
        }
    }
}

/// The demonstrations as the objective sees them; a function of problem and settings.
#[derive(Debug)]
struct Design {
    inputs: Inputs,
    context: Standardisation,
    /// c̃ of every demonstration.
    contexts: Vec<Vec<f64>>,
    states: StateInputs,
}

impl Design {
    fn new(own: &Cloning, problem: &Problem<'_>, decisions: &DemonstratedActions) -> Result<Self> {
        let d = problem.context(0).values().len();
        let raw_contexts = problem.data().context_values();
        let alike = std::iter::repeat_n(1.0, problem.len());
        let context = Standardisation::fitted(d, raw_contexts.chunks_exact(d).zip(alike));
        let states = StateInputs::new(problem, decisions, own.components, MOST_COMPONENTS, own.masked)?;
        Ok(Self {
            inputs: Inputs { dimension: d, n_state_inputs: states.width, interactions: own.interactions },
            contexts: raw_contexts.chunks_exact(d).map(|row| context.of(row)).collect(),
            context,
            states,
        })
    }

    /// −Σ log π over the actions of a demonstration, its gradient in folded coefficients, and how well they fit.
    fn of_demonstration(
        &self,
        own: &Cloning,
        problem: &Problem<'_>,
        actions: &DemonstratedActions,
        coefficients: &[f64],
        index: usize,
    ) -> (Vec<f64>, ActionFit) {
        let (pairs, m) = (problem.model().pairs(), self.inputs.n_state_inputs);
        let folded = self.inputs.fold(coefficients, &self.contexts[index]);
        let mut gradient = vec![0.0; folded.len()];
        let mut fit = ActionFit::default();
        let same_state = |a: &(usize, f64), b: &(usize, f64)| pairs.state(a.0) == pairs.state(b.0);
        for seen in actions.of_demonstration(index).chunk_by(same_state) {
            let s = pairs.state(seen[0].0).index();
            let x = self.states.of(s);
            let mut logs = scores(problem.model(), s, own.masked, linear(&folded, x));
            log_softmax(&mut logs, 1.0);
            let first = pairs.of_state(s).start;
            let visits: f64 = seen.iter().map(|entry| entry.1).sum();
            let mut residual: Vec<f64> = logs.iter().map(|log| visits * log.exp()).collect();
            for &(pair, n) in seen {
                residual[pair - first] -= n;
                fit.add(ActionFit { log_likelihood: n * logs[pair - first], agreement: n * logs[pair - first].exp() });
            }
            for (i, r) in residual.iter().enumerate().filter(|entry| *entry.1 != 0.0) {
                let slopes = &mut gradient[pairs.action(first + i).index() * (1 + m)..][..1 + m];
                slopes[0] += r;
                slopes[1..].iter_mut().zip(x).for_each(|(g, x)| *g += r * x);
            }
        }
        (gradient, fit)
    }

    fn objective(
        &self,
        own: &Cloning,
        problem: &Problem<'_>,
        actions: &DemonstratedActions,
        coefficients: &[f64],
    ) -> Evaluation<ActionFit> {
        let one = |i: usize| self.of_demonstration(own, problem, actions, coefficients, i);
        let parts: Vec<(Vec<f64>, ActionFit)> = (0..problem.len()).into_par_iter().map(one).collect();
        let mut gradient = vec![0.0; coefficients.len()];
        let mut remark = ActionFit::default();
        for ((part, fit), context) in parts.iter().zip(&self.contexts) {
            self.inputs.add_unfolded(part, context, &mut gradient);
            remark.add(*fit);
        }
        gradient.iter_mut().for_each(|g| *g /= actions.total());
        let mut value = -remark.log_likelihood / actions.total();
        for (g, w) in gradient.chunks_exact_mut(self.inputs.len()).zip(coefficients.chunks_exact(self.inputs.len())) {
            value += 0.5 * own.penalty * dot(&w[1..], &w[1..]);
            g[1..].iter_mut().zip(&w[1..]).for_each(|(g, w)| *g += own.penalty * w);
        }
        Evaluation { value, gradient, remark }
    }
}

/// What the method keeps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    settings: Cloning,
    optimiser: Lbfgs,
    /// Made from problem and settings when first needed.
    #[serde(skip)]
    design: OnceLock<Design>,
}

impl State {
    fn design(&self, problem: &Problem<'_>, actions: &DemonstratedActions) -> Result<&Design> {
        if let Some(design) = self.design.get() {
            return Ok(design);
        }
        let design = Design::new(&self.settings, problem, actions)?;
        Ok(self.design.get_or_init(|| design))
    }
}

impl Learner for Cloning {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        check_penalty(self.penalty)?;
        check_positive("gradient_tolerance", self.gradient_tolerance)?;
        if from.initial.is_some() {
            let reason = "cloning learns no mapping to start from";
            return Err(Error::InvalidSetting { name: "from.initial", value: "a mapping".into(), reason });
        }
        let actions = problem.data().actions().decisions(problem.model(), self.masked)?;
        let design = Design::new(self, problem, &actions)?;
        let start = vec![0.0; problem.model().n_actions() * design.inputs.len()];
        let at = design.objective(self, problem, &actions, &start);
        Ok(State { settings: *self, optimiser: Lbfgs::new(start, at), design: OnceLock::from(design) })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let actions = problem.data().actions().decisions(problem.model(), self.masked)?;
        state.design(problem, &actions)?;
        let State { optimiser, design, .. } = state;
        let accepted = match design.get() {
            Some(design) => optimiser.step(|theta| Ok(design.objective(self, problem, &actions, theta)))?,
            None => None,
        };
        let finished = accepted.is_none() || norm_inf(&state.optimiser.gradient) <= self.gradient_tolerance;
        Ok(Step {
            record: Record {
                batch_loss: Some(state.optimiser.value),
                demonstrations: problem.len() as u64,
                log_likelihood: accepted.as_ref().and_then(|step| actions.mean(step.remark.log_likelihood)),
                training_accuracy: accepted
                    .as_ref()
                    .map(|step| step.remark.agreement / (actions.total() + actions.left_out())),
                step_size: accepted.map(|step| step.length),
                ..Record::default()
            },
            finished,
        })
    }

    fn fits(&self, state: &State, _problem: &Problem<'_>) -> bool {
        state.optimiser.fits(state.optimiser.point.len())
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        let design =
            state.design(problem, &problem.data().actions().decisions(problem.model(), state.settings.masked)?)?;
        Ok(Agent::Cloned(ClonedPolicy::new(
            design.inputs,
            design.context.clone(),
            design.states.values.clone(),
            state.optimiser.point.clone(),
            Choice { masked: state.settings.masked, most_probable: state.settings.most_probable },
        )?))
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(STEPS)
    }

    fn guarantee(&self, _state: &State, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let actions = problem.data().actions().decisions(problem.model(), self.masked)?;
        Ok((None, cloned(&actions)))
    }
}

/// What is known of a cloned policy.
pub(super) fn cloned(actions: &DemonstratedActions) -> Guarantee {
    let guarantee = Guarantee::none("cloned");
    match actions.left_out() {
        0.0 => guarantee,
        out => guarantee.with("left_out", out).with("demonstrated", actions.seen()),
    }
}
