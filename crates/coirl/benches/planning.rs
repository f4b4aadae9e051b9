//! The planning problems P1, P2, P4 and P5 and the inner loops, for `cargo bench`. P3 (ICU-Sepsis, whose data come with a
//! Python package) and the comparison with other planners: `cargo xtask bench-peers`.
#![allow(missing_docs)] // the macros of criterion make undocumented functions

use coirl::domains::{Driving, Garnet};
use coirl::model::Cmdp;
use coirl::plan::{Limits, ManyOptions, Method, Planner, Simd, evaluate};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

fn garnet(n_states: usize, n_actions: usize, n_successors: usize, n_features: usize, discount: f64) -> Cmdp {
    Garnet { n_states, n_actions, n_successors, n_features, discount, seed: 1, ..Garnet::default() }
        .build()
        .expect("the settings are valid")
}

fn driving() -> Cmdp {
    Driving::default().build().expect("the settings are valid")
}

/// Weights from a fixed sequence in [−1, 1).
fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.754_877_666_246_692_7).fract() * 2.0 - 1.0).collect()
}

fn one_reward(c: &mut Criterion) {
    let problems = [
        ("P1", driving()),
        ("P2a", garnet(5_000, 5, 20, 5, 0.7)),
        ("P2b", garnet(5_000, 5, 20, 5, 0.95)),
        ("P4", garnet(100_000, 4, 10, 5, 0.99)),
    ];
    for (name, model) in &problems {
        let mdp = model.shared_mdp().expect("shared dynamics");
        let reward = mdp.reward(&weights(model.n_features())).expect("finite weights");
        let mut group = c.benchmark_group(*name);
        let settings = [
            ("automatic to 1e-6", Planner::to_tolerance(Method::Automatic, 1e-6)),
            ("value iteration to 1e-6", Planner::to_tolerance(Method::ValueIteration, 1e-6)),
            (
                "modified policy iteration to 1e-6",
                Planner::to_tolerance(Method::ModifiedPolicyIteration { sweeps: 20 }, 1e-6),
            ),
            ("automatic, exact", Planner::default()),
        ];
        for (label, planner) in settings {
            group.bench_function(label, |b| b.iter(|| planner.plan(black_box(&mdp), &reward)));
        }
        let once = Planner { limits: Limits { max_sweeps: 1 }, ..Planner::to_tolerance(Method::ValueIteration, 1e-30) };
        group.bench_function("one backup", |b| b.iter(|| once.plan(black_box(&mdp), &reward)));
        let plan = Planner::default().plan(&mdp, &reward).expect("a plan");
        group.bench_function("feature expectations", |b| b.iter(|| evaluate::feature_expectations(&mdp, &plan.policy)));
        group.finish();
    }
}

fn many_rewards(c: &mut Criterion) {
    let problems =
        [("P5b", garnet(5_000, 5, 20, 40, 0.7)), ("P5c", garnet(5_000, 5, 20, 40, 0.95)), ("P5d", driving())];
    for (name, model) in &problems {
        let mdp = model.shared_mdp().expect("shared dynamics");
        let weights = weights(128 * model.n_features());
        let mut group = c.benchmark_group(format!("{name}, 128 rewards"));
        let tolerant = Planner::to_tolerance(Method::Automatic, 1e-6);
        let settings = [
            ("to 1e-6", tolerant, false),
            ("to 1e-6 with feature expectations", tolerant, true),
            ("to 1e-6 without vector instructions", Planner { simd: Simd::Portable, ..tolerant }, false),
            ("exact with feature expectations", Planner::default(), true),
        ];
        for (label, planner, feature_expectations) in settings {
            let options = ManyOptions { feature_expectations, values: false };
            group.bench_function(label, |b| {
                b.iter(|| planner.plan_many(&mdp, black_box(&weights), options, |_| ControlFlow::Continue(())));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = planning;
    config = Criterion::default().sample_size(11).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = one_reward, many_rewards
}
criterion_main!(planning);
