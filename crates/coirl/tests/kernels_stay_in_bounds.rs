//! What is written with `unsafe` computes what plain code does, whatever the shape: one state, one action, missing actions, more rewards
//! than lanes and fewer. Under valgrind the same tests show that nothing is read or written outside.
#![allow(clippy::unwrap_used)]

mod effort;

use coirl::clustering::{KMeans, Points};
use coirl::model::{Cmdp, Criterion, Dynamics, Features, Kernel, SparseRows};
use coirl::plan::{ManyOptions, Method, Planner, Simd};
use effort::{Tally, effort, seed};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// A case under valgrind takes fifty times as long.
fn cases(ordinary: u64) -> u64 {
    if std::env::var_os("COIRL_UNDER_VALGRIND").is_some() { ordinary / 20 + 1 } else { effort(ordinary) }
}

/// A model of any shape, in the plain form that the reference uses.
struct Plain {
    n_states: usize,
    n_actions: usize,
    /// `[s, a, s']`, zero where a pair is not admissible.
    transitions: Vec<f64>,
    admissible: Vec<bool>,
    n_features: usize,
    /// `[s, a, k]`.
    features: Vec<f64>,
    per_pair: bool,
    discount: f64,
}

impl Plain {
    fn random(random: &mut ChaCha8Rng) -> Self {
        let (n_states, n_actions) = (random.random_range(1..40), random.random_range(1..6));
        let n_features = random.random_range(1..5);
        let pairs = n_states * n_actions;
        let (mut transitions, mut admissible) = (vec![0.0; pairs * n_states], vec![false; pairs]);
        for state in 0..n_states {
            let certain = random.random_range(0..n_actions);
            for action in 0..n_actions {
                let pair = state * n_actions + action;
                admissible[pair] = action == certain || random.random_bool(0.7);
                if !admissible[pair] {
                    continue;
                }
                let row = &mut transitions[pair * n_states..][..n_states];
                // Powers of two sum to one without rounding.
                let mut left = 1.0;
                for _ in 0..random.random_range(0..5) {
                    left /= 2.0;
                    row[random.random_range(0..n_states)] += left;
                }
                row[random.random_range(0..n_states)] += left;
            }
        }
        let per_pair = random.random_bool(0.5);
        let number =
            |random: &mut ChaCha8Rng| if random.random_bool(0.3) { 0.0 } else { random.random_range(-1.0..1.0) };
        let mut features = vec![0.0; pairs * n_features];
        for state in 0..n_states {
            let of_state: Vec<f64> = (0..n_features).map(|_| number(random)).collect();
            for action in 0..n_actions {
                let row = &mut features[(state * n_actions + action) * n_features..][..n_features];
                row.copy_from_slice(&of_state);
                if per_pair {
                    row.fill_with(|| number(random));
                }
            }
        }
        let discount = [0.0, 0.5, 0.9][random.random_range(0..3)];
        Self { n_states, n_actions, transitions, admissible, n_features, features, per_pair, discount }
    }

    fn model(&self) -> Cmdp {
        let Self { n_states, n_actions, n_features, .. } = *self;
        let kernel = Kernel::from_dense(n_states, n_actions, &self.transitions, Some(&self.admissible)).unwrap();
        let rows = self.features.chunks_exact(n_features).zip(&self.admissible);
        let features = if self.per_pair {
            let (mut start, mut feature, mut value) = (vec![0], Vec::new(), Vec::new());
            for (row, _) in rows.filter(|(_, admissible)| **admissible) {
                for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                    feature.push(j as u32);
                    value.push(*x);
                }
                start.push(feature.len());
            }
            let rows = SparseRows::new(n_features, start, feature, value).unwrap();
            Features::per_pair(kernel.pairs(), rows).unwrap()
        } else {
            let of_states = self.features.chunks_exact(n_features * n_actions);
            let values = of_states.flat_map(|row| row[..n_features].to_vec()).collect();
            Features::per_state(n_states, n_features, values).unwrap()
        };
        let initial = vec![1.0 / n_states as f64; n_states];
        let criterion = Criterion::discounted(self.discount).unwrap();
        Cmdp::new(Dynamics::Shared(kernel), features, initial, criterion).unwrap()
    }

    /// Optimal values by plain value iteration, far beyond what is compared.
    fn values(&self, weights: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.n_states];
        for _ in 0..400 {
            let backup = |state: usize| {
                let pairs = (0..self.n_actions).map(|action| state * self.n_actions + action);
                let of_pair = |pair: usize| {
                    let row = &self.features[pair * self.n_features..][..self.n_features];
                    let next = &self.transitions[pair * self.n_states..][..self.n_states];
                    let reward: f64 = row.iter().zip(weights).map(|(x, w)| x * w).sum();
                    reward + self.discount * next.iter().zip(&values).map(|(p, v)| p * v).sum::<f64>()
                };
                pairs.filter(|pair| self.admissible[*pair]).map(of_pair).fold(f64::NEG_INFINITY, f64::max)
            };
            values = (0..self.n_states).map(backup).collect();
        }
        values
    }
}

