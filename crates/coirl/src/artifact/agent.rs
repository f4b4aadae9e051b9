//! Agents as tensors, with a few words in the header about which agent it is.

use super::safetensors::{Tensor, TensorFile, Values};
use crate::agent::{Agent, Mixture};
use crate::error::Result;
use crate::mapping::LinearMapping;
use std::borrow::Cow;

/// Which agent the tensors are, and its shape.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AgentHeader {
    /// `mapping`, F64 `[d, k]`.
    Planned { dimension: usize, n_features: usize },
    /// `shares`, F64 `[n, 1]`, and `mappings`, F64 `[n, d·k]`.
    Mixed { dimension: usize, n_features: usize, mappings: usize },
}

impl AgentHeader {
    /// Numbers in a context, and features.
    pub(super) fn shape(&self) -> (usize, usize) {
        let (AgentHeader::Planned { dimension, n_features } | AgentHeader::Mixed { dimension, n_features, .. }) = *self;
        (dimension, n_features)
    }
}

/// The agent, ready to be written.
pub(super) fn to_tensors(agent: &Agent) -> (AgentHeader, Vec<Tensor<'_>>) {
    let tensor = |name: &str, shape: [usize; 2], values| Tensor { name: name.into(), shape: shape.to_vec(), values };
    match agent {
        Agent::Planned(mapping) => {
            let (dimension, n_features) = (mapping.dimension(), mapping.n_features());
            let values = Values::F64(Cow::Borrowed(mapping.values()));
            let tensors = vec![tensor("mapping", [dimension, n_features], values)];
            (AgentHeader::Planned { dimension, n_features }, tensors)
        }
        Agent::Mixed(mixture) => {
            let first = &mixture.mappings()[0];
            let (dimension, n_features, n) = (first.dimension(), first.n_features(), mixture.shares().len());
            let all: Vec<f64> = mixture.mappings().iter().flat_map(LinearMapping::values).copied().collect();
            let tensors = vec![
                tensor("shares", [n, 1], Values::F64(Cow::Borrowed(mixture.shares()))),
                tensor("mappings", [n, dimension * n_features], Values::F64(Cow::Owned(all))),
            ];
            (AgentHeader::Mixed { dimension, n_features, mappings: n }, tensors)
        }
    }
}

/// The agent of a file.
pub(super) fn from_tensors(header: &AgentHeader, tensors: &mut TensorFile) -> Result<Agent> {
    match *header {
        AgentHeader::Planned { dimension, n_features } => {
            let values = tensors.matrix("mapping", dimension)?;
            Ok(Agent::Planned(LinearMapping::new(dimension, n_features, values)?))
        }
        AgentHeader::Mixed { dimension, n_features, mappings } => {
            let shares = tensors.matrix("shares", mappings)?;
            let values = tensors.matrix("mappings", mappings)?;
            let width = (values.len() / mappings.max(1)).max(1);
            let mapping = |row: &[f64]| LinearMapping::new(dimension, n_features, row.to_vec());
            Ok(Agent::Mixed(Mixture::new(shares, values.chunks(width).map(mapping).collect::<Result<_>>()?)?))
        }
    }
}
