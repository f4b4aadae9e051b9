//! Section 4.3 on the sepsis simulator in miniature: fewer seeds than docs/sepsis.md, the same functions.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::domains::Sepsis;
use coirl::evaluate::plan_contexts;
use coirl::experiments::sepsis::{
    Seen, Size, Truth, Ward, linear_contenders, mapping_of_clinicians, offline, online, online_contenders,
    threshold_contenders, yardsticks,
};
use coirl::experiments::{Acting, Contender, Measurement, over_seeds};
use coirl::mapping::RewardMapping;
use coirl::model::{ActionId, Context};
use coirl::plan::{ManyOptions, Planner};
use std::ops::ControlFlow;

fn size(contexts: &[usize], seeds: u64) -> Size {
    Size { contexts: contexts.to_vec(), seeds: (20..20 + seeds).collect(), test_contexts: 150 }
}

fn keep(all: &mut Vec<Measurement>) -> impl FnMut(Measurement) -> ControlFlow<()> + '_ {
    |measurement| {
        all.push(measurement);
        ControlFlow::Continue(())
    }
}

fn named(contenders: Vec<Contender>, names: &[&str]) -> Vec<Contender> {
    let found: Vec<Contender> = contenders.into_iter().filter(|contender| names.contains(&contender.name)).collect();
    assert_eq!(found.len(), names.len());
    found
}

fn value(all: &[Measurement], name: &str, contexts: usize, acting: Acting) -> f64 {
    over_seeds(all, name, contexts, acting, |score| score.relative_value).unwrap().0
}

#[test]
fn online_learners_overtake_one_policy_for_everybody() {
    let one = yardsticks(Truth::Linear, 150, 20).unwrap();
    assert!((0.91..0.95).contains(&one.one_policy.relative_value), "{:?}", one.one_policy);
    assert!((0.6..0.75).contains(&one.outcome_only.relative_value), "{:?}", one.outcome_only);
    assert!(one.random.relative_value.abs() < 1e-9);
    let mut all = Vec::new();
    let seen = Seen::FeatureExpectations;
    online(seen, &online_contenders(seen), &size(&[25, 100, 400], 2), &mut keep(&mut all)).unwrap();
    for (name, contexts, least) in
        [("adaptive", 25, 0.93), ("adaptive", 100, 0.96), ("adaptive", 400, 0.98), ("psgd", 400, 0.97)]
    {
        let found = value(&all, name, contexts, Acting::Test);
        assert!(found > least, "{name} after {contexts}: {found}");
    }
}

#[test]
fn one_trajectory_per_patient_suffices_with_the_right_estimate() {
    let names = ["adaptive", "adaptive, control variate", "adaptive, decisions", "adaptive, likelihood"];
    let mut all = Vec::new();
    offline(Truth::Linear, &named(linear_contenders(), &names), &size(&[100], 2), &mut keep(&mut all)).unwrap();
    let at = |name, acting| value(&all, name, 100, acting);
    assert!(at("adaptive", Acting::Test) < 0.9, "plain trajectories are noise here");
    for (name, least) in
        [("adaptive, control variate", 0.93), ("adaptive, decisions", 0.95), ("adaptive, likelihood", 0.955)]
    {
        let found = at(name, Acting::Test);
        assert!(found > least, "{name}: {found}");
    }
    for name in ["adaptive, control variate", "adaptive, likelihood"] {
        let (planned, improved) = (at(name, Acting::Test), at(name, Acting::Improved));
        assert!((planned - improved).abs() < 0.003, "{name}: {planned} planned, {improved} improved");
    }
    // High value with lower accuracy: many states have several actions that are nearly as good.
    let accuracy = over_seeds(&all, "adaptive, likelihood", 100, Acting::Test, |score| score.visited_accuracy).unwrap();
    assert!((0.75..0.95).contains(&accuracy.0), "{accuracy:?}");
}

#[test]
fn a_network_learns_a_threshold_that_no_linear_mapping_has() {
    let names = ["linear, control variate", "linear, decisions", "network, likelihood"];
    let mut all = Vec::new();
    offline(Truth::Threshold, &named(threshold_contenders(), &names), &size(&[200], 1), &mut keep(&mut all)).unwrap();
    let at = |name| value(&all, name, 200, Acting::Test);
    let linear = at("linear, control variate").max(at("linear, decisions"));
    let network = at("network, likelihood");
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
    assert!(Ward::new(Truth::Linear).unwrap().with_truth(mapping).unwrap().examination(3, 0).is_ok());
}
