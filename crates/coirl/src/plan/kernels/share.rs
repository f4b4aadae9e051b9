//! Passes over the states of one large model, on all threads.
//!
//! What each state gets does not depend on where a pass is cut, and what is put together (least and largest changes) does not depend on the order, so
//! the results are the same for any number of threads.

use std::ops::Range;

/// Entries that one thread takes at a time, and from how many on a pass is shared between threads. The results do not depend on it.
const PIECE: usize = 1 << 15;
pub(in crate::plan) const SHARED: usize = 1 << 17;

/// How a pass over `n_entries` is cut: pieces of about [`PIECE`] entries, or one piece.
pub(in crate::plan) fn pieces(n_entries: usize) -> usize {
    if n_entries < SHARED || rayon::current_num_threads() == 1 { 1 } else { n_entries.div_ceil(PIECE) }
}

/// Halves a range of states again and again until there are `pieces`, works on all of them on as many threads as there are, and puts the results
/// together in pairs. `cut` cuts what belongs to the states before and from a state on.
pub(in crate::plan) fn shared<W: Send, R: Send>(
    pieces: usize,
    states: Range<usize>,
    work: W,
    cut: &(impl Fn(W, &Range<usize>, usize) -> (W, W) + Sync),
    run: &(impl Fn(Range<usize>, W) -> R + Sync),
    together: &(impl Fn(R, R) -> R + Sync),
) -> R {
    if pieces < 2 || states.len() < 2 {
        return run(states, work);
    }
    let middle = states.start + states.len() / 2;
    let (left, right) = cut(work, &states, middle);
    let Range { start, end } = states;
    let (left, right) = rayon::join(
        || shared(pieces / 2, start..middle, left, cut, run, together),
        || shared(pieces - pieces / 2, middle..end, right, cut, run, together),
    );
    together(left, right)
}

/// Cuts what has an item per state.
pub(in crate::plan) fn cut_by_state<'a, T>(
    items: &'a mut [T],
    states: &Range<usize>,
    at: usize,
) -> (&'a mut [T], &'a mut [T]) {
    items.split_at_mut(at - states.start)
}
