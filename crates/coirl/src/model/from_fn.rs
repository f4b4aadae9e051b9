//! Models from functions of a state and an action, in place of arrays.
//!
//! Blocks of [`BLOCK`] states are filled side by side on the threads of the current pool and appended in order, [`WAVE`] of them at
//! a time: the result has the same bytes for any number of threads, and beside the finished rows only one wave is held. The first
//! error in the order of states and actions is the one that is returned.

use super::cmdp::Cmdp;
use super::criterion::Criterion;
use super::dynamics::Dynamics;
use super::features::{Features, SparseRows};
use super::kernel::{Kernel, ROW_SUM_TOLERANCE, StateRows, clean_row};
use super::pairs::Pairs;
use crate::error::{Error, Result, check_room};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// States that one thread fills at a time.
const BLOCK: usize = 256;
/// Blocks between two appends.
const WAVE: usize = 64;

/// What a function that fails may return.
type AnyError = Box<dyn std::error::Error + Send + Sync>;

impl Cmdp {
    /// A model from two functions of a state and an action, started anywhere with equal probability: where the action leads, with
    /// which probabilities, and φ(s, a). Contexts are anything; see [`with_initial`](Self::with_initial) and
    /// [`with_context_space`](Self::with_context_space).
    ///
    /// An action whose transitions are empty cannot be taken in that state, and has no features. The functions are called
    /// from many threads, in no particular order.
    ///
    /// # Errors
    /// As [`Kernel::from_fn`] and [`Features::from_fn`]. Functions that fail: [`Kernel::try_from_fn`].
    ///
    /// ```
    /// use coirl::model::{Cmdp, Criterion};
    /// use coirl::plan::Planner;
    ///
    /// // A walk to the last of a million places: action 0 stays, action 1 steps ahead and slips back one time in ten.
    /// let last = 999_999;
    /// let walk = |state: usize, action: usize| match (state, action) {
    ///     (s, 0) => vec![(s, 1.0)],
    ///     (s, _) if s == last => vec![], // there is nowhere to go
    ///     (s, _) => vec![(s + 1, 0.9), (s.saturating_sub(1), 0.1)],
    /// };
    /// let arrived = |state: usize, _action: usize| [f64::from(u8::from(state == last))];
    /// let model = Cmdp::from_fn(last + 1, 2, walk, arrived, Criterion::discounted(0.9)?)?;
    /// assert_eq!(model.pairs().len(), 1_999_999);
    ///
    /// let mdp = model.shared_mdp()?;
    /// let plan = Planner::default().plan(&mdp, &mdp.reward(&[1.0])?)?;
    /// assert!((plan.values[last] - 10.0).abs() < 1e-9);
    /// # Ok::<(), coirl::Error>(())
    /// ```
    pub fn from_fn<T, F>(
        n_states: usize,
        n_actions: usize,
        transition: impl Fn(usize, usize) -> T + Sync,
        features: impl Fn(usize, usize) -> F + Sync,
        criterion: Criterion,
    ) -> Result<Self>
    where
        T: IntoIterator<Item = (usize, f64)>,
        F: AsRef<[f64]>,
    {
        let kernel = Kernel::from_fn(n_states, n_actions, transition)?;
        let features = Features::from_fn(kernel.pairs(), features)?;
        Self::new(Dynamics::Shared(kernel), features, vec![1.0 / n_states as f64; n_states], criterion)
    }
}

impl Kernel {
    /// P(· | s, a) from a function that gives the successors of a state and an action with their probabilities.
    ///
    /// Successors may come in any order; repeated ones add up, zeros are dropped. An action without any successor cannot be taken
    /// in that state. The function is called once per state and action, from many threads; the kernel is the same, bit for bit,
    /// whatever their number.
    ///
    /// # Errors
    /// With state and action: a probability that is NaN, negative or above one, a sum that is not one, a successor that does not
    /// exist. A state in which no action can be taken, and more pairs than can be numbered.
    ///
    /// ```
    /// use coirl::model::Kernel;
    ///
    /// let ring = Kernel::from_fn(5, 2, |state, action| [((state + 1 + action) % 5, 0.75), (state, 0.25)])?;
    /// assert_eq!(ring.probability(ring.pairs().find(4, 1).unwrap(), 1), 0.75);
    ///
    /// let refused = Kernel::from_fn(5, 2, |state, _| [(state, if state == 3 { 0.7 } else { 1.0 })]).unwrap_err();
    /// assert_eq!(refused.to_string(), "state 3, action 0: the transition probabilities sum to 0.7; expected 1");
    /// # Ok::<(), coirl::Error>(())
    /// ```
    pub fn from_fn<T: IntoIterator<Item = (usize, f64)>>(
        n_states: usize,
        n_actions: usize,
        transition: impl Fn(usize, usize) -> T + Sync,
    ) -> Result<Self> {
        Self::try_from_fn(n_states, n_actions, |state, action| Ok::<_, Error>(transition(state, action)))
    }

