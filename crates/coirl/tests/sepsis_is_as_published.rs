//! The sepsis simulator against the figures of the package it is made from, and against an independent prototype of its contexts.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::agent::Agent;
use coirl::contextual::plan_mapping;
use coirl::domains::{Inadmissible, Sepsis, SepsisDynamics};
use coirl::mapping::RewardMapping;
use coirl::model::{Cmdp, Context, Dynamics, StateId};
use coirl::plan::{ManyOptions, Planner, Policy, evaluate};
use coirl::score::Examination;

const N_CLUSTERS: usize = 713;
const UNKNOWN: usize = 715;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not within {tolerance} of {expected}");
}

#[test]
fn the_published_process_has_its_published_values() {
    let model = Sepsis::published().unwrap();
    let mdp = model.shared_mdp().unwrap();
    let survival = mdp.reward(&[1.0]).unwrap();
    near(Planner::default().plan(&mdp, &survival).unwrap().value, 0.8751, 5e-5);
    let clinicians = Sepsis::published_clinicians().unwrap();
    near(evaluate::value(&mdp, &survival, &clinicians).unwrap(), 0.7818, 5e-5);
    near(evaluate::value(&mdp, &survival, &Policy::uniform(model.pairs())).unwrap(), 0.7801, 5e-5);
}

#[test]
fn the_simulator_has_the_shape_of_its_source() {
    let masked = Sepsis { inadmissible: Inadmissible::Masked, ..Sepsis::default() }.build().unwrap();
    assert_eq!((masked.n_states(), masked.n_actions(), masked.n_features()), (716, 25, 42));
    assert_eq!(masked.pairs().len(), 2238 + 3);
    let Dynamics::Shared(kernel) = masked.dynamics() else { panic!("one kernel") };
    let entries: usize = (0..2238).map(|pair| kernel.successors(pair).len()).sum();
    assert_eq!(entries, 94_970);
    assert_eq!(masked.initial().iter().filter(|p| **p > 0.0).count(), 712);
    let choices = (0..N_CLUSTERS).filter(|&s| masked.pairs().of_state(s).len() > 1).count();
    assert_eq!(choices, 476);
    let open = Sepsis::default().build().unwrap();
    assert_eq!(open.pairs().len(), 716 * 25);
    let mdp = open.shared_mdp().unwrap();
    for end in [713, 714, UNKNOWN] {
        assert!(mdp.is_absorbing(StateId(end as u32)));
    }
    // What is not admissible leads to the unknown and nowhere else.
    let inadmissible = (0..N_CLUSTERS * 25).filter(|pair| mdp.kernel().successors(*pair).eq([(UNKNOWN, 1.0)]));
    assert_eq!(inadmissible.count(), N_CLUSTERS * 25 - 2238);
    // The model knows the same pairs as the one that masks the others, and all where nothing more is decided.
    let known = open.known_pairs().unwrap();
    assert_eq!(known.iter().filter(|known| **known).count(), 2238 + 3 * 25);
    assert!((0..N_CLUSTERS * 25).all(|pair| known[pair] == masked.pairs().find(pair / 25, pair % 25).is_some()));
    assert_eq!(masked.known_pairs(), None);
    assert_eq!(open.states_with_a_choice().len(), 476);
    assert_eq!(open.states_with_a_choice(), masked.states_with_a_choice());
}

/// An examination of so many patients, and how often an optimal policy chooses what is not known.
fn examined<'a>(model: &'a Cmdp, truth: &dyn RewardMapping, n: usize) -> (Examination<'a>, usize) {
    let contexts: Vec<Context> = Sepsis::patients(n, 7).unwrap().into_iter().map(|patient| patient.context).collect();
    let mut unknown = 0;
    for plan in plan_mapping(model, truth, &contexts[..100], ManyOptions::default()).unwrap() {
        let actions = plan.policy.actions().unwrap();
        let pair = |s: usize| model.pairs().find(s, actions[s].index()).unwrap();
        unknown += (0..N_CLUSTERS).filter(|&s| !model.is_known(pair(s))).count();
    }
    (Examination::new(model, truth, contexts).unwrap(), unknown)
}

