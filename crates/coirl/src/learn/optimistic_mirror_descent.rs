//! Optimistic mirror descent (Rakhlin & Sridharan 2013; in one call per step after Popov 1980).
//!
//! ```text
//! W_{t+1} = argmin over the set of  α_t (2g_t − g_{t−1})·W + D_ψ(W, W_t),      α_t = η D/√(Σ ‖g_s − g_{s−1}‖²),   g_0 = 0
//! ```
//!
//! The next gradient is foreseen to be the last one, and only what comes as a surprise shortens the steps: where gradients change little,
//! as those of the full loss do, it goes on in long ones. D is the diameter of the set, √2 for the ball and √log dk for the simplex.
//! What is returned is the mean of the iterates. Cost of a step: that of mirror descent, one plan per demonstration of its batch.

use super::adaptive::rounding_of_gradients;
use super::batch::Batch;
use super::descent::{Averaging, Descent};
use super::learner::Start;
use super::mirror_descent::{Geometry, MirrorDescent};
use super::problem::Problem;
use crate::error::{Result, check_positive};
use crate::mapping::LinearMapping;
use crate::objective::{Objective, ObjectiveChoice};
use crate::optim::{MirrorMap, MirrorState, MirrorStep, Set, StepLength, StepRule, Time, dot, drop_negligible};

/// Settings of optimistic mirror descent.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimisticMirrorDescent {
    /// Norm, ψ and set.
    pub geometry: Geometry,
    /// η; 1 is the theory.
    pub step_multiplier: f64,
    /// What is minimised.
    pub objective: ObjectiveChoice,
    /// Which demonstrations a step looks at.
    pub batch: Batch,
}

impl Default for OptimisticMirrorDescent {
    fn default() -> Self {
        Self { geometry: Geometry::Ball, step_multiplier: 1.0, objective: ObjectiveChoice::Auto, batch: Batch::Full }
    }
}

/// Steps by default, and passes if those take longer.
const STEPS: u64 = 200;
const PASSES: u64 = 5;

/// A mirror step along 2g_t − g_{t−1}.
pub struct OptimisticStep {
    map: MirrorMap,
    /// η D.
    scale: f64,
    /// Gradients no longer than this count as zero: a first surprise of rounding error would be followed as far as any other.
    negligible: f64,
}

/// What is remembered between two steps.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimisticState {
    mirror: MirrorState,
    /// g_{t−1}.
    previous: Vec<f64>,
    /// Σ ‖g_s − g_{s−1}‖².
    surprise: f64,
}

impl OptimisticStep {
    fn mirror(&self, length: f64) -> MirrorStep {
        MirrorStep { map: self.map, length: StepLength::scheduled(move |_| length) }
    }
}

impl StepRule<f64> for OptimisticStep {
    type State = OptimisticState;

    fn start(&self, point: &[f64]) -> OptimisticState {
        OptimisticState { mirror: self.mirror(0.0).start(point), previous: vec![0.0; point.len()], surprise: 0.0 }
    }

    fn step(&self, state: &mut OptimisticState, point: &mut [f64], gradient: &mut [f64], time: Time) -> Result<f64> {
        drop_negligible(gradient, self.negligible);
        let change: Vec<f64> = gradient.iter().zip(&state.previous).map(|(now, before)| now - before).collect();
        state.previous.copy_from_slice(gradient);
        state.surprise += dot(&change, &change);
        let length = if state.surprise > 0.0 { self.scale / state.surprise.sqrt() } else { 0.0 };
        gradient.iter_mut().zip(&change).for_each(|(g, change)| *g += change);
        self.mirror(length).step(&mut state.mirror, point, gradient, time)
    }

    fn fits(&self, state: &OptimisticState, n: usize) -> bool {
        state.previous.len() == n && state.surprise.is_finite() && self.mirror(0.0).fits(&state.mirror, n)
    }
}

impl Descent for OptimisticMirrorDescent {
    type Mapping = LinearMapping;
    type Rule = OptimisticStep;

    fn first(&self, problem: &Problem<'_>, from: Start<'_>) -> Result<LinearMapping> {
        check_positive("step multiplier", self.step_multiplier)?;
        MirrorDescent { geometry: self.geometry, ..MirrorDescent::default() }.first(problem, from)
    }

    fn objective(&self, problem: &Problem<'_>) -> Box<dyn Objective> {
        self.objective.objective(problem.data())
    }

    fn rule(&self, problem: &Problem<'_>) -> Result<OptimisticStep> {
        let (map, diameter) = match self.geometry {
            Geometry::Ball => (MirrorMap::Euclidean(Set::Ball), 2.0_f64.sqrt()),
            Geometry::Sphere => (MirrorMap::Euclidean(Set::Sphere), 2.0_f64.sqrt()),
            Geometry::Simplex => (MirrorMap::Entropy, (problem.n_parameters() as f64).ln().sqrt()),
        };
        let negligible = rounding_of_gradients(problem, self.objective)?;
        Ok(OptimisticStep { map, scale: self.step_multiplier * diameter, negligible })
    }

    fn batch(&self) -> Batch {
        self.batch
    }

    fn averaging(&self) -> Averaging {
        Averaging::AfterUpdate
    }

    fn default_steps(&self, problem: &Problem<'_>) -> u64 {
        self.batch.steps_per_pass(problem.len()).saturating_mul(PASSES).max(STEPS)
    }

    fn resolved_for(&self, problem: &Problem<'_>) -> Result<Self> {
        Ok(Self { objective: self.objective.resolved_for(problem.data()), ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without constraints and with gradients that never change, W_{t+1} = W₁ − α (t + 1) g: the sum so far, and the one foreseen.
    #[test]
    fn constant_gradients_are_foreseen() {
        let rule = OptimisticStep { map: MirrorMap::Euclidean(Set::Everywhere), scale: 5.0, negligible: 0.0 };
        let mut point = [1.0, 2.0];
        let mut state = rule.start(&point);
        for t in 1..=4_u64 {
            // Only the first gradient, of length 5, comes as a surprise: all steps have length 1.
            assert_eq!(rule.step(&mut state, &mut point, &mut [3.0, -4.0], Time { step: t, last: 4 }).ok(), Some(1.0));
            assert_eq!(point, [1.0 - 3.0 * (t as f64 + 1.0), 2.0 + 4.0 * (t as f64 + 1.0)]);
        }
    }
}
