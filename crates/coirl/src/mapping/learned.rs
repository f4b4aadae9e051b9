//! A mapping in whichever form it was learned, for what comes after learning.

use super::{LinearMapping, NeuralMapping, RewardMapping};
use crate::error::Result;
use crate::model::Context;
use crate::model::digest::feed_numbers;

/// A matrix or a network.
#[derive(Debug, Clone, PartialEq)]
pub enum LearnedMapping {
    /// f(c) = cᵀW.
    Linear(LinearMapping),
    /// f(c) = the outputs of a network.
    Neural(NeuralMapping),
}

impl LearnedMapping {
    /// Hands every number of the mapping to `sink`, in a fixed order and form.
    pub(crate) fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            LearnedMapping::Linear(mapping) => feed_numbers(mapping.values(), sink),
            LearnedMapping::Neural(mapping) => mapping.network().feed(sink),
        }
    }

    fn as_dyn(&self) -> &dyn RewardMapping {
        match self {
            LearnedMapping::Linear(mapping) => mapping,
            LearnedMapping::Neural(mapping) => mapping,
        }
    }
}

impl From<LinearMapping> for LearnedMapping {
    fn from(mapping: LinearMapping) -> Self {
        LearnedMapping::Linear(mapping)
    }
}

impl From<NeuralMapping> for LearnedMapping {
    fn from(mapping: NeuralMapping) -> Self {
        LearnedMapping::Neural(mapping)
    }
}

impl RewardMapping for LearnedMapping {
    fn dimension(&self) -> usize {
        self.as_dyn().dimension()
    }

    fn n_features(&self) -> usize {
        self.as_dyn().n_features()
    }

    fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        self.as_dyn().weights(context)
    }

    fn weights_of_all(&self, contexts: &[Context]) -> Result<Vec<f64>> {
        self.as_dyn().weights_of_all(contexts)
    }
}
