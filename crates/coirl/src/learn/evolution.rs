//! Evolution strategies: the subgradient estimated from losses at perturbed mappings.
//!
//! | perturbation | estimate |
//! |---|---|
//! | antithetic | mean over pairs of (F(W + σu) − F(W − σu)) / (2σ) · u, u normal |
//! | one-sided | 1/(mρ) Σ F(W + νu/‖u‖) · νu/‖u‖, as the paper prints it: no baseline, and it does not learn |
//! | forward | (F(W + νu) − F(W)) / ν · u, the oracle of Theorem 2 (Nesterov & Spokoiny) |
//!
//! F is the loss on the batch, re-solved at every perturbation (each costs a plan per demonstration, all planned in blocks),
//! or with the policies of the unperturbed mapping, as in the published code: then F is linear in W apart from its
//! normalisation, and the estimate a noisy copy of the subgradient at the price of one plan. The published runs live on the
//! simplex, reached by clipping negative entries and dividing by the sum, inside every perturbation as well, and judge
//! W/‖W‖₂. Theorem 2 is for the forward oracle, full batches and the best iterate.

use super::batch::Batch;
use super::fit::{Algorithm, Run, Step};
use super::problem::Problem;
use super::settings::check_count;
use crate::error::{Result, check_not_negative, check_positive, check_room};
use crate::optim::{dot, norm};
use crate::random::stream;
use rand::RngExt;
use rand_distr::StandardNormal;

/// Which policies a perturbed mapping is judged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policies {
    /// Those of the mapping that is perturbed, as in the published code.
    #[default]
    Fixed,
    /// Its own: planned for at every perturbation.
    Resolved,
}

/// Where losses are taken.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Perturbation {
    /// Both sides of normal directions.
    Antithetic {
        /// σ.
        deviation: f64,
        /// Pairs of losses.
        pairs: usize,
    },
    /// One side of directions of length ν, as printed.
    OneSided {
        /// ν.
        radius: f64,
        /// ρ.
        scale: f64,
        /// m.
        samples: usize,
    },
    /// A forward difference along one normal direction.
    Forward {
        /// ν.
        radius: f64,
    },
}

/// Where mappings live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// Negative entries clipped, divided by the sum: the published way to the simplex.
    #[default]
    ClippedSimplex,
    /// The unit ball.
    Ball,
    /// The unit sphere.
    Sphere,
}

/// How long the steps are.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EvolutionStep {
    /// factor/√(2dk·t): the schedule of projected subgradients.
    InverseRoot {
        /// 0.1 in the published code.
        factor: f64,
    },
    /// initial · decayᵗ, t from 0.
    Schedule {
        /// First step.
        initial: f64,
        /// Factor from one to the next.
        decay: f64,
    },
    /// D/((dk + 4)·√(T + 1)·L), Theorem 2, with D = 2 on the unit ball.
    Theorem,
}

/// Settings of evolution strategies; the default is the published form.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvolutionStrategies {
    /// Which policies perturbed mappings are judged with.
    pub policies: Policies,
    /// Where losses are taken.
    pub perturbation: Perturbation,
    /// Where mappings live.
    pub region: Region,
    /// Whether the loss is taken at W/‖W‖₂.
    pub unit_objective: bool,
    /// How long the steps are.
    pub step_size: EvolutionStep,
    /// Whether a step is taken only if it lowers the loss on its batch.
    pub accept_if_better: bool,
    /// Whether the best iterate is returned instead of the average.
    pub best: bool,
    /// A batch whose feature expectations are nearer than this to the agent's, in the 1-norm, changes nothing.
    pub indifference: f64,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

impl Default for EvolutionStrategies {
    fn default() -> Self {
        Self {
            policies: Policies::Fixed,
            perturbation: Perturbation::Antithetic { deviation: 1e-3, pairs: 250 },
            region: Region::ClippedSimplex,
            unit_objective: true,
            step_size: EvolutionStep::InverseRoot { factor: 0.1 },
            accept_if_better: false,
            best: false,
            indifference: 1e-3,
            batch: Batch::InOrder,
        }
    }
}

