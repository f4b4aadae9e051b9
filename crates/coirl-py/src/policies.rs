//! Policies as arrays: one action per state `[S]`, one distribution per state `[S, A]`, and the same for every decision of a finite
//! horizon, `[T, S]` and `[T, S, A]`.

use crate::arrays::{block, matrix, vector};
use coirl::Error;
use coirl::model::{ActionId, Pairs};
use coirl::plan::Policy;
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A policy as it came: the shape and the numbers.
pub(crate) enum GivenPolicy {
    Actions(Vec<usize>, Vec<i64>),
    Probabilities(Vec<usize>, Vec<f64>),
}

impl GivenPolicy {
    /// Integers are actions, other numbers probabilities.
    pub(crate) fn read(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let contiguous = |_| PyTypeError::new_err("expected a contiguous array");
        if let Ok(actions) = array.extract::<PyReadonlyArrayDyn<'_, i64>>() {
            return Ok(Self::Actions(actions.shape().to_vec(), actions.as_slice().map_err(contiguous)?.to_vec()));
        }
        if let Ok(shares) = array.extract::<PyReadonlyArrayDyn<'_, f64>>() {
            return Ok(Self::Probabilities(shares.shape().to_vec(), shares.as_slice().map_err(contiguous)?.to_vec()));
        }
        Err(PyTypeError::new_err("a policy is an array of actions (integers) or of probabilities"))
    }

    /// As a policy over these pairs.
    pub(crate) fn checked(&self, pairs: &Pairs) -> coirl::Result<Policy> {
        let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
        match self {
            Self::Actions(shape, values) => match shape[..] {
                [n] if n == n_states => Policy::stationary(pairs, actions(pairs, values)?),
                [_, n] if n == n_states => {
                    let stages = values.chunks_exact(n_states).map(|stage| {
                        let actions = actions(pairs, stage)?;
                        Policy::stationary(pairs, actions.clone()).map(|_| actions)
                    });
                    stages.collect::<coirl::Result<_>>().map(Policy::Staged)
                }
                _ => Err(wrong_shape(shape, &format!("[{n_states}] or [steps, {n_states}]"))),
            },
            Self::Probabilities(shape, values) => match shape[..] {
                [s, a] if (s, a) == (n_states, n_actions) => Policy::stochastic(pairs, shares(pairs, values)?),
                [_, s, a] if (s, a) == (n_states, n_actions) => {
                    let stages = values.chunks_exact(n_states * n_actions).map(|stage| {
                        let shares = shares(pairs, stage)?;
                        Policy::stochastic(pairs, shares.clone()).map(|_| shares)
                    });
                    stages.collect::<coirl::Result<_>>().map(Policy::StagedStochastic)
                }
                _ => {
                    let expected = format!("[{n_states}, {n_actions}] or [steps, {n_states}, {n_actions}]");
                    Err(wrong_shape(shape, &expected))
                }
            },
        }
    }
}

fn wrong_shape(shape: &[usize], expected: &str) -> Error {
    Error::Shape { what: "policy", expected: expected.into(), found: format!("{shape:?}") }
}

fn actions(pairs: &Pairs, values: &[i64]) -> coirl::Result<Vec<ActionId>> {
    let action = |(state, &action): (usize, &i64)| match usize::try_from(action) {
        Ok(a) if a < pairs.n_actions() => Ok(ActionId(a as u32)),
        _ => Err(Error::ActionNotAdmissible { state, action }),
    };
    values.iter().enumerate().map(action).collect()
}

/// Probabilities by pair; what cannot be taken must have none.
fn shares(pairs: &Pairs, values: &[f64]) -> coirl::Result<Vec<f64>> {
    let n_actions = pairs.n_actions();
    let mut shares = Vec::with_capacity(pairs.len());
    for (state, row) in values.chunks_exact(n_actions).enumerate() {
        for (action, &share) in row.iter().enumerate() {
            match pairs.find(state, action) {
                Some(_) => shares.push(share),
                None if share == 0.0 => {}
                None => return Err(Error::ActionNotAdmissible { state, action: action as i64 }),
            }
        }
    }
    Ok(shares)
}

fn dense(pairs: &Pairs, shares: &[f64]) -> Vec<f64> {
    let mut values = vec![0.0; pairs.n_states() * pairs.n_actions()];
    for (pair, share) in shares.iter().enumerate() {
        values[pairs.state(pair).index() * pairs.n_actions() + pairs.action(pair).index()] = *share;
    }
    values
}

fn numbers(actions: &[ActionId]) -> impl Iterator<Item = i64> + '_ {
    actions.iter().map(|action| i64::from(action.0))
}

/// The array of a policy.
pub(crate) fn array<'py>(py: Python<'py>, pairs: &Pairs, policy: &Policy) -> PyResult<Bound<'py, PyAny>> {
    let (n_states, n_actions) = (pairs.n_states(), pairs.n_actions());
    Ok(match policy {
        Policy::Stationary(actions) => vector(py, numbers(actions).collect()).into_any(),
        Policy::Stochastic(shares) => matrix(py, n_states, n_actions, dense(pairs, shares))?.into_any(),
        Policy::Staged(stages) => {
            matrix(py, stages.len(), n_states, stages.iter().flat_map(|stage| numbers(stage)).collect())?.into_any()
        }
        Policy::StagedStochastic(stages) => {
            let values = stages.iter().flat_map(|stage| dense(pairs, stage)).collect();
            block(py, (stages.len(), n_states, n_actions), values)?.into_any()
        }
    })
}
