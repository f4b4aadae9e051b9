//! The inner loops: Bellman backups over the distinct rows of a kernel and sweeps of one policy.
//!
//! Cost: one multiply-add per stored entry. Every sum has a fixed order, so results do not depend on the machine.

#![allow(unsafe_code)] // unchecked gathers; every index was validated when the kernel was built

use crate::model::Kernel;
use crate::plan::kernels::real::Real;
use crate::plan::kernels::share::{cut_by_state, pieces, shared};
use crate::plan::problem::Problem;
use std::ops::Range;

/// Least and largest change of a sweep: min and max over states of (new − old).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

impl Change {
    pub(crate) const NONE: Change = Change { lo: f64::INFINITY, hi: f64::NEG_INFINITY };

    pub(crate) fn add(&mut self, difference: f64) {
        self.lo = if difference < self.lo { difference } else { self.lo };
        self.hi = if difference > self.hi { difference } else { self.hi };
    }

    /// The change of two sets of states together.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            lo: if other.lo < self.lo { other.lo } else { self.lo },
            hi: if other.hi > self.hi { other.hi } else { self.hi },
        }
    }

    /// Largest change less smallest.
    pub(crate) fn span(self) -> f64 {
        self.hi - self.lo
    }

    pub(crate) fn mid(self) -> f64 {
        0.5 * (self.hi + self.lo)
    }

    pub(crate) fn sup_norm(self) -> f64 {
        self.hi.abs().max(self.lo.abs())
    }
}

/// The numbers of a problem in one precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers<'a, T> {
    /// The rows of state `s` are `state_rows[s]..state_rows[s + 1]`.
    pub(crate) state_rows: &'a [u32],
    /// The entries of row `r` are `row_start[r]..row_start[r + 1]`.
    pub(crate) row_start: &'a [usize],
    pub(crate) next: &'a [u32],
    pub(crate) p: &'a [T],
    pub(crate) gamma: T,
    /// Per state, or per row.
    pub(crate) reward: &'a [T],
    pub(crate) reward_per_row: bool,
}

impl<T> Numbers<'_, T> {
    /// The cheap part of the promises that the unchecked reads rely on; that successors are states and row starts ascend
    /// is checked when a kernel is built, and kept by everything that selects rows of it.
    fn check(&self, n_states: usize) {
        assert_eq!(self.state_rows.len(), n_states + 1);
        assert_eq!(self.p.len(), self.next.len());
        let n_rows = self.row_start.len() - 1;
        assert_eq!(self.state_rows[n_states] as usize, n_rows);
        assert_eq!(self.row_start[n_rows], self.next.len());
        assert_eq!(self.reward.len(), if self.reward_per_row { n_rows } else { n_states });
    }
}

/// How many entries ahead of a sweep the memory is asked for them: the processor's own foresight suffers from the gathers.
const AHEAD: usize = 128;

/// Asks the memory for the item at `at`, which need not exist: a hint, on which no result depends.
#[inline(always)]
fn fetch<T>(from: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: nothing is read, and an address that may not be read is ignored.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, at);
}

/// Σ p·v over the entries from `start[row]` to `start[row + 1]`, in four interleaved partial sums.
///
/// # Safety
/// The row must be one of `start`, which ascends to the length of `next` and `p`; every entry of `next` must be below `v.len()`.
#[inline(always)]
unsafe fn expectation<T: Real>(start: &[usize], row: usize, next: &[u32], p: &[T], v: &[T]) -> T {
    // SAFETY: the caller promises the bounds.
    unsafe {
        let (mut i, end) = (*start.get_unchecked(row), *start.get_unchecked(row + 1));
        debug_assert!(next.len() == p.len() && next[i..end].iter().all(|&s| (s as usize) < v.len()));
        fetch(next, i + AHEAD);
        fetch(p, i + AHEAD);
        let at = |i: usize| *p.get_unchecked(i) * *v.get_unchecked(*next.get_unchecked(i) as usize);
        let mut sums = [T::ZERO; 4];
        while i + 4 <= end {
            sums[0] = sums[0] + at(i);
            sums[1] = sums[1] + at(i + 1);
            sums[2] = sums[2] + at(i + 2);
            sums[3] = sums[3] + at(i + 3);
            i += 4;
        }
        let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        while i < end {
            sum = sum + at(i);
            i += 1;
        }
        sum
    }
}

