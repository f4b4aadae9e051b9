//! Small random models for property tests: admissible sets, absorbing and unreachable states, repeated rows, zero
//! probabilities, rewards per state and per pair, discounts from 0 to 0.9999.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test
#![allow(dead_code)] // each test file uses a part

use coirl::model::{ActionId, Cmdp, Criterion, Dynamics, Features, Kernel, Mdp, Reward, SparseRows};
use proptest::prelude::*;

/// What a random model is built from.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    pub(crate) n_states: usize,
    pub(crate) n_actions: usize,
    pub(crate) transitions: Vec<f64>,
    pub(crate) admissible: Vec<bool>,
    pub(crate) features: Vec<f64>,
    pub(crate) per_pair: bool,
    pub(crate) initial: Vec<f64>,
    pub(crate) discount: f64,
    pub(crate) weights: Vec<f64>,
}

const N_FEATURES: usize = 3;

/// Distributions over `n` outcomes with many zeros.
fn distribution(n: usize) -> impl Strategy<Value = Vec<f64>> {
    let entry = prop_oneof![3 => Just(0.0), 2 => 0.01..1.0_f64];
    (prop::collection::vec(entry, n), 0..n).prop_map(|(mut row, certain)| {
        row[certain] += 0.05;
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
        row
    })
}

pub(crate) fn sketches(max_states: usize, max_actions: usize) -> impl Strategy<Value = Sketch> {
    (1..=max_states, 1..=max_actions, any::<bool>()).prop_flat_map(|(n_states, n_actions, per_pair)| {
        let rows = prop::collection::vec(distribution(n_states), n_states * n_actions);
        // What happens to a state: nothing, it absorbs, or its actions all do the same.
        let fates = prop::collection::vec(prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2)], n_states);
        let mask = prop::collection::vec(prop::bool::weighted(0.8), n_states * n_actions);
        let n_rows = if per_pair { n_states * n_actions } else { n_states };
        let number = prop_oneof![1 => Just(0.0), 4 => -1.0..1.0_f64];
        let features = prop::collection::vec(number, n_rows * N_FEATURES);
        let discount = prop_oneof![Just(0.0), Just(0.5), Just(0.9), Just(0.99), Just(0.9999), 0.0..0.999_f64];
        let weights = prop::collection::vec(-1.0..1.0_f64, N_FEATURES);
        (rows, fates, mask, features, distribution(n_states), discount, weights).prop_map(
            move |(mut rows, fates, mut admissible, features, initial, discount, weights)| {
                for s in 0..n_states {
                    for a in 0..n_actions {
                        let row = s * n_actions + a;
                        match fates[s] {
                            1 => rows[row] = (0..n_states).map(|t| f64::from(u8::from(t == s))).collect(),
                            2 => rows[row] = rows[s * n_actions].clone(),
                            _ => {}
                        }
                    }
                    let own = &mut admissible[s * n_actions..(s + 1) * n_actions];
                    if !own.contains(&true) {
                        own[n_actions - 1] = true;
                    }
                }
                let transitions = rows.concat();
                Sketch { n_states, n_actions, transitions, admissible, features, per_pair, initial, discount, weights }
            },
        )
    })
}

impl Sketch {
    pub(crate) fn kernel(&self) -> Kernel {
        Kernel::from_dense(self.n_states, self.n_actions, &self.transitions, Some(&self.admissible)).unwrap()
    }

    pub(crate) fn model(&self) -> Cmdp {
        self.model_with(Criterion::discounted(self.discount).unwrap())
    }

    pub(crate) fn model_with(&self, criterion: Criterion) -> Cmdp {
        let kernel = self.kernel();
        let features = if self.per_pair {
            let rows: Vec<usize> = (0..self.n_states * self.n_actions).filter(|&row| self.admissible[row]).collect();
            let value = rows.iter().flat_map(|&row| &self.features[row * N_FEATURES..(row + 1) * N_FEATURES]).copied();
            let starts = (0..=rows.len()).map(|row| row * N_FEATURES).collect();
            let index = rows.iter().flat_map(|_| 0..N_FEATURES as u32).collect();
            let sparse = SparseRows::new(N_FEATURES, starts, index, value.collect()).unwrap();
            Features::per_pair(kernel.pairs(), sparse).unwrap()
        } else {
            Features::per_state(self.n_states, N_FEATURES, self.features.clone()).unwrap()
        };
        Cmdp::new(Dynamics::Shared(kernel), features, self.initial.clone(), criterion).unwrap()
    }
}

/// V^π by Gaussian elimination on (I − γP) v = r: independent of the library's solvers.
pub(crate) fn dense_values(mdp: &Mdp<'_>, reward: &Reward, actions: &[ActionId]) -> Vec<f64> {
    let n = mdp.n_states();
    let gamma = mdp.criterion().discount();
    let mut system = vec![vec![0.0; n + 1]; n];
    for s in 0..n {
        let pair = mdp.pairs().find(s, actions[s].index()).unwrap();
        system[s][s] += 1.0;
        mdp.kernel().successors(pair).for_each(|(next, p)| system[s][next] -= gamma * p);
        system[s][n] = reward.at(s, pair);
    }
    solve(system)
}

/// Solves an augmented system by elimination with row pivoting.
pub(crate) fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let n = system.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| system[a][column].abs().total_cmp(&system[b][column].abs())).unwrap();
        system.swap(column, pivot);
        for row in 0..n {
            if row != column {
                let factor = system[row][column] / system[column][column];
                for k in column..=n {
                    let above = system[column][k];
                    system[row][k] -= factor * above;
                }
            }
        }
    }
    (0..n).map(|s| system[s][n] / system[s][s]).collect()
}

/// Every deterministic stationary policy.
pub(crate) fn all_policies(mdp: &Mdp<'_>) -> Vec<Vec<ActionId>> {
    (0..mdp.n_states()).fold(vec![Vec::new()], |policies, s| {
        let extend = |policy: Vec<ActionId>| {
            mdp.pairs().of_state(s).map(move |pair| {
                let mut longer = policy.clone();
                longer.push(mdp.pairs().action(pair));
                longer
            })
        };
        policies.into_iter().flat_map(extend).collect()
    })
}

/// The best value of each state over all deterministic policies.
pub(crate) fn brute_force_values(mdp: &Mdp<'_>, reward: &Reward) -> Vec<f64> {
    let mut best = vec![f64::NEG_INFINITY; mdp.n_states()];
    for policy in all_policies(mdp) {
        let values = dense_values(mdp, reward, &policy);
        best.iter_mut().zip(&values).for_each(|(b, v)| *b = b.max(*v));
    }
    best
}

pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
}
