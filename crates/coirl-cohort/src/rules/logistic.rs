//! Multinomial logistic regression of the actions, without a model of what they lead to.
//!
//! ```text
//! minimise  −mean log p(a | x)  +  λ/2 ‖θ‖²,     p(a | x) ∝ exp(θₐ · x)
//! ```
//!
//! over actions that training stays took; x is a constant that is not penalised, the standardised measurements of the step, the context, and
//! indicators of the action before. Where measurements were not kept an indicator of the state takes their place. λ is the likeliest on validation
//! steps of a path from strong to weak, each fitted to convergence by L-BFGS from the one before. No action is impossible:
//! p is mixed with the training shares. Cost of an evaluation: steps × inputs × actions; of very many training stays some are drawn.

use super::step::{Before, Step};
use crate::split::draw;
use coirl::Result;
use coirl::check::{check_finite, check_length};
use coirl::network::Standardisation;
use coirl::optim::{Evaluation, Lbfgs, dot, norm_inf};
use coirl::plan::log_softmax;
use rayon::prelude::*;
use serde::Serialize;

/// λ from strong to weak, and the one where nothing is left to choose by, in steps.
const PENALTIES: [f64; 9] = [0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5];
/// A penalty worth fewer steps than this is none.
const LEAST_PENALTY: f64 = 1.0;
const PENALTY: f64 = 3.0;
/// Penalties in a row that may be less likely than the best before weaker ones are not tried.
const PATIENCE: usize = 2;
/// Largest entry of the gradient at the end, far below what another sample of steps would change it by, and evaluations until then.
const TOLERANCE: f64 = 2e-4;
const MOST_ITERATIONS: usize = 300;
/// Products of an evaluation at most: more training steps are drawn from.
const MOST_PRODUCTS: usize = 10_000_000;
/// Training steps without which nothing is fitted.
const FEWEST_STEPS: usize = 20;
/// Steps that are added up at a time.
const CHUNK: usize = 512;
/// Shares of the training shares that are tried in the mixture, and the one that penalties are compared with.
const MIXED: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
const USUALLY_MIXED: f64 = 0.01;

/// How the regression went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LogisticFit {
    /// λ.
    pub penalty: f64,
    /// Iterations of L-BFGS with this λ.
    pub iterations: usize,
    /// Whether the gradient is as small as asked for.
    pub converged: bool,
    /// Training steps that it was fitted on.
    pub steps: usize,
    /// Whether x holds the measurements of a step; else an indicator of its state.
    pub measurements: bool,
    /// Share of the training shares in its probabilities.
    pub mixed: f64,
}

/// A fitted regression.
#[derive(Debug, Clone)]
pub(super) struct Logistic {
    inputs: Inputs,
    scaling: Standardisation,
    /// The actions that training stays took.
    actions: Vec<u32>,
    /// θ, an action after the other.
    coefficients: Vec<f64>,
    fit: LogisticFit,
}

/// What x is made of: a constant, numbers, an indicator of the action before, and where there are no measurements one of the state.
#[derive(Debug, Clone, Copy)]
struct Inputs {
    numbers: usize,
    n_actions: usize,
    n_states: usize,
}

impl Inputs {
    fn len(self) -> usize {
        1 + self.numbers + self.n_actions + 1 + self.n_states
    }

    /// Where the indicators of a step are that are one.
    fn indicators(self, step: &Step<'_>, actions: &[u32]) -> [Option<usize>; 2] {
        let start = 1 + self.numbers;
        let before = match step.before {
            Before::Nothing => Some(self.n_actions),
            Before::Action(action) => actions.binary_search(&action).ok(),
        };
        let state = (self.n_states > 0).then(|| start + self.n_actions + 1 + step.state);
        [before.map(|at| start + at), state]
    }
}

/// Steps as the regression sees them.
struct Design {
    /// Standardised, row-major.
    numbers: Vec<f64>,
    indicators: Vec<[Option<usize>; 2]>,
    /// The place of the action among those of training stays; nothing for another.
    taken: Vec<Option<usize>>,
}

