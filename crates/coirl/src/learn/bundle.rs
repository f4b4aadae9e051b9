//! A proximal bundle method on the full loss, for demonstrations that may be noisy.
//!
//! ```text
//! minimise  Loss(W) + κ‖W‖₂   over   ⟨W, Ḡ⟩ = 1,  ‖W‖₂ ≤ R,        Ḡ = mean of c ⊙ (μ* − μ^uniform).
//! ```
//!
//! κ is the standard error of Ḡ over the demonstrations: Loss(W) + κ‖W‖ is the largest loss that demonstrations as far from
//! these as the next sample would be can have. With κ = 0 the minimiser follows the noise of a few trajectories; this way it
//! keeps to what they agree on, and as demonstrations grow in number κ vanishes by itself.
//!
//! The normalisation is convex, excludes W = 0 and keeps signs: it asks that, under W, the experts do better than acting at
//! random by one. On it the loss is bounded below by −1, whatever the noise. Every evaluation gives a cut Loss(W) ≥ g·W that
//! holds everywhere (both terms are homogeneous); the next mapping minimises the largest cut plus ‖W − Ŵ‖²/(2τ), a quadratic
//! programme in as many variables as there are cuts. The multipliers λ of its solution give a certified lower bound, the
//! least of Σλ_j g_j·W over the set in closed form, and so the gap that is reported. Each step plans for all demonstrations.

use super::advantage::Advantage;
use super::guarantee::Guarantee;
use super::learner::{Learner, Run, Start, Step};
use super::problem::Problem;
use super::record::Record;
use crate::error::{Error, Result, check_not_negative, check_positive};
use crate::optim::{BundleRule, ProximalBundle, dot, norm};

/// Settings of the bundle method.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bundle {
    /// Cuts kept; the least useful are merged into one beyond that.
    pub max_cuts: usize,
    /// R in units of 1/‖Ḡ‖, the length of the shortest mapping allowed.
    pub radius: f64,
    /// κ in standard errors of Ḡ; 0 minimises the loss alone, which follows the noise.
    pub caution: f64,
    /// The run is finished when the gap is below this share of the first loss.
    pub relative_gap: f64,
}

impl Default for Bundle {
    fn default() -> Self {
        Self { max_cuts: 100, radius: 100.0, caution: 1.0, relative_gap: 1e-4 }
    }
}

/// With fewer cuts there is no room for the merged one beside those of a step.
const FEWEST_CUTS: usize = 4;
/// On the set the loss is at least this, whatever the noise: the experts beat chance by one.
const LEAST_LOSS: f64 = -1.0;

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    bundle: ProximalBundle,
    /// The standard error of ‖Ḡ‖ over demonstrations.
    noise: f64,
}

impl Learner for Bundle {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        let refuse = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
        if self.max_cuts < FEWEST_CUTS {
            return refuse("max_cuts", self.max_cuts.to_string(), "expected at least 4");
        }
        check_positive("radius", self.radius)?;
        if self.radius <= 1.0 {
            return refuse("radius", self.radius.to_string(), "expected a number above 1");
        }
        check_positive("relative gap", self.relative_gap)?;
        check_not_negative("caution", self.caution)?;
        let Advantage { mean: reference, size, noise } = Advantage::of(problem)?;
        if size <= f64::EPSILON * problem.entry_bound()? {
            let reason = "their feature expectations are those of acting at random, which every reward explains";
            return refuse("demonstrations", "no better and no worse than chance".into(), reason);
        }
        let given = from.initial.filter(|w| dot(w, &reference) > 1e-3 * norm(w) * size);
        let centre = match given {
            Some(w) => w.iter().map(|x| x / dot(w, &reference)).collect(),
            None => reference.iter().map(|g| g / (size * size)).collect(),
        };
        Ok(State { bundle: ProximalBundle::new(reference, centre, LEAST_LOSS), noise })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let (all, caution) = (problem.data().all(), self.caution * state.noise);
        let rule = BundleRule { max_cuts: self.max_cuts, radius: self.radius, relative_gap: self.relative_gap };
        let mut seen = None;
        let done = state.bundle.step(rule, |w| {
            let loss = problem.loss(w, &all)?;
            seen = Some(loss.value);
            // W/‖W‖ is a subgradient of the norm, and both terms are homogeneous.
            let scale = caution / norm(w);
            Ok(loss.subgradient.iter().zip(w).map(|(g, w)| g + scale * w).collect())
        })?;
        let record = Record {
            batch_loss: seen,
            step_size: Some(done.length),
            demonstrations: all.len() as u64,
            gap: state.bundle.gap(),
            ..Record::default()
        };
        Ok(Step { record, finished: done.finished })
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        state.bundle.fits(problem.n_parameters())
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        let centre = state.bundle.centre();
        let size = norm(centre);
        Some(centre.iter().map(|w| w / size).collect())
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(300)
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let figures = Guarantee::holds("least_cautious_loss").with("advantage", state.bundle.reference_size());
        Ok((state.bundle.gap(), figures.with("noise", state.noise)))
    }

    fn has_loss(&self) -> bool {
        true
    }
}
