//! One step of an iteration: how a gradient moves a point.

use crate::error::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Where in a run a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Number of the step, from 1.
    pub step: u64,
    /// Number of the last step.
    pub last: u64,
}

/// How a gradient moves a point.
pub trait StepRule<N> {
    /// What the rule remembers between two steps.
    type State: Serialize + DeserializeOwned;

    /// Before the first step from a point.
    fn start(&self, point: &[N]) -> Self::State;

    /// Moves the point against the gradient, which may be used up, and returns the length of the step.
    fn step(&self, state: &mut Self::State, point: &mut [N], gradient: &mut [N], time: Time) -> Result<f64>;

    /// Whether a state that was read belongs to points of so many numbers.
    fn fits(&self, state: &Self::State, n: usize) -> bool;
}
