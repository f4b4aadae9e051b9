//! Contexts with the policies that are optimal for them, one or two bytes per state, equal policies once.

use super::bounds::distance;
use crate::error::{Error, Result, check_finite, check_length};
use crate::model::{ActionId, Pairs};
use crate::plan::Policy;
use std::collections::HashMap;
use std::sync::Arc;

/// Most actions that two bytes can name.
const MOST_ACTIONS: usize = 1 << 16;

/// One action per state, in as few bytes as name all actions of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CompactPolicy {
    Bytes(Box<[u8]>),
    Words(Box<[u16]>),
}

impl CompactPolicy {
    /// Of a stationary policy whose actions are admissible.
    fn new(pairs: &Pairs, policy: &Policy) -> Result<Self> {
        let Policy::Stationary(actions) = policy else {
            return Err(Error::shape("policy of a library", "one action per state", "another kind of policy"));
        };
        Policy::stationary(pairs, actions.clone())?;
        if pairs.n_actions() > MOST_ACTIONS {
            let (what, count) = ("actions of a model with a library", pairs.n_actions());
            return Err(Error::TooLarge { what, count, limit: MOST_ACTIONS });
        }
        Ok(match pairs.n_actions() {
            0..=256 => CompactPolicy::Bytes(actions.iter().map(|action| action.0 as u8).collect()),
            _ => CompactPolicy::Words(actions.iter().map(|action| action.0 as u16).collect()),
        })
    }

    pub(crate) fn action(&self, state: usize) -> ActionId {
        match self {
            CompactPolicy::Bytes(actions) => ActionId(actions[state].into()),
            CompactPolicy::Words(actions) => ActionId(actions[state].into()),
        }
    }

    pub(super) fn n_states(&self) -> usize {
        match self {
            CompactPolicy::Bytes(actions) => actions.len(),
            CompactPolicy::Words(actions) => actions.len(),
        }
    }

    fn policy(&self) -> Policy {
        Policy::Stationary((0..self.n_states()).map(|state| self.action(state)).collect())
    }
}

/// The contexts that were planned for, as coefficients, and the policy of each.
#[derive(Debug, Clone)]
pub struct KnownContexts {
    pairs: Arc<Pairs>,
    size: usize,
    coefficients: Vec<f64>,
    policy_of: Vec<u32>,
    policies: Vec<Arc<CompactPolicy>>,
    by_policy: HashMap<Arc<CompactPolicy>, u32>,
}

impl KnownContexts {
    pub(super) fn new(pairs: Arc<Pairs>, size: usize) -> Self {
        Self {
            pairs,
            size,
            coefficients: Vec::new(),
            policy_of: Vec::new(),
            policies: Vec::new(),
            by_policy: HashMap::new(),
        }
    }

    /// Numbers per context.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Number of contexts.
    pub fn len(&self) -> usize {
        self.policy_of.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.policy_of.is_empty()
    }

    /// Number of distinct policies.
    pub fn n_policies(&self) -> usize {
        self.policies.len()
    }

    /// The coefficients of a known context.
    pub fn coefficients(&self, index: usize) -> &[f64] {
        &self.coefficients[index * self.size..(index + 1) * self.size]
    }

    /// Number of the policy that is optimal in a known context.
    pub fn policy_of(&self, index: usize) -> usize {
        self.policy_of[index] as usize
    }

    /// A distinct policy.
    pub fn policy(&self, number: usize) -> Policy {
        self.policies[number].policy()
    }

    /// Distinct policies as they are kept.
    pub(crate) fn compact(&self) -> &[Arc<CompactPolicy>] {
        &self.policies
    }

    /// The nearest known context and its distance in ‖·‖∞, the first of equals.
    pub fn nearest(&self, coefficients: &[f64]) -> Option<(usize, f64)> {
        let each = (0..self.len()).map(|i| (i, distance(self.coefficients(i), coefficients)));
        each.reduce(|best, next| if next.1 < best.1 { next } else { best })
    }

    /// Refuses coefficients of the wrong length.
    pub(super) fn check(&self, coefficients: &[f64]) -> Result<()> {
        if coefficients.len() != self.size {
            let reason = format!("it has {} numbers; expected {}", coefficients.len(), self.size);
            return Err(Error::InvalidContext { values: coefficients.to_vec(), reason });
        }
        check_finite("coefficients of a context", coefficients)
    }

    /// Adds a context with its policy; returns whether the policy is new.
    pub(super) fn add(&mut self, coefficients: &[f64], policy: &Policy) -> Result<bool> {
        self.check(coefficients)?;
        let compact = Arc::new(CompactPolicy::new(&self.pairs, policy)?);
        let known = self.by_policy.get(&compact).copied();
        let number = known.unwrap_or_else(|| {
            self.policies.push(compact.clone());
            self.by_policy.insert(compact, self.policies.len() as u32 - 1);
            self.policies.len() as u32 - 1
        });
        let repeated = (0..self.len()).any(|i| self.policy_of[i] == number && self.coefficients(i) == coefficients);
        if !repeated {
            self.coefficients.extend_from_slice(coefficients);
            self.policy_of.push(number);
        }
        Ok(known.is_none())
    }

    /// Coefficients, row by row, and the number of the policy of each context.
    pub(crate) fn parts(&self) -> (&[f64], &[u32]) {
        (&self.coefficients, &self.policy_of)
    }

    /// An empty list of the same kind, filled with these. Refuses numbers that do not follow from the policies.
    pub(crate) fn filled(&self, coefficients: &[f64], policy_of: &[u32], policies: &[Policy]) -> Result<Self> {
        let mut filled = Self::new(self.pairs.clone(), self.size);
        check_length("contexts of a library", self.size * policy_of.len(), coefficients.len())?;
        for (row, &number) in coefficients.chunks_exact(self.size.max(1)).zip(policy_of) {
            let policy = policies.get(number as usize);
            filled.add(
                row,
                policy.ok_or_else(|| Error::shape("policy_of", format!("below {}", policies.len()), number))?,
            )?;
        }
        if filled.policy_of != policy_of || filled.n_policies() != policies.len() {
            let found = "a policy that is repeated, unused or out of order";
            return Err(Error::shape("policy_of", "each policy once, in the order of the contexts", found));
        }
        Ok(filled)
    }

    /// Keeps some policies, with the contexts that they are optimal for.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let old = std::mem::replace(self, Self::new(self.pairs.clone(), self.size));
        let mut renumbered = vec![0; keep.len()];
        for (number, policy) in old.policies.iter().enumerate().filter(|(number, _)| keep[*number]) {
            renumbered[number] = self.policies.len() as u32;
            self.by_policy.insert(policy.clone(), self.policies.len() as u32);
            self.policies.push(policy.clone());
        }
        for i in (0..old.len()).filter(|&i| keep[old.policy_of(i)]) {
            self.coefficients.extend_from_slice(old.coefficients(i));
            self.policy_of.push(renumbered[old.policy_of(i)]);
        }
    }
}
