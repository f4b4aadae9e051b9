//! Which pairs are *known*: what follows them was observed, and people take them. The others are admissible, but nobody takes them;
//! a model may let them lead to an absorbing state that stands for whatever happens then.
//!
//! Planners look at every admissible pair: their rewards keep them away from what is not known. An agent that acts without planning,
//! at random above all, keeps to the known pairs.

use super::cmdp::Cmdp;
use super::pairs::StateId;
use crate::error::{Error, Result, check_length};

impl Cmdp {
    /// Says which pairs are known: one flag per pair, in pair order. Every state needs a known pair.
    pub fn with_known_pairs(mut self, known: Vec<bool>) -> Result<Self> {
        check_length("known pairs", self.pairs().len(), known.len())?;
        let pairs = self.pairs();
        if let Some(state) = (0..pairs.n_states()).find(|&s| !known[pairs.of_state(s)].contains(&true)) {
            return Err(Error::NoKnownAction { state });
        }
        self.known = Some(known);
        Ok(self)
    }

    /// A flag per pair, where the model says which are known.
    pub fn known_pairs(&self) -> Option<&[bool]> {
        self.known.as_deref()
    }

    /// Whether a pair is known; all are where nothing was said.
    pub fn is_known(&self, pair: usize) -> bool {
        self.known.as_ref().is_none_or(|known| known.get(pair) == Some(&true))
    }

    /// The known pairs of a state, ascending; at least one.
    pub fn known_of_state(&self, state: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        self.pairs().of_state(state).filter(|&pair| self.is_known(pair))
    }

    /// The states in which a decision is made: more than one known pair, and some context in which the state can be left.
    pub fn states_with_a_choice(&self) -> Vec<StateId> {
        let choice = |s: &usize| self.known_of_state(*s).nth(1).is_some() && !self.dynamics().is_absorbing(*s);
        (0..self.n_states()).filter(choice).map(|s| StateId(s as u32)).collect()
    }
}
