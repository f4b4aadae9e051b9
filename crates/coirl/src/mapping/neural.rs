//! f(c) = the outputs of a multi-layer network.

use super::RewardMapping;
use crate::error::{Error, Result};
use crate::model::Context;
use crate::network::Network;

/// A network from a context to reward weights.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NeuralMapping {
    network: Network,
}

impl NeuralMapping {
    /// From a network whose inputs are contexts and whose outputs are reward weights.
    pub fn new(network: Network) -> Self {
        Self { network }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, to be trained.
    pub(crate) fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}

impl RewardMapping for NeuralMapping {
    fn dimension(&self) -> usize {
        self.network.architecture().inputs
    }

    fn n_features(&self) -> usize {
        self.network.architecture().outputs
    }

    fn weights(&self, context: &Context) -> Result<Vec<f64>> {
        self.weights_of_all(std::slice::from_ref(context))
    }

    fn weights_of_all(&self, contexts: &[Context]) -> Result<Vec<f64>> {
        if let Some(other) = contexts.iter().find(|context| context.values().len() != self.dimension()) {
            let (values, taken) = (other.values(), self.dimension());
            let reason = format!("it has {} numbers; the network takes {taken}", values.len());
            return Err(Error::InvalidContext { values: values.to_vec(), reason });
        }
        Ok(self.network.outputs(contexts.iter().map(Context::values)))
    }
}
