//! The policy of the nearest known context, for dynamics Σ cᵢPᵢ that change with the context.
//!
//! What a policy is worth under one kernel says nothing exact about another, so nothing but the policies is kept. The
//! bound is the second one of [`super::bounds`]; of a network, the nearest context is the one with the least bound, which sees
//! rewards and contexts. Cost: one pass over the known contexts.

use super::basis::{Basis, Coefficients};
use super::bounds::{Constants, TheoremBound, distance, divided};
use super::known::KnownContexts;
use super::library::{check_criterion, empty};
use crate::error::{Error, Result};
use crate::mapping::{LearnedMapping, RewardMapping};
use crate::model::{ActionId, Cmdp, Context, Dynamics, StateId};
use crate::plan::Policy;

/// Known contexts of a mixture with their policies.
#[derive(Debug, Clone)]
pub struct NearestContexts {
    mapping: LearnedMapping,
    constants: Constants,
    /// Contexts, each followed by its reward weights where the mapping is a network.
    known: KnownContexts,
}

impl NearestContexts {
    /// Without a context so far. For models whose dynamics are a mixture: the theorem needs P_c linear in c.
    pub fn new(model: &Cmdp, mapping: impl Into<LearnedMapping>) -> Result<Self> {
        let mapping = mapping.into();
        check_criterion(model)?;
        if !matches!(model.dynamics(), Dynamics::Mixture(_)) {
            return Err(Error::InvalidSetting {
                name: "transfer",
                value: "nearest context".into(),
                reason: "it is for mixtures of kernels; with shared dynamics, or inside a cluster, use a policy library",
            });
        }
        let rewards = Basis::of(&mapping).rewards(model)?;
        let constants = Constants::new(&rewards, model.criterion().discount());
        let size = match &mapping {
            LearnedMapping::Linear(mapping) => mapping.dimension(),
            LearnedMapping::Neural(mapping) => mapping.dimension() + mapping.n_features(),
        };
        Ok(Self { constants, known: KnownContexts::new(model.pairs().clone(), size), mapping })
    }

    /// The contexts and policies.
    pub fn known(&self) -> &KnownContexts {
        &self.known
    }

    /// The constants of the theorems.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// Adds a context with its optimal policy.
    pub fn add(&mut self, context: &Context, policy: &Policy) -> Result<()> {
        self.known.add(&self.key(context)?, policy).map(|_| ())
    }

    /// The policy of the nearest known context, and the theorem's bound.
    pub fn transfer(&self, context: &Context) -> Result<(Policy, TheoremBound)> {
        let bound = self.bound(context)?;
        Ok((self.known.policy(self.known.policy_of(bound.nearest)), bound))
    }

    /// The theorem's bound.
    pub fn bound(&self, context: &Context) -> Result<TheoremBound> {
        let key = self.key(context)?;
        self.known.check(&key)?;
        match &self.mapping {
            LearnedMapping::Linear(_) => {
                let (nearest, distance) = self.known.nearest(&key).ok_or_else(empty)?;
                let distance = distance + off(&key) + off(self.known.coefficients(nearest));
                Ok(TheoremBound {
                    bound: self.constants.nearest_rate() * distance,
                    printed: self.constants.printed_nearest(distance),
                    distance,
                    distance_of: Coefficients::Contexts,
                    nearest,
                })
            }
            LearnedMapping::Neural(_) => {
                let each = (0..self.known.len()).map(|i| (i, self.network_distance(&key, self.known.coefficients(i))));
                let nearest = each.reduce(|best, next| if next.1 < best.1 { next } else { best });
                let (nearest, distance) = nearest.ok_or_else(empty)?;
                let bound = self.constants.improvement_rate() * distance;
                let printed = divided(bound, self.constants.discount);
                Ok(TheoremBound { bound, printed, distance, distance_of: Coefficients::Weights, nearest })
            }
        }
    }

    /// ‖f(c) − f(c_j)‖∞ + γ/(1−γ)·‖f(c_j)‖∞·‖c − c_j‖₁.
    fn network_distance(&self, key: &[f64], known: &[f64]) -> f64 {
        let d = self.mapping.dimension();
        let ((context, weights), (known_context, known_weights)) = (key.split_at(d), known.split_at(d));
        let moved: f64 = context.iter().zip(known_context).map(|(x, y)| (x - y).abs()).sum();
        let largest = known_weights.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let future = self.constants.discount / (1.0 - self.constants.discount);
        distance(weights, known_weights) + future * largest * (moved + off(context) + off(known_context))
    }

    /// What a context is known by.
    fn key(&self, context: &Context) -> Result<Vec<f64>> {
        let weights = self.mapping.weights(context)?;
        match &self.mapping {
            LearnedMapping::Linear(_) => Ok(context.values().to_vec()),
            LearnedMapping::Neural(_) => Ok([context.values(), &weights].concat()),
        }
    }

    pub(crate) fn fill(&mut self, known: KnownContexts) {
        self.known = known;
    }

    /// The action of the nearest known context's policy in one state.
    pub fn act(&self, context: &Context, state: StateId) -> Result<ActionId> {
        let policy = &self.known.compact()[self.known.policy_of(self.bound(context)?.nearest)];
        let n_states = policy.n_states();
        if state.index() >= n_states {
            return Err(Error::shape("state", format!("below {n_states}"), state.0));
        }
        Ok(policy.action(state.index()))
    }

    /// Leaves out the policies of contexts that are nearest to none of these; returns how many.
    pub fn prune(&mut self, contexts: &[Context]) -> Result<usize> {
        // Without contexts there is nothing to judge by.
        if contexts.is_empty() || self.known.is_empty() {
            return Ok(0);
        }
        let mut keep = vec![false; self.known.n_policies()];
        for context in contexts {
            keep[self.known.policy_of(self.bound(context)?.nearest)] = true;
        }
        self.known.retain(&keep);
        Ok(keep.iter().filter(|kept| !**kept).count())
    }
}

/// How far a context is from the simplex: kernels are mixed by contexts that sum to one exactly, and what is typed does so to a few
/// digits.
fn off(context: &[f64]) -> f64 {
    (1.0 - context.iter().sum::<f64>()).abs()
}
