//! Maximum-entropy inverse reinforcement learning context by context: every demonstration has weights w of its own,
//!
//! ```text
//! D(w) = V^soft_c(w) − w·μ*_c + λ/2 ‖w‖²,
//! ```
//!
//! and nothing is learned about how they depend on the context. A new context is acted on with the weights of the nearest one
//! (∞-norm, the first of equals), in its own dynamics. Cost of a step: a soft plan per demonstration that is not done yet.

use super::maximum_entropy::{ActionFit, MaximumEntropy, term};
use crate::agent::{Agent, KnownContexts, NearestWeights};
use crate::demos::DemonstratedActions;
use crate::error::{Error, Result};
use crate::learn::{Guarantee, Learner, Problem, Record, Run, Start, Step};
use crate::optim::{Evaluation, Lbfgs};
use crate::optim::{dot, norm_inf};
use rayon::prelude::*;

/// Iterations by default.
const STEPS: u64 = 200;

/// One demonstration's weights on their way.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    optimiser: Lbfgs,
    fit: (f64, f64),
    done: bool,
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    settings: MaximumEntropy,
    contexts: Vec<Progress>,
    /// The gradient at which a context is done.
    goal: f64,
}

fn dual(
    problem: &Problem<'_>,
    actions: &DemonstratedActions,
    own: &MaximumEntropy,
    index: usize,
    weights: &[f64],
) -> Result<Evaluation<ActionFit>> {
    let term = term(problem, actions, index, weights, own.temperature)?;
    let expert = problem.data().expectations(index)?;
    let slope = |((mu, star), w): ((&f64, &f64), &f64)| mu - star + own.penalty * w;
    let gradient = term.feature_expectations.iter().zip(expert).zip(weights).map(slope).collect();
    Ok(Evaluation { value: term.value + 0.5 * own.penalty * dot(weights, weights), gradient, remark: term.fit })
}

/// Settings of maximum-entropy inverse reinforcement learning with weights of their own for every context.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MaximumEntropyPerContext(pub MaximumEntropy);

impl Learner for MaximumEntropyPerContext {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        self.0.check()?;
        if from.initial.is_some() {
            let reason = "weights of single contexts do not start from a mapping";
            return Err(Error::InvalidSetting { name: "from.initial", value: "a mapping".into(), reason });
        }
        let actions = problem.data().actions();
        let begin = |i: usize| {
            let start = vec![0.0; problem.n_features()];
            let at = dual(problem, actions, &self.0, i, &start)?;
            let fit = (at.remark.log_likelihood, at.remark.agreement);
            Ok(Progress { optimiser: Lbfgs::new(start, at), fit, done: false })
        };
        let contexts = (0..problem.len()).into_par_iter().map(begin).collect::<Result<_>>()?;
        let goal = self.0.gradient_tolerance * problem.model().features().max_abs() * problem.horizon()?;
        Ok(State { settings: self.0, contexts, goal })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let actions = problem.data().actions();
        let goal = state.goal;
        state.contexts.par_iter_mut().enumerate().try_for_each(|(i, context)| {
            if context.done {
                return Ok(());
            }
            let accepted = context.optimiser.step(|weights| dual(problem, actions, &self.0, i, weights))?;
            context.done = accepted.is_none() || norm_inf(&context.optimiser.gradient) <= goal;
            if let Some(step) = accepted {
                context.fit = (step.remark.log_likelihood, step.remark.agreement);
            }
            Ok::<(), Error>(())
        })?;
        let mean = state.contexts.iter().map(|context| context.optimiser.value).sum::<f64>() / problem.len() as f64;
        let fit = state.contexts.iter().fold((0.0, 0.0), |sum, context| (sum.0 + context.fit.0, sum.1 + context.fit.1));
        Ok(Step {
            record: Record {
                batch_loss: Some(mean),
                demonstrations: problem.len() as u64,
                log_likelihood: actions.mean(fit.0),
                training_accuracy: actions.mean(fit.1),
                ..Record::default()
            },
            finished: state.contexts.iter().all(|context| context.done),
        })
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.contexts.len() == problem.len()
            && state.contexts.iter().all(|context| context.optimiser.fits(problem.n_features()))
    }

    fn agent(&self, state: &State, problem: &Problem<'_>) -> Result<Agent> {
        let known = KnownContexts::new(problem.data().dimension(), problem.data().context_values())?;
        let weights = state.contexts.iter().flat_map(|context| &context.optimiser.point).copied().collect();
        Ok(Agent::Nearest(NearestWeights::new(known, weights, state.settings.acting_temperature())?))
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(STEPS)
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let done = state.contexts.iter().filter(|context| context.done).count();
        let guarantee = Guarantee::none("duals").with("done", done as f64);
        Ok((None, guarantee.with("contexts", state.contexts.len() as f64)))
    }
}