/// One Bellman backup: `q = r + γ P v` of every row, `out` the largest of each state.
///
/// Which row attains it is left to [`greedy`]: an argument of the maximum cannot be predicted, and branches that guess it
/// wrong would slow the sweep.
pub(crate) fn improve<T: Real>(numbers: Numbers<'_, T>, v: &[T], out: &mut [T], q: &mut Vec<T>) -> Change {
    let n_states = v.len();
    q.resize(numbers.row_start.len() - 1, T::ZERO);
    numbers.check(n_states);
    assert_eq!(out.len(), n_states);
    let first_row = |s: usize| numbers.state_rows[s] as usize;
    shared(
        pieces(numbers.next.len()),
        0..n_states,
        (out, &mut q[..]),
        &|(out, q), states, at| {
            let (out_left, out_right) = out.split_at_mut(at - states.start);
            let (q_left, q_right) = q.split_at_mut(first_row(at) - first_row(states.start));
            ((out_left, q_left), (out_right, q_right))
        },
        &|states, (out, q)| match numbers.reward_per_row {
            false => improve_rows::<T, false>(numbers, v, states, out, q),
            true => improve_rows::<T, true>(numbers, v, states, out, q),
        },
        &Change::with,
    )
}

/// The backup of some states, into their part of `out` and of the rows' `q`.
fn improve_rows<T: Real, const PER_ROW: bool>(
    numbers: Numbers<'_, T>,
    v: &[T],
    states: Range<usize>,
    out: &mut [T],
    q: &mut [T],
) -> Change {
    let Numbers { state_rows, row_start, next, p, gamma, reward, .. } = numbers;
    let (first_state, first_row) = (states.start, state_rows[states.start] as usize);
    let (mut lo, mut hi) = (T::HIGHEST, T::LOWEST);
    for s in states {
        let (first, end) = (state_rows[s] as usize, state_rows[s + 1] as usize);
        let mut best = T::LOWEST;
        for row in first..end {
            // SAFETY: row starts ascend to the number of entries, and successors are states.
            let expected = unsafe { expectation(row_start, row, next, p, v) };
            let value = reward[if PER_ROW { row } else { s }] + gamma * expected;
            q[row - first_row] = value;
            best = if value > best { value } else { best };
        }
        let difference = best - v[s];
        lo = if difference < lo { difference } else { lo };
        hi = if difference > hi { difference } else { hi };
        out[s - first_state] = best;
    }
    Change { lo: lo.into(), hi: hi.into() }
}

/// The first row of each state whose `q` is the `best` of the state.
pub(crate) fn greedy<T: Real>(state_rows: &[u32], q: &[T], best: &[T], choice: &mut Vec<u32>) {
    choice.resize(best.len(), 0);
    let run = |states: Range<usize>, choice: &mut [u32]| {
        let rows = &state_rows[states.start..=states.end];
        for ((choice, rows), best) in choice.iter_mut().zip(rows.windows(2)).zip(&best[states]) {
            // From the last to the first without a way out: where the best is cannot be predicted.
            let first = |at, row| if q[row as usize] == *best { row } else { at };
            *choice = (rows[0]..rows[1]).rev().fold(rows[0], first);
        }
    };
    shared(pieces(q.len()), 0..best.len(), &mut choice[..], &cut_by_state, &run, &|(), ()| ());
}

/// `out[next] += weight · p`, four at a time.
///
/// # Safety
/// Every entry of `next` must be below `out.len()`, no two of them equal, and `next` and `p` of one length.
#[inline(always)]
unsafe fn scatter<T: Real>(next: &[u32], p: &[T], weight: T, out: &mut [T]) {
    debug_assert!(next.len() == p.len() && next.iter().all(|&s| (s as usize) < out.len()));
    // SAFETY: the caller promises the bounds; that successors differ lets four sums be read before any is written.
    unsafe {
        let add = |i: usize, out: &[T]| {
            let to = *next.get_unchecked(i) as usize;
            (to, *out.get_unchecked(to) + weight * *p.get_unchecked(i))
        };
        let mut i = 0;
        while i + 4 <= next.len() {
            let sums = [add(i, out), add(i + 1, out), add(i + 2, out), add(i + 3, out)];
            for (to, sum) in sums {
                *out.get_unchecked_mut(to) = sum;
            }
            i += 4;
        }
        while i < next.len() {
            let (to, sum) = add(i, out);
            *out.get_unchecked_mut(to) = sum;
            i += 1;
        }
    }
}

