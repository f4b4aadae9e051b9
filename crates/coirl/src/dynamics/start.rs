//! The start distribution from first states: ξ̂(s) = (n(s) + α ξ₀(s)) / (n + α).

use super::prior::check_strength;
use super::tally::Tally;
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::StateId;

/// How often each state came first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCounts {
    n_states: usize,
    firsts: Tally<u32>,
    n_starts: u64,
}

impl StartCounts {
    /// Nothing seen yet.
    pub fn new(n_states: usize) -> Self {
        Self { n_states, firsts: Tally::default(), n_starts: 0 }
    }

    /// Counts a first state.
    pub fn add(&mut self, state: StateId) -> Result<()> {
        if state.index() >= self.n_states {
            return Err(Error::shape("first state", format!("below {}", self.n_states), state.0));
        }
        self.firsts.add(state.0, 1);
        self.n_starts += 1;
        Ok(())
    }

    /// Number of first states counted.
    pub fn n_starts(&self) -> u64 {
        self.n_starts
    }

    /// ξ̂ with α observations' worth of ξ₀. Refused where nothing was seen and α is zero.
    pub fn distribution(&self, strength: f64, mean: &[f64]) -> Result<Vec<f64>> {
        check_strength("prior strength of the start", strength)?;
        check_length("prior of the start", self.n_states, mean.len())?;
        check_finite("prior of the start", mean)?;
        let total = self.n_starts as f64 + strength;
        if total == 0.0 {
            return Err(Error::shape("first states without a prior", "at least 1", 0));
        }
        let mut start: Vec<f64> = mean.iter().map(|p| strength * p / total).collect();
        self.firsts.entries().iter().for_each(|&(state, times)| start[state as usize] += times as f64 / total);
        Ok(start)
    }
}
