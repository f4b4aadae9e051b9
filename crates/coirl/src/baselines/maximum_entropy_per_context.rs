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
use crate::error::{Error, Result};
use crate::learn::DemonstratedActions;
use crate::learn::{Algorithm, Problem, Run, Step};
use crate::optim::{Evaluation, Lbfgs};
use crate::optim::{dot, norm_inf};
use rayon::prelude::*;

/// Iterations where nothing is said.
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
pub(crate) struct State {
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
    let expert = problem.demonstrated(index)?;
    let slope = |((mu, star), w): ((&f64, &f64), &f64)| mu - star + own.penalty * w;
    let gradient = term.feature_expectations.iter().zip(expert).zip(weights).map(slope).collect();
    Ok(Evaluation { value: term.value + 0.5 * own.penalty * dot(weights, weights), gradient, remark: term.fit })
}

impl Algorithm for State {
    type Settings = MaximumEntropy;

    fn start(own: &MaximumEntropy, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        own.check()?;
        if initial.is_some() {
            let reason = "weights of single contexts do not start from a mapping";
            return Err(Error::InvalidSetting { name: "initial", value: "a mapping".into(), reason });
        }
        let actions = DemonstratedActions::of(problem)?;
        let begin = |i: usize| {
            let start = vec![0.0; problem.n_features()];
            let at = dual(problem, &actions, own, i, &start)?;
            let fit = (at.remark.log_likelihood, at.remark.agreement);
            Ok(Progress { optimiser: Lbfgs::new(start, at), fit, done: false })
        };
        let contexts = (0..problem.len()).into_par_iter().map(begin).collect::<Result<_>>()?;
        let goal = own.gradient_tolerance * problem.model().features().max_abs() * problem.horizon()?;
        Ok(Self { settings: *own, contexts, goal })
    }

    fn step(&mut self, own: &MaximumEntropy, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let actions = DemonstratedActions::of(problem)?;
        let goal = self.goal;
        self.contexts.par_iter_mut().enumerate().try_for_each(|(i, context)| {
            if context.done {
                return Ok(());
            }
            let accepted = context.optimiser.step(|weights| dual(problem, &actions, own, i, weights))?;
            context.done = accepted.is_none() || norm_inf(&context.optimiser.gradient) <= goal;
            if let Some(step) = accepted {
                context.fit = (step.remark.log_likelihood, step.remark.agreement);
            }
            Ok::<(), Error>(())
        })?;
        let mean = self.contexts.iter().map(|context| context.optimiser.value).sum::<f64>() / problem.len() as f64;
        let fit = self.contexts.iter().fold((0.0, 0.0), |sum, context| (sum.0 + context.fit.0, sum.1 + context.fit.1));
        Ok(Step {
            batch_loss: Some(mean),
            demonstrations: problem.len() as u64,
            log_likelihood: actions.mean(fit.0),
            training_accuracy: actions.mean(fit.1),
            finished: self.contexts.iter().all(|context| context.done),
            ..Step::default()
        })
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        self.contexts.len() == problem.len()
            && self.contexts.iter().all(|context| context.optimiser.fits(problem.n_features()))
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        None
    }

    fn agent(&self, problem: &Problem<'_>) -> Result<Agent> {
        let known = KnownContexts::new(problem.dimension(), problem.all_contexts())?;
        let weights = self.contexts.iter().flat_map(|context| &context.optimiser.point).copied().collect();
        Ok(Agent::Nearest(NearestWeights::new(known, weights, self.settings.acting_temperature())?))
    }

    fn default_steps(_own: &MaximumEntropy, _problem: &Problem<'_>) -> u64 {
        STEPS
    }

    fn bound(&self, _own: &MaximumEntropy, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, String)> {
        let done = self.contexts.iter().filter(|context| context.done).count();
        Ok((None, format!("{done} of {} contexts at the least value of their dual", self.contexts.len())))
    }
}
