//! The paper's interactive baselines: descent that replays all demonstrations whenever the expert gives a new one.
//!
//! One step is one context: plan at W, ask, and only if the answer is a demonstration keep it and learn.
//!
//! [`ReplayedDescent`] is PSGD of the ellipsoid experiments: epochs of one pass over the n demonstrations kept, each
//! with the step α₀·0.94ⁿ⁻¹·0.9ᵉ along −g/‖g‖∞, g = c ⊙ (μ̂ − μ*), W normalised; a step is taken only if the loss on
//! that demonstration falls, c·W_t(μ̂_t − μ*) > c·W_{t+1}(μ̂_{t+1} − μ*). [`ReplayedEvolution`] is ES: at every
//! iteration all demonstrations are planned for once, the gradient of the mean of c·W'(μ̂ − μ*)/‖W'‖ is estimated
//! from pairs W ± σu with these policies held fixed, and W moves by 0.1·0.95ⁱ along it, i = 1, 2, …, and is
//! normalised; it stops early once the losses of all demonstrations add up to little.
//!
//! The sphere is not convex and neither has a guarantee. An epoch costs up to two plans per demonstration, one after
//! the other; an iteration of ES one block of plans.

use super::cutting_plane::{Shown, shortest_difference};
use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use super::settings::check_count;
use crate::demos::Answer;
use crate::error::{Result, check_finite, check_positive, check_room};
use crate::optim::normalise;
use crate::optim::{dot, norm, norm_inf};
use crate::random::stream;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Settings of the paper's interactive PSGD.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayedDescent {
    /// α₀ when the first demonstration arrives.
    pub initial_step: f64,
    /// Factor of the step from one epoch to the next.
    pub decay: f64,
    /// Factor of α₀ from one demonstration to the next.
    pub outer_decay: f64,
    /// Passes over the demonstrations kept whenever one arrives.
    pub epochs: usize,
}

impl Default for ReplayedDescent {
    fn default() -> Self {
        Self { initial_step: 0.3, decay: 0.9, outer_decay: 0.94, epochs: 40 }
    }
}

/// Settings of the paper's interactive evolution strategy.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayedEvolution {
    /// σ, the size of the perturbations.
    pub deviation: f64,
    /// m, antithetic pairs per iteration.
    pub pairs: usize,
    /// Step before the first decay.
    pub initial_step: f64,
    /// Factor of the step from one iteration to the next.
    pub decay: f64,
    /// Iterations whenever a demonstration arrives.
    pub iterations: usize,
    /// An arrival's iterations end when the losses of all demonstrations kept, per ‖W‖₂, add up to less than this.
    pub stop: f64,
}

impl Default for ReplayedEvolution {
    fn default() -> Self {
        Self { deviation: 1e-3, pairs: 250, initial_step: 0.1, decay: 0.95, iterations: 50, stop: 1e-3 }
    }
}

/// What both methods keep.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    iterate: Vec<f64>,
    demonstrations: Shown,
}

impl Kept {
    /// From W₁ as given, or a random direction; of unit length.
    fn start(problem: &Problem<'_>, initial: Option<&[f64]>, seed: u64) -> Self {
        let random = || {
            let mut rng = stream(seed, "initial mapping", 0);
            (0..problem.n_parameters()).map(|_| rng.sample(StandardNormal)).collect()
        };
        let mut iterate = initial.map_or_else(random, <[f64]>::to_vec);
        normalise(&mut iterate);
        Self { iterate, demonstrations: Shown::default() }
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        self.iterate.len() == problem.n_parameters() && self.demonstrations.fit(problem)
    }

    /// Asks about the context of a step. The loss of W there, where the answer is a demonstration.
    fn ask(&mut self, problem: &Problem<'_>, run: Run) -> Result<Option<f64>> {
        let index = run.context(problem);
        let agent = problem.best_response(&self.iterate, index)?.feature_expectations;
        let Answer::Demonstration(expert) = problem.ask(index, &agent)? else { return Ok(None) };
        let mut difference = vec![0.0; problem.n_parameters()];
        problem.data().add_difference(index, &agent, &expert, 1.0, &mut difference);
        self.demonstrations.keep(index, expert);
        Ok(Some(dot(&self.iterate, &difference)))
    }

    fn report(&self, batch_loss: Option<f64>, step_size: Option<f64>) -> Step {
        Step::from(Record {
            batch_loss,
            step_size,
            demonstrations: self.demonstrations.len() as u64,
            ..Record::default()
        })
    }
}

/// State of [`ReplayedDescent`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descent {
    kept: Kept,
    /// Demonstrations that arrived, repeated contexts included.
    arrivals: u32,
    /// Differences no longer than this are rounding errors: agent and expert act alike.
    shortest: f64,
}

impl Descent {
    /// One pass over the demonstrations; false if W explains all of them.
    fn pass(&mut self, problem: &Problem<'_>, step: f64) -> Result<bool> {
        let Kept { iterate, demonstrations } = &mut self.kept;
        let mut any = false;
        for (at, &index) in demonstrations.indices.iter().enumerate() {
            let difference_at = |w: &[f64]| -> Result<Vec<f64>> {
                Ok(demonstrations.difference(problem, at, &problem.best_response(w, index)?.feature_expectations))
            };
            let g = difference_at(iterate)?;
            let size = norm_inf(&g);
            if size <= self.shortest {
                continue;
            }
            any = true;
            let mut next: Vec<f64> = iterate.iter().zip(&g).map(|(w, x)| w - step * x / size).collect();
            normalise(&mut next);
            if dot(&next, &difference_at(&next)?) < dot(iterate, &g) {
                *iterate = next;
            }
        }
        Ok(any)
    }
}

