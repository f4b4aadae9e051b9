//! Engines that wear out and are replaced, watched for a while: at a discount next to one a path of a hundred steps shows little of what matters.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test
#![allow(dead_code)] // each test uses its own part

use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Trajectory};
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, ContextSpace, Criterion, Dynamics, Features, Kernel, SparseRows};
use coirl::plan::ManyOptions;

const WEAR: usize = 12;

/// State s is how worn an engine is. Action 0 keeps it, which wears it on or not; action 1 replaces it. Features: wear of an engine that is
/// kept, and a replacement.
pub(crate) fn engines(discount: f64) -> Cmdp {
    let mut transitions = vec![0.0; WEAR * 2 * WEAR];
    for state in 0..WEAR {
        let mut lead = |action: usize, from: usize| {
            let next = (from + 1).min(WEAR - 1);
            let row = &mut transitions[(state * 2 + action) * WEAR..][..WEAR];
            row[from] += 0.6;
            row[next] += 0.4;
        };
        lead(0, state);
        lead(1, 0);
    }
    let kernel = Kernel::from_dense(WEAR, 2, &transitions, None).unwrap();
    let rows = SparseRows::new(
        2,
        (0..=2 * WEAR).collect(),
        (0..2 * WEAR as u32).map(|pair| pair % 2).collect(),
        (0..2 * WEAR).map(|pair| if pair % 2 == 0 { (pair / 2) as f64 / WEAR as f64 } else { 1.0 }).collect(),
    )
    .unwrap();
    let features = Features::per_pair(kernel.pairs(), rows).unwrap();
    let mut initial = vec![0.0; WEAR];
    initial[0] = 1.0;
    let criterion = Criterion::discounted(discount).unwrap();
    let space = ContextSpace::Box { lower: vec![1.0], upper: vec![1.0] };
    Cmdp::new(Dynamics::Shared(kernel), features, initial, criterion).unwrap().with_context_space(space).unwrap()
}

/// Wear and replacements are avoided, a replacement as much as five steps with a worn engine.
pub(crate) fn owner() -> LinearMapping {
    LinearMapping::new(1, 2, vec![-0.2, -1.0]).unwrap()
}

/// One path per engine, of 25 to 117 transitions times `longer`, by the owner's best policy.
pub(crate) fn watched(model: &Cmdp, longer: usize) -> Vec<Demonstration> {
    let context: Context = model.context_space().context([1.0]).unwrap();
    let plan = plan_mapping(model, &owner(), std::slice::from_ref(&context), ManyOptions::default()).unwrap().remove(0);
    let mdp = model.mdp(&context).unwrap();
    let engine = |i: usize| {
        let path = Trajectory::sample(&mdp, &plan.policy, longer * (25 + 23 * (i % 5)), 11, i as u64).unwrap();
        Demonstration::from_trajectories(model, context.clone(), vec![path]).unwrap()
    };
    (0..20).map(engine).collect()
}
