//! Reward mappings: from a context to the weights of the reward. They never see a state.
//!
//! A [`RewardMapping`] can be planned for and scored. A [`ParametricMapping`] can be learned as well: it has parameters, and pulls a
//! gradient by reward weights back to them.

mod learned;
mod linear;
mod neural;
mod threshold;

pub use learned::LearnedMapping;
pub use linear::LinearMapping;
pub use neural::{NeuralMapping, NeuralPass};
pub use threshold::ThresholdMapping;

use crate::error::Result;
use crate::model::Context;
use crate::optim::{Number, norm};

/// f: from a context to the weights of the reward.
pub trait RewardMapping: Send + Sync {
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

/// f_θ: a mapping with parameters θ, to be learned. What it serialises to is what a checkpoint keeps of it.
pub trait ParametricMapping: RewardMapping + Clone + serde::Serialize + serde::de::DeserializeOwned {
    /// What parameters are kept as: `f64`, or `f32` where there are very many.
    type Number: Number;
    /// What a pass leaves for its pull-back; `()` for mappings that need nothing.
    type Pass;

    /// θ.
    fn parameters(&self) -> &[Self::Number];

    /// θ, to be changed.
    fn parameters_mut(&mut self) -> &mut [Self::Number];

    /// f_θ of some contexts, row by row, as a step of learning sees it.
    fn forward(&self, contexts: &[&Context]) -> Result<(Vec<f64>, Self::Pass)>;

    /// The gradient by θ, given that by the reward weights of the contexts of a pass, row by row. Written over `by_parameters`.
    fn pull_back(
        &self,
        contexts: &[&Context],
        pass: &Self::Pass,
        by_weights: &[f64],
        by_parameters: &mut Vec<Self::Number>,
    ) -> Result<()>;

    /// Takes note of a pass that a step was made of; for running statistics.
    fn absorb(&mut self, _pass: &Self::Pass, _contexts: usize) {}

    /// The size that losses are divided by, the loss being positively homogeneous in f: the mean length of the rewards. `weights` are
    /// those of all contexts at hand, row by row.
    fn size(&self, weights: &[f64]) -> f64 {
        let rows = weights.chunks_exact(self.n_features());
        let n = rows.len().max(1) as f64;
        rows.map(norm).sum::<f64>() / n
    }

    /// Whether f is linear in θ, so that its derivative does not depend on θ.
    fn is_linear(&self) -> bool {
        false
    }

    /// W, row by row, of a mapping that is f(c) = cᵀW.
    fn as_matrix(&self) -> Option<&[f64]> {
        None
    }
}
