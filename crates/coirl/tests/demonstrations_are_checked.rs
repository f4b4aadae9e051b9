//! Everything that can be wrong with demonstrations is planted once and found; clean ones have nothing found.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod demonstrated;
mod engines;
mod random_models;
mod rooms;

use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Driving;
use coirl::inspect::{BoundsKind, Check, CheckSettings, Finding, Level, Progress, Topic, check};
use coirl::learn::Problem;
use coirl::mapping::LinearMapping;
use coirl::model::{ActionId, Cmdp, Context, ContextSpace, Criterion, Features, Reward, StateId};
use coirl::plan::{Policy, evaluate};
use demonstrated::{exact, sampled};
use engines::{engines, watched};
use proptest::prelude::*;
use random_models::{all_policies, dense_values, largest, sketches};
use rooms::{circle, rooms};
use std::ops::ControlFlow;

fn patient(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn look(model: &Cmdp, demonstrations: &[Demonstration], estimator: &Estimator) -> Check {
    check(model, demonstrations, estimator, &CheckSettings::default(), &mut patient).unwrap()
}

fn path(states: &[u32], actions: &[u32]) -> Trajectory {
    Trajectory {
        states: states.iter().copied().map(StateId).collect(),
        actions: actions.iter().copied().map(ActionId).collect(),
    }
}

fn context(model: &Cmdp, t: f64) -> Context {
    model.context_space().context([t, 1.0 - t]).unwrap()
}

fn shown(model: &Cmdp, t: f64, states: &[u32], actions: &[u32]) -> Demonstration {
    Demonstration::from_trajectories(model, context(model, t), vec![path(states, actions)]).unwrap()
}

/// Six rooms on a circle, two context fields and an expert who goes to different ones.
fn hub() -> (Cmdp, Vec<Demonstration>) {
    let model = rooms(&circle(6), 2);
    let truth = LinearMapping::new(2, 2, vec![1.0, 0.3, -0.4, 1.0]).unwrap();
    let contexts: Vec<Context> = (0..10).map(|i| context(&model, f64::from(i) / 9.0)).collect();
    let demonstrations = exact(&model, &truth, &contexts);
    (model, demonstrations)
}

#[test]
fn clean_demonstrations_have_nothing_found() {
    let (model, demonstrations) = hub();
    let found = look(&model, &demonstrations, &Estimator::default());
    assert_eq!(found.findings, []);
    assert!(found.can_be_fitted() && Topic::ALL.iter().all(|&topic| found.level(topic) == Level::Fine));
    let least = found.least_loss.unwrap();
    assert!(least.lower_bound <= least.reached && least.reached.abs() < 1e-3, "{least:?}");
    let driving = Driving::default().build().unwrap();
    let contexts = driving.context_space().sample(30, 1).unwrap();
    let found = look(&driving, &exact(&driving, &Driving::online_mapping(), &contexts), &Estimator::default());
    assert_eq!(found.findings, []);
    let found = look(&driving, &sampled(&driving, &Driving::online_mapping(), &contexts, 40, 1), &Estimator::default());
    assert_eq!(found.findings, []);
    let support = found.support;
    assert_eq!(support.trajectories, 30);
    assert!(support.states_seen + support.states_never_seen.len() == support.states_reachable);
    assert!(support.pairs_seen >= support.states_seen - 30 && support.pairs_seen < support.pairs_reachable);
}

#[test]
fn states_and_actions_that_the_model_does_not_have() {
    let (small, _) = hub();
    let large = rooms(&circle(9), 2);
    // Room 8 is state 9; the small model has states 0 to 6.
    let found = look(&small, &[shown(&large, 0.5, &[0, 9, 0], &[8, 0])], &Estimator::default());
    assert_eq!(found.findings, [Finding::StateDoesNotExist { demonstration: 0, state: StateId(9) }]);
    assert!(!found.can_be_fitted() && found.least_loss.is_none());
    let found = look(&small, &[shown(&large, 0.5, &[0, 2, 0], &[8, 0])], &Estimator::default());
    let (state, action) = (StateId(0), ActionId(8));
    assert_eq!(found.findings, [Finding::NotAdmissible { demonstration: 0, step: 0, state, action }]);
    assert!(!found.can_be_fitted() && found.level(Topic::Admissibility) == Level::Error);
    let wide = rooms(&[vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]], 2);
    let other = Demonstration::from_feature_expectations(&wide, context(&wide, 0.5), vec![0.0; 3]).unwrap();
    assert!(matches!(look(&small, &[other], &Estimator::default()).findings[..], [Finding::NotFittable { .. }]));
    assert!(matches!(look(&small, &[], &Estimator::default()).findings[..], [Finding::NotFittable { .. }]));
    let steps = small.clone().with_criterion(Criterion::finite_horizon(5, 1.0).unwrap()).unwrap();
    let found = look(&steps, &[shown(&steps, 0.5, &[0, 2, 0], &[1, 0])], &Estimator::default());
    assert!(matches!(found.findings[..], [Finding::NotFittable { .. }]));
}

