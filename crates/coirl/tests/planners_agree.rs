//! All planners return the same policy, the values of brute force over all policies, and feature expectations that add up
//! to them.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::plan::{ManyOptions, Method, Planner, Policy, Simd, Start, Status, evaluate};
use proptest::prelude::*;
use random_models::{brute_force_values, dense_values, largest, sketches};
use std::ops::ControlFlow;

const METHODS: [Method; 5] = [
    Method::Automatic,
    Method::ValueIteration,
    Method::ModifiedPolicyIteration { sweeps: 1 },
    Method::ModifiedPolicyIteration { sweeps: 20 },
    Method::PolicyIteration,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn with_each_other_and_with_brute_force(sketch in sketches(5, 3)) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let best = brute_force_values(&mdp, &reward);
        let tolerance = 1e-11 * (1.0 + largest(&best)) / (1.0 - sketch.discount);
        // Near-ties within the tie tolerance may cost this much, by definition of the tie rule.
        let tie_loss = 1e-9 * largest(&best).max(reward.max_abs()) * 2.0 / (1.0 - sketch.discount);
        let plans: Vec<_> = METHODS.iter().map(|&method| Planner::exact(method).plan(&mdp, &reward).unwrap()).collect();
        for (plan, method) in plans.iter().zip(METHODS) {
            prop_assert_eq!(plan.certificate.status, Status::Exact, "{:?}", method);
            prop_assert_eq!(&plan.policy, &plans[0].policy, "{:?}", method);
            for s in 0..best.len() {
                prop_assert!((plan.values[s] - best[s]).abs() <= tolerance + tie_loss,
                    "{:?} state {}: {} instead of {}", method, s, plan.values[s], best[s]);
            }
            let own = dense_values(&mdp, &reward, plan.policy.actions().unwrap());
            for s in 0..own.len() {
                prop_assert!((plan.values[s] - own[s]).abs() <= tolerance, "values are the policy's own");
            }
        }
        let mu = evaluate::feature_expectations(&mdp, &plans[0].policy).unwrap();
        let value: f64 = mu.iter().zip(&sketch.weights).map(|(m, w)| m * w).sum();
        prop_assert!((value - plans[0].value).abs() <= 10.0 * tolerance, "w·μ = {} but ξ·V = {}", value, plans[0].value);
    }

    #[test]
    fn from_any_start(sketch in sketches(6, 3), start in prop::collection::vec(-100.0..100.0_f64, 6)) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let cold = Planner::default().plan(&mdp, &reward).unwrap();
        let uniform = Policy::uniform(mdp.pairs());
        for start in [Start::Values(&start[..sketch.n_states]), Start::Policy(&uniform), Start::Values(&cold.values)] {
            for method in METHODS {
                let warm = Planner::exact(method).plan_from(&mdp, &reward, start).unwrap();
                prop_assert_eq!(&warm.policy, &cold.policy, "{:?}", method);
            }
        }
    }

    #[test]
    fn one_by_one_and_in_blocks(
        sketch in sketches(6, 3),
        rows in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 3), 4..40),
    ) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let weights: Vec<f64> = rows.concat();
        let options = ManyOptions { feature_expectations: true, values: true };
        let mut many = Vec::new();
        Planner::default().plan_many(&mdp, &weights, options, |plan| { many.push(plan); ControlFlow::Continue(()) }).unwrap();
        prop_assert_eq!(many.len(), rows.len());
        for (i, (plan, w)) in many.iter().zip(&rows).enumerate() {
            let alone = Planner::default().plan(&mdp, &mdp.reward(w).unwrap()).unwrap();
            prop_assert_eq!(plan.index, i);
            prop_assert_eq!(&plan.policy, &alone.policy);
            let tolerance = 1e-10 * (1.0 + largest(&alone.values)) / (1.0 - sketch.discount);
            prop_assert!((plan.value - alone.value).abs() <= tolerance);
            let mu = plan.feature_expectations.as_ref().unwrap();
            let value: f64 = mu.iter().zip(w).map(|(m, w)| m * w).sum();
            prop_assert!((value - alone.value).abs() <= tolerance, "w·μ = {} but ξ·V = {}", value, alone.value);
            for (x, y) in plan.values.as_ref().unwrap().iter().zip(&alone.values) {
                prop_assert!((x - y).abs() <= tolerance);
            }
        }
        let mut portable = Vec::new();
        let planner = Planner { simd: Simd::Portable, ..Planner::default() };
        planner.plan_many(&mdp, &weights, options, |plan| { portable.push(plan); ControlFlow::Continue(()) }).unwrap();
        prop_assert_eq!(many, portable);
    }
}
