//! A demonstration: how somebody acted in one context.

use super::Trajectory;
use crate::contextual::Origin;
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{Cmdp, Context, StateId};

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// μ, as if the policy itself had been seen.
    FeatureExpectations(Vec<f64>),
    /// One or more trajectories.
    Trajectories(Vec<Trajectory>),
}

/// A context with what was seen of an expert acting in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Demonstration {
    context: Context,
    origin: Origin,
    evidence: Evidence,
}

impl Demonstration {
    /// From feature expectations, started as the model starts.
    pub fn from_feature_expectations(model: &Cmdp, context: Context, feature_expectations: Vec<f64>) -> Result<Self> {
        check_length("feature expectations", model.n_features(), feature_expectations.len())?;
        check_finite("feature expectations", &feature_expectations)?;
        let evidence = Evidence::FeatureExpectations(feature_expectations);
        Ok(Self { context, origin: Origin::Model, evidence })
    }

    /// From trajectories; they start where they start, and their actions must be admissible.
    pub fn from_trajectories(model: &Cmdp, context: Context, trajectories: Vec<Trajectory>) -> Result<Self> {
        if trajectories.is_empty() {
            return Err(Error::shape("trajectories of a demonstration", "at least 1", 0));
        }
        trajectories.iter().try_for_each(|trajectory| trajectory.check(model.pairs()))?;
        let origin = Origin::States(trajectories.iter().map(|trajectory| trajectory.states[0]).collect());
        Ok(Self { context, origin, evidence: Evidence::Trajectories(trajectories) })
    }

    /// This demonstration, known to start in one state.
    pub fn starting_in(mut self, model: &Cmdp, state: StateId) -> Result<Self> {
        if state.index() >= model.n_states() {
            return Err(Error::shape("start state", format!("below {}", model.n_states()), state.0));
        }
        self.origin = Origin::States(vec![state]);
        Ok(self)
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Where it starts.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What was seen.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }
}
