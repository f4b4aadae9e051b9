//! How often each action led from one state to another.
//!
//! Transitions come in any order and are only counted: memory is proportional to the admissible pairs and the distinct
//! (state, action, next) that were seen, whatever the number of transitions.

use super::support::Support;
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::model::{ActionId, Pairs, StateId};
use std::sync::Arc;

/// Transitions that are sorted at a time before they are counted; eight megabytes.
const BLOCK: usize = 1 << 20;

/// One step that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    /// s.
    pub state: StateId,
    /// a.
    pub action: ActionId,
    /// s'.
    pub next: StateId,
}

impl Transition {
    /// The pair, if the transition is one of the model. `number` says which transition it is in the message.
    pub(super) fn pair(self, pairs: &Pairs, number: u64) -> Result<usize> {
        let (state, n_states) = (self.state.index(), pairs.n_states());
        if state >= n_states {
            return Err(Error::StateOutOfRange { number, state, n_states });
        }
        let refused = Error::ActionNotAdmissible { state, action: i64::from(self.action.0) };
        let pair = pairs.find(state, self.action.index()).ok_or(refused)?;
        if self.next.index() >= n_states {
            let (action, next) = (self.action.index(), i64::from(self.next.0));
            return Err(Error::SuccessorOutOfRange { state, action, next, n_states });
        }
        Ok(pair)
    }
}

/// n(s, a, s') over the admissible pairs of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionCounts {
    pairs: Arc<Pairs>,
    rows: Vec<Tally<u32>>,
    n_transitions: u64,
}

impl TransitionCounts {
    /// Nothing seen yet.
    pub fn new(pairs: Arc<Pairs>) -> Self {
        Self { rows: vec![Tally::default(); pairs.len()], n_transitions: 0, pairs }
    }

    /// Counts a transition. Refuses states that do not exist and actions that are not admissible.
    pub fn add(&mut self, transition: Transition) -> Result<()> {
        let pair = transition.pair(&self.pairs, self.n_transitions)?;
        self.add_times(pair, transition.next.0, 1);
        Ok(())
    }

    /// Counts transitions; those before a refused one stay counted.
    pub fn add_all(&mut self, transitions: impl IntoIterator<Item = Transition>) -> Result<()> {
        let mut block: Vec<(u32, u32)> = Vec::new();
        for transition in transitions {
            match transition.pair(&self.pairs, self.n_transitions + block.len() as u64) {
                Ok(pair) => block.push((pair as u32, transition.next.0)),
                Err(refused) => {
                    self.add_block(&mut block);
                    return Err(refused);
                }
            }
            if block.len() == BLOCK {
                self.add_block(&mut block);
            }
        }
        self.add_block(&mut block);
        Ok(())
    }

    /// Equal transitions are counted at once, and rows are met in the order in which they lie in memory.
    fn add_block(&mut self, block: &mut Vec<(u32, u32)>) {
        block.sort_unstable();
        for same in block.chunk_by(|a, b| a == b) {
            self.add_times(same[0].0 as usize, same[0].1, same.len() as u64);
        }
        block.clear();
    }

    /// Adds what others have counted over the same pairs.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.pairs != other.pairs {
            let what = |pairs: &Pairs| format!("{} states with {} pairs", pairs.n_states(), pairs.len());
            return Err(Error::shape("transition counts", what(&self.pairs), what(&other.pairs)));
        }
        other.iter().for_each(|(pair, next, times)| self.add_times(pair, next as u32, times));
        Ok(())
    }

    pub(super) fn add_times(&mut self, pair: usize, next: u32, times: u64) {
        self.rows[pair].add(next, times);
        self.n_transitions += times;
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Arc<Pairs> {
        &self.pairs
    }

    /// Number of transitions counted.
    pub fn n_transitions(&self) -> u64 {
        self.n_transitions
    }

    /// Number of distinct (state, action, next).
    pub fn n_distinct(&self) -> usize {
        self.rows.iter().map(|row| row.entries().len()).sum()
    }

    /// Successors of a pair with their counts, successors ascending.
    pub fn successors(&self, pair: usize) -> impl ExactSizeIterator<Item = (usize, u64)> + '_ {
        self.row(pair).iter().map(|&(next, times)| (next as usize, times))
    }

    pub(super) fn row(&self, pair: usize) -> &[(u32, u64)] {
        self.rows[pair].entries()
    }

    /// (pair, next, count) of everything seen, in the order of pairs and successors.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        (0..self.rows.len()).flat_map(|pair| self.successors(pair).map(move |(next, times)| (pair, next, times)))
    }

    /// How often each pair was seen.
    pub fn support(&self) -> Support {
        Support::new(self.pairs.clone(), self.rows.iter().map(|row| row.total() as f64).collect())
    }

    /// Share of the admissible pairs that were never seen.
    pub fn share_unseen(&self) -> f64 {
        self.support().share_unseen()
    }
}
