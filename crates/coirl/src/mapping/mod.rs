//! Reward mappings: from a context to the weights of the reward.

mod learned;
mod linear;
mod neural;
mod threshold;

pub use learned::LearnedMapping;
pub use linear::LinearMapping;
pub use neural::NeuralMapping;
pub use threshold::ThresholdMapping;

use crate::error::Result;
use crate::model::Context;

/// f: from a context to the weights of the reward.
pub trait RewardMapping: Sync {
    /// Length d of a context.
    fn dimension(&self) -> usize;

    /// Number k of reward weights.
    fn n_features(&self) -> usize;

    /// f(c).
    fn weights(&self, context: &Context) -> Result<Vec<f64>>;

    /// f of every context, row by row.
    fn weights_of_all(&self, contexts: &[Context]) -> Result<Vec<f64>> {
        let rows: Vec<Vec<f64>> = contexts.iter().map(|context| self.weights(context)).collect::<Result<_>>()?;
        Ok(rows.concat())
    }
}
