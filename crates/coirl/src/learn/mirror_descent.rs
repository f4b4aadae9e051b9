//! Algorithm 1: mirror descent on the loss, with two geometries of the paper and the variant it prints.
//!
//! | geometry | set | ψ | update | D² | L |
//! |---|---|---|---|---|---|
//! | ball | ‖W‖₂ ≤ 1 | ½‖W‖₂² | (W − αg) / max(1, ‖W − αg‖₂) | 2 | 2√(dk)·M |
//! | sphere | ‖W‖₂ = 1, not convex | – | (W − αg) / ‖W − αg‖₂ | – | – |
//! | simplex | Δ_{dk−1} | Σ W log W | W·exp(−αg) / ‖·‖₁ | log dk from the uniform start | 2M |
//!
//! M bounds every entry of c ⊙ μ: 1/(1 − γ) for features in [0, 1]. The theory's step is α_t = (D/L)·√(2σ/t) with the D² = 1
//! that the paper prints for the ball (its maximum is 2). Theorem 1 bounds Loss of the average of W₁ … W_T, less the least
//! loss, by D·L·√(2/(σT)) for the constant step (D/L)·√(2σ/T); for steps that decrease, what can be proved is
//! (D²/α_T + L²/(2σ)·Σα_t)/T, and both are printed only where the subgradients are exact and of the full loss.

use super::batch::Batch;
use super::fit::{Algorithm, Run, Step};
use super::problem::Problem;
use crate::error::{Error, Result, check_positive};
use crate::optim::norm;

/// Norm, ψ and set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Geometry {
    /// Projected subgradient on the unit ball.
    #[default]
    Ball,
    /// Normalised after every step, as the paper prints it; no guarantee.
    Sphere,
    /// Exponentiated gradient on the simplex: mappings without negative entries.
    Simplex,
}

/// How long the steps are.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StepSize {
    /// `multiplier` times the theory's decreasing step.
    Theory {
        /// 1 is the theory; the paper's figures need 100 on the simplex.
        multiplier: f64,
    },
    /// `multiplier` times the theory's constant step, for a number of steps known in advance.
    Constant {
        /// 1 is the theory.
        multiplier: f64,
    },
    /// initial · decayᵗ, t from 0.
    Schedule {
        /// First step.
        initial: f64,
        /// Factor from one to the next.
        decay: f64,
    },
}

/// What is returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Average {
    /// The mean of W₁ … W_T, as the theorem has it.
    BeforeUpdate,
    /// The mean of W₂ … W_{T+1}, as the published code has it.
    #[default]
    AfterUpdate,
    /// W_{T+1}.
    Last,
}

/// Settings of mirror descent.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MirrorDescent {
    /// Norm, ψ and set.
    pub geometry: Geometry,
    /// How long the steps are.
    pub step_size: StepSize,
    /// What is returned.
    pub average: Average,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

impl Default for MirrorDescent {
    fn default() -> Self {
        let step_size = StepSize::Theory { multiplier: 1.0 };
        Self { geometry: Geometry::Ball, step_size, average: Average::AfterUpdate, batch: Batch::InOrder }
    }
}

/// What mirror descent keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    iterate: Vec<f64>,
    /// log W up to a constant, on the simplex.
    logits: Vec<f64>,
    sum: Vec<f64>,
    averaged: u64,
    steps: u64,
    step_sum: f64,
    last_step: f64,
    regret: f64,
    uniform_start: bool,
}

/// exp of this is zero and stays zero.
const NEVER: f64 = -1e6;

impl MirrorDescent {
    fn check(&self) -> Result<()> {
        self.batch.check()?;
        match self.step_size {
            StepSize::Theory { multiplier } | StepSize::Constant { multiplier } => {
                check_positive("step multiplier", multiplier)
            }
            StepSize::Schedule { initial, decay } => {
                check_positive("initial step", initial)?;
                check_positive("step decay", decay)
            }
        }
    }

    /// (D of the printed step, L) of the geometry; σ is 1 for both.
    fn constants(&self, problem: &Problem<'_>) -> Result<(f64, f64)> {
        let (n, entry) = (problem.n_parameters() as f64, problem.entry_bound()?);
        Ok(match self.geometry {
            Geometry::Ball | Geometry::Sphere => (1.0, 2.0 * n.sqrt() * entry),
            Geometry::Simplex => (n.ln().sqrt(), 2.0 * entry),
        })
    }

    fn step_length(&self, problem: &Problem<'_>, run: Run) -> Result<f64> {
        let (d, l) = self.constants(problem)?;
        // Where every feature is zero there is nothing to step away from.
        let theory = |t: u64| if l > 0.0 { d / l * (2.0 / t as f64).sqrt() } else { 0.0 };
        Ok(match self.step_size {
            StepSize::Theory { multiplier } => multiplier * theory(run.step),
            StepSize::Constant { multiplier } => multiplier * theory(run.last),
            StepSize::Schedule { initial, decay } => initial * decay.powf((run.step - 1) as f64),
        })
    }
}

