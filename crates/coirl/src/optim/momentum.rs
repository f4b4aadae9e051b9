//! Steps down a gradient.
//!
//! ```text
//! g ← gradient, shortened to the largest length;  θ ← θ − α_t · (direction(g) + weight decay · θ),   α_t = α₀ · decayᵗ
//! ```

use super::step::{StepRule, Time};
use crate::error::{Error, Result, check_positive};
use crate::packed;
use rayon::prelude::*;

/// Numbers that one thread changes: a fixed number, so that sums over them do not depend on the threads.
const SHARE: usize = 1 << 16;
/// Of Adam (Kingma & Ba 2015).
const FIRST_MOMENT: f64 = 0.9;
const SECOND_MOMENT: f64 = 0.999;
const FLOOR: f64 = 1e-8;

/// How a gradient becomes a direction.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimiser {
    /// Gradients add up, the earlier ones fading.
    Sgd {
        /// What is left of a gradient one step later; 0 for plain rule.
        momentum: f64,
    },
    /// Adam, with its usual constants.
    Adam,
}

/// Everything about a step but the gradient.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Momentum {
    /// How a gradient becomes a direction.
    pub optimiser: Optimiser,
    /// α₀.
    pub step_size: f64,
    /// Factor of α from one step to the next.
    pub decay: f64,
    /// Share of the point that a step of length one takes away.
    pub weight_decay: f64,
    /// Longer gradients are shortened to this length.
    pub largest_gradient: Option<f64>,
}

impl Momentum {
    /// Refuses numbers outside their range.
    pub fn check(&self) -> Result<()> {
        check_positive("step size", self.step_size)?;
        check_positive("decay of the step", self.decay)?;
        self.largest_gradient.map_or(Ok(()), |length| check_positive("largest gradient", length))?;
        let in_range = |name, value: f64, below: f64, reason| {
            if (0.0..below).contains(&value) {
                Ok(())
            } else {
                Err(Error::InvalidSetting { name, value: value.to_string(), reason })
            }
        };
        in_range("weight decay", self.weight_decay, f64::INFINITY, "expected a number of at least 0")?;
        match self.optimiser {
            Optimiser::Sgd { momentum } => in_range("momentum", momentum, 1.0, "expected a number in [0, 1)"),
            Optimiser::Adam => Ok(()),
        }
    }

    /// α of a step, the first has number 1.
    pub fn length(&self, step: u64) -> f64 {
        self.step_size * self.decay.powf((step - 1) as f64)
    }
}

/// What an optimiser remembers.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    #[serde(with = "packed")]
    first: Vec<f32>,
    #[serde(with = "packed")]
    second: Vec<f32>,
}

