//! What a certificate promises holds: the true sub-optimality, the true error of the values and their true Bellman residual never exceed what
//! it states, and the bounds are not vacuous.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::domains::Garnet;
use coirl::model::{Cmdp, Reward};
use coirl::plan::{Limits, ManyOptions, Method, Plan, Planner, Status, evaluate};
use proptest::prelude::*;
use random_models::{brute_force_values, dense_values, largest, sketches};
use std::ops::ControlFlow;

const METHODS: [Method; 4] =
    [Method::Automatic, Method::ValueIteration, Method::ModifiedPolicyIteration { sweeps: 5 }, Method::PolicyIteration];

/// Largest loss of the policy and largest error of the values against the optimal ones.
fn truth(model: &Cmdp, reward: &Reward, best: &[f64], plan: &Plan) -> (f64, f64) {
    let own = dense_values(&model.shared_mdp().unwrap(), reward, plan.policy.actions().unwrap());
    let most = |values: &[f64], sign: f64| {
        best.iter().zip(values).fold(0.0, |m: f64, (b, v)| m.max(if sign > 0.0 { b - v } else { (b - v).abs() }))
    };
    (most(&own, 1.0), most(&plan.values, -1.0))
}

/// ‖TV − V‖∞ of the values that were returned.
fn true_residual(model: &Cmdp, reward: &Reward, values: &[f64]) -> f64 {
    let mdp = model.shared_mdp().unwrap();
    let q = evaluate::q_values(&mdp, reward, values).unwrap();
    let best = |s: usize| q[mdp.pairs().of_state(s)].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (0..values.len()).fold(0.0, |most: f64, s| most.max((best(s) - values[s]).abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn on_random_models(sketch in sketches(5, 3), exponent in -9.0..0.0_f64, max_sweeps in 1..40_usize) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let best = brute_force_values(&mdp, &reward);
        // The elimination that the truth comes from has rounding errors of its own.
        let slack = 1e-13 * (1.0 + largest(&best)) / (1.0 - sketch.discount);
        for method in METHODS {
            let tolerant = Planner::to_tolerance(method, 10.0_f64.powf(exponent));
            let limited = |planner| Planner { limits: Limits { max_sweeps }, ..planner };
            let exact = Planner::exact(method);
            for planner in [tolerant, limited(tolerant), exact, limited(exact)] {
                let plan = planner.plan(&mdp, &reward).unwrap();
                let (loss, error) = truth(&model, &reward, &best, &plan);
                let certificate = plan.certificate;
                prop_assert!(loss <= certificate.suboptimality_bound + slack, "{:?} {:?}: loss {}", method, certificate, loss);
                prop_assert!(error <= certificate.value_error_bound + slack, "{:?} {:?}: error {}", method, certificate, error);
                let residual = true_residual(&model, &reward, &plan.values);
                prop_assert!(residual <= certificate.residual + slack, "{:?} {:?}: residual {}", method, certificate, residual);
                if certificate.status == Status::Converged {
                    prop_assert!(certificate.residual <= 10.0_f64.powf(exponent));
                }
            }
        }
    }

    #[test]
    fn for_many_rewards(
        sketch in sketches(5, 3),
        rows in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 3), 4..20),
        exponent in -9.0..0.0_f64,
        exact in any::<bool>(),
    ) {
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let planner = match exact {
            true => Planner::default(),
            false => Planner::to_tolerance(Method::Automatic, 10.0_f64.powf(exponent)),
        };
        let options = ManyOptions { feature_expectations: false, values: true };
        let mut plans = Vec::new();
        planner.plan_many(&mdp, &rows.concat(), options, |plan| { plans.push(plan); ControlFlow::Continue(()) }).unwrap();
        for (many, w) in plans.into_iter().zip(&rows) {
            let reward = mdp.reward(w).unwrap();
            let best = brute_force_values(&mdp, &reward);
            let slack = 1e-13 * (1.0 + largest(&best)) / (1.0 - sketch.discount);
            let plan = Plan {
                policy: many.policy,
                values: many.values.unwrap(),
                value: many.value,
                certificate: many.certificate,
                way: many.way,
            };
            let (loss, error) = truth(&model, &reward, &best, &plan);
            prop_assert!(loss <= plan.certificate.suboptimality_bound + slack, "{:?}: loss {}", plan.certificate, loss);
            prop_assert!(error <= plan.certificate.value_error_bound + slack, "{:?}: error {}", plan.certificate, error);
            let residual = true_residual(&model, &reward, &plan.values);
            prop_assert!(residual <= plan.certificate.residual + slack, "{:?}: residual {}", plan.certificate, residual);
            if plan.certificate.status == Status::Converged {
                prop_assert!(plan.certificate.residual <= 10.0_f64.powf(exponent));
            }
        }
    }
}

#[test]
fn the_bound_on_values_is_within_ten_times_the_truth_in_the_median() {
    for method in METHODS {
        let mut ratios = Vec::new();
        for seed in 0..120 {
            let discount = [0.8, 0.9, 0.95][seed as usize % 3];
            let model = Garnet { n_states: 30, n_successors: 4, discount, seed, ..Garnet::default() }.build().unwrap();
            let mdp = model.shared_mdp().unwrap();
            let reward = mdp.reward(&[1.0, -1.0, 0.5, -0.5, 0.2]).unwrap();
            let best = Planner::default().plan(&mdp, &reward).unwrap().values;
            let plan = Planner::to_tolerance(method, 1e-2).plan(&mdp, &reward).unwrap();
            let error = best.iter().zip(&plan.values).fold(0.0, |m: f64, (b, v)| m.max((b - v).abs()));
            ratios.push(plan.certificate.value_error_bound / error.max(f64::MIN_POSITIVE));
        }
        ratios.sort_by(f64::total_cmp);
        assert!(ratios[0] >= 1.0, "{method:?}: a bound was violated, ratio {}", ratios[0]);
        // Policy iteration ends at the exact values, where a ratio says nothing.
        if method != Method::PolicyIteration {
            assert!(ratios[ratios.len() / 2] <= 10.0, "{method:?}: median ratio {}", ratios[ratios.len() / 2]);
        }
    }
}
