//! A policy that was cloned by a network:
//!
//! ```text
//! π_c(a | s) ∝ exp(y_a),    y = network([c, s̃])
//! ```
//!
//! over the known actions of the state, or over all admissible ones. A policy lets every state through the network once.

use super::behaviour::{Acting, ContextualPolicy, each};
use super::choice::{Choice, scores};
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Cmdp, Context, StateId};
use crate::network::Network;
use crate::plan::Policy;

/// A network that scores the actions, for the states it was trained in.
#[derive(Debug, Clone, PartialEq)]
pub struct ClonedNetwork {
    dimension: usize,
    network: Network,
    state_inputs: Vec<f64>,
    choice: Choice,
}

impl ClonedNetwork {
    /// From a network with an output per action, whose inputs are a context of `dimension` numbers, then the numbers that describe
    /// a state, and these numbers for every state, row by row.
    pub fn new(dimension: usize, network: Network, state_inputs: Vec<f64>, choice: Choice) -> Result<Self> {
        let inputs = network.architecture().inputs;
        let width = inputs.saturating_sub(dimension);
        if dimension == 0 || width == 0 {
            let expected = format!("{dimension} of the context and at least 1 of the state");
            return Err(Error::shape("inputs of a cloned network", expected, inputs));
        }
        if state_inputs.is_empty() || !state_inputs.len().is_multiple_of(width) {
            let found = format!("{} numbers", state_inputs.len());
            return Err(Error::shape("state inputs", format!("rows of {width}, at least 1"), found));
        }
        check_finite("state inputs", &state_inputs)?;
        Ok(Self { dimension, network, state_inputs, choice })
    }

    /// Numbers in a context.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Number of states that are described.
    pub fn n_states(&self) -> usize {
        self.state_inputs.len() / (self.network.architecture().inputs - self.dimension)
    }

    /// s̃ of every state, row by row.
    pub fn state_inputs(&self) -> &[f64] {
        &self.state_inputs
    }

    /// How an action is chosen by its score.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The policy of a context in a model with these states and actions.
    pub fn policy(&self, model: &Cmdp, context: &Context) -> Result<Policy> {
        self.check(model, context)?;
        let outputs = self.outputs(context, 0..self.n_states());
        let of_state = |(s, y): (usize, &[f64])| scores(model, s, self.choice.masked, |action| y[action]);
        Ok(self.choice.policy(model, outputs.chunks_exact(model.n_actions()).enumerate().map(of_state)))
    }

    /// The probability of every action at some states, row-major, letting only these through the network.
    pub(crate) fn probabilities(&self, model: &Cmdp, context: &Context, states: &[StateId]) -> Result<Vec<f64>> {
        self.check(model, context)?;
        let (pairs, n_actions) = (model.pairs(), model.n_actions());
        if let Some(state) = states.iter().find(|state| state.index() >= self.n_states()) {
            return Err(Error::shape("visited state", format!("below {}", self.n_states()), state.0));
        }
        let outputs = self.outputs(context, states.iter().map(|state| state.index()));
        let mut rows = vec![0.0; states.len() * n_actions];
        for ((state, y), row) in
            states.iter().zip(outputs.chunks_exact(n_actions)).zip(rows.chunks_exact_mut(n_actions))
        {
            let shares = self.choice.shares(scores(model, state.index(), self.choice.masked, |action| y[action]));
            for (pair, share) in pairs.of_state(state.index()).zip(shares) {
                row[pairs.action(pair).index()] = share;
            }
        }
        Ok(rows)
    }

    fn check(&self, model: &Cmdp, context: &Context) -> Result<()> {
        let c = context.values();
        if c.len() != self.dimension {
            let reason = format!("it has {} numbers; the cloned policy knows {}", c.len(), self.dimension);
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        check_length("states of the cloned policy", model.n_states(), self.n_states())?;
        check_length("actions of the cloned policy", model.n_actions(), self.network.architecture().outputs)
    }

    /// y of some states, row by row.
    fn outputs(&self, context: &Context, states: impl Iterator<Item = usize>) -> Vec<f64> {
        let inputs = self.network.architecture().inputs;
        let width = inputs - self.dimension;
        let mut rows = Vec::new();
        for state in states {
            rows.extend_from_slice(context.values());
            rows.extend_from_slice(&self.state_inputs[state * width..(state + 1) * width]);
        }
        self.network.outputs(rows.chunks_exact(inputs))
    }
}

impl ContextualPolicy for ClonedNetwork {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        each(contexts, |context| self.policy(model, context))
    }

    fn probabilities_at(&self, model: &Cmdp, context: &Context, states: &[StateId]) -> Result<Option<Vec<f64>>> {
        self.probabilities(model, context, states).map(Some)
    }
}
