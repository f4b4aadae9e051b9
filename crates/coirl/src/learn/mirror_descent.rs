//! Algorithm 1: mirror descent on the loss, with two geometries of the paper and the variant it prints.
//!
//! | geometry | set | ψ | update | D² | L |
//! |---|---|---|---|---|---|
//! | ball | ‖W‖₂ ≤ 1 | ½‖W‖₂² | (W − αg) / max(1, ‖W − αg‖₂) | 2 | 2√(dk)·M |
//! | sphere | ‖W‖₂ = 1, not convex | – | (W − αg) / ‖W − αg‖₂ | – | – |
//! | simplex | Δ_{dk−1} | Σ W log W | W·exp(−αg) / ‖·‖₁ | log dk from the uniform start | 2M |
//!
//! M bounds every entry of c ⊙ μ in every context that the model declares: 1/(1 − γ) for features in [0, 1] and contexts on the simplex, max
//! |bound| as much in a box. A step must not depend on contexts that come after it; only where contexts can be any vector it is taken
//! from the demonstrations given. The theory's step is α_t = (D/L)·√(2σ/t) with the D² = 1
//! that the paper prints for the ball (its maximum is 2). Theorem 1 bounds Loss of the average of W₁ … W_T, less the least
//! loss, by D·L·√(2/(σT)) for the constant step (D/L)·√(2σ/T); for steps that decrease, what can be proved is
//! (D²/α_T + L²/(2σ)·Σα_t)/T, and both are printed only where the subgradients are exact and of the full loss.

