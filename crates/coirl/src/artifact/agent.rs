//! Agents as tensors, with a few words in the header about which agent it is.

use super::safetensors::{Tensor, TensorFile, Values};
use crate::agent::{
    Agent, Choice, ClonedNetwork, ClonedPolicy, Inputs, KnownContexts, Mixture, NearestActions, NearestWeights,
    SoftMapping,
};
use crate::error::{Error, Result};
use crate::mapping::{LinearMapping, NeuralMapping};
use crate::model::ActionId;
use crate::network::{Architecture, Network, Standardisation};
use std::borrow::Cow;

/// Which agent the tensors are, and its shape.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AgentHeader {
    /// `mapping`, F64 `[d, k]`, and `intercept`, F64 `[k]`, where the mapping has one.
    Planned {
        dimension: usize,
        n_features: usize,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        intercept: bool,
    },
    /// `input_shift` and `input_scale`, F64 `[d]`, `parameters`, F32 `[n]`, layer by layer (weights row by row, shifts, and scales where
    /// batches are normalised), and `statistics`, F32 `[m]`, running means and variances of normalised layers.
    Neural { architecture: Architecture },
    /// `shares`, F64 `[n, 1]`, and `mappings`, F64 `[n, d·k]`.
    Mixed { dimension: usize, n_features: usize, mappings: usize },
    /// `mapping`, F64 `[d, k]`.
    Soft { dimension: usize, n_features: usize, temperature: f64 },
    /// `contexts`, F64 `[n, d]`, and `weights`, F64 `[n, k]`; planned for without a temperature.
    Nearest { dimension: usize, n_features: usize, contexts: usize, temperature: Option<f64> },
    /// `context_shift` and `context_scale`, F64 `[d]`, `state_inputs`, F64 `[states, m]`, and `coefficients`, F64
    /// `[actions, inputs]`.
    Cloned {
        dimension: usize,
        state_inputs: usize,
        interactions: bool,
        states: usize,
        actions: usize,
        most_probable: bool,
        /// Files from before there were known actions choose among all.
        #[serde(default)]
        masked: bool,
    },
    /// The tensors of [`AgentHeader::Neural`], whose inputs are those of the context, then those of the state, and `state_inputs`,
    /// F64 `[states, m]`.
    ClonedNetwork { architecture: Architecture, dimension: usize, states: usize, most_probable: bool, masked: bool },
    /// `contexts`, F64 `[n, d]`, and `actions`, U32 `[n, states]`.
    Copied { dimension: usize, contexts: usize, states: usize },
    /// `actions`, U32 `[states]`.
    Fixed { states: usize },
    /// Nothing.
    Uniform {},
}

impl AgentHeader {
    /// Numbers in a context, and features, where the agent knows them.
    pub(super) fn shape(&self) -> (Option<usize>, Option<usize>) {
        match *self {
            AgentHeader::Neural { ref architecture } => (Some(architecture.inputs), Some(architecture.outputs)),
            AgentHeader::Planned { dimension, n_features, .. }
            | AgentHeader::Mixed { dimension, n_features, .. }
            | AgentHeader::Soft { dimension, n_features, .. }
            | AgentHeader::Nearest { dimension, n_features, .. } => (Some(dimension), Some(n_features)),
            AgentHeader::Cloned { dimension, .. }
            | AgentHeader::ClonedNetwork { dimension, .. }
            | AgentHeader::Copied { dimension, .. } => (Some(dimension), None),
            AgentHeader::Fixed { .. } | AgentHeader::Uniform {} => (None, None),
        }
    }
}

