//! What demonstrations can hardly tell: features that nobody need want, and other optima.
//!
//! The first fit is one without lapses, so that a few lapses may have made a feature wanted that is nothing to anybody: walkers who
//! stumbled over the cliff seem to like to fall. Once ε is estimated, that reward can be an optimum still, beside another that takes these
//! steps for the lapses that they were and is a little less likely. The first one is narrow, for the liking has to be just so; in the
//! other all that is not liking explains the paths as well. Read as a probability, the penalised likelihood of an optimum θ̂ has near it
//! (Laplace's approximation) the mass
//!
//! ```text
//! p(demonstrations, θ̂) · |H|^−½ · constant,     H = Fisher's information at θ̂ + λ
//! ```
//!
//! and the optimum with more of it is taken, as long as it loses no more than luck gives. Others are looked for from the fit without the
//! weights of one feature, for each that can be left out.
//!
//! A feature *can be left out* where the demonstrations are no less likely without its d weights than luck would explain: by no more than
//! ½d + √(dL) + L, which weights without any effect gain with a probability of e^−L at most (Laurent and Massart, 2000). The sign of such
//! weights is not to be trusted. Cost: a plan for every demonstration and feature, and a fit with rough plans for each that can be left out.

use super::fit::Likelihood;
use super::metric::eigen;
use crate::error::Result;

/// L.
const CONFIDENCE: f64 = 3.0;
/// Lapses, by the fit, without which nothing but the fit is looked at: then hardly any can have been learned as a wish, and where everything
/// is explained room is a matter of rounding.
const FEWEST_LAPSES: f64 = 1.0;
/// By how much −log mass has to be less: e times more of it. Less may be rounding of the way there.
const CLEAR: f64 = 1.0;

/// What came of a look around a fit.
pub(super) struct Surroundings {
    /// The fit, or another optimum with more room.
    pub(super) point: Vec<f64>,
    /// Features that can be left out, one at a time.
    pub(super) can_be_left_out: Vec<usize>,
}

impl Likelihood<'_> {
    /// A look around a fit. Nothing is seen of feature expectations, without a penalty, or where the curvature is not worth its cost.
    pub(super) fn surroundings(&self, fitted: Vec<f64>, steps: usize, tolerance: f64) -> Result<Surroundings> {
        let (k, n) = (self.n_features(), self.n_rewards());
        let mut seen = Surroundings { point: fitted, can_be_left_out: Vec::new() };
        if !self.choices.from_actions() || k < 2 || self.penalty <= 0.0 {
            return Ok(seen);
        }
        let Some(own) = self.mass(&seen.point)? else { return Ok(seen) };
        let d = (n / k) as f64;
        let by_luck = 0.5 * d + (d * CONFIDENCE).sqrt() + CONFIDENCE;
        let (fitted, mut most) = (seen.point.clone(), own.mass);
        let lapses = self.lapses_at(&fitted) * self.decisions();
        for feature in 0..k {
            let mut without = fitted.clone();
            without[..n].iter_mut().skip(feature).step_by(k).for_each(|weight| *weight = 0.0);
            let at = self.evaluate(&without)?;
            if at.remark.negative_log_likelihood > own.negative_log_likelihood + by_luck {
                continue;
            }
            seen.can_be_left_out.push(feature);
            if self.lapses.is_some() || lapses < FEWEST_LAPSES {
                continue;
            }
            let end = self.minimise(&without, steps, tolerance)?;
            if let Some(other) = self.mass(&end)?
                && other.value <= own.value + by_luck
                && other.mass < most - CLEAR
            {
                (seen.point, most) = (end, other.mass);
            }
        }
        Ok(seen)
    }

    fn mass(&self, point: &[f64]) -> Result<Option<Mass>> {
        let Some(curvature) = self.curvature(point)? else { return Ok(None) };
        let (values, _) = eigen(&curvature)?;
        let at = self.evaluate(point)?;
        let value = self.decisions() * at.value;
        // Nothing is flatter than the penalty, but for rounding.
        let flattest = self.penalty_at(0) / self.decisions();
        let room = 0.5 * values.iter().map(|h| h.max(flattest).ln()).sum::<f64>();
        Ok(Some(Mass { value, negative_log_likelihood: at.remark.negative_log_likelihood, mass: value + room }))
    }
}

/// How much speaks for an optimum.
struct Mass {
    /// What is minimised, times the number of decisions.
    value: f64,
    negative_log_likelihood: f64,
    /// −log of the mass around it, but for constants.
    mass: f64,
}