impl Learner for ReplayedDescent {
    type State = Descent;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<Descent> {
        check_positive("from.initial step", self.initial_step)?;
        check_positive("step decay", self.decay)?;
        check_positive("outer decay", self.outer_decay)?;
        check_count("epochs", self.epochs)?;
        check_room("epochs", &[self.epochs])?;
        Ok(Descent {
            kept: Kept::start(problem, from.initial, from.seed),
            arrivals: 0,
            shortest: shortest_difference(problem)?,
        })
    }

    fn step(&self, state: &mut Descent, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let batch_loss = state.kept.ask(problem, run)?;
        let mut step_size = None;
        if batch_loss.is_some() {
            let mut step = self.initial_step * self.outer_decay.powf(f64::from(state.arrivals));
            state.arrivals = state.arrivals.saturating_add(1);
            step_size = Some(step);
            for _ in 0..self.epochs {
                if !state.pass(problem, step)? {
                    break;
                }
                step *= self.decay;
            }
        }
        Ok(state.kept.report(batch_loss, step_size))
    }

    fn fits(&self, state: &Descent, problem: &Problem<'_>) -> bool {
        state.kept.fits(problem)
    }

    fn mapping(&self, state: &Descent) -> Option<Vec<f64>> {
        Some(state.kept.iterate.clone())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    fn guarantee(&self, _state: &Descent, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, Guarantee::none("not_convex")))
    }

    fn has_loss(&self) -> bool {
        true
    }
}

/// State of [`ReplayedEvolution`].
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evolution {
    kept: Kept,
}

impl Evolution {
    /// One iteration: the sum of the losses that W had, and the step from it unless that is small enough already.
    fn iterate(
        &mut self,
        own: &ReplayedEvolution,
        problem: &Problem<'_>,
        step: f64,
        random: (u64, u64),
    ) -> Result<f64> {
        let Kept { iterate, demonstrations } = &mut self.kept;
        let agents = problem.best_responses(iterate, &demonstrations.indices)?;
        // With policies fixed the mean over demonstrations is W'·g/‖W'‖ with one g.
        let mut g = vec![0.0; iterate.len()];
        for (at, agent) in agents.iter().enumerate() {
            let (index, expert) = (demonstrations.indices[at], &demonstrations.expectations[at]);
            problem.data().add_difference(
                index,
                &agent.feature_expectations,
                expert,
                1.0 / agents.len() as f64,
                &mut g,
            );
        }
        let loss = agents.len() as f64 * dot(iterate, &g) / norm(iterate);
        if loss < own.stop {
            return Ok(loss);
        }
        let mut rng = stream(random.0, "evolution", random.1);
        let mut ascent = vec![0.0; iterate.len()];
        for _ in 0..own.pairs {
            let u: Vec<f64> = (0..iterate.len()).map(|_| rng.sample(StandardNormal)).collect();
            let loss_at = |sign: f64| {
                let w: Vec<f64> = iterate.iter().zip(&u).map(|(w, x)| w + sign * own.deviation * x).collect();
                dot(&w, &g) / norm(&w)
            };
            let rise = loss_at(1.0) - loss_at(-1.0);
            ascent.iter_mut().zip(&u).for_each(|(sum, x)| *sum += rise * x);
        }
        normalise(&mut ascent);
        iterate.iter_mut().zip(&ascent).for_each(|(w, x)| *w -= step * x);
        normalise(iterate);
        Ok(loss)
    }
}

impl Learner for ReplayedEvolution {
    type State = Evolution;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<Evolution> {
        check_positive("deviation", self.deviation)?;
        check_positive("from.initial step", self.initial_step)?;
        check_positive("step decay", self.decay)?;
        check_finite("stop", &[self.stop])?;
        check_count("pairs", self.pairs)?;
        check_count("iterations", self.iterations)?;
        check_room("pairs × iterations", &[self.pairs, self.iterations])?;
        Ok(Evolution { kept: Kept::start(problem, from.initial, from.seed) })
    }

    fn step(&self, state: &mut Evolution, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let batch_loss = state.kept.ask(problem, run)?;
        let mut step_size = None;
        if batch_loss.is_some() {
            let mut step = self.initial_step;
            for i in 0..self.iterations as u64 {
                step *= self.decay;
                // One stream per iteration, whatever happened before.
                let number = run.step.wrapping_mul(self.iterations as u64).wrapping_add(i);
                if state.iterate(self, problem, step, (run.seed, number))? < self.stop {
                    break;
                }
                step_size = Some(step);
            }
        }
        Ok(state.kept.report(batch_loss, step_size))
    }

    fn fits(&self, state: &Evolution, problem: &Problem<'_>) -> bool {
        state.kept.fits(problem)
    }

    fn mapping(&self, state: &Evolution) -> Option<Vec<f64>> {
        Some(state.kept.iterate.clone())
    }

    fn default_steps(&self, problem: &Problem<'_>) -> Result<u64> {
        Ok(problem.len() as u64)
    }

    fn guarantee(&self, _state: &Evolution, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        Ok((None, Guarantee::none("not_convex_and_estimated")))
    }

    fn has_loss(&self) -> bool {
        true
    }
}
