//! Contextual behavioural cloning: a multinomial logistic model of the demonstrated actions (the paper uses a network).
//!
//! ```text
//! minimise  −mean over demonstrated actions of  log π_c(a | s)  +  λ/2 ‖θ‖²,    π_c(a | s) ∝ exp(θ_a · x(c, s))
//! ```
//!
//! over the known actions of a state (or, unmasked, over all that are admissible). Whoever keeps to the known actions gives any other
//! probability zero whatever θ: a demonstrated action that is not known says nothing about θ, and is left out and counted.
//!
//! The inputs are those of the paper's remark on contextual cloning: the context, the features of the state, and principal components
//! of the state's dynamics; see [`crate::agent::ClonedPolicy`] for how they are put together. Features of states and actions
//! are averaged over the actions in question. Where the dynamics depend on the context, the components are those of
//! the kernel of the mean training context. Inputs are standardised by their mean and deviation over what was seen in training; an input
//! that never varied there is left out of use. The constant of each action is not penalised. The objective is convex and
//! minimised by L-BFGS; a step costs one product per visited state, action and input.

use super::lbfgs::{Evaluation, Lbfgs};
use super::maximum_entropy::{ActionFit, check_penalty};
use super::principal_components::PrincipalComponents;
use crate::agent::{Agent, Choice, ClonedPolicy, Inputs, scores};
use crate::error::{Error, Result, check_positive};
use crate::learn::{Algorithm, DemonstratedActions, Problem, Run, Step, dot, largest};
use crate::network::Standardisation;
use crate::plan::log_softmax;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Iterations where nothing is said.
const STEPS: u64 = 500;
/// Components where nothing is said: as many as explain this share of the variance, at most so many.
const EXPLAINED: f64 = 0.95;
const MOST_COMPONENTS: usize = 64;
/// State inputs beyond this many numbers are refused.
const MAX_STATE_INPUTS: usize = 1 << 28;

/// Settings of behavioural cloning.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cloning {
    /// λ.
    pub penalty: f64,
    /// Components of the dynamics; where nothing is said, as many as explain 95 % of their variance, at most 64.
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

impl Cloning {
    /// The demonstrated actions that the model of the actions can explain.
    fn explained(&self, problem: &Problem<'_>) -> Result<DemonstratedActions> {
        let all = DemonstratedActions::needed(problem, "cloning")?;
        if self.masked { all.known(problem.model()) } else { Ok(all) }
    }
}

/// The demonstrations as the objective sees them; a function of problem and settings.
#[derive(Debug)]
struct Design {
    inputs: Inputs,
    context: Standardisation,
    /// c̃ of every demonstration.
    contexts: Vec<Vec<f64>>,
    /// s̃ of every state, row by row.
    state_inputs: Vec<f64>,
}

