//! Demonstrations by optimal experts, for the tests of learners.
#![allow(dead_code)] // each test uses its own part

use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Train, Trajectory};
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, ContextSpace};
use coirl::plan::{ManyOptions, PlannedReward};

/// What the expert plans in every context.
pub(crate) fn expert_plans(model: &Cmdp, truth: &LinearMapping, contexts: &[Context]) -> Vec<PlannedReward> {
    plan_mapping(model, truth, contexts, ManyOptions::default()).unwrap()
}

/// Exact demonstrations.
pub(crate) fn exact(model: &Cmdp, truth: &LinearMapping, contexts: &[Context]) -> Vec<Demonstration> {
    let plans = expert_plans(model, truth, contexts);
    let demonstration = |(context, plan): (&Context, PlannedReward)| {
        Demonstration::from_feature_expectations(model, context.clone(), plan.feature_expectations.unwrap()).unwrap()
    };
    contexts.iter().zip(plans).map(demonstration).collect()
}

/// One trajectory per context.
pub(crate) fn sampled(
    model: &Cmdp,
    truth: &LinearMapping,
    contexts: &[Context],
    transitions: usize,
    seed: u64,
) -> Vec<Demonstration> {
    let plans = expert_plans(model, truth, contexts);
    let demonstration = |(i, (context, plan)): (usize, (&Context, PlannedReward))| {
        let mdp = model.mdp(context).unwrap();
        let path = Trajectory::sample(&mdp, &plan.policy, transitions, seed, i as u64).unwrap();
        Demonstration::from_trajectories(model, context.clone(), vec![path]).unwrap()
    };
    contexts.iter().zip(plans).enumerate().map(demonstration).collect()
}

/// A random point of the simplex.
pub(crate) fn simplex_point(dimension: usize, seed: u64) -> Vec<f64> {
    ContextSpace::Simplex { dimension }.sample(1, seed).unwrap()[0].values().to_vec()
}

/// A random matrix with entries in [−1, 1].
pub(crate) fn signed_point(dimension: usize, seed: u64) -> Vec<f64> {
    let space = ContextSpace::Box { lower: vec![-1.0; dimension], upper: vec![1.0; dimension] };
    space.sample(1, seed).unwrap()[0].values().to_vec()
}

/// The first n of them to learn from.
pub(crate) fn train(demonstrations: &[Demonstration], n: usize) -> Train {
    Train::new(demonstrations[..n].to_vec())
}
