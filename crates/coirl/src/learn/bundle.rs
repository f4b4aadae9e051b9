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
use crate::optim::least_on_simplex;
use crate::optim::{dot, norm};

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
/// A candidate whose loss falls by this share of what the cuts promise becomes the centre.
const SERIOUS: f64 = 0.1;
/// Steps without a new centre after which the next candidates stay nearer to it.
const PATIENCE: u64 = 3;
/// How well the multipliers are computed.
const TOLERANCE: f64 = 1e-8;

/// What the method keeps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Ḡ.
    reference: Vec<f64>,
    /// ‖Ḡ‖ and the standard error of that length, over demonstrations.
    reference_size: f64,
    reference_noise: f64,
    centre: Vec<f64>,
    /// Loss at the centre, once known.
    centre_loss: Option<f64>,
    first_loss: f64,
    cuts: Vec<Vec<f64>>,
    proximity: f64,
    lower_bound: f64,
    waiting: u64,
}

impl State {
    /// The cut of Loss(W) + κ‖W‖ at W from the subgradient of the loss: W/‖W‖ is a subgradient of the norm, and both terms are
    /// homogeneous.
    fn cautious(&self, own: &Bundle, w: &[f64], mut g: Vec<f64>) -> (f64, Vec<f64>) {
        let scale = own.caution * self.reference_noise / norm(w);
        g.iter_mut().zip(w).for_each(|(x, w)| *x += scale * w);
        (dot(w, &g), g)
    }

    /// Takes the part along Ḡ out.
    fn flatten(&self, w: &mut [f64]) {
        let along = dot(w, &self.reference) / (self.reference_size * self.reference_size);
        w.iter_mut().zip(&self.reference).for_each(|(x, g)| *x -= along * g);
    }

    /// The least of g·W over the set.
    fn least(&self, g: &[f64], own: &Bundle) -> f64 {
        let radius = (own.radius * own.radius - 1.0).max(0.0).sqrt() / self.reference_size;
        let mut flat = g.to_vec();
        self.flatten(&mut flat);
        dot(g, &self.reference) / (self.reference_size * self.reference_size) - radius * norm(&flat)
    }

    /// The multipliers of the cuts, where the solver finds them: min over the simplex of τ/2‖PΣλg‖² − Σλ g·Ŵ.
    fn multipliers(&self) -> Result<Option<Vec<f64>>> {
        let flat: Vec<Vec<f64>> = self
            .cuts
            .iter()
            .map(|g| {
                let mut flat = g.clone();
                self.flatten(&mut flat);
                flat
            })
            .collect();
        let heights: Vec<f64> = self.cuts.iter().map(|g| dot(g, &self.centre)).collect();
        // Scaled, so that the solver's tolerances mean the same for rewards of any size.
        let scale = heights.iter().fold(f64::MIN_POSITIVE, |most: f64, x| most.max(x.abs()));
        let linear: Vec<f64> = heights.iter().map(|x| -x / scale).collect();
        // Any point of the simplex gives a valid bound, so what the solver left undone only widens the gap.
        least_on_simplex(|i, j| self.proximity * dot(&flat[i], &flat[j]) / scale, &linear, TOLERANCE)
    }

    fn aggregate(&self, multipliers: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.centre.len()];
        for (share, cut) in multipliers.iter().zip(&self.cuts) {
            sum.iter_mut().zip(cut).for_each(|(x, g)| *x += share * g);
        }
        sum
    }

    fn add_cut(&mut self, cut: Vec<f64>, multipliers: &[f64], max_cuts: usize) {
        if self.cuts.len() >= max_cuts {
            let merged = self.aggregate(multipliers);
            let mut order: Vec<usize> = (0..multipliers.len()).collect();
            order.sort_by(|&a, &b| multipliers[b].total_cmp(&multipliers[a]).then(a.cmp(&b)));
            order.truncate(max_cuts.saturating_sub(2).max(1));
            order.sort_unstable();
            self.cuts = order.iter().map(|&j| std::mem::take(&mut self.cuts[j])).collect();
            self.cuts.push(merged);
        }
        self.cuts.push(cut);
    }

    fn gap(&self) -> Option<f64> {
        self.centre_loss.map(|loss| (loss - self.lower_bound).max(0.0) / norm(&self.centre))
    }
}

impl Learner for Bundle {
    type State = State;

