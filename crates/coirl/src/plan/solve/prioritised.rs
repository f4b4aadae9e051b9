//! Improvements of single states, those with the most to gain first (prioritised sweeping: Moore and Atkeson 1993).
//!
//! Where a good action is found next to a state that has one (mazes, shortest paths), a backup over all states moves the news by one step;
//! a queue follows it, and touches only states that gain. Gains are sorted into classes of a factor of sixteen, first come first served within
//! a class, so that a front of news moves evenly: a finer order sends single paths far ahead on values that are still to be corrected.

use crate::model::Kernel;
use crate::plan::problem::Problem;
use std::collections::VecDeque;

/// For every state, the states with an action that may lead there.
pub(in crate::plan) struct Predecessors {
    start: Vec<usize>,
    state: Vec<u32>,
    /// The largest probability among their actions.
    p: Vec<f32>,
}

impl Predecessors {
    pub(in crate::plan) fn of(kernel: &Kernel) -> Self {
        let n = kernel.n_states();
        let mut likeliest = vec![0.0_f32; n];
        let mut found: Vec<u32> = Vec::new();
        let mut entries: Vec<(u32, f32)> = Vec::new();
        let mut ends = Vec::with_capacity(n);
        let mut start = vec![0; n + 1];
        for s in 0..n {
            for row in kernel.rows_of_state(s) {
                let (next, p) = kernel.row(row);
                for (&to, &p) in next.iter().zip(p).filter(|entry| *entry.0 as usize != s && *entry.1 > 0.0) {
                    let most = &mut likeliest[to as usize];
                    if *most == 0.0 {
                        found.push(to);
                    }
                    *most = most.max((p as f32).max(f32::MIN_POSITIVE));
                }
            }
            for to in found.drain(..) {
                entries.push((to, std::mem::take(&mut likeliest[to as usize])));
                start[to as usize + 1] += 1;
            }
            ends.push(entries.len());
        }
        for s in 0..n {
            start[s + 1] += start[s];
        }
        let mut at = start.clone();
        let (mut state, mut p) = (vec![0; entries.len()], vec![0.0; entries.len()]);
        let mut first = 0;
        for (s, end) in ends.into_iter().enumerate() {
            for &(to, likeliest) in &entries[first..end] {
                let place = &mut at[to as usize];
                (state[*place], p[*place]) = (s as u32, likeliest);
                *place += 1;
            }
            first = end;
        }
        Self { start, state, p }
    }

    fn of_state(&self, s: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.start[s]..self.start[s + 1]).map(|at| (self.state[at] as usize, f64::from(self.p[at])))
    }
}

/// The class of a gain: a factor of sixteen each.
fn class(gain: f64) -> usize {
    (gain.max(0.0).to_bits() >> 54) as usize
}

const N_CLASSES: usize = 512;

/// States that may gain, by class.
struct Queue {
    classes: Vec<VecDeque<u32>>,
    /// The class that each state waits in, zero where it does not.
    waiting: Vec<u16>,
    /// What each may gain.
    gain: Vec<f64>,
    highest: usize,
    /// Gains of this class and below are not waited for.
    floor: usize,
}

impl Queue {
    fn add(&mut self, s: usize, gain: f64) {
        self.gain[s] += gain;
        let class = class(self.gain[s]);
        if class > self.floor && class > usize::from(self.waiting[s]) {
            self.waiting[s] = class as u16;
            self.classes[class].push_back(s as u32);
            self.highest = self.highest.max(class);
        }
    }

    fn pop(&mut self) -> Option<usize> {
        while self.highest > self.floor {
            match self.classes[self.highest].pop_front() {
                // A state that went on to a higher class is met again where it was.
                Some(s) if usize::from(self.waiting[s as usize]) == self.highest => {
                    let s = s as usize;
                    (self.waiting[s], self.gain[s]) = (0, 0.0);
                    return Some(s);
                }
                Some(_) => {}
                None => self.highest -= 1,
            }
        }
        None
    }
}

/// Improves single states of `values`, a lower bound whose backup is `backed`, until no state is likely to gain more than about `least` or
/// `max_updates` are made. Returns the number of updates. For discounts below one.
pub(in crate::plan) fn improve_by_priority(
    problem: &Problem<'_>,
    predecessors: &Predecessors,
    values: &mut [f64],
    backed: &[f64],
    least: f64,
    max_updates: usize,
) -> usize {
    let n = values.len();
    let mut queue = Queue {
        classes: vec![VecDeque::new(); N_CLASSES],
        waiting: vec![0; n],
        gain: vec![0.0; n],
        highest: 0,
        floor: class(least),
    };
    for s in 0..n {
        queue.add(s, (backed[s] - values[s]).max(0.0));
    }
    let mut updates = 0;
    while updates < max_updates
        && let Some(s) = queue.pop()
    {
        updates += 1;
        let best = best_value(problem, s, values);
        let gain = best - values[s];
        if gain > 0.0 {
            values[s] = best;
            for (before, p) in predecessors.of_state(s) {
                queue.add(before, problem.gamma * p * gain);
            }
        }
    }
    updates
}

/// The best of (r + γ Σ p v) / (1 − γ p(s, s)) over the rows of a state, the sum over the others.
fn best_value(problem: &Problem<'_>, s: usize, values: &[f64]) -> f64 {
    let mut best = f64::MIN;
    for row in problem.kernel.rows_of_state(s) {
        let (next, p) = problem.kernel.row(row);
        let (mut others, mut stay) = (0.0, 0.0);
        for (&to, &p) in next.iter().zip(p) {
            if to as usize == s {
                stay += p;
            } else {
                others += p * values[to as usize];
            }
        }
        let value = (problem.reward.at(s, row) + problem.gamma * others) / (1.0 - problem.gamma * stay);
        best = best.max(value);
    }
    best
}
