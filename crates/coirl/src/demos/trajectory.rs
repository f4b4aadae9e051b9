//! Trajectories, and drawing them from a policy.

use crate::dynamics::Transition;
use crate::error::{Error, Result, check_length, check_room};
use crate::model::{ActionId, Criterion, Features, Mdp, Pairs, StateId};
use crate::plan::Policy;
use crate::plan::evaluate::stage_distributions;
use crate::random::{outcome, stream};
use rand::RngExt;

/// States visited and actions taken: one state more than actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trajectory {
    /// s₀ … s_T.
    pub states: Vec<StateId>,
    /// a₀ … a_{T−1}.
    pub actions: Vec<ActionId>,
}

impl Trajectory {
    /// Draws a trajectory of `transitions` steps from the start distribution. The same seed and number give the same
    /// trajectory; different numbers are independent.
    pub fn sample(mdp: &Mdp<'_>, policy: &Policy, transitions: usize, seed: u64, number: u64) -> Result<Self> {
        if let Some(stages) = policy.n_stages()
            && transitions > stages
        {
            return Err(Error::shape("policy (stages)", format!("at least {transitions}"), stages));
        }
        Self::draw(mdp, policy, transitions, &mut stream(seed, "trajectory", number))
    }

    /// Draws a trajectory that ends with probability 1 − γ at each state, so that the plain sum of its features has the
    /// discounted sum as its expectation. Features of states and actions need the action of the last state as well: its
    /// transition is then part of the trajectory.
    pub fn sample_geometric(mdp: &Mdp<'_>, policy: &Policy, seed: u64, number: u64) -> Result<Self> {
        let Criterion::Discounted { discount } = mdp.criterion() else {
            return Err(Error::CriterionMismatch {
                operation: "geometric termination",
                criterion: mdp.criterion().name(),
                hint: "it stands for a discount below 1",
            });
        };
        let mut rng = stream(seed, "geometric trajectory", number);
        let u: f64 = rng.random();
        // P(T ≥ t) = γᵗ; 1 − u is never zero.
        let transitions = if discount == 0.0 { 0 } else { ((1.0 - u).ln() / discount.ln()).floor() as usize };
        let own_action = usize::from(matches!(mdp.features(), Features::StateAction(_)));
        Self::draw(mdp, policy, transitions.saturating_add(own_action), &mut rng)
    }

    fn draw(mdp: &Mdp<'_>, policy: &Policy, transitions: usize, rng: &mut impl RngExt) -> Result<Self> {
        check_room("transitions of a trajectory", &[transitions])?;
        let n_stages = policy.n_stages().unwrap_or(1);
        let stages = stage_distributions(mdp.pairs(), policy, n_stages)?;
        let mut state = outcome(mdp.initial().iter().copied().enumerate(), rng.random());
        let mut trajectory = Self { states: vec![StateId(state as u32)], actions: Vec::with_capacity(transitions) };
        for t in 0..transitions {
            let stage = stages[t.min(n_stages - 1)];
            let pairs = mdp.pairs().of_state(state);
            let pair = outcome(pairs.map(|pair| (pair, stage.share(state, pair))), rng.random());
            state = outcome(mdp.kernel().successors(pair), rng.random());
            trajectory.actions.push(mdp.pairs().action(pair));
            trajectory.states.push(StateId(state as u32));
        }
        Ok(trajectory)
    }

    /// Σ γᵗ φ along the path: one term per state, or per action where features depend on it.
    pub fn discounted_features(&self, mdp: &Mdp<'_>, gamma: f64) -> Result<Vec<f64>> {
        let per_state = matches!(mdp.features(), Features::State { .. });
        let mut sum = vec![0.0; mdp.features().n_features()];
        let mut scale = 1.0;
        for t in 0..self.actions.len() + usize::from(per_state) {
            let pair = if per_state { 0 } else { self.pair(mdp.pairs(), t)? };
            mdp.features().add_scaled(self.states[t].index(), pair, scale, &mut sum);
            scale *= gamma;
        }
        Ok(sum)
    }

    /// Its steps one by one.
    pub fn transitions(&self) -> impl ExactSizeIterator<Item = Transition> + '_ {
        let step = |(&action, ends): (&ActionId, &[StateId])| Transition { state: ends[0], action, next: ends[1] };
        self.actions.iter().zip(self.states.windows(2)).map(step)
    }

    /// The first `transitions` of it.
    pub fn truncated(&self, transitions: usize) -> Self {
        let n = transitions.min(self.actions.len());
        Self { states: self.states[..=n].to_vec(), actions: self.actions[..n].to_vec() }
    }

    /// Stretches of nearly the same length, one after the other: so many, or one for each action where there are fewer.
    pub(crate) fn in_stretches(&self, n: usize) -> impl Iterator<Item = Self> + '_ {
        let (actions, n) = (self.actions.len(), n.min(self.actions.len()).max(1));
        (0..n).map(move |at| (at * actions / n, (at + 1) * actions / n)).map(|(from, to)| Self {
            states: self.states[from..=to].to_vec(),
            actions: self.actions[from..to].to_vec(),
        })
    }

    /// The pair chosen at step t.
    pub(crate) fn pair(&self, pairs: &Pairs, t: usize) -> Result<usize> {
        let (state, action) = (self.states[t].index(), self.actions[t]);
        pairs.find(state, action.index()).ok_or(Error::ActionNotAdmissible { state, action: i64::from(action.0) })
    }

    /// Refuses states that do not exist, actions that may not be taken and paths with a step too many.
    pub(crate) fn check(&self, pairs: &Pairs) -> Result<()> {
        check_length("states of a trajectory (one more than actions)", self.actions.len() + 1, self.states.len())?;
        if let Some(state) = self.states.iter().find(|state| state.index() >= pairs.n_states()) {
            return Err(Error::shape("state of a trajectory", format!("below {}", pairs.n_states()), state.0));
        }
        (0..self.actions.len()).try_for_each(|t| self.pair(pairs, t).map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step is in one stretch, and a stretch begins where the last one ended.
    #[test]
    fn stretches_are_the_path() {
        for actions in [0, 1, 3, 10, 47] {
            let path = Trajectory {
                states: (0..=actions).map(StateId).collect(),
                actions: (0..actions).map(|t| ActionId(t % 3)).collect(),
            };
            let stretches: Vec<Trajectory> = path.in_stretches(10).collect();
            assert_eq!(stretches.len(), (actions as usize).clamp(1, 10));
            let all: Vec<ActionId> = stretches.iter().flat_map(|own| own.actions.clone()).collect();
            assert_eq!(all, path.actions);
            assert!(stretches.iter().all(|own| own.states.len() == own.actions.len() + 1));
            assert!(stretches.windows(2).all(|pair| pair[0].states.last() == pair[1].states.first()));
        }
    }
}