use super::batch::Batch;
use super::descent::{Averaging, Descent, DescentStateOf};
use super::guarantee::Guarantee;
use super::learner::Start;
use super::problem::Problem;
use crate::error::{Error, Result, check_positive};
use crate::mapping::LinearMapping;
use crate::objective::{Loss, Objective};
use crate::optim::{MirrorMap, MirrorStep, Set, StepLength, Time, normalise};

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
        #[serde(default = "one")]
        multiplier: f64,
    },
    /// `multiplier` times the theory's constant step, for a number of steps known in advance.
    Constant {
        /// 1 is the theory.
        #[serde(default = "one")]
        multiplier: f64,
    },
    /// initial · decayᵗ, t from 0.
    Schedule {
        /// First step.
        initial: f64,
        /// Factor from one to the next.
        #[serde(default = "one")]
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

pub(super) fn one() -> f64 {
    1.0
}

impl MirrorDescent {
    /// (D of the printed step, L) of the geometry; σ is 1 for both.
    fn constants(&self, problem: &Problem<'_>) -> Result<(f64, f64)> {
        let (n, entry) = (problem.n_parameters() as f64, problem.declared_entry_bound()?);
        Ok(match self.geometry {
            Geometry::Ball | Geometry::Sphere => (1.0, 2.0 * n.sqrt() * entry),
            Geometry::Simplex => (n.ln().sqrt(), 2.0 * entry),
        })
    }

    /// What is missing for the theorem, if anything is.
    fn missing(&self, state: &DescentStateOf<Self>, problem: &Problem<'_>, steps: u64) -> Option<&'static str> {
        let constant = matches!(self.step_size, StepSize::Constant { .. });
        let simplex = self.geometry == Geometry::Simplex;
        [
            (!problem.data().is_exact(), "sampled"),
            (self.batch != Batch::Full, "partial_batches"),
            (self.average != Average::BeforeUpdate, "other_average"),
            (self.geometry == Geometry::Sphere, "not_convex"),
            (simplex && !(state.uniform_start && constant), "simplex_start_and_step"),
            (steps == 0, "no_step"),
        ]
        .into_iter()
        .find_map(|(missing, reason)| missing.then_some(reason))
    }
}

/// Refuses numbers of a schedule outside their range.
pub(super) fn check_schedule(initial: f64, decay: f64) -> Result<()> {
    check_positive("initial step", initial)?;
    check_positive("step decay", decay)
}

impl Descent for MirrorDescent {
    type Mapping = LinearMapping;
    type Rule = MirrorStep;

    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<LinearMapping> {
        match self.step_size {
            StepSize::Theory { multiplier } | StepSize::Constant { multiplier } => {
                check_positive("step multiplier", multiplier)?;
            }
            StepSize::Schedule { initial, decay } => check_schedule(initial, decay)?,
        }
        let n = problem.n_parameters();
        let mut first = match (from.initial, self.geometry) {
            (Some(given), Geometry::Sphere) => {
                let mut given = given.to_vec();
                normalise(&mut given);
                given
            }
            (Some(given), _) => given.to_vec(),
            (None, Geometry::Simplex) => vec![1.0 / n as f64; n],
            (None, Geometry::Ball | Geometry::Sphere) => vec![1.0 / (n as f64).sqrt(); n],
        };
        if self.geometry == Geometry::Simplex {
            let total: f64 = first.iter().sum();
            if let Some(entry) = first.iter().find(|&&x| x < 0.0).copied().or((total <= 0.0).then_some(total)) {
                let reason = "the simplex needs a start without negative entries and with a positive sum";
                return Err(Error::InvalidSetting { name: "initial mapping", value: entry.to_string(), reason });
            }
            first.iter_mut().for_each(|x| *x /= total);
        } else {
            Set::Ball.project(&mut first);
        }
        problem.linear(&first)
    }

    fn objective(&self, _problem: &Problem<'_>) -> Box<dyn Objective> {
        Box::new(Loss)
    }

    fn rule(&self, problem: &Problem<'_>) -> Result<MirrorStep> {
        let (d, l) = self.constants(problem)?;
        // Where every feature is zero there is nothing to step away from.
        let theory = move |t: u64| if l > 0.0 { d / l * (2.0 / t as f64).sqrt() } else { 0.0 };
        let map = match self.geometry {
            Geometry::Ball => MirrorMap::Euclidean(Set::Ball),
            Geometry::Sphere => MirrorMap::Euclidean(Set::Sphere),
            Geometry::Simplex => MirrorMap::Entropy,
        };
        let step_size = self.step_size;
        let length = StepLength::scheduled(move |time: Time| match step_size {
            StepSize::Theory { multiplier } => multiplier * theory(time.step),
            StepSize::Constant { multiplier } => multiplier * theory(time.last),
            StepSize::Schedule { initial, decay } => initial * decay.powf((time.step - 1) as f64),
        });
        Ok(MirrorStep { map, length })
    }

    fn batch(&self) -> Batch {
        self.batch
    }

    fn averaging(&self) -> Averaging {
        match self.average {
            Average::BeforeUpdate => Averaging::BeforeUpdate,
            Average::AfterUpdate => Averaging::AfterUpdate,
            Average::Last => Averaging::Last,
        }
    }

    fn default_steps(&self, problem: &Problem<'_>) -> u64 {
        self.batch.default_steps(problem.len())
    }

    fn guarantee(
        &self,
        state: &DescentStateOf<Self>,
        problem: &Problem<'_>,
        steps: u64,
    ) -> Result<(Option<f64>, Guarantee)> {
        if let Some(reason) = self.missing(state, problem, steps) {
            return Ok((None, Guarantee::none(reason)));
        }
        let ((_, l), t) = (self.constants(problem)?, steps as f64);
        let squared_distance = match self.geometry {
            Geometry::Ball | Geometry::Sphere => 2.0,
            Geometry::Simplex => (problem.n_parameters() as f64).ln(),
        };
        let theorem = (squared_distance * 2.0 / t).sqrt() * l;
        let proved = (squared_distance / state.last_step + 0.5 * l * l * state.step_sum) / t;
        Ok((Some(proved), Guarantee::holds("average_loss").with("theorem", theorem)))
    }
}
