//! Models in which no state is ever returned to: inventories that only shrink, epidemics, stages of a game.
//!
//! Where every state comes after those that its actions lead to, one update of each gives the optimal values, whatever the discount. States that are
//! kept as they are do not matter: r + γ(p v + rest) = v is solved for v. A backup certifies the values as everywhere.

use crate::model::Kernel;
use crate::plan::kernels::order::Components;
use crate::plan::problem::Problem;

/// An order of the states in which none comes before those that any of its actions leads to.
#[derive(Debug, Clone)]
pub(in crate::plan) enum Order {
    /// Actions lead to states of lower number, and the states are in their order.
    Ascending,
    /// Actions lead to states of higher number, and the states are against their order.
    Descending,
    Found(Vec<u32>),
}

/// The states that any action of a state leads to.
fn successors(kernel: &Kernel, state: usize) -> &[u32] {
    let rows = kernel.rows_of_state(state);
    let layout = kernel.layout();
    &layout.next[layout.row_start[rows.start]..layout.row_start[rows.end]]
}

/// The order that the numbers of the states are, where they are one. Nearly free: on other models the first states show that they are not.
pub(in crate::plan) fn order_by_number(kernel: &Kernel) -> Option<Order> {
    let (mut down, mut up) = (true, true);
    for s in 0..kernel.n_states() {
        for &to in successors(kernel, s) {
            down &= to as usize <= s;
            up &= to as usize >= s;
        }
        if !down && !up {
            return None;
        }
    }
    Some(if down { Order::Ascending } else { Order::Descending })
}

/// An order in which no state comes before those that any of its actions leads to, where there is one.
pub(in crate::plan) fn order(kernel: &Kernel) -> Option<Order> {
    let Components { states, starts } = Components::of(kernel.n_states(), |s| successors(kernel, s));
    (starts.len() == states.len() + 1).then_some(Order::Found(states))
}

/// Gives every state its optimal value. For discounts below one.
pub(in crate::plan) fn one_pass(problem: &Problem<'_>, order: &Order, values: &mut [f64]) {
    let n = values.len();
    match order {
        Order::Ascending => (0..n).for_each(|s| update(problem, s, values)),
        Order::Descending => (0..n).rev().for_each(|s| update(problem, s, values)),
        Order::Found(states) => states.iter().for_each(|&s| update(problem, s as usize, values)),
    }
}

fn update(problem: &Problem<'_>, s: usize, values: &mut [f64]) {
    // What staying is worth is solved for, so it must not count.
    values[s] = 0.0;
    let mut best = f64::MIN;
    for row in problem.kernel.rows_of_state(s) {
        let (next, p) = problem.kernel.row(row);
        let others = expected(next, p, values);
        let stay = next.binary_search(&(s as u32)).map_or(0.0, |at| p[at]);
        best = best.max((problem.reward.at(s, row) + problem.gamma * others) / (1.0 - problem.gamma * stay));
    }
    values[s] = best;
}

/// Σ p·v in eight interleaved partial sums.
fn expected(next: &[u32], p: &[f64], v: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ((to, more), (q, rest)) = (next.as_chunks::<8>(), p.as_chunks::<8>());
    for (to, q) in to.iter().zip(q) {
        for l in 0..8 {
            sums[l] += q[l] * v[to[l] as usize];
        }
    }
    let tail: f64 = more.iter().zip(rest).map(|(&to, p)| p * v[to as usize]).sum();
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) + tail
}