    fn start(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<State> {
        if self.max_cuts < FEWEST_CUTS {
            let value = self.max_cuts.to_string();
            return Err(Error::InvalidSetting { name: "max_cuts", value, reason: "expected at least 4" });
        }
        check_positive("radius", self.radius)?;
        if self.radius <= 1.0 {
            let value = self.radius.to_string();
            return Err(Error::InvalidSetting { name: "radius", value, reason: "expected a number above 1" });
        }
        check_positive("relative gap", self.relative_gap)?;
        check_not_negative("caution", self.caution)?;
        let Advantage { mean: reference, size: reference_size, noise: reference_noise } = Advantage::of(problem)?;
        if reference_size <= f64::EPSILON * problem.entry_bound()? {
            return Err(Error::InvalidSetting {
                name: "demonstrations",
                value: "no better and no worse than chance".into(),
                reason: "their feature expectations are those of acting at random, which every reward explains",
            });
        }
        let shortest = |g: &f64| g / (reference_size * reference_size);
        let given = from.initial.filter(|w| dot(w, &reference) > 1e-3 * norm(w) * reference_size);
        let centre = match given {
            Some(w) => w.iter().map(|x| x / dot(w, &reference)).collect(),
            None => reference.iter().map(shortest).collect(),
        };
        Ok(State {
            reference,
            reference_size,
            reference_noise,
            centre,
            centre_loss: None,
            first_loss: 0.0,
            cuts: Vec::new(),
            proximity: 0.0,
            lower_bound: -1.0,
            waiting: 0,
        })
    }

    fn step(&self, state: &mut State, problem: &Problem<'_>, _run: Run) -> Result<Step> {
        let all = problem.data().all();
        let report = |state: &State, loss: f64, length: f64, finished: bool| Step {
            record: Record {
                batch_loss: Some(loss),
                step_size: Some(length),
                demonstrations: all.len() as u64,
                gap: state.gap(),
                ..Record::default()
            },
            finished,
        };
        let Some(centre_loss) = state.centre_loss else {
            let loss = problem.loss(&state.centre, &all)?;
            let (value, cut) = state.cautious(self, &state.centre, loss.subgradient);
            let mut flat = cut.clone();
            state.flatten(&mut flat);
            let slope = norm(&flat);
            // The first candidate is about as far from the centre as that is from the origin.
            state.proximity = if slope > 0.0 { norm(&state.centre) / slope } else { 1.0 };
            state.centre_loss = Some(value);
            state.first_loss = value + 1.0;
            state.lower_bound = state.least(&cut, self).max(-1.0);
            state.cuts.push(cut);
            return Ok(report(state, loss.value, 0.0, slope == 0.0));
        };
        let Some(multipliers) = state.multipliers()? else {
            // The programme is at the end of its digits; the gap says how far that is from the least.
            return Ok(report(state, centre_loss, 0.0, true));
        };
        let aggregate = state.aggregate(&multipliers);
        state.lower_bound = state.lower_bound.max(state.least(&aggregate, self));
        let mut direction = aggregate;
        state.flatten(&mut direction);
        let largest = self.radius / state.reference_size;
        let mut length = state.proximity;
        let candidate = loop {
            let w: Vec<f64> = state.centre.iter().zip(&direction).map(|(x, g)| x - length * g).collect();
            // Negated, so that what is no number ends it too.
            if norm(&w) <= largest || !(length > f64::EPSILON * state.proximity) {
                break w;
            }
            length *= 0.5;
        };
        let model = state.cuts.iter().map(|cut| dot(cut, &candidate)).fold(f64::NEG_INFINITY, f64::max);
        let loss = problem.loss(&candidate, &all)?;
        let (value, cut) = state.cautious(self, &candidate, loss.subgradient);
        let promised = centre_loss - model;
        state.add_cut(cut, &multipliers, self.max_cuts);
        if value <= centre_loss - SERIOUS * promised && promised > 0.0 {
            if value <= centre_loss - 0.5 * promised {
                state.proximity *= 2.0;
            }
            state.centre = candidate;
            state.centre_loss = Some(value);
            state.waiting = 0;
        } else {
            state.waiting += 1;
            if state.waiting.is_multiple_of(PATIENCE) {
                state.proximity *= 0.5;
            }
        }
        let gap = state.centre_loss.unwrap_or(value) - state.lower_bound;
        // On the set the loss is at least −1: what can be gained is measured from there.
        let finished =
            gap <= self.relative_gap * state.first_loss.max(f64::MIN_POSITIVE) || length * norm(&direction) == 0.0;
        Ok(report(state, loss.value, length, finished))
    }

    fn fits(&self, state: &State, problem: &Problem<'_>) -> bool {
        let n = problem.n_parameters();
        [&state.reference, &state.centre].into_iter().chain(&state.cuts).all(|list| list.len() == n)
    }

    fn mapping(&self, state: &State) -> Option<Vec<f64>> {
        let size = norm(&state.centre);
        Some(state.centre.iter().map(|w| w / size).collect())
    }

    fn default_steps(&self, _problem: &Problem<'_>) -> Result<u64> {
        Ok(300)
    }

    fn guarantee(&self, state: &State, _problem: &Problem<'_>, _steps: u64) -> Result<(Option<f64>, Guarantee)> {
        let figures = Guarantee::holds("least_cautious_loss").with("advantage", state.reference_size);
        Ok((state.gap(), figures.with("noise", state.reference_noise)))
    }

    fn has_loss(&self) -> bool {
        true
    }
}