impl Logistic {
    /// Fits on the steps of training stays, one list per stay; nothing where they are too few or too long to fit, or always took the same action. `shares` are those of
    /// all actions.
    pub(super) fn fit(
        train: &[Vec<Step<'_>>],
        validation: &[Vec<Step<'_>>],
        n_states: usize,
        shares: &[f64],
        seed: u64,
    ) -> Result<Option<Self>> {
        let mut actions: Vec<u32> = train.iter().flatten().map(|step| step.action).collect();
        actions.sort_unstable();
        actions.dedup();
        let measurements = train.iter().chain(validation).flatten().all(|step| !step.point.is_empty());
        let Some(first) = train.iter().flatten().next().filter(|_| actions.len() > 1) else { return Ok(None) };
        let width = if measurements { first.point.len() } else { 0 };
        let inputs = Inputs {
            numbers: width + first.context.len(),
            n_actions: actions.len(),
            n_states: if measurements { 0 } else { n_states },
        };
        let all: usize = train.iter().map(Vec::len).sum();
        let products = all.saturating_mul(inputs.len()).saturating_mul(actions.len());
        let share = (MOST_PRODUCTS as f64 / products as f64).min(1.0);
        let kept = draw(train.len(), (share * train.len() as f64).ceil() as usize, seed);
        let steps: Vec<&Step<'_>> = kept.into_iter().flat_map(|stay| &train[stay]).collect();
        if steps.len() < FEWEST_STEPS || share * (all as f64) < FEWEST_STEPS as f64 {
            return Ok(None);
        }
        let raw = steps.iter().map(|step| numbers(step, width)).collect::<Vec<_>>();
        let scaling = Standardisation::fitted(inputs.numbers, raw.iter().map(|row| (row.as_slice(), 1.0)));
        let fit = LogisticFit {
            penalty: PENALTY / steps.len() as f64,
            iterations: 0,
            converged: false,
            steps: steps.len(),
            measurements,
            mixed: USUALLY_MIXED,
        };
        let coefficients = vec![0.0; actions.len() * inputs.len()];
        let mut own = Self { inputs, scaling, actions, coefficients, fit };
        let design = own.design(&steps)?;
        let held: Vec<&Step<'_>> = validation.iter().flatten().collect();
        if held.is_empty() {
            own.minimise(&design, own.fit.penalty)?;
            return Ok(Some(own));
        }
        let held_design = own.design(&held)?;
        let (mut best, mut worse): (Option<(f64, Self)>, usize) = (None, 0);
        let n = steps.len() as f64;
        for penalty in PENALTIES.into_iter().filter(|penalty| penalty * n >= LEAST_PENALTY) {
            own.minimise(&design, penalty)?;
            let likelihood = own.log_likelihood(&held_design, &held, shares, USUALLY_MIXED);
            match &best {
                Some((most, _)) if likelihood <= *most => worse += 1,
                _ => (best, worse) = (Some((likelihood, own.clone())), 0),
            }
            if worse == PATIENCE {
                break;
            }
        }
        let mut own = best.map_or(own, |(_, best)| best);
        let scored = MIXED.map(|mixed| (mixed, own.log_likelihood(&held_design, &held, shares, mixed)));
        own.fit.mixed = scored
            .into_iter()
            .fold((USUALLY_MIXED, f64::NEG_INFINITY), |best, new| if new.1 > best.1 { new } else { best })
            .0;
        Ok(Some(own))
    }

    pub(super) fn summary(&self) -> LogisticFit {
        self.fit
    }

    /// The likeliest action at every step, the lowest of equals, and the probability of the one that was taken.
    pub(super) fn answers(&self, steps: &[&Step<'_>], shares: &[f64]) -> Result<Vec<(u32, f64)>> {
        let design = self.design(steps)?;
        let answer = |(i, step): (usize, &&Step<'_>)| {
            let logs = self.logs(&design, i);
            let first = (1..logs.len()).fold(0, |best, k| if logs[k] > logs[best] { k } else { best });
            let own = design.taken[i].map_or(0.0, |k| logs[k].exp());
            (self.actions[first], (1.0 - self.fit.mixed) * own + self.fit.mixed * shares[step.action as usize])
        };
        Ok(steps.par_iter().enumerate().map(answer).collect())
    }

    fn design(&self, steps: &[&Step<'_>]) -> Result<Design> {
        let context = steps.first().map_or(0, |step| step.context.len());
        let width = self.inputs.numbers.saturating_sub(context);
        let mut all = Vec::with_capacity(steps.len() * self.inputs.numbers);
        for step in steps {
            let own = numbers(step, width);
            check_length("numbers of a step", self.inputs.numbers, own.len())?;
            all.extend(self.scaling.of(&own));
        }
        check_finite("measurements and context of the steps", &all)?;
        Ok(Design {
            numbers: all,
            indicators: steps.iter().map(|step| self.inputs.indicators(step, &self.actions)).collect(),
            taken: steps.iter().map(|step| self.actions.binary_search(&step.action).ok()).collect(),
        })
    }

    /// log p of the training actions at a step.
    fn logs(&self, design: &Design, i: usize) -> Vec<f64> {
        logs(&self.coefficients, self.inputs, design, i)
    }

    /// Of all steps, mixed with the training shares.
    fn log_likelihood(&self, design: &Design, steps: &[&Step<'_>], shares: &[f64], mixed: f64) -> f64 {
        let of_step = |i: usize| {
            let own = design.taken[i].map_or(0.0, |k| self.logs(design, i)[k].exp());
            ((1.0 - mixed) * own + mixed * shares[steps[i].action as usize]).ln()
        };
        let all: Vec<f64> = (0..steps.len()).into_par_iter().map(of_step).collect();
        all.iter().sum()
    }

    /// Goes on from the coefficients as they are.
    fn minimise(&mut self, design: &Design, penalty: f64) -> Result<()> {
        let objective = |theta: &[f64]| Ok(evaluate(theta, self.inputs, design, penalty));
        let at = evaluate(&self.coefficients, self.inputs, design, penalty);
        let mut optimiser = Lbfgs::new(self.coefficients.clone(), at);
        let mut iterations = 0;
        while iterations < MOST_ITERATIONS && norm_inf(&optimiser.gradient) > TOLERANCE {
            if optimiser.step(objective)?.is_none() {
                break;
            }
            iterations += 1;
        }
        let converged = norm_inf(&optimiser.gradient) <= TOLERANCE;
        self.fit = LogisticFit { penalty, iterations, converged, ..self.fit };
        self.coefficients = optimiser.point;
        Ok(())
    }
}

/// The measurements of a step, where they count, and the context.
fn numbers(step: &Step<'_>, width: usize) -> Vec<f64> {
    step.point.iter().take(width).map(|&x| f64::from(x)).chain(step.context.iter().copied()).collect()
}

fn logs(theta: &[f64], inputs: Inputs, design: &Design, i: usize) -> Vec<f64> {
    let x = &design.numbers[i * inputs.numbers..(i + 1) * inputs.numbers];
    let logit = |own: &[f64]| {
        let indicated: f64 = design.indicators[i].iter().flatten().map(|&at| own[at]).sum();
        own[0] + dot(&own[1..=inputs.numbers], x) + indicated
    };
    let mut logs: Vec<f64> = theta.chunks_exact(inputs.len()).map(logit).collect();
    log_softmax(&mut logs, 1.0);
    logs
}

fn evaluate(theta: &[f64], inputs: Inputs, design: &Design, penalty: f64) -> Evaluation<()> {
    let n = design.taken.len();
    let of_chunk = |steps: &[usize]| {
        let (mut value, mut gradient) = (0.0, vec![0.0; theta.len()]);
        for &i in steps {
            let Some(taken) = design.taken[i] else { continue };
            let logs = logs(theta, inputs, design, i);
            value -= logs[taken];
            let x = &design.numbers[i * inputs.numbers..(i + 1) * inputs.numbers];
            for (k, (log, own)) in logs.iter().zip(gradient.chunks_exact_mut(inputs.len())).enumerate() {
                let residual = log.exp() - f64::from(u8::from(k == taken));
                own[0] += residual;
                own[1..=inputs.numbers].iter_mut().zip(x).for_each(|(g, x)| *g += residual * x);
                design.indicators[i].iter().flatten().for_each(|&at| own[at] += residual);
            }
        }
        (value, gradient)
    };
    let steps: Vec<usize> = (0..n).collect();
    let parts: Vec<(f64, Vec<f64>)> = steps.par_chunks(CHUNK).map(of_chunk).collect();
    let (mut value, mut gradient) = (0.0, vec![0.0; theta.len()]);
    for (part, own) in parts {
        value += part;
        gradient.iter_mut().zip(own).for_each(|(sum, x)| *sum += x);
    }
    value /= n as f64;
    gradient.iter_mut().for_each(|g| *g /= n as f64);
    for (g, w) in gradient.chunks_exact_mut(inputs.len()).zip(theta.chunks_exact(inputs.len())) {
        value += 0.5 * penalty * dot(&w[1..], &w[1..]);
        g[1..].iter_mut().zip(&w[1..]).for_each(|(g, w)| *g += penalty * w);
    }
    Evaluation { value, gradient, remark: () }
}