#[test]
fn steps_that_cannot_be_and_states_that_cannot_be_reached() {
    let (model, _) = hub();
    let jump = shown(&model, 0.5, &[0, 3, 0], &[1, 0]);
    let found = look(&model, &[shown(&model, 0.2, &[0, 2, 0], &[1, 0]), jump], &Estimator::default());
    let impossible = Finding::ImpossibleTransition {
        demonstration: 1,
        step: 0,
        state: StateId(0),
        action: ActionId(1),
        next: StateId(3),
    };
    assert_eq!(found.about(Topic::Transitions).collect::<Vec<_>>(), [&impossible]);
    assert!(found.can_be_fitted() && found.level(Topic::Transitions) == Level::Warning);
    // From the hub there is no way into an absorbing start of its own.
    let mut transitions = vec![0.0; 3 * 3];
    (transitions[1], transitions[3], transitions[8]) = (1.0, 1.0, 1.0);
    let kernel = coirl::model::Kernel::from_dense(3, 1, &transitions, None).unwrap();
    let features = Features::per_state(3, 1, vec![0.0, 1.0, 1.0]).unwrap();
    let criterion = Criterion::discounted(0.5).unwrap();
    let model = Cmdp::new(coirl::model::Dynamics::Shared(kernel), features, vec![1.0, 0.0, 0.0], criterion).unwrap();
    let found = look(&model, &[shown(&model, 0.5, &[2, 2], &[0])], &Estimator::default());
    let unreachable = Finding::Unreachable { demonstration: 0, step: 0, state: StateId(2) };
    assert!(found.findings.contains(&unreachable), "{:?}", found.findings);
}

#[test]
fn expectations_that_no_policy_has() {
    let (model, mut demonstrations) = hub();
    let beyond = Demonstration::from_feature_expectations(&model, context(&model, 0.55), vec![0.1, 7.0]).unwrap();
    demonstrations.push(beyond);
    let found = look(&model, &demonstrations, &Estimator::default());
    // A room every other step from the second on: γ/(1 − γ²) = 2/3 in the best direction.
    let above = 3_f64.sqrt() / 2.0 * 2.0 / 3.0;
    let [Finding::OutOfBounds { demonstration: 10, feature: 1, value, least, greatest, standard_error: None }] =
        found.about(Topic::Expectations).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", found.findings)
    };
    assert!(*value == 7.0 && (greatest - above).abs() < 1e-12 && (least + above).abs() < 1e-12);
    assert_eq!((found.level(Topic::Expectations), found.can_be_fitted()), (Level::Error, true));
    // Estimated ones get three standard errors: here the two paths agree, so there is no noise to blame.
    let never = vec![path(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[0; 13]); 2];
    let strange = Demonstration::from_trajectories(&model, context(&model, 0.55), never).unwrap();
    let found = look(&model, &[strange], &Estimator::Truncated { horizon: None });
    assert_eq!(found.level(Topic::Expectations), Level::Warning);
    // Of a single path nobody knows.
    let strange = shown(&model, 0.55, &[0, 1, 1, 1, 1, 1, 1, 1], &[0; 7]);
    let found = look(&model, &[strange], &Estimator::Truncated { horizon: None });
    assert_eq!(found.level(Topic::Expectations), Level::Fine);
}

#[test]
fn the_same_twice_and_different_things_about_the_same() {
    let (model, mut demonstrations) = hub();
    demonstrations.push(demonstrations[3].clone());
    let found = look(&model, &demonstrations, &Estimator::default());
    assert_eq!(found.findings, [Finding::Duplicate { first: 3, second: 10 }]);
    let near = context(&model, 3.0 / 9.0 + 1e-8);
    let coirl::demos::Evidence::FeatureExpectations(other) = demonstrations[9].evidence() else { panic!() };
    demonstrations[10] = Demonstration::from_feature_expectations(&model, near, other.clone()).unwrap();
    let found = look(&model, &demonstrations, &Estimator::default());
    assert!(found.findings.contains(&Finding::Contradiction { first: 3, second: 10, state: None }));
    assert_eq!(found.about(Topic::Repeats).count(), 1);
    // The same behaviour in nearly the same context is neither.
    let coirl::demos::Evidence::FeatureExpectations(same) = demonstrations[3].evidence().clone() else { panic!() };
    let near = context(&model, 3.0 / 9.0 + 1e-8);
    demonstrations[10] = Demonstration::from_feature_expectations(&model, near, same).unwrap();
    assert_eq!(look(&model, &demonstrations, &Estimator::default()).findings, []);
    let paths = [
        shown(&model, 0.2, &[0, 2, 0, 2], &[1, 0, 1]),
        shown(&model, 0.7, &[0, 3, 0, 3], &[2, 0, 2]),
        shown(&model, 0.2, &[0, 3, 0, 3], &[2, 0, 2]),
    ];
    let found = look(&model, &paths, &Estimator::default());
    let contradiction = Finding::Contradiction { first: 0, second: 2, state: Some(StateId(0)) };
    assert_eq!(found.about(Topic::Repeats).collect::<Vec<_>>(), [&contradiction]);
}

