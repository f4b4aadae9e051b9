//! Policies: which action in which state.

use crate::error::{Error, Result, check_length};
use crate::model::{ActionId, Cmdp, Pairs};

/// A policy whose actions are admissible.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// One action per state, at all times.
    Stationary(Vec<ActionId>),
    /// One distribution over the admissible actions per state: a probability per pair.
    Stochastic(Vec<f64>),
    /// One action per state for each of the decisions of a finite horizon.
    Staged(Vec<Vec<ActionId>>),
    /// One distribution per state for each of the decisions of a finite horizon.
    StagedStochastic(Vec<Vec<f64>>),
}

impl Policy {
    /// One action per state.
    pub fn stationary(pairs: &Pairs, actions: Vec<ActionId>) -> Result<Self> {
        pairs_of(pairs, &actions)?;
        Ok(Policy::Stationary(actions))
    }

    /// A probability per pair, in pair order.
    pub fn stochastic(pairs: &Pairs, probabilities: Vec<f64>) -> Result<Self> {
        check_length("policy (probabilities per pair)", pairs.len(), probabilities.len())?;
        crate::error::check_finite("policy", &probabilities)?;
        for state in 0..pairs.n_states() {
            let row = &probabilities[pairs.of_state(state)];
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > 1e-9 || row.iter().any(|&p| p < 0.0) {
                return Err(Error::PolicyNotStochastic { state, sum });
            }
        }
        Ok(Policy::Stochastic(probabilities))
    }

    /// Every admissible action with equal probability.
    pub fn uniform(pairs: &Pairs) -> Self {
        let share = |state| vec![1.0 / pairs.of_state(state).len() as f64; pairs.of_state(state).len()];
        Policy::Stochastic((0..pairs.n_states()).flat_map(share).collect())
    }

    /// The actions of a stationary deterministic policy.
    pub fn actions(&self) -> Option<&[ActionId]> {
        match self {
            Policy::Stationary(actions) => Some(actions),
            Policy::Stochastic(_) | Policy::Staged(_) | Policy::StagedStochastic(_) => None,
        }
    }

    /// The number of decisions, for policies that change with time.
    pub fn n_stages(&self) -> Option<usize> {
        match self {
            Policy::Stationary(_) | Policy::Stochastic(_) => None,
            Policy::Staged(stages) => Some(stages.len()),
            Policy::StagedStochastic(stages) => Some(stages.len()),
        }
    }

    /// A policy over some pairs as one over more of them, which it never takes.
    pub(crate) fn over(self, own: &Pairs, all: &Pairs) -> Self {
        let spread = |probabilities: &Vec<f64>| {
            let mut wide = vec![0.0; all.len()];
            for state in 0..own.n_states() {
                for pair in own.of_state(state) {
                    if let Some(to) = all.find(state, own.action(pair).index()) {
                        wide[to] = probabilities[pair];
                    }
                }
            }
            wide
        };
        match self {
            Policy::Stochastic(probabilities) if own.len() != all.len() => Policy::Stochastic(spread(&probabilities)),
            Policy::StagedStochastic(stages) if own.len() != all.len() => {
                Policy::StagedStochastic(stages.iter().map(spread).collect())
            }
            same => same,
        }
    }

    pub(crate) fn from_pairs(pairs: &Pairs, chosen: &[u32]) -> Self {
        Policy::Stationary(chosen.iter().map(|&pair| pairs.action(pair as usize)).collect())
    }
}

impl Cmdp {
    /// Acting at random: every known action of a state with equal probability.
    pub fn random_policy(&self) -> Policy {
        let mut shares = vec![0.0; self.pairs().len()];
        for state in 0..self.n_states() {
            let known = self.known_of_state(state);
            let share = 1.0 / known.clone().count() as f64;
            known.for_each(|pair| shares[pair] = share);
        }
        Policy::Stochastic(shares)
    }
}

/// The pair of each state under these actions.
pub(crate) fn pairs_of(pairs: &Pairs, actions: &[ActionId]) -> Result<Vec<u32>> {
    check_length("policy", pairs.n_states(), actions.len())?;
    let find = |(state, action): (usize, &ActionId)| match pairs.find(state, action.index()) {
        Some(pair) => Ok(pair as u32),
        None => Err(Error::ActionNotAdmissible { state, action: i64::from(action.0) }),
    };
    actions.iter().enumerate().map(find).collect()
}
