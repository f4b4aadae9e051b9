//! The experts of the choice model: what they would do in any context, with which probability.

use crate::agent::{Acting, ContextualPolicy};
use crate::error::{Result, check_length};
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, Context};
use crate::objective::choices_of;
use crate::plan::{Policy, SoftMany};
use rayon::prelude::*;

/// How far values may be off, relative to their size.
const TOLERANCE: f64 = 1e-9;

/// Somebody who chooses softly for the reward that a mapping gives the context, and lapses: P(a | s) = (1 − ε) exp(Q − V) + ε/|A(s)|, among
/// known actions.
#[derive(Clone, Copy)]
pub struct Chooser<'f> {
    reward: &'f dyn RewardMapping,
    lapses: f64,
}

impl std::fmt::Debug for Chooser<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chooser").field("lapses", &self.lapses).finish_non_exhaustive()
    }
}

impl<'f> Chooser<'f> {
    /// With ε, for a mapping whose rewards are as long as they were estimated.
    pub fn new(reward: &'f dyn RewardMapping, lapses: f64) -> Self {
        Self { reward, lapses }
    }

    fn policy(&self, model: &Cmdp, choices: &Cmdp, context: &Context, weights: &[f64]) -> Result<Policy> {
        let many = SoftMany::new(choices.mdp(context)?, TOLERANCE)?;
        let block = many.plan::<1>(weights, &[None])?;
        let (pairs, open) = (model.pairs(), choices.pairs());
        let mut policy = vec![0.0; pairs.len()];
        for s in 0..model.n_states() {
            let by_chance = self.lapses / open.of_state(s).len() as f64;
            for own in open.of_state(s) {
                if let Some(pair) = pairs.find(s, open.action(own).index()) {
                    policy[pair] = (1.0 - self.lapses) * block.probability(0, own) + by_chance;
                }
            }
        }
        Ok(Policy::Stochastic(policy))
    }
}

impl ContextualPolicy for Chooser<'_> {
    fn acting(&self, model: &Cmdp, contexts: &[Context]) -> Result<Acting> {
        let weights = self.reward.weights_of_all(contexts)?;
        let k = model.n_features();
        check_length("weights of contexts", contexts.len() * k, weights.len())?;
        let choices = model.restricted(&choices_of(model))?;
        let of = |(context, weights): (&Context, &[f64])| self.policy(model, &choices, context, weights);
        let policies = contexts.par_iter().zip(weights.par_chunks_exact(k)).map(of).collect::<Result<_>>()?;
        Ok(Acting::Following(policies))
    }

    fn reward(&self) -> Option<&dyn RewardMapping> {
        Some(self.reward)
    }
}