/// What Theorem 2 asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvolutionTheorem {
    /// T = 4(dk + 4)²D²L²/ε².
    pub steps: f64,
    /// ν = ε/(2L√dk).
    pub radius: f64,
    /// α = D/((dk + 4)·√(T + 1)·L).
    pub step_size: f64,
}

impl EvolutionTheorem {
    /// For a wanted accuracy ε, on the unit ball (D = 2).
    pub fn new(problem: &Problem<'_>, accuracy: f64) -> Result<Self> {
        check_positive("accuracy", accuracy)?;
        let n = problem.n_parameters() as f64;
        let (d, l) = (DIAMETER, lipschitz(problem)?);
        let steps = 4.0 * (n + 4.0).powi(2) * d * d * l * l / (accuracy * accuracy);
        let step_size = d / ((n + 4.0) * (steps + 1.0).sqrt() * l);
        Ok(Self { steps, radius: accuracy / (2.0 * l * n.sqrt()), step_size })
    }
}

/// Two points of the unit ball are no further apart.
const DIAMETER: f64 = 2.0;

/// L with respect to ‖·‖₂.
fn lipschitz(problem: &Problem<'_>) -> Result<f64> {
    Ok(2.0 * (problem.n_parameters() as f64).sqrt() * problem.entry_bound()?)
}

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    iterate: Vec<f64>,
    sum: Vec<f64>,
    averaged: u64,
    best: Option<(f64, Vec<f64>)>,
    regret: f64,
}

impl EvolutionStrategies {
    /// The formula as the paper prints it, with ν = ρ = 10⁻³ and m = 500.
    pub fn literal() -> Self {
        let perturbation = Perturbation::OneSided { radius: 1e-3, scale: 1e-3, samples: 500 };
        Self { perturbation, policies: Policies::Resolved, ..Self::default() }
    }

    /// The algorithm of Theorem 2 for a wanted accuracy: forward differences, full batches, the best iterate. The theorem's
    /// number of steps is left to the stop rules; see [`EvolutionTheorem`].
    pub fn of_theorem(problem: &Problem<'_>, accuracy: f64) -> Result<Self> {
        let radius = EvolutionTheorem::new(problem, accuracy)?.radius;
        Ok(Self {
            policies: Policies::Resolved,
            perturbation: Perturbation::Forward { radius },
            region: Region::Ball,
            unit_objective: false,
            step_size: EvolutionStep::Theorem,
            accept_if_better: false,
            best: true,
            indifference: 0.0,
            batch: Batch::Full,
        })
    }

    fn check(&self) -> Result<()> {
        self.batch.check()?;
        check_not_negative("indifference", self.indifference)?;
        match self.perturbation {
            Perturbation::Antithetic { deviation, pairs } => {
                check_positive("deviation", deviation)?;
                check_count("pairs", pairs)?;
                check_room("pairs", &[pairs])?;
            }
            Perturbation::OneSided { radius, scale, samples } => {
                check_positive("radius", radius)?;
                check_positive("scale", scale)?;
                check_count("samples", samples)?;
                check_room("samples", &[samples])?;
            }
            Perturbation::Forward { radius } => check_positive("radius", radius)?,
        }
        match self.step_size {
            EvolutionStep::InverseRoot { factor } => check_positive("step factor", factor),
            EvolutionStep::Schedule { initial, decay } => {
                check_positive("initial step", initial)?;
                check_positive("step decay", decay)
            }
            EvolutionStep::Theorem => Ok(()),
        }
    }

    fn project(&self, w: &mut [f64]) {
        match self.region {
            Region::ClippedSimplex => {
                let total: f64 = w.iter().map(|x| x.max(0.0)).sum();
                // Where nothing is positive there is no direction to keep.
                if total > 0.0 {
                    w.iter_mut().for_each(|x| *x = x.max(0.0) / total);
                }
            }
            Region::Ball | Region::Sphere => {
                let size = norm(w);
                if size > 1.0 || (self.region == Region::Sphere && size > 0.0) {
                    w.iter_mut().for_each(|x| *x /= size);
                }
            }
        }
    }

