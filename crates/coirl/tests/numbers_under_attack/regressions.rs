//! What once went wrong, by name.

use crate::attempt::attempt;
use crate::extremes::{Sketch, TINIEST, simplex};
use coirl::Error;
use coirl::domains::Garnet;
use coirl::dynamics::{
    ExpectationMaximisation, Observations, Prior, PriorMean, Structure, Transition, Unseen, estimate,
};
use coirl::learn::{Bundle, EvolutionStrategies, ReplayedEvolution, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings, fit};
use coirl::model::{ActionId, Cmdp, ContextSpace, Criterion, Pairs, Reward, StateId};
use coirl::plan::{Limits, ManyOptions, Method as Planning, PlannedReward, Planner, Policy, Start, Status, evaluate};
use coirl::transfer::Transfer;
use coirl_cohort::off_policy::{Behaviour, BehaviourSettings, Episode, Record};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Two states that change places, or stay where they are.
fn two_states() -> Sketch {
    let transitions = vec![0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    Sketch { n_states: 2, n_actions: 2, transitions, initial: vec![0.5; 2] }
}

#[test]
fn planning_without_a_limit_on_sweeps_never_ended_where_sweeps_gain_nothing() {
    for method in [Planning::ValueIteration, Planning::ModifiedPolicyIteration { sweeps: usize::MAX }] {
        for discount in [1.0 - 1e-12, 1.0_f64.next_down()] {
            let plan = attempt(&format!("{method:?} at {discount}"), move || {
                let model = two_states().bare(Criterion::discounted(discount).unwrap()).unwrap();
                let limits = Limits { max_sweeps: usize::MAX };
                let planner = Planner { limits, ..Planner::to_tolerance(method, TINIEST) };
                planner.plan(&model.shared_mdp().unwrap(), &Reward::Pair(vec![1.0, 0.0, 0.3, -1.0])).unwrap()
            });
            assert_ne!(plan.certificate.status, Status::Exact);
        }
    }
}

fn planned_together(planner: Planner, model: &Cmdp, weights: &[f64]) -> Vec<PlannedReward> {
    let mut plans = Vec::new();
    let keep = |plan| {
        plans.push(plan);
        ControlFlow::Continue(())
    };
    planner.plan_many(&model.shared_mdp().unwrap(), weights, ManyOptions::default(), keep).unwrap();
    plans
}

#[test]
fn a_discount_next_to_one_made_planning_for_many_rewards_fail_where_states_absorb() {
    let transitions = vec![0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let sketch = Sketch { transitions, ..two_states() };
    let model = sketch.model(vec![1.0, 0.0, 0.0, 1.0], Criterion::discounted(1.0 - 1e-9).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let weights = [1.0, 0.5, -1.0, 0.3, 0.2, -0.4, 0.0, 1.0, 2.0, 0.0];
    for planner in [Planner::default(), Planner::to_tolerance(Planning::Automatic, 1e-6)] {
        for (plan, w) in planned_together(planner, &model, &weights).iter().zip(weights.chunks(2)) {
            let alone = Planner::default().plan(&mdp, &mdp.reward(w).unwrap()).unwrap();
            assert_eq!(plan.policy, alone.policy, "{planner:?} {w:?}");
        }
    }
}

#[test]
fn rewards_below_all_normal_numbers_were_certified_too_well_beside_ordinary_ones() {
    const TINY: f64 = 1e-313;
    let model = Garnet { n_states: 300, n_features: 3, n_successors: 8, seed: 5, ..Garnet::default() }.build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let mut weights: Vec<f64> = (0..48).map(|i| 0.02 * f64::from(i * 37 % 48 - 24)).collect();
    let ordinary: Vec<f64> = weights[..3].to_vec();
    weights[..3].iter_mut().for_each(|w| *w *= TINY);
    let plans = planned_together(Planner::to_tolerance(Planning::Automatic, 1e-6), &model, &weights);
    let reward = mdp.reward(&ordinary).unwrap();
    let best = Planner::default().plan(&mdp, &reward).unwrap().values;
    let own = evaluate::values(&mdp, &reward, &plans[0].policy).unwrap();
    let loss = best.iter().zip(&own).fold(0.0, |most: f64, (b, v)| most.max(b - v));
    assert!(loss > 0.01, "the policy of rewards that vanish in single precision is not the best");
    assert!(loss * TINY <= 1.001 * plans[0].certificate.suboptimality_bound, "{:?}", plans[0].certificate);
}

#[test]
fn a_hint_that_is_no_number_was_taken_by_the_average_criterion() {
    let sketch = Sketch { transitions: vec![0.5; 8], ..two_states() };
    let model = sketch.bare(Criterion::Average).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let reward = Reward::State(vec![0.0, 1.0]);
    let refused = Planner::default().plan_from(&mdp, &reward, Start::Values(&[f64::NAN, 0.0])).unwrap_err();
    assert!(matches!(refused, Error::NotFinite { what: "start values", index: 0, .. }), "{refused}");
    assert!(evaluate::q_values(&mdp, &reward, &[f64::NAN, 0.0]).is_err());
}

#[test]
fn sums_of_rewards_that_overflow_were_an_exact_plan() {
    let model = two_states().bare(Criterion::finite_horizon(1000, 1.0).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let refused = Planner::default().plan(&mdp, &Reward::State(vec![1e308, 1e308])).unwrap_err();
    assert!(matches!(refused, Error::NotFinite { what: "values", .. }), "{refused}");
    assert!(evaluate::value(&mdp, &Reward::State(vec![1e308; 2]), &Policy::uniform(mdp.pairs())).is_err());
}

#[test]
fn rows_a_little_off_one_were_kept_although_no_certificate_allowed_for_it() {
    let off = 1.0 + 9e-13;
    let sketch = Sketch { transitions: vec![0.25 * off, 0.75 * off, 0.5, 0.5, 1.0, 0.0, 0.0, 1.0], ..two_states() };
    let kernel = sketch.kernel().unwrap();
    let sum: f64 = kernel.successors(0).map(|(_, p)| p).sum();
    assert!((sum - 1.0).abs() <= 2.0 * f64::EPSILON, "{sum}");
}

#[test]
fn prior_observations_that_vanish_broke_the_mixture() {
    let mut observations = Observations::new(Arc::new(Pairs::all(3, 2).unwrap()));
    let step =
        |state, action, next| Transition { state: StateId(state), action: ActionId(action), next: StateId(next) };
    let context = ContextSpace::Any.context([1.0]).unwrap();
    observations.add(&context, [step(2, 1, 0), step(1, 0, 1), step(2, 1, 2), step(2, 0, 1)]).unwrap();
    let structure = Structure::Mixture(ExpectationMaximisation::default());
    let learned = |strength| {
        let prior = Prior { unseen: Unseen::PriorMean, ..Prior::new(strength, PriorMean::SeenFromState) };
        estimate(&observations, &structure, &prior)
    };
    let refused = learned(TINIEST).unwrap_err().to_string();
    assert!(refused.contains("prior strength"), "{refused}");
    assert!(learned(0.0).is_ok() && learned(1e-200).is_ok());
}

#[test]
fn a_strength_that_vanishes_made_probabilities_that_are_no_numbers() {
    let episode = |patient, state| Episode { patient, states: vec![state], actions: vec![0], rewards: vec![1.0] };
    let record = Record::new(2, 2, 1.0, vec![episode(0, 0), episode(1, 1)]).unwrap();
    let settings = BehaviourSettings { strength: Some(TINIEST), ..BehaviourSettings::default() };
    let refused = Behaviour::estimate(&record, &settings).unwrap_err().to_string();
    assert!(refused.contains("strength"), "{refused}");
}

#[test]
fn settings_that_are_no_numbers_were_saved_and_could_not_be_read_back() {
    let model = two_states().model(vec![1.0, 0.0], Criterion::discounted(0.5).unwrap()).unwrap();
    let model = model.with_context_space(simplex(1)).unwrap();
    let context = model.context_space().context([1.0]).unwrap();
    let shown = coirl::demos::Demonstration::from_feature_expectations(&model, context, vec![2.0]).unwrap();
    let truth = LinearMapping::new(1, 1, vec![1.0]).unwrap();
    let expert = coirl::demos::SimulatedExpert::new(&model, truth, 0.0, 1).unwrap();
    let train = coirl::demos::Train::new(vec![shown]);
    let problem = coirl::learn::Problem::new(&model, &train, &coirl::demos::Estimator::default()).unwrap();
    let problem = problem.with_expert(&expert);
    let evolution = EvolutionStrategies { indifference: f64::NAN, ..EvolutionStrategies::default() };
    for (method, name) in [
        (Method::Bundle(Bundle { caution: f64::NAN, ..Bundle::default() }), "caution"),
        (Method::EvolutionStrategies(evolution), "indifference"),
        (
            Method::ReplayedEvolution(ReplayedEvolution { stop: f64::NEG_INFINITY, ..ReplayedEvolution::default() }),
            "stop",
        ),
    ] {
        let refused = fit(&problem, &Settings::new(method), Watch::default(), &mut ()).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
    let mut settings = Settings::default();
    settings.stop.gap = Some(f64::NAN);
    let refused = fit(&problem, &settings, Watch::default(), &mut ()).unwrap_err().to_string();
    assert!(refused.contains("stop.gap"), "{refused}");
}

#[test]
fn contexts_of_a_box_wider_than_numbers_reach_were_infinite() {
    let space = ContextSpace::Box { lower: vec![-1e308], upper: vec![1e308] };
    assert!(matches!(space.sample(3, 1).unwrap_err(), Error::InvalidContext { .. }));
}

#[test]
fn a_known_context_was_promised_the_best_although_ties_add_up_next_to_discount_one() {
    let model = two_states().model(vec![1.0, 0.0], Criterion::discounted(1.0 - 1e-12).unwrap()).unwrap();
    let model = model.with_context_space(simplex(1)).unwrap();
    let context = model.context_space().context([1.0]).unwrap();
    let mut transfer = Transfer::new(&model, LinearMapping::new(1, 1, vec![1.0]).unwrap()).unwrap();
    transfer.learn(std::slice::from_ref(&context)).unwrap();
    let found = transfer.transfer(&context, Some(f64::MAX)).unwrap();
    assert!(found.bound > 0.0, "{found:?}");
}

#[test]
fn blocks_of_subnormal_rewards_were_promised_without_the_distance_between_subnormal_numbers() {
    let model = two_states().model(vec![0.3, 0.9, 0.5, 0.4], Criterion::discounted(0.5).unwrap()).unwrap();
    let weights: Vec<f64> = [TINIEST, -TINIEST].repeat(4);
    let mut bounds = Vec::new();
    let options = coirl::plan::ManyOptions::default();
    let planned = Planner::default().plan_many(&model.shared_mdp().unwrap(), &weights, options, |plan| {
        bounds.push(plan.certificate.suboptimality_bound);
        std::ops::ControlFlow::Continue(())
    });
    planned.unwrap();
    assert!(bounds.len() == 4 && bounds.iter().all(|&bound| bound > 0.0), "{bounds:?}");
}
