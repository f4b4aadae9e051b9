//! The same input gives the same bits, whatever the number of threads and the instruction set.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::contextual::plan_contexts;
use coirl::domains::{Driving, Garnet};
use coirl::model::{Cmdp, Context, ContextSpace};
use coirl::plan::{ManyOptions, Method, PlannedReward, Planner, Simd};
use std::ops::ControlFlow;

/// Everything of a result that could differ, as bits.
fn bits(plan: &PlannedReward) -> Vec<u64> {
    let mut bits = vec![plan.index as u64, plan.value.to_bits(), plan.certificate.sweeps as u64];
    bits.extend([plan.certificate.residual.to_bits(), plan.certificate.suboptimality_bound.to_bits()]);
    bits.extend(plan.policy.actions().unwrap().iter().map(|a| u64::from(a.0)));
    bits.extend(plan.values.iter().flatten().chain(plan.feature_expectations.iter().flatten()).map(|x| x.to_bits()));
    bits
}

fn run(model: &Cmdp, contexts: &[Context], weights: &[f64], planner: Planner, threads: usize) -> Vec<Vec<u64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let options = ManyOptions { feature_expectations: true, values: true };
    let mut all = Vec::new();
    let keep = |plan: PlannedReward| {
        all.push(bits(&plan));
        ControlFlow::Continue(())
    };
    pool.install(|| plan_contexts(model, contexts, weights, &planner, options, keep)).unwrap();
    all
}

/// Weights from a fixed sequence in [−1, 1).
fn weights(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.754_877_666_246_692_7).fract() * 2.0 - 1.0).collect()
}

fn check(model: &Cmdp, contexts: &[Context]) {
    let weights = weights(contexts.len() * model.n_features());
    for planner in [Planner::default(), Planner::to_tolerance(Method::Automatic, 1e-6)] {
        let reference = run(model, contexts, &weights, planner, 1);
        assert_eq!(reference.len(), contexts.len());
        for threads in [2, 7] {
            assert!(reference == run(model, contexts, &weights, planner, threads), "{threads} threads differ");
        }
        for simd in [Simd::Portable, Simd::Avx2, Simd::Avx512] {
            let forced = Planner { simd, ..planner };
            assert!(reference == run(model, contexts, &weights, forced, 2), "{simd:?} differs");
        }
    }
}

#[test]
fn driving() {
    let model = Driving::default().build().unwrap();
    let context = ContextSpace::Any.context([1.0]).unwrap();
    check(&model, &vec![context; 150]);
}

#[test]
fn random_models() {
    let garnet = Garnet { n_states: 400, admissible: 0.7, seed: 3, ..Garnet::default() };
    let context = ContextSpace::Any.context([1.0]).unwrap();
    check(&garnet.build().unwrap(), &vec![context; 100]);
    let mixture = Garnet { n_states: 150, n_kernels: 3, seed: 4, ..Garnet::default() }.build().unwrap();
    let on_simplex = |i: usize| {
        let x = (i as f64 * 0.618).fract();
        mixture.context_space().context([x * 0.5, 0.5 - x * 0.5, 0.5]).unwrap()
    };
    check(&mixture, &(0..40).map(on_simplex).collect::<Vec<_>>());
}

#[test]
fn garnets_follow_their_seed() {
    let garnet = Garnet { n_kernels: 2, admissible: 0.5, seed: 9, ..Garnet::default() };
    assert_eq!(garnet.build().unwrap(), garnet.build().unwrap());
    assert_ne!(garnet.build().unwrap(), Garnet { seed: 10, ..garnet }.build().unwrap());
}
