//! Trajectories, and drawing them from a policy.

use crate::error::{Error, Result};
use crate::model::{ActionId, Mdp, StateId};
use crate::plan::Policy;
use crate::plan::evaluate::stage_distributions;
use crate::random::stream;
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
        if let Policy::Staged(stages) = policy
            && transitions > stages.len()
        {
            return Err(Error::shape("policy (stages)", format!("at least {transitions}"), stages.len()));
        }
        let n_stages = if let Policy::Staged(stages) = policy { stages.len() } else { 1 };
        let stages = stage_distributions(mdp.pairs(), policy, n_stages)?;
        let mut rng = stream(seed, "trajectory", number);
        let mut state = draw(mdp.initial().iter().copied().enumerate(), rng.random());
        let mut trajectory = Self { states: vec![StateId(state as u32)], actions: Vec::with_capacity(transitions) };
        for t in 0..transitions {
            let stage = stages[t.min(n_stages - 1)];
            let pairs = mdp.pairs().of_state(state);
            let pair = draw(pairs.map(|pair| (pair, stage.share(state, pair))), rng.random());
            state = draw(mdp.kernel().successors(pair), rng.random());
            trajectory.actions.push(mdp.pairs().action(pair));
            trajectory.states.push(StateId(state as u32));
        }
        Ok(trajectory)
    }
}

/// The outcome at this quantile; the last possible one where rounding leaves a remainder.
fn draw(outcomes: impl Iterator<Item = (usize, f64)>, mut quantile: f64) -> usize {
    let mut last = 0;
    for (outcome, p) in outcomes {
        if p > 0.0 {
            last = outcome;
            if quantile < p {
                return outcome;
            }
            quantile -= p;
        }
    }
    last
}
