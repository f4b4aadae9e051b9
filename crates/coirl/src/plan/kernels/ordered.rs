//! Sweeps of one policy in an order against the flow of its transitions, in place (Gauss and Seidel).
//!
//! A state is updated after the states it likely leads to, so one sweep carries news along whole paths instead of one step. States and entries
//! are copied in that order, loops of a state to itself solved for, and γ multiplied in, so a sweep reads memory as a stream.
//!
//! The order of a large model is cut into blocks that sweep one behind the other: while a block makes a sweep, the block behind it makes the one
//! before. A block sees what the blocks before it have done, as without the cut, and what those behind it did a little earlier. How many blocks there
//! are depends on the model alone, so the values are the same for any number of threads.

#![allow(unsafe_code)] // unchecked gathers; every index is made here and is below the number of states

use crate::plan::kernels::linear::Side;
use crate::plan::kernels::share::{pieces, shared};
use crate::plan::kernels::sweep::PolicyMatrix;
use rayon::prelude::*;
use std::ops::Range;

/// Blocks of a large model, and the states from which a model is large.
const BLOCKS: usize = 4;
const LARGE: usize = 1 << 14;

/// v(i) = r(i) + Σ w(i, j) v(j), with the states in the order of the sweep.
#[derive(Debug, Default)]
pub(in crate::plan) struct OrderedPolicy {
    /// The state at each place.
    order: Vec<u32>,
    place: Vec<u32>,
    /// Where each block starts, and where the last one ends.
    blocks: Vec<usize>,
    start: Vec<usize>,
    /// Where the entries of a row within its block start; those that lead out of it come first.
    inner: Vec<usize>,
    to: Vec<u32>,
    weight: Vec<f64>,
    reward: Vec<f64>,
    /// 1 / (1 − γ p(i, i)).
    scale: Vec<f64>,
    values: Vec<f64>,
    /// The values that other blocks see.
    seen: Vec<f64>,
}

/// What [`OrderedPolicy::set_policy`] writes of some places: where inner entries start, targets, weights, rewards and scales.
type Rows<'a> = (&'a mut [usize], &'a mut [u32], &'a mut [f64], &'a mut [f64], &'a mut [f64]);

impl OrderedPolicy {
    /// Takes over an order of all states, for the policies that follow.
    pub(in crate::plan) fn set_order(&mut self, order: Vec<u32>) {
        let n = order.len();
        let n_blocks = if n < LARGE { 1 } else { BLOCKS };
        self.blocks = (0..=n_blocks).map(|b| n * b / n_blocks).collect();
        self.place.clear();
        self.place.resize(n, 0);
        order.iter().enumerate().for_each(|(i, &s)| self.place[s as usize] = i as u32);
        self.order = order;
    }

