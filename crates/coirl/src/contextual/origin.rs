//! Where an episode starts, and what is asked about a context.

use crate::error::Result;
use crate::model::{Cmdp, Context, Mdp, StateId};
use crate::plan::{Policy, evaluate};

/// Where a demonstration starts. The agent that is compared with it is planned from the same start: context and start may
/// have been drawn together, and the model's own start distribution would then bias the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// From the model's start distribution.
    Model,
    /// From these states, equally likely; a state may be listed more than once.
    States(Vec<StateId>),
}

impl Origin {
    /// The process, started here.
    pub fn of<'a>(&self, mdp: Mdp<'a>) -> Result<Mdp<'a>> {
        match self {
            Origin::Model => Ok(mdp),
            Origin::States(states) => {
                let share = 1.0 / states.len() as f64;
                let mut initial = vec![0.0; mdp.n_states()];
                for state in states {
                    initial[state.index()] += share;
                }
                mdp.with_initial(initial)
            }
        }
    }
}

/// A context to act in, and the start that feature expectations are counted from.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// The context.
    pub context: &'q Context,
    /// Where the episode starts.
    pub origin: &'q Origin,
    /// A weight per state, which may be negative, in place of the origin; see `Estimator::Decisions` of the demonstrations.
    pub signed_start: Option<&'q [f64]>,
}

impl<'q> Query<'q> {
    /// About a context in which episodes start as the model says.
    pub fn from_the_start(context: &'q Context) -> Self {
        Self { context, origin: &Origin::Model, signed_start: None }
    }

    /// Whether feature expectations are counted from the model's own start.
    pub fn starts_like_the_model(&self) -> bool {
        self.signed_start.is_none() && *self.origin == Origin::Model
    }

    /// μ of a policy in the context, from the start of the query.
    pub fn feature_expectations(&self, model: &Cmdp, policy: &Policy) -> Result<Vec<f64>> {
        let mdp = model.mdp(self.context)?;
        match self.signed_start {
            Some(start) => evaluate::feature_expectations_from(&mdp, start, policy),
            None => evaluate::feature_expectations(&self.origin.of(mdp)?, policy),
        }
    }
}
