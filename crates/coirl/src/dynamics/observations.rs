//! Transitions with the contexts they were seen in.

use super::counts::{Transition, TransitionCounts};
use super::tally::Tally;
use crate::error::Result;
use crate::error::check_length;
use crate::model::{Context, Pairs};
use std::collections::HashMap;
use std::sync::Arc;

/// n(c, s, a, s'). Equal contexts are one context; memory is proportional to the distinct (context, state, action, next).
#[derive(Debug, Clone)]
pub struct Observations {
    pairs: Arc<Pairs>,
    contexts: Vec<Context>,
    /// Contexts by the bits of their numbers.
    numbers: HashMap<Vec<u64>, u32>,
    /// Per pair, by (context, next): contexts come one after the other, so that most counts are appended.
    rows: Vec<Tally<(u32, u32)>>,
    n_transitions: u64,
}

impl Observations {
    /// Nothing seen yet.
    pub fn new(pairs: Arc<Pairs>) -> Self {
        let rows = vec![Tally::default(); pairs.len()];
        Self { pairs, contexts: Vec::new(), numbers: HashMap::new(), rows, n_transitions: 0 }
    }

    /// Counts transitions seen in a context; those before a refused one stay counted. Contexts must have one length.
    pub fn add(&mut self, context: &Context, transitions: impl IntoIterator<Item = Transition>) -> Result<()> {
        let number = self.number(context)?;
        for transition in transitions {
            let pair = transition.pair(&self.pairs, self.n_transitions)?;
            self.rows[pair].add((number, transition.next.0), 1);
            self.n_transitions += 1;
        }
        Ok(())
    }

    fn number(&mut self, context: &Context) -> Result<u32> {
        if let Some(first) = self.contexts.first() {
            check_length("context of a transition", first.values().len(), context.values().len())?;
        }
        let bits = context.values().iter().map(|x| x.to_bits()).collect();
        Ok(*self.numbers.entry(bits).or_insert_with(|| {
            self.contexts.push(context.clone());
            self.contexts.len() as u32 - 1
        }))
    }

    /// The admissible pairs.
    pub fn pairs(&self) -> &Arc<Pairs> {
        &self.pairs
    }

    /// The distinct contexts, in the order in which they were first seen.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Number of transitions counted.
    pub fn n_transitions(&self) -> u64 {
        self.n_transitions
    }

    /// Number of distinct (context, state, action, next).
    pub fn n_distinct(&self) -> usize {
        self.rows.iter().map(|row| row.entries().len()).sum()
    }

    /// ((context, next), count) of a pair, ascending.
    pub(super) fn row(&self, pair: usize) -> &[((u32, u32), u64)] {
        self.rows[pair].entries()
    }

    /// The counts of all contexts together.
    pub fn pooled(&self) -> TransitionCounts {
        let mut counts = TransitionCounts::new(self.pairs.clone());
        for (pair, row) in self.rows.iter().enumerate() {
            row.entries().iter().for_each(|&((_, next), times)| counts.add_times(pair, next, times));
        }
        counts
    }

    /// The counts of groups of contexts; `group` has one entry per context.
    pub(super) fn by_group(&self, group: &[usize], n_groups: usize) -> Vec<TransitionCounts> {
        let mut counts = vec![TransitionCounts::new(self.pairs.clone()); n_groups];
        for (pair, row) in self.rows.iter().enumerate() {
            for &((context, next), times) in row.entries() {
                counts[group[context as usize]].add_times(pair, next, times);
            }
        }
        counts
    }
}