impl Moments {
    /// One step, the first has number 1. Leaves the gradient shortened.
    pub(crate) fn step(&mut self, rule: &Momentum, step: u64, gradient: &mut [f32], parameters: &mut [f32]) {
        if let Some(largest) = rule.largest_gradient {
            let squares: Vec<f64> =
                gradient.par_chunks(SHARE).map(|part| part.iter().map(|g| f64::from(*g).powi(2)).sum()).collect();
            let length = squares.iter().sum::<f64>().sqrt();
            if length > largest {
                let by = (largest / length) as f32;
                gradient.par_chunks_mut(SHARE).for_each(|part| part.iter_mut().for_each(|g| *g *= by));
            }
        }
        let n = parameters.len();
        let (alpha, fade) = (rule.length(step), (1.0 - rule.length(step) * rule.weight_decay) as f32);
        match rule.optimiser {
            Optimiser::Sgd { momentum: 0.0 } => {
                let alpha = alpha as f32;
                parameters.par_chunks_mut(SHARE).zip(gradient.par_chunks(SHARE)).for_each(|(theta, g)| {
                    theta.iter_mut().zip(g).for_each(|(theta, g)| *theta = fade * *theta - alpha * g);
                });
            }
            Optimiser::Sgd { momentum } => {
                self.first.resize(n, 0.0);
                let (alpha, momentum) = (alpha as f32, momentum as f32);
                let parts = parameters.par_chunks_mut(SHARE).zip(gradient.par_chunks(SHARE));
                parts.zip(self.first.par_chunks_mut(SHARE)).for_each(|((theta, g), m)| {
                    for ((theta, g), m) in theta.iter_mut().zip(g).zip(m) {
                        *m = momentum * *m + g;
                        *theta = fade * *theta - alpha * *m;
                    }
                });
            }
            Optimiser::Adam => {
                self.first.resize(n, 0.0);
                self.second.resize(n, 0.0);
                let t = step.min(1 << 30) as i32;
                let (b1, b2) = (FIRST_MOMENT as f32, SECOND_MOMENT as f32);
                let alpha = (alpha / (1.0 - FIRST_MOMENT.powi(t))) as f32;
                let unbiased = (1.0 / (1.0 - SECOND_MOMENT.powi(t))).sqrt() as f32;
                let floor = FLOOR as f32;
                let parts = parameters.par_chunks_mut(SHARE).zip(gradient.par_chunks(SHARE));
                let moments = self.first.par_chunks_mut(SHARE).zip(self.second.par_chunks_mut(SHARE));
                parts.zip(moments).for_each(|((theta, g), (m, v))| {
                    for (((theta, g), m), v) in theta.iter_mut().zip(g).zip(m).zip(v) {
                        *m = b1 * *m + (1.0 - b1) * g;
                        *v = b2 * *v + (1.0 - b2) * g * g;
                        *theta = fade * *theta - alpha * *m / (v.sqrt() * unbiased + floor);
                    }
                });
            }
        }
    }
}

impl StepRule<f32> for Momentum {
    type State = Moments;

    fn start(&self, _point: &[f32]) -> Moments {
        Moments::default()
    }

    fn step(&self, state: &mut Moments, point: &mut [f32], gradient: &mut [f32], time: Time) -> Result<f64> {
        state.step(self, time.step, gradient, point);
        Ok(self.length(time.step))
    }

    fn fits(&self, state: &Moments, n: usize) -> bool {
        [&state.first, &state.second].iter().all(|moments| moments.is_empty() || moments.len() == n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(optimiser: Optimiser) -> Momentum {
        Momentum { optimiser, step_size: 0.1, decay: 0.5, weight_decay: 0.0, largest_gradient: None }
    }

    fn after(rule: &Momentum, gradients: &[f32]) -> f32 {
        let (mut moments, mut theta) = (Moments::default(), [1.0_f32]);
        for (i, g) in gradients.iter().enumerate() {
            moments.step(rule, i as u64 + 1, &mut [*g], &mut theta);
        }
        theta[0]
    }

    #[test]
    fn steps_are_as_written_by_hand() {
        let plain = rule(Optimiser::Sgd { momentum: 0.0 });
        assert!((after(&plain, &[2.0, 2.0]) - (1.0 - 0.2 - 0.1)).abs() < 1e-6);
        let heavy = rule(Optimiser::Sgd { momentum: 0.5 });
        assert!((after(&heavy, &[2.0, 2.0]) - (1.0 - 0.2 - 0.05 * 3.0)).abs() < 1e-6);
        // Adam's first step has length α whatever the gradient, and so has the second if that stays the same.
        assert!((after(&rule(Optimiser::Adam), &[2.0, 2.0]) - (1.0 - 0.1 - 0.05)).abs() < 1e-5);
        let clipped = Momentum { largest_gradient: Some(1.0), ..plain };
        assert!((after(&clipped, &[-2.0]) - 1.1).abs() < 1e-6);
        let decayed = Momentum { weight_decay: 0.5, ..plain };
        assert!((after(&decayed, &[0.0]) - 0.95).abs() < 1e-6);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(rule(Optimiser::Sgd { momentum: 1.0 }).check().is_err());
        assert!(Momentum { weight_decay: -1.0, ..rule(Optimiser::Adam) }.check().is_err());
        assert!(Momentum { decay: 0.0, ..rule(Optimiser::Adam) }.check().is_err());
        assert!(rule(Optimiser::Adam).check().is_ok());
    }
}
