//! A mapping as coefficients on a basis of reward weights, f(c) = Σᵢ κᵢ(c)·bᵢ with b rows bᵢ of k numbers.
//!
//! What a policy is worth in a context is then κ(c)·ψ(s) with ψᵢ(s) the discounted sum of bᵢ·φ: b numbers per state and
//! policy instead of the k successor features. A linear mapping f(c) = cᵀW has basis W and coefficients c, so b = d; a
//! mapping that only gives weights has the identity as its basis and f(c) as its coefficients.

use crate::error::Result;
use crate::mapping::LinearMapping;
use crate::model::{Cmdp, Features, Reward};

/// The rows that coefficients are multiplied with.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    n_features: usize,
    rows: Vec<f64>,
}

impl Basis {
    /// The rows of W; coefficients are contexts.
    pub fn linear(mapping: &LinearMapping) -> Self {
        Self { n_features: mapping.n_features(), rows: mapping.values().to_vec() }
    }

    /// The unit vectors; coefficients are reward weights.
    pub fn identity(n_features: usize) -> Self {
        let rows = (0..n_features * n_features).map(|i| f64::from(u8::from(i % (n_features + 1) == 0))).collect();
        Self { n_features, rows }
    }

    /// Bφ of every state, or of every pair where features depend on the action.
    pub(super) fn rewards(&self, model: &Cmdp) -> Result<BasisRewards> {
        let columns: Vec<Vec<f64>> = self
            .rows
            .chunks_exact(self.n_features)
            .map(|row| model.features().reward(row).map(|(Reward::State(values) | Reward::Pair(values))| values))
            .collect::<Result<_>>()?;
        let n_rows = columns.first().map_or(0, Vec::len);
        let values = (0..n_rows).flat_map(|at| columns.iter().map(move |column| column[at])).collect();
        Ok(BasisRewards { size: columns.len(), per_pair: matches!(model.features(), Features::StateAction(_)), values })
    }
}

/// Bφ: as many numbers per state, or per pair, as the basis has rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BasisRewards {
    pub(super) size: usize,
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

    /// max |bᵢ·φ|: no reward of a context on the simplex is larger.
    pub(super) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |most, x| most.max(x.abs()))
    }
}
