//! Agents that do what was seen, state by state: one action per state, for all contexts or for each that was seen.

use super::KnownContexts;
use super::behaviour::{Acting, ContextualPolicy, each};
use crate::error::{Error, Result};
use crate::model::{ActionId, Cmdp, Context};
use crate::plan::Policy;

/// One action per state for each context that was seen; in a new context those of the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestActions {
    contexts: KnownContexts,
    n_states: usize,
    actions: Vec<ActionId>,
}

impl NearestActions {
    /// From a row of actions per context, one per state.
    pub fn new(contexts: KnownContexts, actions: Vec<ActionId>) -> Result<Self> {
        if actions.is_empty() || !actions.len().is_multiple_of(contexts.len()) {
            let found = format!("{} actions for {} contexts", actions.len(), contexts.len());
            return Err(Error::shape("actions of contexts", "a row per context", found));
        }
        Ok(Self { n_states: actions.len() / contexts.len(), contexts, actions })
    }

    /// The contexts that have actions of their own.
    pub fn contexts(&self) -> &KnownContexts {
        &self.contexts
    }

    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.n_states
    }

    /// Every row of actions, in the order of the contexts.
    pub fn all_actions(&self) -> &[ActionId] {
        &self.actions
    }

    /// The actions for a context, one per state.
    pub fn actions(&self, context: &Context) -> Result<&[ActionId]> {
        let nearest = self.contexts.nearest(context)?;
        Ok(&self.actions[nearest * self.n_states..(nearest + 1) * self.n_states])
    }
}

impl ContextualPolicy for NearestActions {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        each(contexts, |context| Policy::stationary(model.pairs(), self.actions(context)?.to_vec()))
    }

    fn keeps_contexts(&self) -> bool {
        true
    }
}

/// One action per state, whatever the context.
impl ContextualPolicy for Vec<ActionId> {
    fn acting(&self, model: &Cmdp, _contexts: &[Context]) -> Result<Acting> {
        Ok(Acting::Always(Policy::stationary(model.pairs(), self.clone())?))
    }
}

/// Every known action with equal probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformPolicy;

impl ContextualPolicy for UniformPolicy {
    fn acting(&self, model: &Cmdp, _contexts: &[Context]) -> Result<Acting> {
        Ok(Acting::Always(model.random_policy()))
    }
}