#[test]
fn a_demonstration_that_contradicts_itself_is_not_compared_with_itself() {
    let (model, _) = hub();
    let paths =
        [shown(&model, 0.7, &[0, 2, 0, 2], &[1, 0, 1]), shown(&model, 0.2, &[0, 2, 0, 3, 0, 4], &[1, 0, 2, 0, 3])];
    let found = look(&model, &paths, &Estimator::default());
    let undecided = Finding::Undecided { demonstration: 1, state: StateId(0) };
    assert_eq!(found.about(Topic::Repeats).collect::<Vec<_>>(), [&undecided]);
    assert_eq!(undecided.to_string(), "demonstration 1 takes different actions in state 0");
    // Where an earlier one contradicts it as well, that is what is said.
    let other = shown(&model, 0.2, &[0, 5, 0], &[4, 0]);
    let found = look(&model, &[other, paths[1].clone()], &Estimator::default());
    let contradiction = Finding::Contradiction { first: 0, second: 1, state: Some(StateId(0)) };
    assert_eq!(found.about(Topic::Repeats).collect::<Vec<_>>(), [&contradiction]);
}

#[test]
fn what_cannot_be_learned_is_said_before() {
    let mut features: Vec<Vec<f64>> = circle(6).into_iter().map(|at| vec![at[0], at[1], 0.0, 0.0]).collect();
    features.push(vec![0.0, 0.0, 1.0, 0.0]);
    let model = rooms(&features, 2).with_context_space(ContextSpace::Any).unwrap();
    let truth = LinearMapping::new(2, 4, vec![1.0, 0.3, -1.0, 0.0, -0.4, 1.0, -1.0, 0.0]).unwrap();
    let contexts: Vec<Context> =
        (0..5).map(|i| model.context_space().context([0.2 * f64::from(i), 0.5]).unwrap()).collect();
    let found = look(&model, &exact(&model, &truth, &contexts), &Estimator::default());
    let expected = [
        Finding::FeatureNeverShown { feature: 2 },
        Finding::FeatureFixed { feature: 3 },
        Finding::FieldFixed { field: 1, value: 0.5 },
    ];
    assert_eq!(found.findings, expected);
}

#[test]
fn experts_that_no_mapping_explains_and_experts_like_chance() {
    let (model, demonstrations) = hub();
    let mdp = model.shared_mdp().unwrap();
    let chance = evaluate::feature_expectations(&mdp, &Policy::uniform(mdp.pairs())).unwrap();
    let random: Vec<Demonstration> = demonstrations
        .iter()
        .map(|shown| Demonstration::from_feature_expectations(&model, shown.context().clone(), chance.clone()).unwrap())
        .collect();
    let found = look(&model, &random, &Estimator::default());
    assert_eq!(found.findings, [Finding::NoAdvantage { advantage: 0.0, noise: 0.0 }]);
    // Half the gain of the best room in the same direction: under the best reward the experts miss as much as they gain.
    let context = context(&model, 0.5);
    let half = Demonstration::from_feature_expectations(&model, context, vec![1.0 / 3.0, 0.0]).unwrap();
    let found = look(&model, &[half], &Estimator::default());
    let [Finding::Unexplained { lower_bound, reached, .. }] = found.findings[..] else {
        panic!("{:?}", found.findings)
    };
    assert!((reached - 1.0).abs() < 1e-3 && (lower_bound - 1.0).abs() < 1e-3, "{lower_bound} {reached}");
}