/// The agent, ready to be written.
pub(super) fn to_tensors(agent: &Agent) -> Result<(AgentHeader, Vec<Tensor<'_>>)> {
    Ok(match agent {
        Agent::Planned(mapping) => {
            let (dimension, n_features) = (mapping.dimension(), mapping.n_features());
            let mut tensors = vec![numbers("mapping", &[dimension, n_features], mapping.values())];
            tensors.extend(mapping.intercept().map(|own| numbers("intercept", &[n_features], own)));
            (AgentHeader::Planned { dimension, n_features, intercept: mapping.intercept().is_some() }, tensors)
        }
        Agent::Neural(mapping) => {
            let network = mapping.network();
            (AgentHeader::Neural { architecture: network.architecture().clone() }, of_network(network))
        }
        Agent::Mixed(mixture) => {
            let first = &mixture.mappings()[0];
            let (dimension, n_features, n) = (first.dimension(), first.n_features(), mixture.shares().len());
            let all: Vec<f64> = mixture.mappings().iter().flat_map(LinearMapping::values).copied().collect();
            let mappings = Values::F64(Cow::Owned(all));
            let tensors = vec![
                numbers("shares", &[n, 1], mixture.shares()),
                Tensor { name: "mappings".into(), shape: vec![n, dimension * n_features], values: mappings },
            ];
            (AgentHeader::Mixed { dimension, n_features, mappings: n }, tensors)
        }
        Agent::Soft(soft) => {
            let (mapping, temperature) = (soft.mapping(), soft.temperature());
            let (dimension, n_features) = (mapping.dimension(), mapping.n_features());
            let tensors = vec![numbers("mapping", &[dimension, n_features], mapping.values())];
            (AgentHeader::Soft { dimension, n_features, temperature }, tensors)
        }
        Agent::Nearest(nearest) => {
            let (known, n_features, temperature) = (nearest.contexts(), nearest.n_features(), nearest.temperature());
            let (contexts, dimension) = (known.len(), known.dimension());
            let tensors = vec![
                numbers("contexts", &[contexts, dimension], known.values()),
                numbers("weights", &[contexts, n_features], nearest.all_weights()),
            ];
            (AgentHeader::Nearest { dimension, n_features, contexts, temperature }, tensors)
        }
        Agent::Cloned(cloned) => {
            let Inputs { dimension, n_state_inputs: state_inputs, interactions } = cloned.inputs();
            let (states, actions) = (cloned.n_states(), cloned.n_actions());
            let tensors = vec![
                numbers("context_shift", &[dimension], &cloned.context().shift),
                numbers("context_scale", &[dimension], &cloned.context().scale),
                numbers("state_inputs", &[states, state_inputs], cloned.state_inputs()),
                numbers("coefficients", &[actions, cloned.inputs().len()], cloned.coefficients()),
            ];
            let Choice { masked, most_probable } = cloned.choice();
            let header =
                AgentHeader::Cloned { dimension, state_inputs, interactions, states, actions, most_probable, masked };
            (header, tensors)
        }
        Agent::ClonedNetwork(cloned) => {
            let (architecture, states) = (cloned.network().architecture().clone(), cloned.n_states());
            let (dimension, Choice { masked, most_probable }) = (cloned.dimension(), cloned.choice());
            let mut tensors = of_network(cloned.network());
            let shape = [states, architecture.inputs - dimension];
            tensors.push(numbers("state_inputs", &shape, cloned.state_inputs()));
            (AgentHeader::ClonedNetwork { architecture, dimension, states, most_probable, masked }, tensors)
        }
        Agent::Copied(copied) => {
            let (known, states) = (copied.contexts(), copied.n_states());
            let (contexts, dimension) = (known.len(), known.dimension());
            let tensors = vec![
                numbers("contexts", &[contexts, dimension], known.values()),
                chosen(&[contexts, states], copied.all_actions()),
            ];
            (AgentHeader::Copied { dimension, contexts, states }, tensors)
        }
        Agent::Fixed(actions) => {
            (AgentHeader::Fixed { states: actions.len() }, vec![chosen(&[actions.len()], actions)])
        }
        Agent::Uniform => (AgentHeader::Uniform {}, Vec::new()),
        Agent::Own(_) => {
            let reason = "a policy from outside has no file format; save what it is made of";
            return Err(Error::InvalidSetting { name: "agent", value: agent.kind().into(), reason });
        }
    })
}

fn numbers<'a>(name: &str, shape: &[usize], values: &'a [f64]) -> Tensor<'a> {
    Tensor { name: name.into(), shape: shape.to_vec(), values: Values::F64(Cow::Borrowed(values)) }
}

fn of_network(network: &Network) -> Vec<Tensor<'_>> {
    let standard = network.standardisation();
    let single = |name: &str, values| Tensor {
        name: name.into(),
        shape: vec![<[f32]>::len(values)],
        values: Values::F32(Cow::Borrowed(values)),
    };
    vec![
        numbers("input_shift", &[standard.shift.len()], &standard.shift),
        numbers("input_scale", &[standard.scale.len()], &standard.scale),
        single("parameters", network.parameters()),
        single("statistics", network.statistics()),
    ]
}