impl Design {
    fn new(own: &Cloning, problem: &Problem<'_>, actions: &DemonstratedActions) -> Result<Self> {
        let (model, d) = (problem.model(), problem.dimension());
        let raw_contexts = problem.all_contexts();
        let alike = std::iter::repeat_n(1.0, problem.len());
        let context = Standardisation::fitted(d, raw_contexts.chunks_exact(d).zip(alike));
        let mut mean = vec![0.0; d];
        for row in raw_contexts.chunks_exact(d) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / problem.len() as f64);
        }
        let typical = model.mdp(&model.context_space().context(mean)?)?;
        let (most, share) = own.components.map_or((MOST_COMPONENTS, EXPLAINED), |n| (n, 1.0));
        let components = PrincipalComponents::of_dynamics(typical.kernel(), most, share)?;
        let (k, m) = (model.n_features(), model.n_features() + components.len());
        let count = model.n_states().saturating_mul(m);
        if count > MAX_STATE_INPUTS {
            return Err(Error::TooLarge { what: "states × inputs of cloning", count, limit: MAX_STATE_INPUTS });
        }
        let mut raw = vec![0.0; count];
        for (s, row) in raw.chunks_exact_mut(m).enumerate() {
            let pairs = model.pairs().of_state(s).filter(|&pair| !own.masked || model.is_known(pair));
            let share = 1.0 / pairs.clone().count() as f64;
            pairs.for_each(|pair| model.features().add_scaled(s, pair, share, &mut row[..k]));
            row[k..].copy_from_slice(&components.scores[s * components.len()..(s + 1) * components.len()]);
        }
        let mut visits = vec![0.0; model.n_states()];
        for i in 0..problem.len() {
            let seen = actions.of_demonstration(i);
            seen.iter().for_each(|&(pair, n)| visits[model.pairs().state(pair).index()] += n);
        }
        let standard = Standardisation::fitted(m, raw.chunks_exact(m).zip(visits));
        Ok(Self {
            inputs: Inputs { dimension: d, n_state_inputs: m, interactions: own.interactions },
            contexts: raw_contexts.chunks_exact(d).map(|row| context.of(row)).collect(),
            context,
            state_inputs: raw.chunks_exact(m).flat_map(|row| standard.of(row)).collect(),
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
            let x = &self.state_inputs[s * m..(s + 1) * m];
            let mut logs = scores(problem.model(), s, own.masked, &folded, x);
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
pub(crate) struct State {
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

impl Algorithm for State {
    type Settings = Cloning;

    fn start(own: &Cloning, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        check_penalty(own.penalty)?;
        check_positive("gradient_tolerance", own.gradient_tolerance)?;
        if initial.is_some() {
            let reason = "cloning learns no mapping to start from";
            return Err(Error::InvalidSetting { name: "initial", value: "a mapping".into(), reason });
        }
        let actions = own.explained(problem)?;
        let design = Design::new(own, problem, &actions)?;
        let start = vec![0.0; problem.model().n_actions() * design.inputs.len()];
        let at = design.objective(own, problem, &actions, &start);
        Ok(Self { settings: *own, optimiser: Lbfgs::new(start, at), design: OnceLock::from(design) })
    }

    fn step(&mut self, own: &Cloning, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let actions = own.explained(problem)?;
        self.design(problem, &actions)?;
        let Self { optimiser, design, .. } = self;
        let accepted = match design.get() {
            Some(design) => optimiser.step(|theta| Ok(design.objective(own, problem, &actions, theta)))?,
            None => None,
        };
        let finished = accepted.is_none() || largest(&self.optimiser.gradient) <= own.gradient_tolerance;
        Ok(Step {
            batch_loss: Some(self.optimiser.value),
            demonstrations: problem.len() as u64,
            log_likelihood: accepted.as_ref().and_then(|step| actions.mean(step.remark.log_likelihood)),
            training_accuracy: accepted
                .as_ref()
                .map(|step| step.remark.agreement / (actions.total() + actions.left_out())),
            step_size: accepted.map(|step| step.length),
            finished,
            ..Step::default()
        })
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        None
    }

    fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        let design = self.design(problem, &self.settings.explained(problem)?)?;
        Ok(Agent::Cloned(ClonedPolicy::new(
            design.inputs,
            design.context.clone(),
            design.state_inputs.clone(),
            self.optimiser.point.clone(),
            Choice { masked: self.settings.masked, most_probable: self.settings.most_probable },
        )?))
    }

    fn default_steps(_own: &Cloning, _problem: &Problem<'_>) -> u64 {
        STEPS
    }

    fn bound(&self, own: &Cloning, problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        let mut says = "a cloned policy has no reward: nothing bounds what it loses".to_owned();
        let actions = own.explained(problem)?;
        if actions.left_out() > 0.0 {
            let (out, all) = (actions.left_out(), actions.total() + actions.left_out());
            says.push_str(&format!("; {out} of {all} demonstrated actions are not known and were left out"));
        }
        Ok((None, says))
    }
}
