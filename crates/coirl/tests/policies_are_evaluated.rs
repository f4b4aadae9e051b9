//! Values, occupancies, successor features and samples of a policy agree with each other and with elimination.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::demos::Trajectory;
use coirl::model::{Criterion, Reward, StateId};
use coirl::plan::{Planner, Policy, evaluate};
use proptest::prelude::*;
use random_models::{Sketch, dense_values, largest, sketches, solve};

/// V of a stochastic policy by elimination.
fn mixed_values(sketch: &Sketch, reward: &Reward, shares: &[f64]) -> Vec<f64> {
    let model = sketch.model();
    let mdp = model.shared_mdp().unwrap();
    let n = mdp.n_states();
    let mut system = vec![vec![0.0; n + 1]; n];
    for s in 0..n {
        system[s][s] += 1.0;
        for pair in mdp.pairs().of_state(s) {
            mdp.kernel().successors(pair).for_each(|(next, p)| system[s][next] -= sketch.discount * shares[pair] * p);
            system[s][n] += shares[pair] * reward.at(s, pair);
        }
    }
    solve(system)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn stationary_policies(sketch in sketches(6, 3), picks in prop::collection::vec(0..1000_usize, 6)) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let action = |s: usize| {
            let range = mdp.pairs().of_state(s);
            mdp.pairs().action(range.start + picks[s] % range.len())
        };
        let actions: Vec<_> = (0..mdp.n_states()).map(action).collect();
        let policy = Policy::stationary(mdp.pairs(), actions.clone()).unwrap();
        let expected = dense_values(&mdp, &reward, &actions);
        let tolerance = 1e-12 * (1.0 + largest(&expected)) / (1.0 - sketch.discount);
        let values = evaluate::values(&mdp, &reward, &policy).unwrap();
        for (x, y) in values.iter().zip(&expected) {
            prop_assert!((x - y).abs() <= tolerance, "{} instead of {}", x, y);
        }
        let occupancy = evaluate::occupancy(&mdp, &policy).unwrap();
        let total: f64 = occupancy.of_pairs().iter().sum();
        prop_assert!((total - 1.0 / (1.0 - sketch.discount)).abs() <= 1e-11 / (1.0 - sketch.discount).powi(2));
        let mu = occupancy.feature_expectations(mdp.features(), mdp.pairs());
        let value: f64 = mu.iter().zip(&sketch.weights).map(|(m, w)| m * w).sum();
        let wanted: f64 = sketch.initial.iter().zip(&expected).map(|(p, v)| p * v).sum();
        prop_assert!((value - wanted).abs() <= 10.0 * tolerance, "{} instead of {}", value, wanted);
        let successor = evaluate::successor_features(&mdp, &policy).unwrap();
        for (s, row) in successor.chunks_exact(3).enumerate() {
            let value: f64 = row.iter().zip(&sketch.weights).map(|(m, w)| m * w).sum();
            prop_assert!((value - expected[s]).abs() <= 10.0 * tolerance);
        }
    }

    #[test]
    fn stochastic_policies(sketch in sketches(6, 3), raw in prop::collection::vec(0.01..1.0_f64, 18)) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let mut shares = raw[..mdp.pairs().len()].to_vec();
        for s in 0..mdp.n_states() {
            let range = mdp.pairs().of_state(s);
            let sum: f64 = shares[range.clone()].iter().sum();
            shares[range].iter_mut().for_each(|x| *x /= sum);
        }
        let policy = Policy::stochastic(mdp.pairs(), shares.clone()).unwrap();
        let expected = mixed_values(&sketch, &reward, &shares);
        let tolerance = 1e-12 * (1.0 + largest(&expected)) / (1.0 - sketch.discount);
        let values = evaluate::values(&mdp, &reward, &policy).unwrap();
        for (x, y) in values.iter().zip(&expected) {
            prop_assert!((x - y).abs() <= tolerance, "{} instead of {}", x, y);
        }
        let mu = evaluate::feature_expectations(&mdp, &policy).unwrap();
        let value: f64 = mu.iter().zip(&sketch.weights).map(|(m, w)| m * w).sum();
        let wanted: f64 = sketch.initial.iter().zip(&expected).map(|(p, v)| p * v).sum();
        prop_assert!((value - wanted).abs() <= 10.0 * tolerance);
    }

    #[test]
    fn a_long_horizon_approaches_the_infinite_one(sketch in sketches(5, 3)) {
        let discount = sketch.discount.min(0.8);
        let steps = 200;
        let finite = sketch.model_with(Criterion::finite_horizon(steps, discount).unwrap());
        let infinite = sketch.model_with(Criterion::discounted(discount).unwrap());
        let (finite, infinite) = (finite.shared_mdp().unwrap(), infinite.shared_mdp().unwrap());
        let reward = finite.reward(&sketch.weights).unwrap();
        let near = Planner::default().plan(&finite, &reward).unwrap();
        let far = Planner::default().plan(&infinite, &reward).unwrap();
        prop_assert!((near.value - far.value).abs() <= 1e-7, "{} and {}", near.value, far.value);
        let mu = evaluate::feature_expectations(&finite, &near.policy).unwrap();
        let value: f64 = mu.iter().zip(&sketch.weights).map(|(m, w)| m * w).sum();
        prop_assert!((value - near.value).abs() <= 1e-10);
    }
}

#[test]
fn samples_have_the_right_mean() {
    let model = coirl::domains::Driving::default().build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::default().plan(&mdp, &mdp.reward(&[-0.2, 1.0, 0.5]).unwrap()).unwrap();
    let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
    let coirl::model::Features::State { values, .. } = mdp.features() else { panic!("state features") };
    let (n, transitions) = (4000, 150);
    let mut mean = [0.0; 3];
    for number in 0..n {
        let trajectory = Trajectory::sample(&mdp, &plan.policy, transitions, 5, number).unwrap();
        assert_eq!((trajectory.states.len(), trajectory.actions.len()), (transitions + 1, transitions));
        assert_eq!(trajectory.states[0], StateId(0));
        for (t, s) in trajectory.states.iter().enumerate() {
            let weight = 0.9_f64.powi(t as i32) / n as f64;
            (0..3).for_each(|j| mean[j] += weight * values[s.index() * 3 + j]);
        }
    }
    for j in 0..3 {
        assert!((mean[j] - mu[j]).abs() < 0.03, "{mean:?} instead of {mu:?}");
    }
    let again = Trajectory::sample(&mdp, &plan.policy, transitions, 5, 17).unwrap();
    assert_eq!(again, Trajectory::sample(&mdp, &plan.policy, transitions, 5, 17).unwrap());
    assert_ne!(again, Trajectory::sample(&mdp, &plan.policy, transitions, 6, 17).unwrap());
}