    fn step_length(&self, problem: &Problem<'_>, run: Run) -> Result<f64> {
        let n = problem.n_parameters() as f64;
        Ok(match self.step_size {
            EvolutionStep::InverseRoot { factor } => factor / (2.0 * n * run.step as f64).sqrt(),
            EvolutionStep::Schedule { initial, decay } => initial * decay.powf((run.step - 1) as f64),
            EvolutionStep::Theorem => {
                let l = lipschitz(problem)?;
                if l > 0.0 { DIAMETER / ((n + 4.0) * (run.last as f64 + 1.0).sqrt() * l) } else { 0.0 }
            }
        })
    }

    /// F at each of the mappings, from the subgradient of the unperturbed one or from plans of their own.
    fn objectives(
        &self,
        problem: &Problem<'_>,
        mappings: &[Vec<f64>],
        indices: &[usize],
        own: &[f64],
    ) -> Result<Vec<f64>> {
        let scale = |w: &[f64]| if self.unit_objective { 1.0 / norm(w).max(f64::MIN_POSITIVE) } else { 1.0 };
        if self.policies == Policies::Fixed {
            return Ok(mappings.iter().map(|w| scale(w) * dot(w, own)).collect());
        }
        let queries: Vec<(&[f64], usize)> =
            mappings.iter().flat_map(|w| indices.iter().map(move |&i| (w.as_slice(), i))).collect();
        let agents = problem.respond_each(&queries)?;
        let mut values = Vec::with_capacity(mappings.len());
        for (w, agents) in mappings.iter().zip(agents.chunks_exact(indices.len())) {
            let mut subgradient = vec![0.0; w.len()];
            for (&i, agent) in indices.iter().zip(agents) {
                let share = 1.0 / indices.len() as f64;
                problem.add_difference(i, agent, problem.demonstrated(i)?, share, &mut subgradient);
            }
            values.push(scale(w) * dot(w, &subgradient));
        }
        Ok(values)
    }

    /// The estimated subgradient at `w`; `own` is the true one, `value` the loss there.
    fn estimate(&self, problem: &Problem<'_>, w: &[f64], indices: &[usize], own: &[f64], run: Run) -> Result<Vec<f64>> {
        let mut rng = stream(run.seed, "perturbation", run.step);
        let mut direction = || -> Vec<f64> { (0..w.len()).map(|_| rng.sample(StandardNormal)).collect() };
        let moved = |u: &[f64], by: f64| -> Vec<f64> {
            let mut point: Vec<f64> = w.iter().zip(u).map(|(x, d)| x + by * d).collect();
            if self.region == Region::ClippedSimplex {
                self.project(&mut point);
            }
            point
        };
        let mut g = vec![0.0; w.len()];
        let mut add = |scale: f64, u: &[f64]| g.iter_mut().zip(u).for_each(|(sum, x)| *sum += scale * x);
        match self.perturbation {
            Perturbation::Antithetic { deviation, pairs } => {
                check_room("pairs × parameters", &[3, pairs, w.len()])?;
                let directions: Vec<Vec<f64>> = (0..pairs).map(|_| direction()).collect();
                let points: Vec<Vec<f64>> =
                    directions.iter().flat_map(|u| [moved(u, deviation), moved(u, -deviation)]).collect();
                let values = self.objectives(problem, &points, indices, own)?;
                for (u, pair) in directions.iter().zip(values.chunks_exact(2)) {
                    add((pair[0] - pair[1]) / (2.0 * deviation * pairs as f64), u);
                }
            }
            Perturbation::OneSided { radius, scale, samples } => {
                check_room("samples × parameters", &[2, samples, w.len()])?;
                let directions: Vec<Vec<f64>> = (0..samples)
                    .map(|_| {
                        let mut u = direction();
                        let size = norm(&u).max(f64::MIN_POSITIVE);
                        u.iter_mut().for_each(|x| *x *= radius / size);
                        u
                    })
                    .collect();
                let points: Vec<Vec<f64>> = directions.iter().map(|u| moved(u, 1.0)).collect();
                let values = self.objectives(problem, &points, indices, own)?;
                for (u, value) in directions.iter().zip(&values) {
                    add(value / (samples as f64 * scale), u);
                }
            }
            Perturbation::Forward { radius } => {
                let u = direction();
                let values = self.objectives(problem, &[moved(&u, radius), w.to_vec()], indices, own)?;
                add((values[0] - values[1]) / radius, &u);
            }
        }
        Ok(g)
    }
}

