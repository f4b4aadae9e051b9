//! Mirror descent: W ← argmin over a set of α g·W + D_ψ(W, W_t).
//!
//! | map | set | ψ | update |
//! |---|---|---|---|
//! | Euclidean | ball, sphere, clipped simplex | ½‖W‖₂² | W − αg, brought back to the set |
//! | entropy | simplex | Σ W log W | W·exp(−αg) / ‖·‖₁ |
//!
//! The sphere is not convex. Clipping negative entries and dividing by the sum is not the nearest point of the simplex; published code
//! does it that way.

use super::step::{StepRule, Time};
use super::vectors::{dot, norm, normalise};
use crate::error::Result;
use std::sync::Arc;

/// exp of this is zero and stays zero.
const MIN_LOGIT: f64 = -1e6;

/// Where points are brought back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// No constraint.
    Everywhere,
    /// ‖W‖₂ ≤ 1.
    Ball,
    /// ‖W‖₂ = 1; zero stays zero.
    Sphere,
    /// Negative entries clipped, divided by the sum; unchanged where no entry is positive.
    ClippedSimplex,
}

impl Set {
    /// Brings a point back.
    pub fn project(self, w: &mut [f64]) {
        match self {
            Set::Everywhere => {}
            Set::Ball => {
                let size = norm(w);
                if size > 1.0 {
                    w.iter_mut().for_each(|x| *x /= size);
                }
            }
            Set::Sphere => normalise(w),
            Set::ClippedSimplex => {
                let total: f64 = w.iter().map(|x| x.max(0.0)).sum();
                if total > 0.0 {
                    w.iter_mut().for_each(|x| *x = x.max(0.0) / total);
                }
            }
        }
    }
}

/// ψ and the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorMap {
    /// ½‖W‖₂².
    Euclidean(Set),
    /// Σ W log W on the simplex: exponentiated gradient.
    Entropy,
}

/// How long the steps are.
#[derive(Clone)]
pub enum StepLength {
    /// 1/√(Σ‖g‖²) over the gradients so far: AdaGrad in its norm form, without a constant to tune.
    AdaGradNorm {
        /// Gradients no longer than this count as zero. The first step has length one whatever its gradient: from a minimum, rounding
        /// error alone would be followed that far.
        negligible: f64,
    },
    /// A function of the time.
    Scheduled(Arc<dyn Fn(Time) -> f64 + Send + Sync>),
}

impl StepLength {
    /// A function of the time.
    pub fn scheduled(length: impl Fn(Time) -> f64 + Send + Sync + 'static) -> Self {
        StepLength::Scheduled(Arc::new(length))
    }
}

/// Mirror descent.
#[derive(Clone)]
pub struct MirrorStep {
    /// ψ and the set.
    pub map: MirrorMap,
    /// How long the steps are.
    pub length: StepLength,
}

/// What mirror descent remembers.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorState {
    /// log W up to a constant, for the entropy.
    logits: Vec<f64>,
    /// Σ‖g‖².
    squares: f64,
}

impl StepRule<f64> for MirrorStep {
    type State = MirrorState;

    fn start(&self, point: &[f64]) -> MirrorState {
        let log = |w: &f64| if *w > 0.0 { w.ln().max(MIN_LOGIT) } else { MIN_LOGIT };
        let logits = if self.map == MirrorMap::Entropy { point.iter().map(log).collect() } else { Vec::new() };
        MirrorState { logits, squares: 0.0 }
    }

