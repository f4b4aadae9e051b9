//! A mapping as coefficients on a basis of reward weights, f(c) = Σᵢ κᵢ(c)·bᵢ with b rows bᵢ of k numbers.
//!
//! What a policy is worth in a context is then κ(c)·ψ(s) with ψᵢ(s) the discounted sum of bᵢ·φ: b numbers per state and
//! policy instead of the k successor features. A linear mapping f(c) = cᵀW has basis W and coefficients c, so b = d; a
//! mapping that only gives weights, as a network does, has the identity as its basis and f(c) as its coefficients.

use crate::error::{Result, check_length};
use crate::mapping::{LearnedMapping, LinearMapping, RewardMapping};
use crate::model::{Cmdp, Context, Features, Reward};

/// The rows that coefficients are multiplied with.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    n_features: usize,
    rows: Rows,
}

#[derive(Debug, Clone, PartialEq)]
enum Rows {
    /// Row-major.
    Given(Vec<f64>),
    /// The unit vectors.
    Identity,
}

/// What the coefficients of a context are, and so what distances between them are distances of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coefficients {
    /// The context: ‖c − c_j‖∞.
    Contexts,
    /// The reward weights: ‖f(c) − f(c_j)‖∞.
    Weights,
}

impl Basis {
    /// The rows of W; coefficients are contexts.
    pub fn linear(mapping: &LinearMapping) -> Self {
        Self { n_features: mapping.n_features(), rows: Rows::Given(mapping.values().to_vec()) }
    }

    /// The unit vectors; coefficients are reward weights.
    pub fn identity(n_features: usize) -> Self {
        Self { n_features, rows: Rows::Identity }
    }

    /// The basis of a mapping: W, or the identity for a network.
    pub fn of(mapping: &LearnedMapping) -> Self {
        match mapping {
            LearnedMapping::Linear(mapping) => Self::linear(mapping),
            LearnedMapping::Neural(mapping) => Self::identity(mapping.n_features()),
        }
    }

    /// Bφ of every state, or of every pair where features depend on the action.
    pub(super) fn rewards(&self, model: &Cmdp) -> Result<BasisRewards> {
        let per_pair = matches!(model.features(), Features::StateAction(_));
        let (size, coefficients, values) = match &self.rows {
            Rows::Given(rows) => {
                let columns: Vec<Vec<f64>> = rows
                    .chunks_exact(self.n_features)
                    .map(|row| {
                        model.features().reward(row).map(|(Reward::State(values) | Reward::Pair(values))| values)
                    })
                    .collect::<Result<_>>()?;
                let n_rows = columns.first().map_or(0, Vec::len);
                let values = (0..n_rows).flat_map(|at| columns.iter().map(move |column| column[at])).collect();
                (columns.len(), Coefficients::Contexts, values)
            }
            Rows::Identity => {
                check_length("basis (columns)", model.n_features(), self.n_features)?;
                (self.n_features, Coefficients::Weights, features(model, per_pair))
            }
        };
        Ok(BasisRewards { size, per_pair, coefficients, values })
    }
}

/// φ of every state or pair, zeros written out.
fn features(model: &Cmdp, per_pair: bool) -> Vec<f64> {
    let (pairs, k) = (model.pairs(), model.n_features());
    let n_rows = if per_pair { pairs.len() } else { model.n_states() };
    let mut values = vec![0.0; n_rows * k];
    for state in 0..model.n_states() {
        // Any pair of a state has its features where they do not depend on the action.
        let of_state = pairs.of_state(state);
        for pair in if per_pair { of_state } else { of_state.start..of_state.start + 1 } {
            let at = if per_pair { pair } else { state };
            model.features().add_scaled(state, pair, 1.0, &mut values[at * k..(at + 1) * k]);
        }
    }
    values
}

/// κ(c) of every context: the context itself for a linear mapping, f(c) for a network. Refuses contexts that the mapping does not take.
pub(super) fn coefficients(mapping: &LearnedMapping, contexts: &[Context]) -> Result<Vec<Vec<f64>>> {
    let weights = mapping.weights_of_all(contexts)?;
    Ok(match mapping {
        LearnedMapping::Linear(_) => contexts.iter().map(|context| context.values().to_vec()).collect(),
        LearnedMapping::Neural(_) => weights.chunks_exact(mapping.n_features()).map(<[f64]>::to_vec).collect(),
    })
}

/// Bφ: as many numbers per state, or per pair, as the basis has rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BasisRewards {
    pub(super) size: usize,
    pub(super) coefficients: Coefficients,
    per_pair: bool,
    values: Vec<f64>,
}

impl BasisRewards {
    pub(super) fn at(&self, state: usize, pair: usize) -> &[f64] {
        let at = if self.per_pair { pair } else { state };
        &self.values[at * self.size..(at + 1) * self.size]
    }

    /// φ_max = max ‖Bφ‖₁.
    pub(super) fn largest_sum(&self) -> f64 {
        let sums = self.values.chunks_exact(self.size.max(1)).map(|row| row.iter().map(|x| x.abs()).sum::<f64>());
        sums.fold(0.0, f64::max)
    }

    /// No reward is larger: max |bᵢ·φ| where coefficients are contexts, which are on the simplex; anything where they are weights.
    pub(super) fn largest(&self) -> f64 {
        match self.coefficients {
            Coefficients::Contexts => self.values.iter().fold(0.0, |most, x| most.max(x.abs())),
            Coefficients::Weights => f64::INFINITY,
        }
    }
}
