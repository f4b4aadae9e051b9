//! f(c) = the outputs of a multi-layer network.

use super::{ParametricMapping, RewardMapping};
use crate::error::{Error, Result};
use crate::model::Context;
use crate::network::{Network, Pass};

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

/// What a pass through a network leaves for its way back.
pub struct NeuralPass(Pass<f32>);

impl ParametricMapping for NeuralMapping {
    type Number = f32;
    type Pass = NeuralPass;

    fn parameters(&self) -> &[f32] {
        self.network.parameters()
    }

    fn parameters_mut(&mut self) -> &mut [f32] {
        self.network.parameters_mut()
    }

    fn forward(&self, contexts: &[&Context]) -> Result<(Vec<f64>, NeuralPass)> {
        let rows: Vec<&[f64]> = contexts.iter().map(|context| context.values()).collect();
        let (pass, weights) = self.network.learn(&rows);
        Ok((weights, NeuralPass(pass)))
    }

    fn pull_back(
        &self,
        _contexts: &[&Context],
        pass: &NeuralPass,
        by_weights: &[f64],
        gradient: &mut Vec<f32>,
    ) -> Result<()> {
        gradient.resize(self.network.parameters().len(), 0.0);
        self.network.gradient(&pass.0, by_weights, gradient);
        Ok(())
    }

    fn absorb(&mut self, pass: &NeuralPass, contexts: usize) {
        self.network.take_statistics(&pass.0, contexts);
    }
}