fn chosen(shape: &[usize], actions: &[ActionId]) -> Tensor<'static> {
    let actions: Vec<u32> = actions.iter().map(|action| action.0).collect();
    Tensor { name: "actions".into(), shape: shape.to_vec(), values: Values::U32(Cow::Owned(actions)) }
}

fn network(architecture: &Architecture, tensors: &mut TensorFile) -> Result<Network> {
    architecture.check()?;
    let shift = tensors.tensor("input_shift", &[architecture.inputs])?;
    let standard = Standardisation { shift, scale: tensors.tensor("input_scale", &[architecture.inputs])? };
    let parameters = tensors.tensor("parameters", &[architecture.n_parameters()])?;
    let statistics = tensors.tensor("statistics", &[architecture.n_statistics()])?;
    Network::new(architecture.clone(), standard, parameters, statistics)
}

/// The agent of a file.
pub(super) fn from_tensors(header: &AgentHeader, tensors: &mut TensorFile) -> Result<Agent> {
    match *header {
        AgentHeader::Planned { dimension, n_features, intercept } => {
            let values = tensors.matrix("mapping", dimension)?;
            let mut mapping = LinearMapping::new(dimension, n_features, values)?;
            if intercept {
                mapping = mapping.with_intercept(tensors.tensor("intercept", &[n_features])?)?;
            }
            Ok(Agent::Planned(mapping))
        }
        AgentHeader::Neural { ref architecture } => {
            Ok(Agent::Neural(NeuralMapping::new(network(architecture, tensors)?)))
        }
        AgentHeader::Mixed { dimension, n_features, mappings } => {
            let shares = tensors.matrix("shares", mappings)?;
            let values = tensors.matrix("mappings", mappings)?;
            let width = (values.len() / mappings.max(1)).max(1);
            let mapping = |row: &[f64]| LinearMapping::new(dimension, n_features, row.to_vec());
            Ok(Agent::Mixed(Mixture::new(shares, values.chunks(width).map(mapping).collect::<Result<_>>()?)?))
        }
        AgentHeader::Soft { dimension, n_features, temperature } => {
            let values = tensors.tensor("mapping", &[dimension, n_features])?;
            Ok(Agent::Soft(SoftMapping::new(LinearMapping::new(dimension, n_features, values)?, temperature)?))
        }
        AgentHeader::Nearest { dimension, n_features, contexts, temperature } => {
            let known = KnownContexts::new(dimension, tensors.tensor("contexts", &[contexts, dimension])?)?;
            let weights = tensors.tensor("weights", &[contexts, n_features])?;
            Ok(Agent::Nearest(NearestWeights::new(known, weights, temperature)?))
        }
        AgentHeader::Cloned { dimension, state_inputs, interactions, states, actions, most_probable, masked } => {
            let inputs = Inputs { dimension, n_state_inputs: state_inputs, interactions };
            let shift = tensors.tensor("context_shift", &[dimension])?;
            let context = Standardisation { shift, scale: tensors.tensor("context_scale", &[dimension])? };
            let of_states = tensors.tensor("state_inputs", &[states, state_inputs])?;
            let coefficients = tensors.tensor("coefficients", &[actions, inputs.len()])?;
            let choice = Choice { masked, most_probable };
            Ok(Agent::Cloned(ClonedPolicy::new(inputs, context, of_states, coefficients, choice)?))
        }
        AgentHeader::ClonedNetwork { ref architecture, dimension, states, most_probable, masked } => {
            let network = network(architecture, tensors)?;
            let shape = [states, architecture.inputs.saturating_sub(dimension)];
            let of_states = tensors.tensor("state_inputs", &shape)?;
            let choice = Choice { masked, most_probable };
            Ok(Agent::ClonedNetwork(ClonedNetwork::new(dimension, network, of_states, choice)?))
        }
        AgentHeader::Copied { dimension, contexts, states } => {
            let known = KnownContexts::new(dimension, tensors.tensor("contexts", &[contexts, dimension])?)?;
            let actions: Vec<u32> = tensors.tensor("actions", &[contexts, states])?;
            Ok(Agent::Copied(NearestActions::new(known, actions.into_iter().map(ActionId).collect())?))
        }
        AgentHeader::Fixed { states } => {
            let actions: Vec<u32> = tensors.tensor("actions", &[states])?;
            Ok(Agent::Fixed(actions.into_iter().map(ActionId).collect()))
        }
        AgentHeader::Uniform {} => Ok(Agent::Uniform),
    }
}