impl Algorithm for State {
    type Settings = EvolutionStrategies;

    fn start(own: &EvolutionStrategies, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        own.check()?;
        problem.demonstrated(0)?;
        let n = problem.n_parameters();
        let mut iterate = initial.map_or_else(|| vec![1.0 / n as f64; n], <[f64]>::to_vec);
        own.project(&mut iterate);
        Ok(Self { sum: vec![0.0; n], iterate, averaged: 0, best: None, regret: 0.0 })
    }

    fn step(&mut self, own: &EvolutionStrategies, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let indices = own.batch.indices(problem.len(), run.step, run.seed);
        let loss = problem.loss(&self.iterate, &indices)?;
        let size = norm(&self.iterate).max(f64::MIN_POSITIVE);
        if own.best && self.best.as_ref().is_none_or(|(least, _)| loss.value / size < *least) {
            self.best = Some((loss.value / size, self.iterate.clone()));
        }
        let length = own.step_length(problem, run)?;
        let difference: f64 = loss.subgradient.iter().map(|x| x.abs()).sum();
        if difference >= own.indifference {
            let g = own.estimate(problem, &self.iterate, &indices, &loss.subgradient, run)?;
            let mut next: Vec<f64> = self.iterate.iter().zip(&g).map(|(w, x)| w - length * x).collect();
            own.project(&mut next);
            let better = || -> Result<bool> {
                let there = problem.loss(&next, &indices)?.value / norm(&next).max(f64::MIN_POSITIVE);
                Ok(there < loss.value / size)
            };
            if !own.accept_if_better || better()? {
                self.iterate = next;
            }
        }
        self.sum.iter_mut().zip(&self.iterate).for_each(|(sum, w)| *sum += w);
        self.averaged += 1;
        self.regret += loss.value;
        Ok(Step {
            batch_loss: Some(loss.value),
            step_size: Some(length),
            demonstrations: own.batch.seen(problem.len(), run.step),
            regret: Some(self.regret),
            ..Step::default()
        })
    }

    fn fits(&self, problem: &Problem<'_>) -> bool {
        let n = problem.n_parameters();
        let lists = [&self.iterate, &self.sum].into_iter().chain(self.best.as_ref().map(|(_, best)| best));
        lists.into_iter().all(|list| list.len() == n)
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        Some(match &self.best {
            Some((_, mapping)) => mapping.clone(),
            None if self.averaged > 0 => self.sum.iter().map(|w| w / self.averaged as f64).collect(),
            None => self.iterate.clone(),
        })
    }

    fn last_iterate(&self) -> Option<Vec<f64>> {
        (self.averaged > 0).then(|| self.iterate.clone())
    }

    fn default_steps(own: &EvolutionStrategies, problem: &Problem<'_>) -> u64 {
        own.batch.default_steps(problem.len())
    }

    fn bound(&self, own: &EvolutionStrategies, problem: &Problem<'_>, steps: u64) -> Result<(Option<f64>, String)> {
        let Perturbation::Forward { radius } = own.perturbation else {
            return Ok((None, "the theorem is for forward differences along normal directions".into()));
        };
        let covered = own.policies == Policies::Resolved
            && own.batch == Batch::Full
            && own.best
            && own.region == Region::Ball
            && own.step_size == EvolutionStep::Theorem
            && problem.is_exact();
        if !covered {
            return Ok((
                None,
                "the theorem needs exact demonstrations, full batches, the ball and its own step".into(),
            ));
        }
        // Nesterov & Spokoiny (2017), Theorem 6: ν L √n from smoothing, and (n + 4) D L / √(T + 1) from T steps.
        let (n, l) = (problem.n_parameters() as f64, lipschitz(problem)?);
        let value = radius * l * n.sqrt() + (n + 4.0) * DIAMETER * l / (steps as f64 + 1.0).sqrt();
        Ok((Some(value), "the expected loss of the best iterate is at most the least in the ball plus this".into()))
    }
}
