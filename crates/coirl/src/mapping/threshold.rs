//! f(c) = one of two rewards, by whether a coordinate of the context exceeds a threshold: the non-linear truth of the experiments.

use super::RewardMapping;
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::Context;

/// Two vectors of reward weights and the rule that chooses between them.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdMapping {
    dimension: usize,
    coordinate: usize,
    threshold: f64,
    above: Vec<f64>,
    below: Vec<f64>,
}

impl ThresholdMapping {
    /// `above` where the coordinate exceeds the threshold, `below` elsewhere.
    pub fn new(dimension: usize, coordinate: usize, threshold: f64, above: Vec<f64>, below: Vec<f64>) -> Result<Self> {
        if coordinate >= dimension {
            return Err(Error::shape("coordinate of a threshold", format!("below {dimension}"), coordinate));
        }
        check_length("rewards of a threshold", above.len().max(1), below.len())?;
        check_finite("threshold", &[threshold])?;
        check_finite("reward above", &above)?;
        check_finite("reward below", &below)?;
        Ok(Self { dimension, coordinate, threshold, above, below })
    }

    /// The threshold.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }
}

impl RewardMapping for ThresholdMapping {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn n_features(&self) -> usize {
        self.above.len()
    }

    fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        let c = context.values();
        if c.len() != self.dimension {
            let reason = format!("it has {} numbers; the mapping takes {}", c.len(), self.dimension);
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        Ok(if c[self.coordinate] > self.threshold { self.above.clone() } else { self.below.clone() })
    }
}
