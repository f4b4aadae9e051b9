//! A policy that was cloned: a multinomial logistic model of the action, given the context and a description of the state.
//!
//! ```text
//! π_c(a | s) ∝ exp(θ_a · x(c, s)),    x(c, s) = [1, c̃, s̃, c̃ ⊗ s̃]
//! ```
//!
//! over the known actions of the state, or over all admissible ones, with standardised context c̃ and state inputs s̃. For one
//! context the products with c̃ fold into a constant and a slope per action, so that a policy costs one product per state, action
//! in question and state input.

use super::behaviour::{Acting, ContextualPolicy, each};
use super::choice::{Choice, scores};
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Cmdp, Context};
use crate::network::Standardisation;
use crate::plan::Policy;

/// The inputs of the scores: how many there are and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// Length d of a context.
    pub dimension: usize,
    /// Numbers that describe a state.
    pub n_state_inputs: usize,
    /// Whether products of context and state inputs are inputs too; without them the context cannot change which of two
    /// actions is preferred in one state and not in another.
    pub interactions: bool,
}

impl Inputs {
    /// Numbers per action: constant, context, state, products row by row of the context.
    pub fn len(self) -> usize {
        let products = if self.interactions { self.dimension.saturating_mul(self.n_state_inputs) } else { 0 };
        products.saturating_add(self.dimension).saturating_add(self.n_state_inputs).saturating_add(1)
    }

    /// Never: there is a constant.
    pub fn is_empty(self) -> bool {
        false
    }

    /// Per action a constant and a slope per state input: what is left of the coefficients in a context.
    pub(crate) fn fold(self, coefficients: &[f64], context: &[f64]) -> Vec<f64> {
        let (d, m) = (self.dimension, self.n_state_inputs);
        let mut folded = Vec::with_capacity(coefficients.len() / self.len() * (1 + m));
        for own in coefficients.chunks_exact(self.len()) {
            let constant = own[0] + own[1..=d].iter().zip(context).map(|(w, c)| w * c).sum::<f64>();
            folded.push(constant);
            let start = folded.len();
            folded.extend_from_slice(&own[1 + d..1 + d + m]);
            for (products, c) in own[1 + d + m..].chunks_exact(m).zip(context) {
                folded[start..].iter_mut().zip(products).for_each(|(slope, w)| *slope += c * w);
            }
        }
        folded
    }

    /// The transpose of [`Inputs::fold`]: adds a gradient of folded coefficients to one of all.
    pub(crate) fn add_unfolded(self, folded: &[f64], context: &[f64], gradient: &mut [f64]) {
        let (d, m) = (self.dimension, self.n_state_inputs);
        for (own, part) in gradient.chunks_exact_mut(self.len()).zip(folded.chunks_exact(1 + m)) {
            own[0] += part[0];
            own[1..=d].iter_mut().zip(context).for_each(|(w, c)| *w += c * part[0]);
            own[1 + d..1 + d + m].iter_mut().zip(&part[1..]).for_each(|(w, slope)| *w += slope);
            for (products, c) in own[1 + d + m..].chunks_exact_mut(m).zip(context) {
                products.iter_mut().zip(&part[1..]).for_each(|(w, slope)| *w += c * slope);
            }
        }
    }
}

/// θ_a · x of an action, from folded coefficients.
pub(crate) fn linear(folded: &[f64], state_inputs: &[f64]) -> impl Fn(usize) -> f64 {
    move |action| {
        let own = &folded[action * (1 + state_inputs.len())..][..1 + state_inputs.len()];
        own[0] + own[1..].iter().zip(state_inputs).map(|(w, x)| w * x).sum::<f64>()
    }
}

/// The model of the actions, for the states it was fitted in.
#[derive(Debug, Clone, PartialEq)]
pub struct ClonedPolicy {
    inputs: Inputs,
    n_actions: usize,
    context: Standardisation,
    state_inputs: Vec<f64>,
    coefficients: Vec<f64>,
    choice: Choice,
}

impl ClonedPolicy {
    /// From the inputs of every state (rows of `inputs.n_state_inputs`, standardised) and the coefficients of every action (rows
    /// of `inputs.len()`).
    pub fn new(
        inputs: Inputs,
        context: Standardisation,
        state_inputs: Vec<f64>,
        coefficients: Vec<f64>,
        choice: Choice,
    ) -> Result<Self> {
        let m = inputs.n_state_inputs;
        context.check(inputs.dimension)?;
        for (what, values, width) in
            [("state inputs", &state_inputs, m), ("coefficients of actions", &coefficients, inputs.len())]
        {
            if values.is_empty() || width == 0 || !values.len().is_multiple_of(width) {
                return Err(Error::shape(
                    what,
                    format!("rows of {width}, at least 1"),
                    format!("{} numbers", values.len()),
                ));
            }
            check_finite(what, values)?;
        }
        Ok(Self { n_actions: coefficients.len() / inputs.len(), inputs, context, state_inputs, coefficients, choice })
    }

    /// What the scores are made of.
    pub fn inputs(&self) -> Inputs {
        self.inputs
    }

    /// Number of actions with coefficients.
    pub fn n_actions(&self) -> usize {
        self.n_actions
    }

    /// Number of states that are described.
    pub fn n_states(&self) -> usize {
        self.state_inputs.len() / self.inputs.n_state_inputs
    }

    /// How contexts are standardised.
    pub fn context(&self) -> &Standardisation {
        &self.context
    }

    /// s̃ of every state, row by row.
    pub fn state_inputs(&self) -> &[f64] {
        &self.state_inputs
    }

    /// θ, a row per action.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// How an action is chosen by its score.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The policy of a context in a model with these states and actions.
    pub fn policy(&self, model: &Cmdp, context: &Context) -> Result<Policy> {
        let (pairs, c) = (model.pairs(), context.values());
        if c.len() != self.inputs.dimension {
            let reason = format!("it has {} numbers; the cloned policy knows {}", c.len(), self.inputs.dimension);
            return Err(Error::InvalidContext { values: c.to_vec(), reason });
        }
        check_length("states of the cloned policy", pairs.n_states(), self.n_states())?;
        check_length("actions of the cloned policy", pairs.n_actions(), self.n_actions)?;
        let folded = self.inputs.fold(&self.coefficients, &self.context.of(c));
        let rows = self.state_inputs.chunks_exact(self.inputs.n_state_inputs).enumerate();
        let each = rows.map(|(s, x)| scores(model, s, self.choice.masked, linear(&folded, x)));
        Ok(self.choice.policy(model, each))
    }
}

impl ContextualPolicy for ClonedPolicy {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        each(contexts, |context| self.policy(model, context))
    }
}