/// The transition matrix and reward of one policy, with its rows gathered into one piece of memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyMatrix<T = f64> {
    pub(crate) gamma: f64,
    pub(crate) reward: Vec<f64>,
    start: Vec<usize>,
    next: Vec<u32>,
    p: Vec<T>,
}

impl<T: Real> PolicyMatrix<T> {
    /// The matrix of the rows `choice[s]` with the rewards `reward(s)`.
    pub(crate) fn gather_rows(
        &mut self,
        kernel: &Kernel,
        gamma: f64,
        choice: &[u32],
        reward: impl Fn(usize) -> f64 + Sync,
    ) {
        self.gamma = gamma;
        self.reward.resize(choice.len(), 0.0);
        // Without a discount, an absorbing state collects nothing; dropping its loop keeps the system regular.
        let kept = |s: usize| {
            let entries = kernel.entries(choice[s] as usize);
            let dropped = gamma == 1.0 && kernel.layout().next[entries.clone()] == [s as u32];
            if dropped { 0..0 } else { entries }
        };
        self.start.clear();
        self.start.push(0);
        let mut n_entries = 0;
        self.start.extend((0..choice.len()).map(|s| {
            n_entries += kept(s).len();
            n_entries
        }));
        self.next.resize(n_entries, 0);
        self.p.resize(n_entries, T::ZERO);
        let Self { reward: rewards, start, next, p, .. } = self;
        shared(
            pieces(n_entries),
            0..choice.len(),
            (&mut rewards[..], &mut next[..], &mut p[..]),
            &|(rewards, next, p), states, at| {
                let entries = start[at] - start[states.start];
                let (rewards, next, p) =
                    (rewards.split_at_mut(at - states.start), next.split_at_mut(entries), p.split_at_mut(entries));
                ((rewards.0, next.0, p.0), (rewards.1, next.1, p.1))
            },
            &|states, (rewards, next, p)| {
                let first = start[states.start];
                for (s, own) in states.zip(rewards) {
                    let (from, to) = (kept(s), start[s] - first..start[s + 1] - first);
                    next[to.clone()].copy_from_slice(&kernel.layout().next[from.clone()]);
                    p[to].copy_from_slice(&T::probabilities(kernel)[from]);
                    *own = reward(s);
                }
            },
            &|(), ()| (),
        );
    }

    /// The matrix among the states of a closed set: `states[i]` takes the i-th of `rows`, `local` maps states to their place.
    /// Rewards are zero.
    pub(crate) fn gather_local(&mut self, kernel: &Kernel, gamma: f64, rows: &[u32], states: &[u32], local: &[u32]) {
        self.gamma = gamma;
        self.reward.clear();
        self.reward.resize(states.len(), 0.0);
        self.start.clear();
        self.next.clear();
        self.p.clear();
        self.start.push(0);
        for (&row, &s) in rows.iter().zip(states) {
            let entries = kernel.entries(row as usize);
            let next = &kernel.layout().next[entries.clone()];
            if !(gamma == 1.0 && next == [s]) {
                self.next.extend(next.iter().map(|&to| local[to as usize]));
                self.p.extend_from_slice(&T::probabilities(kernel)[entries]);
            }
            self.start.push(self.next.len());
        }
        assert!(self.start.len() == states.len() + 1 && self.next.iter().all(|&to| (to as usize) < states.len()));
    }

    pub(crate) fn len(&self) -> usize {
        self.reward.len()
    }

