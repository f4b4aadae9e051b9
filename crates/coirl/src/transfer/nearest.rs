//! The policy of the nearest known context, for dynamics Σ cᵢPᵢ that change with the context.
//!
//! What a policy is worth under one kernel says nothing exact about another, so nothing but the policies is kept. The
//! bound is the second one of [`super::bounds`]. Cost: one pass over the known contexts.

use super::basis::Basis;
use super::bounds::{Constants, TheoremBound};
use super::known::KnownContexts;
use super::library::{check_criterion, empty};
use crate::error::{Error, Result};
use crate::mapping::LinearMapping;
use crate::model::{ActionId, Cmdp, Context, Dynamics, StateId};
use crate::plan::Policy;

/// Known contexts of a mixture with their policies.
#[derive(Debug, Clone)]
pub struct NearestContexts {
    constants: Constants,
    known: KnownContexts,
}

impl NearestContexts {
    /// Without a context so far. For models whose dynamics are a mixture: the theorem needs P_c linear in c.
    pub fn new(model: &Cmdp, mapping: &LinearMapping) -> Result<Self> {
        check_criterion(model)?;
        if !matches!(model.dynamics(), Dynamics::Mixture(_)) {
            return Err(Error::InvalidSetting {
                name: "transfer",
                value: "nearest context".into(),
                reason: "it is for mixtures of kernels; with shared dynamics, or inside a cluster, use a policy library",
            });
        }
        let rewards = Basis::linear(mapping).rewards(model)?;
        let constants = Constants::new(&rewards, model.criterion().discount());
        Ok(Self { constants, known: KnownContexts::new(model.pairs().clone(), mapping.dimension()) })
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
        self.known.add(context.values(), policy).map(|_| ())
    }

    /// The policy of the nearest known context, and the theorem's bound.
    pub fn transfer(&self, context: &Context) -> Result<(Policy, TheoremBound)> {
        let bound = self.bound(context)?;
        Ok((self.known.policy(self.known.policy_of(bound.nearest)), bound))
    }

    /// The theorem's bound.
    pub fn bound(&self, context: &Context) -> Result<TheoremBound> {
        self.known.check(context.values())?;
        let (nearest, distance) = self.known.nearest(context.values()).ok_or_else(empty)?;
        // Kernels are mixed by contexts that sum to one exactly; what is typed does so to a few digits.
        let off = |c: &[f64]| (1.0 - c.iter().sum::<f64>()).abs();
        let distance = distance + off(context.values()) + off(self.known.coefficients(nearest));
        Ok(TheoremBound {
            bound: self.constants.nearest_rate() * distance,
            printed: self.constants.printed_nearest(distance),
            distance,
            nearest,
        })
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
