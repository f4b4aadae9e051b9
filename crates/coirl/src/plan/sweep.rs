//! The inner loops: Bellman backups over the distinct rows of a kernel and sweeps of one policy.
//!
//! Cost: one multiply-add per stored entry. Every sum has a fixed order, so results do not depend on the machine.

#![allow(unsafe_code)] // unchecked gathers; every index was validated when the kernel was built

use super::problem::{Problem, RowReward};
use crate::model::Kernel;

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

/// Σ p·v over one row, in four interleaved partial sums.
///
/// # Safety
/// Every entry of `next` must be below `v.len()`, and `next` and `p` of one length.
#[inline(always)]
unsafe fn expectation(next: &[u32], p: &[f64], v: &[f64]) -> f64 {
    debug_assert!(next.len() == p.len() && next.iter().all(|&s| (s as usize) < v.len()));
    // SAFETY: the caller promises the bounds.
    unsafe {
        let n = next.len();
        let at = |i: usize| *p.get_unchecked(i) * *v.get_unchecked(*next.get_unchecked(i) as usize);
        let mut sums = [0.0; 4];
        let mut i = 0;
        while i + 4 <= n {
            sums[0] += at(i);
            sums[1] += at(i + 1);
            sums[2] += at(i + 2);
            sums[3] += at(i + 3);
            i += 4;
        }
        let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        while i < n {
            sum += at(i);
            i += 1;
        }
        sum
    }
}

/// One Bellman backup: `out = max over rows of r + γ P v`, `choice` the first row that attains it.
pub(crate) fn improve(problem: &Problem<'_>, v: &[f64], out: &mut [f64], choice: &mut [u32]) -> Change {
    match &problem.reward {
        RowReward::State(reward) => improve_rows::<false>(problem.kernel, problem.gamma, reward, v, out, choice),
        RowReward::Row { best, .. } => improve_rows::<true>(problem.kernel, problem.gamma, best, v, out, choice),
    }
}

fn improve_rows<const PER_ROW: bool>(
    kernel: &Kernel,
    gamma: f64,
    reward: &[f64],
    v: &[f64],
    out: &mut [f64],
    choice: &mut [u32],
) -> Change {
    let layout = kernel.layout();
    let n_states = kernel.n_states();
    assert!(v.len() == n_states && out.len() == n_states && choice.len() == n_states);
    assert_eq!(reward.len(), if PER_ROW { kernel.n_rows() } else { n_states });
    let (starts, next, p) = (&layout.row_start[..], &layout.next[..], kernel.probabilities());
    let mut change = Change::NONE;
    for s in 0..n_states {
        let (first, end) = (layout.state_rows[s] as usize, layout.state_rows[s + 1] as usize);
        let mut best = f64::NEG_INFINITY;
        let mut best_row = first;
        for row in first..end {
            // SAFETY: a kernel's row starts ascend to the number of entries, and its successors are states.
            let expected = unsafe {
                let (from, to) = (*starts.get_unchecked(row), *starts.get_unchecked(row + 1));
                expectation(next.get_unchecked(from..to), p.get_unchecked(from..to), v)
            };
            let q = if PER_ROW { reward[row] + gamma * expected } else { expected };
            if q > best {
                best = q;
                best_row = row;
            }
        }
        let value = if PER_ROW { best } else { reward[s] + gamma * best };
        change.add(value - v[s]);
        out[s] = value;
        choice[s] = best_row as u32;
    }
    change
}

/// The transition matrix and reward of one policy, with its rows gathered into one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct PolicyMatrix {
    pub(crate) gamma: f64,
    pub(crate) reward: Vec<f64>,
    start: Vec<usize>,
    next: Vec<u32>,
    p: Vec<f64>,
}

impl PolicyMatrix {
    /// The matrix of the policy that takes `choice[s]` (a row of the kernel) in state `s`, with the best reward among the
    /// pairs of that row.
    pub(crate) fn gather(&mut self, problem: &Problem<'_>, choice: &[u32]) {
        self.gather_rows(problem.kernel, problem.gamma, choice, |s| problem.reward.at(s, choice[s] as usize));
    }

    /// The matrix of the rows `choice[s]` with the rewards `reward(s)`.
    pub(crate) fn gather_rows(&mut self, kernel: &Kernel, gamma: f64, choice: &[u32], reward: impl Fn(usize) -> f64) {
        self.gamma = gamma;
        self.reward.clear();
        self.start.clear();
        self.next.clear();
        self.p.clear();
        self.start.push(0);
        for (s, &row) in choice.iter().enumerate() {
            let (next, p) = kernel.row(row as usize);
            // Without a discount, an absorbing state collects nothing; dropping its loop keeps the system regular.
            let (next, p) = if gamma == 1.0 && next == [s as u32] { (&next[..0], &p[..0]) } else { (next, p) };
            self.next.extend_from_slice(next);
            self.p.extend_from_slice(p);
            self.start.push(self.next.len());
            self.reward.push(reward(s));
        }
    }

    /// The matrix among the states of a closed set: `states[i]` takes the i-th of `rows`, `local` maps states to their place.
    /// Rewards are zero.
    pub(crate) fn gather_local(
        &mut self,
        kernel: &Kernel,
        gamma: f64,
        rows: impl Iterator<Item = u32>,
        states: &[u32],
        local: &[u32],
    ) {
        self.gamma = gamma;
        self.reward.clear();
        self.reward.resize(states.len(), 0.0);
        self.start.clear();
        self.next.clear();
        self.p.clear();
        self.start.push(0);
        for (row, &s) in rows.zip(states) {
            let (next, p) = kernel.row(row as usize);
            if !(gamma == 1.0 && next == [s]) {
                self.next.extend(next.iter().map(|&to| local[to as usize]));
                self.p.extend_from_slice(p);
            }
            self.start.push(self.next.len());
        }
        assert!(self.start.len() == states.len() + 1 && self.next.iter().all(|&to| (to as usize) < states.len()));
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

    pub(crate) fn len(&self) -> usize {
        self.reward.len()
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
        unsafe {
            let (from, to) = (*self.start.get_unchecked(s), *self.start.get_unchecked(s + 1));
            expectation(self.next.get_unchecked(from..to), self.p.get_unchecked(from..to), v)
        }
    }

    /// `out = r + γ P v`.
    pub(crate) fn sweep(&self, v: &[f64], out: &mut [f64]) -> Change {
        assert!(v.len() == self.len() && out.len() == self.len());
        let mut change = Change::NONE;
        for s in 0..self.len() {
            let value = self.reward[s] + self.gamma * self.expected(s, v);
            change.add(value - v[s]);
            out[s] = value;
        }
        change
    }

    /// `out = v − γ P v`.
    pub(crate) fn apply(&self, v: &[f64], out: &mut [f64]) {
        assert!(v.len() == self.len() && out.len() == self.len());
        for s in 0..self.len() {
            out[s] = v[s] - self.gamma * self.expected(s, v);
        }
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
