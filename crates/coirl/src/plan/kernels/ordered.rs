//! Sweeps of one policy in an order against the flow of its transitions, in place (Gauss and Seidel).
//!
//! A state is updated after the states it likely leads to, so one sweep carries news along whole paths instead of one step. States and entries
//! are copied in that order, loops of a state to itself solved for, and γ multiplied in, so a sweep reads memory as a stream.

#![allow(unsafe_code)] // unchecked gathers; every index is made here and is below the number of states

use crate::plan::kernels::linear::Side;
use crate::plan::kernels::sweep::PolicyMatrix;

/// v(i) = r(i) + Σ w(i, j) v(j), with the states in the order of the sweep.
#[derive(Debug, Default)]
pub(in crate::plan) struct OrderedPolicy {
    /// The state at each place.
    order: Vec<u32>,
    place: Vec<u32>,
    start: Vec<usize>,
    to: Vec<u32>,
    weight: Vec<f64>,
    reward: Vec<f64>,
    /// 1 / (1 − γ p(i, i)).
    scale: Vec<f64>,
    values: Vec<f64>,
}

impl OrderedPolicy {
    /// Takes over an order of all states, for the policies that follow.
    pub(in crate::plan) fn set_order(&mut self, order: Vec<u32>) {
        self.place.clear();
        self.place.resize(order.len(), 0);
        order.iter().enumerate().for_each(|(i, &s)| self.place[s as usize] = i as u32);
        self.order = order;
    }

    /// Takes over a policy of as many states as the order has.
    pub(in crate::plan) fn set_policy(&mut self, matrix: &PolicyMatrix) {
        assert_eq!(self.order.len(), matrix.len());
        let gamma = matrix.gamma;
        self.start.clear();
        self.start.push(0);
        self.to.clear();
        self.weight.clear();
        self.reward.clear();
        self.scale.clear();
        for &state in &self.order {
            let s = state as usize;
            let (next, p) = matrix.row(s);
            let stay: f64 = next.iter().zip(p).filter(|entry| *entry.0 == state).map(|entry| entry.1).sum();
            let scale = 1.0 / (1.0 - gamma * stay);
            for (&to, &p) in next.iter().zip(p) {
                if to != state {
                    self.to.push(self.place[to as usize]);
                    self.weight.push(gamma * p * scale);
                }
            }
            self.start.push(self.to.len());
            self.reward.push(matrix.reward[s] * scale);
            self.scale.push(scale);
        }
    }

    /// Sweeps of values, given and returned by state.
    pub(in crate::plan) fn sweep(&mut self, v: &mut [f64], sweeps: usize) {
        assert_eq!(v.len(), self.order.len());
        self.values.clear();
        self.values.extend(self.order.iter().map(|&s| v[s as usize]));
        for _ in 0..sweeps {
            for i in 0..self.order.len() {
                // SAFETY: `start` ascends to the number of entries, and every `to` is the place of a state.
                let expected = unsafe { gathered(&self.start, i, &self.to, &self.weight, &self.values) };
                self.values[i] = self.reward[i] + expected;
            }
        }
        self.order.iter().zip(&self.values).for_each(|(&s, &value)| v[s as usize] = value);
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

/// Σ weight·v over a row, in two interleaved partial sums.
///
/// # Safety
/// `start` ascends to the length of `to` and `weight`, and every entry of `to` is below `v.len()`.
#[inline(always)]
unsafe fn gathered(start: &[usize], row: usize, to: &[u32], weight: &[f64], v: &[f64]) -> f64 {
    // SAFETY: the caller promises the bounds.
    unsafe {
        let (mut i, end) = (*start.get_unchecked(row), *start.get_unchecked(row + 1));
        let at = |i: usize| *weight.get_unchecked(i) * *v.get_unchecked(*to.get_unchecked(i) as usize);
        let (mut even, mut odd) = (0.0, 0.0);
        while i + 2 <= end {
            even += at(i);
            odd += at(i + 1);
            i += 2;
        }
        even + odd + if i < end { at(i) } else { 0.0 }
    }
}

#[cfg(test)]
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
