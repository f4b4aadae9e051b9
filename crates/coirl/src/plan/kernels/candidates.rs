//! Rows that may still become the best of their state.
//!
//! If sweeps shrink the span of the change by a rate ρ, the values are within about span/(1 − ρ) of the optimal ones up to a
//! constant, and a row whose q is further than that below the best of its state will hardly become the best. Such rows
//! are dropped and the rest is packed together, so that after a few sweeps about one row per state is left. Nothing is
//! promised here: the planner's next full backup sees whatever was dropped too early.

use crate::plan::kernels::real::Real;
use crate::plan::kernels::sweep::Numbers;
use std::ops::Range;

/// Packing pays when it leaves at most this share of the rows.
const WORTH_PACKING: f64 = 0.8;

/// Rows per state from which on no selection would be worth packing: each state keeps one.
const FEW_ROWS: f64 = 1.0 / WORTH_PACKING;

/// Entries that are copied at a stroke where a row has no more: a copy of known length is a few instructions.
const STROKE: usize = 16;

/// A selection of the rows of a kernel, packed together; the empty selection stands for all of them.
#[derive(Debug, Default)]
pub(in crate::plan) struct Candidates<T> {
    state_rows: Vec<u32>,
    row_start: Vec<usize>,
    /// The entries, of which there are `n_entries`; what lies behind them is left over.
    next: Vec<u32>,
    p: Vec<T>,
    n_entries: usize,
    /// Per row, where rewards depend on it.
    reward: Vec<T>,
    /// Which of the present rows to keep and where those of each state end, while a selection is made.
    kept: Vec<u32>,
    kept_until: Vec<u32>,
}

impl<T: Real> Candidates<T> {
    /// Forgets the selection: every row is a candidate.
    pub(in crate::plan) fn reset(&mut self) {
        self.state_rows.clear();
    }

    /// Whether every row is a candidate.
    pub(in crate::plan) fn is_all(&self) -> bool {
        self.state_rows.is_empty()
    }

    /// The numbers of the candidates among `all`.
    pub(in crate::plan) fn numbers<'a>(&'a self, all: Numbers<'a, T>) -> Numbers<'a, T> {
        if self.is_all() {
            return all;
        }
        Numbers {
            state_rows: &self.state_rows,
            row_start: &self.row_start,
            next: &self.next[..self.n_entries],
            p: &self.p[..self.n_entries],
            reward: if all.reward_per_row { &self.reward } else { all.reward },
            ..all
        }
    }

    /// Keeps the rows whose `q` is within `margin` of the `best` of their state, if that is worth the copy.
    pub(in crate::plan) fn drop_beyond(&mut self, margin: T, all: Numbers<'_, T>, q: &[T], best: &[T]) {
        let n_states = best.len();
        if q.len() as f64 <= FEW_ROWS * n_states as f64 {
            return;
        }
        let state_rows = if self.is_all() { all.state_rows } else { &self.state_rows };
        self.kept.resize(q.len(), 0);
        self.kept_until.clear();
        // Every row is written down and stays where it is to be kept: which that are cannot be predicted.
        let mut n_kept = 0;
        for (rows, &best) in state_rows.windows(2).zip(best) {
            let bar = best - margin;
            for row in rows[0]..rows[1] {
                self.kept[n_kept] = row;
                n_kept += usize::from(q[row as usize] >= bar);
            }
            self.kept_until.push(n_kept as u32);
        }
        if n_kept as f64 <= WORTH_PACKING * q.len() as f64 {
            self.kept.truncate(n_kept);
            if self.is_all() {
                self.select(all)
            } else {
                self.narrow()
            }
            self.state_rows.clear();
            self.state_rows.push(0);
            self.state_rows.extend_from_slice(&self.kept_until);
        }
    }

    /// Copies the kept rows out of the kernel.
    fn select(&mut self, all: Numbers<'_, T>) {
        self.row_start.clear();
        self.row_start.push(0);
        let mut end = 0;
        self.row_start.extend(self.kept.iter().map(|&row| {
            end += all.row_start[row as usize + 1] - all.row_start[row as usize];
            end
        }));
        self.n_entries = end;
        if self.next.len() < end + STROKE {
            // Exactly: of memory of this size every page counts.
            self.next.reserve_exact(end + STROKE - self.next.len());
            self.next.resize(end + STROKE, 0);
            self.p.reserve_exact(end + STROKE - self.p.len());
            self.p.resize(end + STROKE, T::ZERO);
        }
        for (&row, &to) in self.kept.iter().zip(&self.row_start) {
            let entries = all.row_start[row as usize]..all.row_start[row as usize + 1];
            copy_row(&mut self.next, to, all.next, entries.clone());
            copy_row(&mut self.p, to, all.p, entries);
        }
        self.reward.clear();
        if all.reward_per_row {
            self.reward.extend(self.kept.iter().map(|&row| all.reward[row as usize]));
        }
    }

    /// Drops more rows; what stays moves towards the front, in place.
    fn narrow(&mut self) {
        let mut end = 0;
        for (to, &row) in self.kept.iter().enumerate() {
            let entries = self.row_start[row as usize]..self.row_start[row as usize + 1];
            move_row(&mut self.next, end, entries.clone());
            move_row(&mut self.p, end, entries.clone());
            self.row_start[to] = end;
            if !self.reward.is_empty() {
                self.reward[to] = self.reward[row as usize];
            }
            end += entries.len();
        }
        self.row_start.truncate(self.kept.len() + 1);
        self.row_start[self.kept.len()] = end;
        self.n_entries = end;
        self.reward.truncate(self.kept.len());
    }
}

/// Copies a part of `from` to `at`; what follows there is written next.
#[inline]
fn copy_row<T: Copy>(to: &mut [T], at: usize, from: &[T], part: Range<usize>) {
    let length = part.len();
    match (to[at..].first_chunk_mut::<STROKE>(), from[part.start..].first_chunk::<STROKE>()) {
        (Some(to), Some(from)) if length <= STROKE => *to = *from,
        _ => copy_long(&mut to[at..at + length], &from[part]),
    }
}

/// Moves a part to the front, to `at`; a whole stroke of it where that does not reach what is still to be moved.
#[inline]
fn move_row<T: Copy>(all: &mut [T], at: usize, part: Range<usize>) {
    let (front, back) = all.split_at_mut(part.start);
    match (front[at..].first_chunk_mut::<STROKE>(), back.first_chunk::<STROKE>()) {
        (Some(to), Some(from)) if part.len() <= STROKE => *to = *from,
        _ => move_long(all, at, part),
    }
}

// Apart, because a compiler that sees both ways makes one copy of unknown length of them.
#[inline(never)]
fn copy_long<T: Copy>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

#[inline(never)]
fn move_long<T: Copy>(all: &mut [T], at: usize, part: Range<usize>) {
    all.copy_within(part, at);
}
