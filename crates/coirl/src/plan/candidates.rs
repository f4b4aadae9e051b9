//! Rows that may still become the best of their state.
//!
//! If sweeps shrink the span of the change by a rate ρ, the values are within about span/(1 − ρ) of the optimal ones up to a
//! constant, and a row whose q is further than that below the best of its state will hardly become the best. Such rows
//! are dropped and the rest is packed together, so that after a few sweeps about one row per state is left. Nothing is
//! promised here: the planner's next full backup sees whatever was dropped too early.

use super::real::Real;
use super::sweep::Numbers;

/// Packing pays when it leaves at most this share of the rows.
const WORTH_PACKING: f64 = 0.8;

/// Rows per state from which on there is hardly anything left to drop.
const FEW_ROWS: f64 = 1.1;

/// A selection of the rows of a kernel, packed together; the empty selection stands for all of them.
#[derive(Debug, Default)]
pub(super) struct Candidates<T> {
    state_rows: Vec<u32>,
    row_start: Vec<usize>,
    next: Vec<u32>,
    p: Vec<T>,
    /// Per row, where rewards depend on it.
    reward: Vec<T>,
    /// Which rows to keep, while a selection is made.
    keep: Vec<bool>,
}

impl<T: Real> Candidates<T> {
    /// Forgets the selection: every row is a candidate.
    pub(super) fn reset(&mut self) {
        self.state_rows.clear();
        self.row_start.clear();
        self.next.clear();
        self.p.clear();
        self.reward.clear();
    }

    /// Whether every row is a candidate.
    pub(super) fn is_all(&self) -> bool {
        self.state_rows.is_empty()
    }

    /// The numbers of the candidates among `all`.
    pub(super) fn numbers<'a>(&'a self, all: Numbers<'a, T>) -> Numbers<'a, T> {
        if self.is_all() {
            return all;
        }
        Numbers {
            state_rows: &self.state_rows,
            row_start: &self.row_start,
            next: &self.next,
            p: &self.p,
            reward: if all.reward_per_row { &self.reward } else { all.reward },
            ..all
        }
    }

    /// Keeps the rows whose `q` is within `margin` of the `best` of their state, if that is worth the copy.
    pub(super) fn drop_beyond(&mut self, margin: T, all: Numbers<'_, T>, q: &[T], best: &[T]) {
        let state_rows = if self.is_all() { all.state_rows } else { &self.state_rows };
        if q.len() as f64 <= FEW_ROWS * (state_rows.len() - 1) as f64 {
            return;
        }
        let mut keep = std::mem::take(&mut self.keep);
        keep.clear();
        for (rows, &best) in state_rows.windows(2).zip(best) {
            let bar = best - margin;
            keep.extend(q[rows[0] as usize..rows[1] as usize].iter().map(|&x| x >= bar));
        }
        let kept = keep.iter().map(|&kept| usize::from(kept)).sum::<usize>();
        if kept as f64 <= WORTH_PACKING * q.len() as f64 {
            if self.is_all() { self.select(all, &keep, kept) } else { self.narrow(&keep) }
        }
        self.keep = keep;
    }

    /// Copies the kept rows out of the kernel.
    fn select(&mut self, all: Numbers<'_, T>, keep: &[bool], kept: usize) {
        let share = all.next.len() * kept / keep.len();
        let n_entries = (share + share / 16).min(all.next.len());
        self.next.reserve_exact(n_entries);
        self.p.reserve_exact(n_entries);
        self.row_start.reserve_exact(kept + 1);
        self.state_rows.reserve_exact(all.state_rows.len());
        self.state_rows.push(0);
        self.row_start.push(0);
        for rows in all.state_rows.windows(2).map(|w| w[0] as usize..w[1] as usize) {
            for row in rows.filter(|&row| keep[row]) {
                let entries = all.row_start[row]..all.row_start[row + 1];
                self.next.extend_from_slice(&all.next[entries.clone()]);
                self.p.extend_from_slice(&all.p[entries]);
                self.row_start.push(self.next.len());
                if all.reward_per_row {
                    self.reward.push(all.reward[row]);
                }
            }
            self.state_rows.push(self.row_start.len() as u32 - 1);
        }
    }

    /// Drops more rows; what stays moves towards the front, in place.
    fn narrow(&mut self, keep: &[bool]) {
        let (mut row_to, mut entry_to) = (0, 0);
        for s in 0..self.state_rows.len() - 1 {
            let rows = self.state_rows[s] as usize..self.state_rows[s + 1] as usize;
            self.state_rows[s] = row_to as u32;
            for row in rows.filter(|&row| keep[row]) {
                let (from, to) = (self.row_start[row], self.row_start[row + 1]);
                self.next.copy_within(from..to, entry_to);
                self.p.copy_within(from..to, entry_to);
                self.row_start[row_to] = entry_to;
                if !self.reward.is_empty() {
                    self.reward[row_to] = self.reward[row];
                }
                entry_to += to - from;
                row_to += 1;
            }
        }
        if let Some(last) = self.state_rows.last_mut() {
            *last = row_to as u32;
        }
        self.row_start.truncate(row_to + 1);
        self.row_start[row_to] = entry_to;
        self.next.truncate(entry_to);
        self.p.truncate(entry_to);
        self.reward.truncate(row_to);
    }
}