    /// Takes over a policy of as many states as the order has.
    pub(in crate::plan) fn set_policy(&mut self, matrix: &PolicyMatrix) {
        let n = self.order.len();
        assert_eq!(n, matrix.len());
        let Self { order, place, blocks, start, inner, to, weight, reward, scale, .. } = self;
        start.clear();
        start.push(0);
        let mut n_entries = 0;
        start.extend(order.iter().map(|&state| {
            n_entries += matrix.row(state as usize).0.len();
            n_entries
        }));
        inner.resize(n, 0);
        to.resize(n_entries, 0);
        weight.resize(n_entries, 0.0);
        reward.resize(n, 0.0);
        scale.resize(n, 0.0);
        let (order, place, blocks, start) = (&order[..], &place[..], &blocks[..], &start[..]);
        shared(
            pieces(n_entries),
            0..n,
            (&mut inner[..], &mut to[..], &mut weight[..], &mut reward[..], &mut scale[..]),
            &|(inner, to, weight, reward, scale): Rows<'_>, places, at| {
                let (by_place, by_entry) = (at - places.start, start[at] - start[places.start]);
                let (inner, to, weight) =
                    (inner.split_at_mut(by_place), to.split_at_mut(by_entry), weight.split_at_mut(by_entry));
                let (reward, scale) = (reward.split_at_mut(by_place), scale.split_at_mut(by_place));
                ((inner.0, to.0, weight.0, reward.0, scale.0), (inner.1, to.1, weight.1, reward.1, scale.1))
            },
            &|places: Range<usize>, (inner, to, weight, reward, scale): Rows<'_>| {
                let first = places.start;
                let mut at = 0;
                for i in places {
                    let state = order[i];
                    let (next, p) = matrix.row(state as usize);
                    let stay: f64 = next.iter().zip(p).filter(|entry| *entry.0 == state).map(|entry| entry.1).sum();
                    let own_scale = 1.0 / (1.0 - matrix.gamma * stay);
                    let block = blocks.partition_point(|&b| b <= i) - 1;
                    let block = blocks[block]..blocks[block + 1];
                    for inside in [false, true] {
                        if inside {
                            inner[i - first] = start[first] + at;
                        }
                        for (&next, &p) in next.iter().zip(p) {
                            let place = place[next as usize];
                            if block.contains(&(place as usize)) == inside {
                                to[at] = place;
                                weight[at] = if next == state { 0.0 } else { matrix.gamma * p * own_scale };
                                at += 1;
                            }
                        }
                    }
                    reward[i - first] = matrix.reward[state as usize] * own_scale;
                    scale[i - first] = own_scale;
                }
            },
            &|(), ()| (),
        );
    }

    /// Sweeps of values, given and returned by state.
    pub(in crate::plan) fn sweep(&mut self, v: &mut [f64], sweeps: usize) {
        assert_eq!(v.len(), self.order.len());
        let mut values = std::mem::take(&mut self.values);
        let mut seen = std::mem::take(&mut self.seen);
        values.clear();
        values.extend(self.order.iter().map(|&s| v[s as usize]));
        seen.clone_from(&values);
        let n_blocks = self.blocks.len() - 1;
        for stage in 0..sweeps + n_blocks - 1 {
            // Block b makes its sweep number stage − b.
            let active = (stage + 1).saturating_sub(sweeps)..(stage + 1).min(n_blocks);
            let mut rest = &mut values[self.blocks[active.start]..self.blocks[active.end]];
            let mut parts = Vec::with_capacity(active.len());
            for block in active.clone() {
                let (own, behind) = rest.split_at_mut(self.blocks[block + 1] - self.blocks[block]);
                parts.push((block, own));
                rest = behind;
            }
            parts.into_par_iter().for_each(|(block, own)| self.sweep_block(self.blocks[block], own, &seen));
            if n_blocks > 1 {
                let changed = self.blocks[active.start]..self.blocks[active.end];
                seen[changed.clone()].copy_from_slice(&values[changed]);
            }
        }
        self.order.iter().zip(&values).for_each(|(&s, &value)| v[s as usize] = value);
        (self.values, self.seen) = (values, seen);
    }

    /// One sweep of the block whose first place is `first`, on its own values and those of others as they were seen.
    fn sweep_block(&self, first: usize, own: &mut [f64], seen: &[f64]) {
        for i in 0..own.len() {
            // SAFETY: `start` and `inner` ascend to the number of entries, and every `to` is the place of a state: of this block from `inner` on.
            let expected = unsafe {
                let row = first + i;
                let (from, inner, end) = (
                    *self.start.get_unchecked(row),
                    *self.inner.get_unchecked(row),
                    *self.start.get_unchecked(row + 1),
                );
                let mut expected = self.gathered(inner..end, first, own);
                if from < inner {
                    expected += self.gathered(from..inner, 0, seen);
                }
                expected
            };
            own[i] = self.reward[first + i] + expected;
        }
    }

    /// Σ weight·v over some entries, in two interleaved partial sums, where `v` starts with the value of the place `first`.
    ///
    /// # Safety
    /// The entries exist, and the place that each leads to is one of `v`.
    #[inline(always)]
    unsafe fn gathered(&self, entries: Range<usize>, first: usize, v: &[f64]) -> f64 {
        // SAFETY: the caller promises the bounds.
        unsafe {
            let Range { start: mut i, end } = entries;
            let at =
                |i: usize| *self.weight.get_unchecked(i) * *v.get_unchecked(*self.to.get_unchecked(i) as usize - first);
            let (mut even, mut odd) = (0.0, 0.0);
            while i + 2 <= end {
                even += at(i);
                odd += at(i + 1);
                i += 2;
            }
            even + odd + if i < end { at(i) } else { 0.0 }
        }
    }

    /// Solves the part of I − γP (or of its transpose) that one sweep from zero solves: the states before each other in the order.
    /// `x` holds the right-hand side by state and is replaced.
    pub(in crate::plan) fn precondition(&mut self, side: Side, x: &mut [f64]) {
        assert_eq!(x.len(), self.order.len());
        self.values.clear();
        self.values.extend(self.order.iter().map(|&s| x[s as usize]));
        match side {
            Side::Values => {
                for i in 0..self.order.len() {
                    let entries = self.start[i]..self.start[i + 1];
                    let earlier = self.to[entries.clone()].iter().zip(&self.weight[entries]);
                    let sum: f64 = earlier
                        .filter(|(to, _)| (**to as usize) < i)
                        .map(|(to, w)| w * self.values[*to as usize])
                        .sum();
                    self.values[i] = self.values[i] * self.scale[i] + sum;
                }
            }
            Side::Occupancy => {
                for i in (0..self.order.len()).rev() {
                    let visits = self.values[i];
                    for at in self.start[i]..self.start[i + 1] {
                        let to = self.to[at] as usize;
                        if to < i {
                            self.values[to] += self.weight[at] * visits;
                        }
                    }
                    self.values[i] = visits * self.scale[i];
                }
            }
        }
        self.order.iter().zip(&self.values).for_each(|(&s, &value)| x[s as usize] = value);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::plan::kernels::order::against_the_flow;

    /// A chain to the right whose states stay with probability 0.2.
    fn chain(n: u32, gamma: f64) -> PolicyMatrix {
        let rows = (0..n).map(|s| if s + 1 < n { vec![(s, 0.2), (s + 1, 0.8)] } else { vec![(s, 1.0)] });
        PolicyMatrix::from_rows(gamma, vec![1.0; n as usize], rows)
    }

    #[test]
    fn one_sweep_solves_a_chain() {
        let matrix = chain(50, 0.9);
        let mut policy = OrderedPolicy::default();
        policy.set_order(against_the_flow(&matrix));
        policy.set_policy(&matrix);
        let mut v = vec![0.0; 50];
        policy.sweep(&mut v, 1);
        assert!(v.iter().all(|v| (v - 10.0).abs() < 1e-12), "{v:?}");
    }

    /// Steps to the right on a torus of `n` states, with slips back and far jumps.
    fn walk(n: u32, gamma: f64) -> PolicyMatrix {
        let row = |s: u32| vec![((s + 1) % n, 0.7), ((s + n - 1) % n, 0.2), ((s * 7 + 3) % n, 0.1)];
        PolicyMatrix::from_rows(gamma, (0..n).map(|s| f64::from(s % 11)).collect(), (0..n).map(row))
    }

    #[test]
    fn blocks_come_to_the_same_values_on_any_number_of_threads() {
        let matrix = walk(2 * LARGE as u32, 0.9);
        let mut policy = OrderedPolicy::default();
        policy.set_order(against_the_flow(&matrix));
        policy.set_policy(&matrix);
        let mut swept = |threads: usize, sweeps: usize| {
            let mut v = vec![0.0; matrix.len()];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| policy.sweep(&mut v, sweeps));
            v
        };
        assert_eq!(swept(1, 3), swept(3, 3));
        let v = swept(2, 200);
        let mut again = v.clone();
        assert!(matrix.sweep(&v, &mut again).sup_norm() < 1e-10);
    }

    #[test]
    fn a_chain_is_its_own_preconditioner() {
        let matrix = chain(50, 0.9);
        let mut policy = OrderedPolicy::default();
        policy.set_order(against_the_flow(&matrix));
        policy.set_policy(&matrix);
        for side in [Side::Values, Side::Occupancy] {
            let b: Vec<f64> = (0..50).map(|i| f64::from(i % 5) - 1.0).collect();
            let mut x = b.clone();
            policy.precondition(side, &mut x);
            let mut back = vec![0.0; 50];
            match side {
                Side::Values => matrix.apply(&x, &mut back),
                Side::Occupancy => matrix.apply_transposed(&x, &mut back),
            }
            assert!(b.iter().zip(&back).all(|(b, x)| (b - x).abs() < 1e-12), "{side:?}: {back:?}");
        }
    }
}
