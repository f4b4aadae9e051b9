//! Which actions may be taken in which states.

use crate::error::{Error, Result};
use std::ops::Range;

/// Index of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct StateId(pub u32);

/// Index of an action, in the numbering of the whole model (not of the state's admissible set).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ActionId(pub u32);

impl StateId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ActionId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The admissible (state, action) pairs, numbered state by state with actions ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    n_actions: u32,
    offsets: Vec<u32>,
    actions: Vec<u32>,
}

impl Pairs {
    /// Every action in every state.
    pub fn all(n_states: usize, n_actions: usize) -> Result<Self> {
        let len = checked_size(n_states, n_actions)?;
        Ok(Self {
            n_actions: n_actions as u32,
            offsets: (0..=n_states).map(|s| (s * n_actions) as u32).collect(),
            actions: (0..len).map(|pair| (pair % n_actions) as u32).collect(),
        })
    }

    /// The pairs where `mask[s * n_actions + a]` holds.
    pub fn from_mask(n_states: usize, n_actions: usize, mask: &[bool]) -> Result<Self> {
        let len = checked_size(n_states, n_actions)?;
        if mask.len() != len {
            return Err(Error::shape("admissible", format!("[{n_states}, {n_actions}]"), format!("[{}]", mask.len())));
        }
        let mut offsets = Vec::with_capacity(n_states + 1);
        let mut actions = Vec::new();
        offsets.push(0);
        for (state, row) in mask.chunks_exact(n_actions).enumerate() {
            let before = actions.len();
            actions.extend((0..n_actions as u32).filter(|&a| row[a as usize]));
            if actions.len() == before {
                return Err(Error::NoAdmissibleAction { state });
            }
            offsets.push(actions.len() as u32);
        }
        Ok(Self { n_actions: n_actions as u32, offsets, actions })
    }

    /// From the actions of every state, ascending, and where those of each state begin.
    pub(super) fn from_parts(n_actions: usize, offsets: Vec<u32>, actions: Vec<u32>) -> Self {
        debug_assert_eq!(offsets.last().map(|&end| end as usize), Some(actions.len()));
        Self { n_actions: n_actions as u32, offsets, actions }
    }

    /// Refuses more pairs than can be numbered.
    pub(crate) fn check_size(n_states: usize, n_actions: usize) -> Result<()> {
        checked_size(n_states, n_actions).map(drop)
    }

    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of actions of the model, admissible somewhere or not.
    pub fn n_actions(&self) -> usize {
        self.n_actions as usize
    }

    /// Number of admissible pairs.
    #[allow(clippy::len_without_is_empty)] // never empty: every state has an action
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// The pairs of a state.
    pub fn of_state(&self, state: usize) -> Range<usize> {
        self.offsets[state] as usize..self.offsets[state + 1] as usize
    }

    /// The action of a pair.
    pub fn action(&self, pair: usize) -> ActionId {
        ActionId(self.actions[pair])
    }

    /// The state of a pair.
    pub fn state(&self, pair: usize) -> StateId {
        StateId(self.offsets.partition_point(|&first| first as usize <= pair) as u32 - 1)
    }

    /// The pair of a state and an action, if admissible.
    pub fn find(&self, state: usize, action: usize) -> Option<usize> {
        let range = self.of_state(state);
        let action = u32::try_from(action).ok()?;
        self.actions[range.clone()].binary_search(&action).ok().map(|i| range.start + i)
    }

    /// Whether every action is admissible in every state.
    pub fn is_full(&self) -> bool {
        self.len() == self.n_states() * self.n_actions()
    }

    /// The admissible sets as a mask over `s * n_actions + a`.
    pub fn mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.n_states() * self.n_actions()];
        for state in 0..self.n_states() {
            for pair in self.of_state(state) {
                mask[state * self.n_actions() + self.actions[pair] as usize] = true;
            }
        }
        mask
    }
}

/// Number of pairs if all were admissible, when 32-bit indices can name them.
fn checked_size(n_states: usize, n_actions: usize) -> Result<usize> {
    if n_states == 0 || n_actions == 0 {
        return Err(Error::EmptyModel { n_states, n_actions });
    }
    let limit = u32::MAX as usize / 2;
    match n_states.checked_mul(n_actions) {
        Some(len) if len <= limit => Ok(len),
        _ => Err(Error::TooLarge { what: "states × actions", count: n_states.saturating_mul(n_actions), limit }),
    }
}