#[test]
fn plans_for_many_rewards() {
    let mut tally = Tally::new("plans by unsafe code", "models");
    for i in 0..cases(120) {
        let mut random = tally.random(i);
        let plain = Plain::random(&mut random);
        let n = random.random_range(1..40);
        let weights: Vec<f64> = (0..n * plain.n_features).map(|_| random.random_range(-1.0..1.0)).collect();
        let model = plain.model();
        let mdp = model.shared_mdp().unwrap();
        let method =
            [Method::Automatic, Method::ValueIteration, Method::ModifiedPolicyIteration { sweeps: 5 }][i as usize % 3];
        let exact = random.random_bool(0.5);
        let attempt = format!("seed {}, attempt {i}", seed());
        let planned = |simd: Simd| {
            let planner =
                if exact { Planner { method, ..Planner::default() } } else { Planner::to_tolerance(method, 1e-9) };
            let mut all = Vec::new();
            let options = ManyOptions { feature_expectations: true, values: true };
            let keep = |plan| {
                all.push(plan);
                ControlFlow::Continue(())
            };
            Planner { simd, ..planner }.plan_many(&mdp, &weights, options, keep).unwrap();
            all
        };
        let portable = planned(Simd::Portable);
        assert!(portable == planned(Simd::Avx2) && portable == planned(Simd::Avx512), "{attempt}: instructions differ");
        for (plan, weights) in portable.iter().zip(weights.chunks_exact(plain.n_features)) {
            for (own, plainly) in plan.values.as_ref().unwrap().iter().zip(plain.values(weights)) {
                assert!((own - plainly).abs() < 1e-7, "{attempt}: {own}, plainly {plainly}");
            }
            let expected: f64 =
                plan.feature_expectations.as_ref().unwrap().iter().zip(weights).map(|(m, w)| m * w).sum();
            assert!((expected - plan.value).abs() < 1e-6, "{attempt}: {expected}, value {}", plan.value);
        }
        tally.tried(1);
    }
}

#[test]
fn centres_nearest_to_rows() {
    let mut tally = Tally::new("clusters by unsafe code", "tables");
    for i in 0..cases(60) {
        let mut random = tally.random(1_000_000 + i);
        let (n, width) = (random.random_range(2..150), random.random_range(1..9));
        let values: Vec<f32> = (0..n * width).map(|_| random.random_range(-1.0..1.0)).collect();
        let points = Points::new(values.clone(), width).unwrap();
        let clusters = random.random_range(1..=n.min(40));
        let found = KMeans { clusters, seed: i, ..KMeans::default() }.fit(&points).unwrap();
        let assigned = found.centroids.assign(&points).unwrap();
        let centres: Vec<&[f64]> = found.centroids.rows().collect();
        for (row, &own) in values.chunks_exact(width).zip(&assigned) {
            let distance =
                |centre: &[f64]| row.iter().zip(centre).map(|(x, c)| (f64::from(*x) - c).powi(2)).sum::<f64>();
            let least = centres.iter().map(|centre| distance(centre)).fold(f64::INFINITY, f64::min);
            assert!(distance(centres[own as usize]) <= least + 1e-6, "seed {}, attempt {i}", seed());
        }
        tally.tried(1);
    }
}
