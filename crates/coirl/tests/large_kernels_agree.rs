//! The shortcuts that only large kernels take (single precision, candidate rows, policies as lanes) agree with the plain way.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::domains::Garnet;
use coirl::model::{Cmdp, Criterion, Dynamics, Features, KernelBuilder, Pairs, SparseRows};
use coirl::plan::{ManyOptions, Method, PlannedReward, Planner, Simd, evaluate};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Largest |a − b|.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()))
}

/// Weights from a fixed sequence in [−1, 1).
fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.618_033_988_75).fract() * 2.0 - 1.0).collect()
}

/// The plans of every row of `weights`.
fn planned(planner: Planner, model: &Cmdp, weights: &[f64], threads: usize) -> Vec<PlannedReward> {
    let mdp = model.shared_mdp().unwrap();
    let mut plans = Vec::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let keep = |plan| {
        plans.push(plan);
        ControlFlow::Continue(())
    };
    pool.install(|| planner.plan_many(&mdp, weights, ManyOptions::default(), keep)).unwrap();
    plans
}

/// Random, with dense features of states or with two features of every pair, fast mixing or slow.
fn models() -> Vec<Cmdp> {
    let garnet = |n_states, n_actions, n_successors| Garnet {
        n_states,
        n_actions,
        n_successors,
        n_features: 6,
        discount: 0.95,
        ..Garnet::default()
    };
    let fast = garnet(3_000, 5, 20).build().unwrap();
    let slow = garnet(13_000, 2, 2).build().unwrap();
    // Some states cannot be reached from the start, and some actions not be taken.
    let n = 2_500;
    let whole = Garnet { admissible: 0.8, ..garnet(n, 5, 20) }.build().unwrap();
    let whole = whole.shared_mdp().unwrap();
    let pairs = whole.pairs();
    let mut builder = KernelBuilder::new(Arc::new(pairs.clone()));
    for pair in 0..pairs.len() {
        let row: Vec<(i64, f64)> = whole.kernel().successors(pair).map(|(to, p)| ((to % 2_200) as i64, p)).collect();
        builder.push_row(row.into_iter()).unwrap();
    }
    let kernel = builder.finish().unwrap();
    let feature = (0..pairs.len()).flat_map(|pair| [(pair % 3) as u32, 3 + (pair % 2) as u32]).collect();
    let value = (0..2 * pairs.len()).map(|i| 0.25 + (i as f64 * 0.754_877_666).fract()).collect();
    let rows = SparseRows::new(6, (0..=pairs.len()).map(|i| 2 * i).collect(), feature, value).unwrap();
    let features = Features::per_pair(pairs, rows).unwrap();
    let start = (0..n).map(|s| if s < 100 { 0.01 } else { 0.0 }).collect();
    let criterion = Criterion::discounted(0.95).unwrap();
    let partial = Cmdp::new(Dynamics::Shared(kernel), features, start, criterion).unwrap();
    vec![fast, slow, partial]
}

#[test]
fn feature_expectations_to_a_tolerance() {
    for model in models() {
        let mdp = model.shared_mdp().unwrap();
        assert!(mdp.kernel().n_entries() >= 50_000);
        let weights = weights(6 * 21);
        let plans = planned(Planner::to_tolerance(Method::Automatic, 1e-6), &model, &weights, 1);
        assert_eq!(plans.len(), 21);
        for plan in plans {
            let exact = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
            let found = plan.feature_expectations.unwrap();
            // Relative to the sum of an occupancy, which is 20.
            assert!(distance(&found, &exact) <= 2e-6 * 20.0, "{found:?} instead of {exact:?}");
            let best = Planner::exact(Method::PolicyIteration)
                .plan(&mdp, &mdp.reward(&weights[plan.index * 6..(plan.index + 1) * 6]).unwrap())
                .unwrap();
            assert!(best.value - plan.value <= plan.certificate.value_error_bound, "{:?}", plan.certificate);
            let own: f64 = exact.iter().zip(&weights[plan.index * 6..]).map(|(m, w)| m * w).sum();
            assert!(best.value - own <= plan.certificate.suboptimality_bound + 1e-9, "{:?}", plan.certificate);
        }
    }
}

#[test]
fn feature_expectations_depend_on_the_policy_alone() {
    let planner = Planner::to_tolerance(Method::Automatic, 1e-6);
    for model in models() {
        let weights = weights(6 * 21);
        let plans = planned(planner, &model, &weights, 1);
        for (simd, threads) in [(Simd::Portable, 2), (Simd::Avx2, 7), (Simd::Avx512, 2)] {
            assert!(plans == planned(Planner { simd, ..planner }, &model, &weights, threads), "{simd:?}, {threads}");
        }
        // In other company, twice, and alone.
        for rows in [vec![20, 3, 3, 7, 11], vec![5]] {
            let some: Vec<f64> = rows.iter().flat_map(|&i| weights[i * 6..(i + 1) * 6].to_vec()).collect();
            for (plan, row) in planned(planner, &model, &some, 1).into_iter().zip(rows) {
                assert_eq!(plan.policy, plans[row].policy);
                assert_eq!(plan.feature_expectations, plans[row].feature_expectations);
            }
        }
    }
}

/// Features that only the last of many layers has: nothing is seen of them for long, which must not pass for convergence.
#[test]
fn features_that_are_reached_late() {
    let (layers, width) = (12, 300);
    let n = layers * width;
    let mut builder = KernelBuilder::new(Arc::new(Pairs::all(n, 2).unwrap()));
    for s in 0..n {
        for a in 0..2 {
            let base = (s / width + 1) % layers * width;
            let row = (0..10).map(|i| ((base + (s * 7 + a * 131 + i * 29) % width) as i64, 0.1));
            builder.push_row(row).unwrap();
        }
    }
    let last = (0..n).map(|s| f64::from(u8::from(s / width == layers - 1))).collect();
    let features = Features::per_state(n, 1, last).unwrap();
    let start = (0..n).map(|s| if s < width { 1.0 / width as f64 } else { 0.0 }).collect();
    let criterion = Criterion::discounted(0.9).unwrap();
    let model = Cmdp::new(Dynamics::Shared(builder.finish().unwrap()), features, start, criterion).unwrap();
    let truth = 0.9_f64.powi(11) / (1.0 - 0.9_f64.powi(12));
    for plan in planned(Planner::to_tolerance(Method::Automatic, 1e-6), &model, &weights(5), 1) {
        let found = plan.feature_expectations.unwrap()[0];
        assert!((found - truth).abs() <= 2e-5, "{found} instead of {truth}");
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