impl State {
    fn update(&mut self, geometry: Geometry, step: f64, g: &[f64]) {
        match geometry {
            Geometry::Ball | Geometry::Sphere => {
                self.iterate.iter_mut().zip(g).for_each(|(w, x)| *w -= step * x);
                let size = norm(&self.iterate);
                if size > 1.0 || (geometry == Geometry::Sphere && size > 0.0) {
                    self.iterate.iter_mut().for_each(|w| *w /= size);
                }
            }
            Geometry::Simplex => {
                self.logits.iter_mut().zip(g).for_each(|(w, x)| *w = (*w - step * x).max(NEVER));
                let most = self.logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                self.logits.iter_mut().for_each(|w| *w = (*w - most).max(NEVER));
                self.iterate.iter_mut().zip(&self.logits).for_each(|(w, x)| *w = x.exp());
                let total: f64 = self.iterate.iter().sum();
                self.iterate.iter_mut().for_each(|w| *w /= total);
            }
        }
    }

    fn collect(&mut self) {
        self.sum.iter_mut().zip(&self.iterate).for_each(|(sum, w)| *sum += w);
        self.averaged += 1;
    }
}

impl Algorithm for State {
    type Settings = MirrorDescent;

    fn start(own: &MirrorDescent, problem: &Problem<'_>, initial: Option<&[f64]>, _seed: u64) -> Result<Self> {
        own.check()?;
        problem.demonstrated(0)?;
        let n = problem.n_parameters();
        let given = |initial: &[f64]| initial.to_vec();
        let iterate = match own.geometry {
            Geometry::Ball | Geometry::Sphere => {
                let mut w = initial.map_or_else(|| vec![1.0 / (n as f64).sqrt(); n], given);
                let size = norm(&w);
                if size > 1.0 {
                    w.iter_mut().for_each(|x| *x /= size);
                }
                w
            }
            Geometry::Simplex => {
                let mut w = initial.map_or_else(|| vec![1.0 / n as f64; n], given);
                let total: f64 = w.iter().sum();
                if let Some(entry) = w.iter().find(|&&x| x < 0.0).copied().or((total <= 0.0).then_some(total)) {
                    let reason = "the simplex needs a start without negative entries and with a positive sum";
                    return Err(Error::InvalidSetting { name: "initial mapping", value: entry.to_string(), reason });
                }
                w.iter_mut().for_each(|x| *x /= total);
                w
            }
        };
        let log = |w: &f64| if *w > 0.0 { w.ln().max(NEVER) } else { NEVER };
        Ok(Self {
            logits: if own.geometry == Geometry::Simplex { iterate.iter().map(log).collect() } else { Vec::new() },
            uniform_start: iterate.iter().all(|&w| w == iterate[0]),
            sum: vec![0.0; n],
            iterate,
            averaged: 0,
            steps: 0,
            step_sum: 0.0,
            last_step: 0.0,
            regret: 0.0,
        })
    }

    fn step(&mut self, own: &MirrorDescent, problem: &Problem<'_>, run: Run) -> Result<Step> {
        let indices = own.batch.indices(problem.len(), run.step, run.seed);
        let loss = problem.loss(&self.iterate, &indices)?;
        if own.average == Average::BeforeUpdate {
            self.collect();
        }
        let length = own.step_length(problem, run)?;
        self.update(own.geometry, length, &loss.subgradient);
        if own.average == Average::AfterUpdate {
            self.collect();
        }
        self.steps = run.step;
        self.step_sum += length;
        self.last_step = length;
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
        let logits = self.logits.is_empty() || self.logits.len() == n;
        logits && [&self.iterate, &self.sum].iter().all(|list| list.len() == n)
    }

    fn mapping(&self) -> Option<Vec<f64>> {
        if self.averaged == 0 {
            return Some(self.iterate.clone());
        }
        Some(self.sum.iter().map(|w| w / self.averaged as f64).collect())
    }

    fn last_iterate(&self) -> Option<Vec<f64>> {
        (self.averaged > 0).then(|| self.iterate.clone())
    }

    fn default_steps(own: &MirrorDescent, problem: &Problem<'_>) -> u64 {
        own.batch.default_steps(problem.len())
    }

    fn bound(&self, own: &MirrorDescent, problem: &Problem<'_>, steps: u64) -> Result<(Option<f64>, String)> {
        let missing = if !problem.is_exact() {
            Some("demonstrations are sampled: the bound holds in expectation only")
        } else if own.batch != Batch::Full {
            Some("steps look at a part of the demonstrations: the bound holds in expectation only")
        } else if own.average != Average::BeforeUpdate {
            Some("the bound is for the average of W_1 to W_T")
        } else if own.geometry == Geometry::Sphere {
            Some("the sphere is not convex: no bound holds")
        } else if own.geometry == Geometry::Simplex && !(self.uniform_start && constant(own.step_size)) {
            Some("on the simplex the bound needs the uniform start and a constant step")
        } else if steps == 0 {
            Some("no step was taken")
        } else {
            None
        };
        if let Some(reason) = missing {
            return Ok((None, reason.into()));
        }
        let (_, l) = own.constants(problem)?;
        let t = steps as f64;
        let squared_distance = match own.geometry {
            Geometry::Ball | Geometry::Sphere => 2.0,
            Geometry::Simplex => (problem.n_parameters() as f64).ln(),
        };
        let theorem = (squared_distance * 2.0 / t).sqrt() * l;
        let proved = (squared_distance / self.last_step + 0.5 * l * l * self.step_sum) / t;
        let says = format!(
            "Loss of the averaged mapping is at most the least loss in the set plus this (for the steps taken; \
             D*L*sqrt(2/(sigma*T)) of the theorem is {theorem:.6})"
        );
        Ok((Some(proved), says))
    }
}

fn constant(step_size: StepSize) -> bool {
    matches!(step_size, StepSize::Constant { .. })
}