    /// A kernel from a function of state and action that can fail. Of several failures, that of the lowest state and action is returned, as
    /// [`Error::PairFunction`].
    ///
    /// ```
    /// use coirl::model::Kernel;
    ///
    /// let table = ["1", "2", "nowhere"];
    /// let refused = Kernel::try_from_fn(3, 1, |state, _| table[state].parse().map(|next: usize| [(next, 1.0)])).unwrap_err();
    /// assert_eq!(refused.to_string(), "state 2, action 0: invalid digit found in string");
    /// ```
    pub fn try_from_fn<T, E>(
        n_states: usize,
        n_actions: usize,
        transition: impl Fn(usize, usize) -> Result<T, E> + Sync,
    ) -> Result<Self>
    where
        T: IntoIterator<Item = (usize, f64)>,
        E: Into<AnyError>,
    {
        Pairs::check_size(n_states, n_actions)?;
        let fill = |states: Range<usize>| {
            let mut block = Block { rows: StateRows::new(1), ends: Vec::new(), actions: Vec::new() };
            let mut row = Vec::new();
            for state in states {
                block.rows.begin_state();
                let before = block.actions.len();
                for action in 0..n_actions {
                    let successors = transition(state, action).map_err(|error| Error::PairFunction {
                        state,
                        action,
                        source: error.into(),
                    })?;
                    // A successor that no i64 holds is refused like any other that does not exist.
                    let mut entries =
                        successors.into_iter().map(|(next, p)| (i64::try_from(next).unwrap_or(i64::MAX), p)).peekable();
                    if entries.peek().is_some() {
                        clean_row(&mut row, entries, (state, action), n_states, ROW_SUM_TOLERANCE)?;
                        block.rows.push(row.iter().map(|entry| entry.0), row.iter().map(|entry| entry.1));
                        block.actions.push(action as u32);
                    }
                }
                if block.actions.len() == before {
                    return Err(Error::NoAdmissibleAction { state });
                }
                block.ends.push(block.actions.len() as u32);
            }
            Ok(block)
        };
        let mut rows = StateRows::new(1);
        let (mut offsets, mut actions) = (Vec::with_capacity(n_states + 1), Vec::new());
        offsets.push(0);
        in_blocks(n_states, fill, |block: Block| {
            let before = actions.len() as u32;
            offsets.extend(block.ends.iter().map(|end| before + end));
            actions.extend_from_slice(&block.actions);
            rows.append(&block.rows);
        })?;
        actions.shrink_to_fit();
        let (layout, probabilities) = rows.over(Arc::new(Pairs::from_parts(n_actions, offsets, actions)));
        Ok(Self::from_layout(Arc::new(layout), probabilities))
    }
}

/// The rows of a few states.
struct Block {
    rows: StateRows,
    /// Where the pairs of each state end.
    ends: Vec<u32>,
    actions: Vec<u32>,
}

impl Features {
    /// φ(s, a) from a function of a state and an action, kept sparse; called for the pairs only, from many threads. Features of states
    /// alone take less room as [`Features::per_state`].
    ///
    /// # Errors
    /// With state and action: a feature that is not finite, and rows of different lengths.
    ///
    /// ```
    /// use coirl::model::{Features, Pairs};
    ///
    /// let features = Features::from_fn(&Pairs::all(3, 2)?, |state, action| [state as f64, -(action as f64)])?;
    /// assert_eq!(features.n_features(), 2);
    /// # Ok::<(), coirl::Error>(())
    /// ```
    pub fn from_fn<F: AsRef<[f64]>>(pairs: &Pairs, features: impl Fn(usize, usize) -> F + Sync) -> Result<Self> {
        let n_features = features(0, pairs.action(0).index()).as_ref().len();
        check_room("features", &[n_features, pairs.len()])?;
        let fill = |states: Range<usize>| {
            let mut block = SparseRows::empty(n_features);
            for state in states {
                for pair in pairs.of_state(state) {
                    let action = pairs.action(pair).index();
                    let row = features(state, action);
                    let row = row.as_ref();
                    if row.len() != n_features {
                        return Err(Error::FeatureCount { state, action, expected: n_features, found: row.len() });
                    }
                    if let Some(feature) = row.iter().position(|x| !x.is_finite()) {
                        return Err(Error::FeatureNotFinite { state, action, feature, value: row[feature] });
                    }
                    block.push(row.iter().copied().enumerate().filter(|entry| entry.1 != 0.0));
                }
            }
            Ok(block)
        };
        let (mut row_start, mut feature, mut value) = (Vec::with_capacity(pairs.len() + 1), Vec::new(), Vec::new());
        row_start.push(0);
        in_blocks(pairs.n_states(), fill, |block: SparseRows| {
            let before = feature.len();
            let (starts, features, values) = block.parts();
            row_start.extend(starts[1..].iter().map(|start| before + start));
            feature.extend_from_slice(features);
            value.extend_from_slice(values);
        })?;
        feature.shrink_to_fit();
        value.shrink_to_fit();
        Self::per_pair(pairs, SparseRows::new(n_features, row_start, feature, value)?)
    }
}

/// Makes the blocks of all states side by side and takes them in order; at the first error no further wave is begun.
fn in_blocks<B: Send>(
    n_states: usize,
    make: impl Fn(Range<usize>) -> Result<B> + Sync,
    mut take: impl FnMut(B),
) -> Result<()> {
    let n_blocks = n_states.div_ceil(BLOCK);
    for first in (0..n_blocks).step_by(WAVE) {
        let wave: Vec<Result<B>> = (first..n_blocks.min(first + WAVE))
            .into_par_iter()
            .map(|block| make(block * BLOCK..n_states.min((block + 1) * BLOCK)))
            .collect();
        for block in wave {
            take(block?);
        }
    }
    Ok(())
}
