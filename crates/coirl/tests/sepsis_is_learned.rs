//! Section 4.3 on the sepsis simulator in miniature: the experiments that ship, with fewer contexts and seeds.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::contextual::plan_contexts;
use coirl::domains::Sepsis;
use coirl::mapping::RewardMapping;
use coirl::model::{ActionId, Context};
use coirl::plan::{ManyOptions, Planner};
use coirl_experiments::{Experiment, Given, MeanCurve, Place, Scale, World, mapping_of_clinicians, over_seeds};
use std::ops::ControlFlow;

const ONLINE: &str = include_str!("../../../experiments/sepsis-online.toml");
const LINEAR: &str = include_str!("../../../experiments/sepsis-linear.toml");
const THRESHOLD: &str = include_str!("../../../experiments/sepsis-threshold.toml");

/// Runs an experiment with other contexts, with the methods of these names and with seeds from 20 on.
fn run(text: &str, contexts: toml::Value, names: &[&str], seeds: u64) -> Vec<MeanCurve> {
    let replaced = [("study.contexts".to_owned(), contexts), ("study.test_contexts".to_owned(), 150.into())];
    let mut experiment = Experiment::read(text, Scale::Usual, &replaced).unwrap();
    experiment.methods.retain(|entrant| names.contains(&entrant.name.as_str()));
    assert_eq!(experiment.methods.len(), names.len());
    let one = |seed| experiment.run(0, seed, &Given::default(), &|_, _| ControlFlow::Continue(())).unwrap();
    over_seeds(&(20..20 + seeds).map(one).collect::<Vec<_>>())
}

fn value(curves: &[MeanCurve], measure: &str, name: &str, contexts: f64) -> f64 {
    let curve = curves.iter().find(|curve| curve.method == name && curve.measure == measure).unwrap();
    curve.at(contexts).unwrap().mean
}

const VALUE: &str = "value above random";

#[test]
fn online_learners_overtake_one_policy_for_everybody() {
    let one = World::new(Place::Sepsis).unwrap().yardsticks(150, 20).unwrap();
    assert!((0.91..0.95).contains(&one.one_policy.relative_value), "{:?}", one.one_policy);
    assert!((0.6..0.75).contains(&one.last_feature.relative_value), "{:?}", one.last_feature);
    assert!(one.random.relative_value.abs() < 1e-9);
    let curves = run(ONLINE, 400.into(), &["PSGD", "adaptive"], 2);
    for (name, contexts, least) in
        [("adaptive", 25.0, 0.93), ("adaptive", 100.0, 0.96), ("adaptive", 400.0, 0.98), ("PSGD", 400.0, 0.97)]
    {
        let found = value(&curves, VALUE, name, contexts);
        assert!(found > least, "{name} after {contexts}: {found}");
    }
}

#[test]
fn one_trajectory_per_patient_suffices_with_the_right_estimate() {
    let names =
        ["COIRL, plain trajectories", "adaptive, control variate", "adaptive, decisions", "adaptive, likelihood"];
    let curves = run(LINEAR, toml::Value::Array(vec![100.into()]), &names, 2);
    let at = |name| value(&curves, VALUE, name, 100.0);
    assert!(at("COIRL, plain trajectories") < 0.92, "plain trajectories are noise here");
    for (name, least) in
        [("adaptive, control variate", 0.93), ("adaptive, decisions", 0.95), ("adaptive, likelihood", 0.955)]
    {
        let found = at(name);
        assert!(found > least, "{name}: {found}");
    }
    let improved = value(&curves, "value above random, policy improvement", "adaptive, control variate", 100.0);
    let planned = at("adaptive, control variate");
    assert!((planned - improved).abs() < 0.003, "{planned} planned, {improved} improved");
    // High value with lower accuracy: many states have several actions that are nearly as good.
    let accuracy = value(&curves, "accuracy on the way", "adaptive, likelihood", 100.0);
    assert!((0.75..0.95).contains(&accuracy), "{accuracy}");
}

#[test]
fn a_network_learns_a_threshold_that_no_linear_mapping_has() {
    let names = ["linear, decisions", "network, likelihood"];
    let curves = run(THRESHOLD, toml::Value::Array(vec![200.into()]), &names, 1);
    let (linear, network) = (value(&curves, VALUE, names[0], 200.0), value(&curves, VALUE, names[1], 200.0));
    assert!(network > 0.88 && network > linear + 0.05, "network {network}, linear {linear}");
}

#[test]
fn no_optimal_policy_tries_what_nobody_knows() {
    let patients = Sepsis::patients(20_000, 77).unwrap();
    let contexts: Vec<Context> = patients.into_iter().map(|patient| patient.context).collect();
    let model = Sepsis::default().build().unwrap();
    let options = ManyOptions { feature_expectations: false, values: false };
    let unknown = |weights: &[f64], contexts: &[Context]| {
        let mut chosen = 0;
        plan_contexts(&model, contexts, weights, &Planner::default(), options, |plan| {
            let actions: &[ActionId] = plan.policy.actions().unwrap();
            let pair = |(s, action): (usize, &ActionId)| model.pairs().find(s, action.index()).unwrap();
            chosen += actions.iter().enumerate().map(pair).filter(|&pair| !model.is_known(pair)).count();
            ControlFlow::Continue(())
        })
        .unwrap();
        chosen
    };
    assert_eq!(unknown(&Sepsis::linear_mapping().weights_of_all(&contexts).unwrap(), &contexts), 0);
    // The threshold knows two rewards, whatever the context; both are met.
    let mut rewards = Sepsis::threshold_mapping().unwrap().weights_of_all(&contexts).unwrap();
    let mut distinct: Vec<&[f64]> = rewards.chunks_exact(model.n_features()).collect();
    distinct.sort_by(|a, b| a.partial_cmp(b).unwrap());
    distinct.dedup();
    assert_eq!(distinct.len(), 2);
    rewards = distinct.concat();
    assert_eq!(unknown(&rewards, &contexts[..2]), 0);
}

#[test]
fn clinicians_can_be_turned_into_a_mapping() {
    // As the paper makes its W*: the ellipsoid method on recorded trajectories.
    let mapping = mapping_of_clinicians(40, 1).unwrap();
    let model = Sepsis::default().build().unwrap();
    assert_eq!((mapping.dimension(), mapping.n_features()), (7, model.n_features()));
    assert!(mapping.values().iter().all(|w| w.is_finite()) && mapping.values().iter().any(|w| *w != 0.0));
    assert!(World::new(Place::Sepsis).unwrap().with_truth(mapping).unwrap().examination(3, 0).is_ok());
}
