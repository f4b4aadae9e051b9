//! What is known about all plans of a run before the first one is there.

use coirl::model::{Cmdp, Context, Criterion};
use coirl::plan::{ManyOptions, Policy};
use std::collections::HashSet;

/// The contexts of a run.
#[derive(Debug)]
pub(crate) enum Contexts {
    /// None was given.
    None,
    /// The same for all plans.
    One(Context),
    /// One per plan.
    Many(Vec<Context>),
}

/// The columns of a run and their names.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) model: &'a Cmdp,
    pub(crate) contexts: &'a Contexts,
    /// Reward weights, row-major.
    pub(crate) weights: &'a [f64],
    /// Whether one plan was asked for, rather than a list that may hold one.
    pub(crate) single: bool,
    /// Whether formats that leave policies out should hold them.
    pub(crate) policy: bool,
    pub(crate) options: ManyOptions,
}

impl Columns<'_> {
    /// Number of plans.
    pub(crate) fn n_plans(&self) -> usize {
        self.weights.len() / self.model.n_features()
    }

    /// Length of a context; zero where none was given.
    pub(crate) fn n_context(&self) -> usize {
        self.context(0).map_or(0, <[f64]>::len)
    }

    /// The context of a plan.
    pub(crate) fn context(&self, index: usize) -> Option<&[f64]> {
        match self.contexts {
            Contexts::None => None,
            Contexts::One(context) => Some(context.values()),
            Contexts::Many(contexts) => contexts.get(index).map(Context::values),
        }
    }

    /// Decisions of a finite horizon.
    pub(crate) fn stages(&self) -> Option<usize> {
        match self.model.criterion() {
            Criterion::FiniteHorizon { steps, .. } => Some(steps),
            Criterion::Discounted { .. } | Criterion::TotalReward | Criterion::Average => None,
        }
    }

    /// The start state, where there is just one.
    pub(crate) fn start_state(&self) -> Option<usize> {
        let mut starts = self.model.initial().iter().enumerate().filter(|entry| *entry.1 > 0.0);
        match (starts.next(), starts.next()) {
            (Some((state, _)), None) => Some(state),
            _ => None,
        }
    }

    /// Column names of the context, none where none was given.
    pub(crate) fn context_columns(&self) -> Vec<String> {
        prefixed("context", &self.model.names().contexts, self.n_context())
    }

    /// Column names of the feature expectations.
    pub(crate) fn expectation_columns(&self) -> Vec<String> {
        prefixed("mu", &self.model.names().features, self.model.n_features())
    }

    /// An action by its name, or by its number where it has none.
    pub(crate) fn action_name(&self, action: usize) -> String {
        action_name(self.model, action)
    }
}

/// An action by its number and, where it has one, its name.
pub(crate) fn action_name(model: &Cmdp, action: usize) -> String {
    match model.names().actions.get(action) {
        Some(name) => format!("{action} {name}"),
        None => action.to_string(),
    }
}

/// The action that a policy takes first in a state.
pub(crate) fn first_action(policy: &Policy, state: usize) -> Option<usize> {
    let actions = match policy {
        Policy::Stationary(actions) => actions,
        Policy::Staged(stages) => stages.first()?,
        Policy::Stochastic(_) | Policy::StagedStochastic(_) => return None,
    };
    actions.get(state).map(|action| action.index())
}

/// `prefix_name`, or `prefix_number` where names are missing or not different from each other.
fn prefixed(prefix: &str, names: &[String], n: usize) -> Vec<String> {
    let different = names.len() == n && names.iter().collect::<HashSet<_>>().len() == n;
    (0..n).map(|i| if different { format!("{prefix}_{}", names[i]) } else { format!("{prefix}_{i}") }).collect()
}