#[test]
fn the_least_loss_is_said_of_the_mappings_that_were_looked_at() {
    // The experts go to room 0. Of the first feature, which is large, room 2 has half as much again; of the second only room 0 has any. With
    // weight on the second alone all is explained, but next to the first the experts hardly gain by it: that mapping is not looked at.
    let model = rooms(&[vec![1000.0, 1.0], vec![0.0, 0.0], vec![1500.0, 0.0]], 2);
    let go_to_room_0 = |t: f64| {
        let mu = vec![2.0 / 3.0 * 1000.0, 2.0 / 3.0];
        Demonstration::from_feature_expectations(&model, context(&model, t), mu).unwrap()
    };
    let shown: Vec<Demonstration> = [0.2, 0.4, 0.7].map(go_to_room_0).into();
    let found = look(&model, &shown, &Estimator::default());
    let problem = Problem::new(&model, &Train::new(shown), &Estimator::default()).unwrap();
    assert!(problem.loss(&[0.0, 1.0, 0.0, 1.0], &[0, 1, 2]).unwrap().value.abs() < 1e-9);
    let least = found.least_loss.unwrap();
    assert!(least.radius == 100.0 && least.is_certain() && least.lower_bound > 0.5, "{least:?}");
    let [finding @ Finding::Unexplained { .. }] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert!(finding.to_string().contains("of those under which they gain at least 1 %"), "{finding}");
}

#[test]
fn nothing_is_certain_where_paths_are_short_for_the_discount() {
    let model = engines(0.9999);
    for estimator in [Estimator::ControlVariate, Estimator::Decisions, Estimator::Truncated { horizon: None }] {
        let found = look(&model, &watched(&model, 1), &estimator);
        let least = found.least_loss.as_ref().unwrap();
        assert!(least.paths_are_short() && !least.is_certain(), "{estimator:?}: {least:?}");
        let about: Vec<_> = found.about(Topic::LeastLoss).collect();
        assert!(about.contains(&&Finding::PathsTooShort { unseen: least.unseen }), "{about:?}");
        assert!(!about.iter().any(|finding| matches!(finding, Finding::Unexplained { .. })), "{about:?}");
    }
    // At a discount that they outlast, they are long.
    let model = engines(0.9);
    let found = look(&model, &watched(&model, 4), &Estimator::default());
    let least = found.least_loss.as_ref().unwrap();
    assert!(least.unseen > 0.0 && least.unseen < 0.05 && !least.paths_are_short(), "{least:?}");
    assert!(!found.findings.iter().any(|finding| matches!(finding, Finding::PathsTooShort { .. })));
}

#[test]
fn too_many_plans_leave_crude_bounds() {
    let (model, demonstrations) = hub();
    let few = CheckSettings { max_plans: 3, max_steps: 0, ..CheckSettings::default() };
    let found = check(&model, &demonstrations, &Estimator::default(), &few, &mut patient).unwrap();
    let bounds = found.bounds.unwrap();
    assert_eq!((bounds.kind, bounds.at(0, 0).unwrap()), (BoundsKind::Crude, (-2.0, 2.0)));
    assert!(bounds.at(10, 0).is_err() && bounds.at(0, 2).is_err() && found.least_loss.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The bounds are those of all policies, one by one.
    #[test]
    fn bounds_are_reached_and_not_passed(sketch in sketches(4, 3)) {
        prop_assume!(sketch.discount <= 0.99);
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let context = model.context_space().context([1.0]).unwrap();
        let settings = CheckSettings { max_steps: 0, ..CheckSettings::default() };
        let uniform = evaluate::feature_expectations(&mdp, &Policy::uniform(mdp.pairs())).unwrap();
        let shown = Demonstration::from_feature_expectations(&model, context, uniform).unwrap();
        let started = shown.clone().starting_in(&model, StateId(0)).unwrap();
        let found = check(&model, &[shown, started], &Estimator::default(), &settings, &mut patient).unwrap();
        let bounds = found.bounds.unwrap();
        for feature in 0..3 {
            let unit: Vec<f64> = (0..3).map(|j| f64::from(u8::from(j == feature))).collect();
            let reward: Reward = mdp.reward(&unit).unwrap();
            let policies: Vec<Vec<f64>> =
                all_policies(&mdp).iter().map(|actions| dense_values(&mdp, &reward, actions)).collect();
            let scale = 1.0 + policies.iter().map(|values| largest(values)).fold(0.0, f64::max);
            let from = |start: &dyn Fn(&[f64]) -> f64| {
                policies.iter().map(|values| start(values)).fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)))
            };
            let expected = [
                from(&|values| mdp.initial().iter().zip(values).map(|(p, v)| p * v).sum()),
                from(&|values| values[0]),
            ];
            for (i, (least, most)) in expected.into_iter().enumerate() {
                let (lower, upper) = bounds.at(i, feature).unwrap();
                prop_assert!((lower - least).abs() < 1e-7 * scale && (upper - most).abs() < 1e-7 * scale);
            }
        }
    }
}