#[test]
fn contexts_matter_as_much_as_in_the_prototype() {
    let model = Sepsis::default().build().unwrap();
    let truth = Sepsis::linear_mapping();
    let (examination, unknown) = examined(&model, &truth, 300);
    assert_eq!(unknown, 0);
    let linear = examination.context_effect().unwrap();
    near(linear.disagreement, 0.2455, 0.015);
    near(linear.one_policy_relative, 0.932, 0.01);
    near(linear.expert_value, 0.6558, 0.02);
    near(linear.random_value, 0.4431, 0.02);
    let expert = examination.score(&Agent::Planned(truth)).unwrap();
    near(expert.relative_value, 1.0, 1e-9);
    near(expert.choice_accuracy, 1.0, 1e-9);
    near(expert.visited_accuracy, 1.0, 1e-9);
    let random = examination.score(&Agent::Uniform).unwrap();
    near(random.relative_value, 0.0, 1e-12);
    // States without a choice give away their action: accuracy over all states flatters.
    assert!(random.choice_accuracy < 0.5 && random.accuracy > random.choice_accuracy + 0.2, "{random:?}");
    let one = examination.one_policy().unwrap();
    near(one.relative_value, linear.one_policy_relative, 1e-12);

    let threshold = Sepsis::threshold_mapping().unwrap();
    near(threshold.threshold(), 0.197, 0.003);
    let (examination, unknown) = examined(&model, &threshold, 300);
    assert_eq!(unknown, 0);
    let switched = examination.context_effect().unwrap();
    near(switched.disagreement, 0.4328, 0.03);
    near(switched.one_policy_relative, 0.467, 0.03);
    // No linear mapping switches from one reward to the other: the truth of the linear experiments does badly here.
    let score = examination.score(&Agent::Planned(Sepsis::linear_mapping())).unwrap();
    assert!(score.value < switched.expert_value - 0.05, "{score:?}");
}

#[test]
fn patients_look_like_a_cohort() {
    let n = 20_000;
    let patients = Sepsis::patients(n, 3).unwrap();
    let moments = |i: usize| {
        let mean = patients.iter().map(|patient| patient.fields[i]).sum::<f64>() / n as f64;
        let square = patients.iter().map(|patient| (patient.fields[i] - mean).powi(2)).sum::<f64>() / n as f64;
        (mean, square.sqrt())
    };
    // Gender, age, Elixhauser score, re-admission, weight, coma scale, ventilation.
    let expected =
        [(0.446, 0.497), (66.3, 13.6), (4.2, 2.19), (0.384, 0.486), (80.6, 23.9), (12.7, 2.58), (0.226, 0.418)];
    for (i, (mean, spread)) in expected.into_iter().enumerate() {
        let found = moments(i);
        assert!((found.0 - mean).abs() < 0.06 * spread, "field {i}: mean {found:?}, expected {mean}");
        assert!((found.1 / spread - 1.0).abs() < 0.06, "field {i}: spread {found:?}, expected {spread}");
    }
    let (age, score) = (moments(1), moments(2));
    let product = patients.iter().map(|p| (p.fields[1] - age.0) * (p.fields[2] - score.0)).sum::<f64>() / n as f64;
    near(product / (age.1 * score.1), 0.25, 0.05);
    assert!(patients.iter().all(|p| p.start.index() < N_CLUSTERS && p.context.values().iter().all(|x| *x > 0.0)));
    assert_eq!(Sepsis::patients(10, 3).unwrap(), patients[..10]);
}

#[test]
fn contextual_dynamics_change_survival() {
    let survival_of = |dynamics: SepsisDynamics| {
        let settings = Sepsis { dynamics, inadmissible: Inadmissible::Masked, ..Sepsis::default() };
        let model = settings.build().unwrap();
        let clinicians = settings.clinicians().unwrap();
        let patients = Sepsis::patients(40, 5).unwrap();
        let mut found: Vec<f64> = patients
            .iter()
            .map(|patient| {
                // Nearly every stay has ended by then.
                let mut states = model.initial().to_vec();
                let mdp = model.mdp(&patient.context).unwrap();
                let Policy::Stochastic(shares) = &clinicians else { panic!("a distribution") };
                for _ in 0..100 {
                    let mut after = vec![0.0; states.len()];
                    for pair in 0..shares.len() {
                        let mass = states[model.pairs().state(pair).index()] * shares[pair];
                        mdp.kernel().successors(pair).for_each(|(next, p)| after[next] += mass * p);
                    }
                    states = after;
                }
                states[714]
            })
            .collect();
        found.sort_by(f64::total_cmp);
        found
    };
    let mixture = survival_of(SepsisDynamics::Mixture);
    assert!(mixture[0] > 0.70 && mixture[0] < 0.77, "{}", mixture[0]);
    assert!(mixture[39] > 0.785 && mixture[39] < 0.84, "{}", mixture[39]);
    let clusters = survival_of(SepsisDynamics::Clusters);
    let mut distinct = clusters.clone();
    distinct.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
    assert!((2..=5).contains(&distinct.len()), "{distinct:?}");
    near(survival_of(SepsisDynamics::Shared)[0], 0.7820, 1e-3);
}