    fn step(&self, state: &mut MirrorState, point: &mut [f64], gradient: &mut [f64], time: Time) -> Result<f64> {
        if let StepLength::AdaGradNorm { negligible } = self.length {
            drop_negligible(gradient, negligible);
        }
        state.squares += dot(gradient, gradient);
        let length = match &self.length {
            StepLength::AdaGradNorm { .. } if state.squares > 0.0 => 1.0 / state.squares.sqrt(),
            StepLength::AdaGradNorm { .. } => 0.0,
            StepLength::Scheduled(length) => length(time),
        };
        match self.map {
            MirrorMap::Euclidean(set) => {
                point.iter_mut().zip(gradient.iter()).for_each(|(w, g)| *w -= length * g);
                set.project(point);
            }
            MirrorMap::Entropy => {
                let logits = &mut state.logits;
                logits.iter_mut().zip(gradient.iter()).for_each(|(w, g)| *w = (*w - length * g).max(MIN_LOGIT));
                let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                logits.iter_mut().for_each(|w| *w = (*w - most).max(MIN_LOGIT));
                point.iter_mut().zip(logits.iter()).for_each(|(w, x)| *w = x.exp());
                let total: f64 = point.iter().sum();
                point.iter_mut().for_each(|w| *w /= total);
            }
        }
        Ok(length)
    }

    fn fits(&self, state: &MirrorState, n: usize) -> bool {
        state.squares.is_finite() && state.logits.len() == if self.map == MirrorMap::Entropy { n } else { 0 }
    }
}

/// Sets a gradient to zero that is no longer than what counts as zero.
pub(crate) fn drop_negligible(gradient: &mut [f64], negligible: f64) {
    if norm(gradient) <= negligible {
        gradient.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(map: MirrorMap, length: StepLength, start: &[f64], gradients: &[&[f64]]) -> Vec<f64> {
        let (rule, mut point) = (MirrorStep { map, length }, start.to_vec());
        let mut state = rule.start(&point);
        for (i, gradient) in gradients.iter().enumerate() {
            let time = Time { step: i as u64 + 1, last: gradients.len() as u64 };
            assert!(rule.step(&mut state, &mut point, &mut gradient.to_vec(), time).is_ok());
        }
        point
    }

    #[test]
    fn exponentiated_gradients_multiply() {
        let found = after(MirrorMap::Entropy, StepLength::scheduled(|_| 0.5), &[0.5, 0.5], &[&[2.0, 0.0], &[0.0, 2.0]]);
        assert!(found.iter().all(|w| (w - 0.5).abs() < 1e-15), "{found:?}");
        let once = after(MirrorMap::Entropy, StepLength::scheduled(|_| 0.5), &[0.5, 0.5], &[&[2.0, 0.0]]);
        let odds = (-1.0_f64).exp();
        assert!((once[0] - odds / (1.0 + odds)).abs() < 1e-15, "{once:?}");
    }

    #[test]
    fn adagrad_takes_a_unit_step_first() {
        let ball = MirrorMap::Euclidean(Set::Ball);
        let found = after(ball, StepLength::AdaGradNorm { negligible: 0.0 }, &[0.0, 0.5], &[&[0.0, 3.0], &[0.0, 4.0]]);
        assert!((found[1] - (0.5 - 1.0 - 0.8_f64).max(-1.0)).abs() < 1e-15, "{found:?}");
    }

    #[test]
    fn adagrad_does_not_follow_rounding_error() {
        let rule = StepLength::AdaGradNorm { negligible: 1e-12 };
        let sphere = MirrorMap::Euclidean(Set::Sphere);
        assert_eq!(after(sphere, rule.clone(), &[0.0, 1.0], &[&[1e-15, -1e-14], &[0.0, 0.0]]), [0.0, 1.0]);
        // What was left out does not count later either.
        let found = after(sphere, rule, &[0.0, 1.0], &[&[1e-13, 0.0], &[-2.0, 0.0]]);
        assert!(found.iter().all(|x| (x - 0.5_f64.sqrt()).abs() < 1e-15), "{found:?}");
    }

    #[test]
    fn points_are_brought_back() {
        for (set, expected) in [(Set::Ball, [0.6, -0.8]), (Set::Sphere, [0.6, -0.8]), (Set::ClippedSimplex, [1.0, 0.0])]
        {
            let mut point = [3.0, -4.0];
            set.project(&mut point);
            assert!(point.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15), "{set:?} {point:?}");
        }
        let mut inside = [0.3, 0.4];
        Set::Ball.project(&mut inside);
        assert_eq!(inside, [0.3, 0.4]);
    }
}