    /// `out = γ Pᵀ v`.
    pub(crate) fn push(&self, v: &[T], out: &mut [T]) {
        assert!(v.len() == self.len() && out.len() == self.len());
        out.fill(T::ZERO);
        let gamma = T::nearest(self.gamma);
        for s in 0..v.len() {
            // SAFETY: `start` ascends to the number of entries, every successor is below `len()` and they are distinct.
            unsafe {
                let entries = *self.start.get_unchecked(s)..*self.start.get_unchecked(s + 1);
                scatter(self.next.get_unchecked(entries.clone()), self.p.get_unchecked(entries), gamma * v[s], out);
            }
        }
    }
}

impl PolicyMatrix {
    /// The matrix of the policy that takes `choice[s]` (a row of the kernel) in state `s`, with the best reward among the
    /// pairs of that row.
    pub(crate) fn gather(&mut self, problem: &Problem<'_>, choice: &[u32]) {
        self.gather_rows(problem.kernel, problem.gamma, choice, |s| problem.reward.at(s, choice[s] as usize));
    }

    /// From rows given one by one; every successor must be below the number of rows.
    pub(crate) fn from_rows(gamma: f64, reward: Vec<f64>, rows: impl Iterator<Item = Vec<(u32, f64)>>) -> Self {
        let mut matrix = Self { gamma, reward, start: vec![0], ..Self::default() };
        for row in rows {
            for (next, p) in row {
                assert!((next as usize) < matrix.reward.len());
                matrix.next.push(next);
                matrix.p.push(p);
            }
            matrix.start.push(matrix.next.len());
        }
        assert_eq!(matrix.start.len(), matrix.reward.len() + 1);
        matrix
    }

    /// Whether another policy has the same transitions and the same discount, whatever its rewards.
    pub(in crate::plan) fn has_the_transitions_of(&self, other: &Self) -> bool {
        self.gamma == other.gamma && self.start == other.start && self.next == other.next && self.p == other.p
    }

    pub(crate) fn n_entries(&self) -> usize {
        self.next.len()
    }

    pub(crate) fn row(&self, s: usize) -> (&[u32], &[f64]) {
        (&self.next[self.start[s]..self.start[s + 1]], &self.p[self.start[s]..self.start[s + 1]])
    }

    #[inline(always)]
    fn expected(&self, s: usize, v: &[f64]) -> f64 {
        // SAFETY: `start` ascends to the number of entries and every successor is below `len()`, which the callers
        // compare with `v`.
        unsafe { expectation(&self.start, s, &self.next, &self.p, v) }
    }

    /// `out = r + γ P v`.
    pub(crate) fn sweep(&self, v: &[f64], out: &mut [f64]) -> Change {
        assert!(v.len() == self.len() && out.len() == self.len());
        let run = |states: Range<usize>, out: &mut [f64]| {
            let mut change = Change::NONE;
            for (s, out) in states.zip(out) {
                let value = self.reward[s] + self.gamma * self.expected(s, v);
                change.add(value - v[s]);
                *out = value;
            }
            change
        };
        shared(pieces(self.n_entries()), 0..v.len(), out, &cut_by_state, &run, &Change::with)
    }

    /// `out = v − γ P v`.
    pub(crate) fn apply(&self, v: &[f64], out: &mut [f64]) {
        assert!(v.len() == self.len() && out.len() == self.len());
        let run = |states: Range<usize>, out: &mut [f64]| {
            for (s, out) in states.zip(out) {
                *out = v[s] - self.gamma * self.expected(s, v);
            }
        };
        shared(pieces(self.n_entries()), 0..v.len(), out, &cut_by_state, &run, &|(), ()| ());
    }

    /// `out = v − γ Pᵀ v`.
    pub(crate) fn apply_transposed(&self, v: &[f64], out: &mut [f64]) {
        assert!(v.len() == self.len() && out.len() == self.len());
        out.copy_from_slice(v);
        for s in 0..self.len() {
            let weight = self.gamma * v[s];
            if weight == 0.0 {
                continue;
            }
            // SAFETY: as in `expected`.
            unsafe {
                for i in *self.start.get_unchecked(s)..*self.start.get_unchecked(s + 1) {
                    *out.get_unchecked_mut(*self.next.get_unchecked(i) as usize) -= weight * *self.p.get_unchecked(i);
                }
            }
        }
    }
}
