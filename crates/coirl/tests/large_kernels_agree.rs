//! The shortcuts that only large kernels take (single precision, candidate rows) agree with the plain way.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::domains::Garnet;
use coirl::plan::{ManyOptions, Method, Planner, evaluate};
use std::ops::ControlFlow;

/// Largest |a − b|.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()))
}

#[test]
fn feature_expectations_to_a_tolerance() {
    let garnet =
        Garnet { n_states: 3_000, n_actions: 5, n_successors: 20, n_features: 6, discount: 0.95, ..Garnet::default() };
    let model = garnet.build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let weights: Vec<f64> = (0..6 * 20).map(|i| (f64::from(i) * 0.618_033_988_75).fract() * 2.0 - 1.0).collect();
    let mut plans = Vec::new();
    let planner = Planner::to_tolerance(Method::Automatic, 1e-6);
    planner
        .plan_many(&mdp, &weights, ManyOptions::default(), |plan| {
            plans.push(plan);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(plans.len(), 20);
    for plan in plans {
        let exact = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
        let found = plan.feature_expectations.unwrap();
        // Feature expectations are about 10; the tolerance is relative to their size.
        assert!(distance(&found, &exact) <= 1e-4, "{found:?} instead of {exact:?}");
        let best = Planner::exact(Method::PolicyIteration)
            .plan(&mdp, &mdp.reward(&weights[plan.index * 6..(plan.index + 1) * 6]).unwrap())
            .unwrap();
        assert!(best.value - plan.value <= plan.certificate.value_error_bound, "{:?}", plan.certificate);
        let own: f64 = exact.iter().zip(&weights[plan.index * 6..]).map(|(m, w)| m * w).sum();
        assert!(best.value - own <= plan.certificate.suboptimality_bound + 1e-9, "{:?}", plan.certificate);
    }
}

#[test]
fn one_reward_on_two_million_entries() {
    let garnet =
        Garnet { n_states: 30_000, n_actions: 5, n_successors: 14, n_features: 1, discount: 0.9, ..Garnet::default() };
    let model = garnet.build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    assert!(mdp.kernel().n_entries() >= 2_000_000);
    let reward = mdp.reward(&[1.0]).unwrap();
    let plain = Planner::exact(Method::ValueIteration).plan(&mdp, &reward).unwrap();
    let exact = Planner::default().plan(&mdp, &reward).unwrap();
    assert_eq!(exact.policy, plain.policy);
    assert!(distance(&exact.values, &plain.values) <= 1e-10);
    let rough = Planner::to_tolerance(Method::Automatic, 1e-4).plan(&mdp, &reward).unwrap();
    assert!(rough.certificate.residual <= 1e-4);
    assert!(distance(&rough.values, &plain.values) <= rough.certificate.value_error_bound, "{:?}", rough.certificate);
}
