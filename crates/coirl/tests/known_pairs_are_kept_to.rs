//! Whoever acts without planning keeps to what is known: acting at random, cloning, the trivial baselines and the scores that are
//! relative to them, on models small enough to be computed by hand and on the sepsis simulator.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::Error;
use coirl::agent::Agent;
use coirl::agent::act;
use coirl::baselines::{Cloning, Majority, NearestContext, NeuralCloning, Uniform};
use coirl::demos::{Demonstration, Estimates, Estimator, Reference, Train, Trajectory};
use coirl::domains::{Inadmissible, Sepsis};
use coirl::inspect::{CheckSettings, Finding, Level, check};
use coirl::learn::{Problem, Watch};
use coirl::mapping::LinearMapping;
use coirl::methods::{Fitted, Method, Settings, fit};
use coirl::model::{
    ActionId, Cmdp, Context, ContextSpace, Criterion, Dynamics, Features, Kernel, Mixture, Pairs, StateId,
};
use coirl::plan::Policy;
use coirl::score::Examination;
use std::ops::ControlFlow;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

/// Where each action of each state leads; states 2 and 3 are ends, and 3 is where nobody wants to be.
const LEADS_TO: [[usize; 3]; 4] = [[1, 2, 3], [3, 2, 0], [2, 2, 2], [3, 3, 3]];
/// Action 2 of state 0 and action 0 of state 1 are not known.
const KNOWN: [bool; 12] = [true, true, false, false, true, true, true, true, true, true, true, true];

fn kernel(admissible: Option<&[bool]>) -> Kernel {
    let mut transitions = vec![0.0; 4 * 3 * 4];
    for (pair, next) in LEADS_TO.concat().into_iter().enumerate() {
        transitions[pair * 4 + next] = 1.0;
    }
    Kernel::from_dense(4, 3, &transitions, admissible).unwrap()
}

fn model_over(kernel: Kernel) -> Cmdp {
    let features = Features::per_state(4, 2, vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0, -1.0, -1.0]).unwrap();
    let criterion = Criterion::discounted(0.5).unwrap();
    Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0, 0.0, 0.0], criterion)
        .unwrap()
        .with_context_space(ContextSpace::Simplex { dimension: 2 })
        .unwrap()
}

/// The four states with the pairs that are known.
fn model() -> Cmdp {
    model_over(kernel(None)).with_known_pairs(KNOWN.to_vec()).unwrap()
}

/// One context in which state 1 is worth one, and two in which state 2 is.
fn contexts(model: &Cmdp) -> Vec<Context> {
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]].map(|c| model.context_space().context(c).unwrap()).into()
}

fn actions(list: &[u32]) -> Vec<ActionId> {
    list.iter().map(|&a| ActionId(a)).collect()
}

/// With γ = ½: the expert goes 0 → 1 → 0 → … in the first context (V = ½V₁, V₁ = 1 + ½V, so V = ⅔) and to state 2 in the others
/// (V = 1). Acting at random visits state 0 16/15 times, state 1 4/15 times and state 2 2/3 times.
#[test]
fn every_number_of_a_score_by_hand() {
    let model = model();
    let truth = LinearMapping::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
    let examination = Examination::new(&model, &truth, contexts(&model)).unwrap();
    near(examination.expert_value(), (2.0 / 3.0 + 2.0) / 3.0);
    near(examination.random_value(), (4.0 / 15.0 + 4.0 / 3.0) / 3.0);

    let random = examination.score(&Agent::Uniform).unwrap();
    near(random.value, 8.0 / 15.0);
    near(random.relative_value, 0.0);
    near(random.choice_accuracy, 0.5);
    near(random.visited_accuracy, 0.5);
    // At the ends the expert takes the first of three equal actions.
    near(random.accuracy, (0.5 + 0.5 + 1.0 / 3.0 + 1.0 / 3.0) / 4.0);
    near(random.optimal_accuracy, 0.75);

    let expert = examination.score(&Agent::Planned(truth)).unwrap();
    near(expert.relative_value, 1.0);
    near(expert.choice_accuracy, 1.0);
    near(expert.visited_accuracy, 1.0);

    // For the mean reward (⅓, ⅔): V₂ = 4/3, V₁ = ⅓ + ½·4/3 = 1, so from state 0 straight to state 2, as in the second context.
    let one = examination.one_policy().unwrap();
    near(one.value, 2.0 / 3.0);
    near(one.relative_value, 3.0 / 8.0);
    near(one.choice_accuracy, 2.0 / 3.0);
    // In the first context the expert is in states 0 and 1 for 4/3 and 2/3 steps, in the others in state 0 for one.
    near(one.visited_accuracy, 2.0 / 4.0);
    near(one.accuracy, 10.0 / 12.0);
    assert_eq!(one.held_out_loss, None);
    let effect = examination.context_effect().unwrap();
    near(effect.one_policy_relative, 3.0 / 8.0);
    // Of three pairs of contexts two differ, in both states with a choice.
    near(effect.disagreement, 2.0 / 3.0);

    // The expert's first policy in the first context, and what is not known in the others: 0 → 3, −1 for ever.
    let first = Policy::stationary(model.pairs(), actions(&[0, 2, 0, 0])).unwrap();
    let lost = Policy::stationary(model.pairs(), actions(&[2, 0, 0, 0])).unwrap();
    let mixed = examination.score_policies(&[first.clone(), lost.clone(), lost]).unwrap();
    near(mixed.value, (2.0 / 3.0 - 1.0 - 1.0) / 3.0);
    near(mixed.choice_accuracy, 1.0 / 3.0);
    near(mixed.visited_accuracy, 2.0 / 4.0);
    let error = examination.score_policies(&[first.clone(), first]).unwrap_err().to_string();
    assert!(error.contains('3') && error.contains('2'), "{error}");
    assert!(examination.score_policies(&[]).is_err());
}

#[test]
fn states_with_a_choice_and_the_random_policy() {
    let known = model();
    assert_eq!(known.states_with_a_choice(), [StateId(0), StateId(1)]);
    let Policy::Stochastic(shares) = known.random_policy() else { panic!("a distribution") };
    let third = 1.0 / 3.0;
    assert_eq!(shares, [0.5, 0.5, 0.0, 0.0, 0.5, 0.5, third, third, third, third, third, third]);
    // Where nothing is said every pair is known, and acting at random is the uniform policy.
    let all = model_over(kernel(None));
    assert!(all.known_pairs().is_none() && (0..12).all(|pair| all.is_known(pair)));
    assert_eq!(all.random_policy(), Policy::uniform(all.pairs()));
    // One known action is no choice.
    let mut flags = KNOWN;
    flags[5] = false;
    assert_eq!(all.clone().with_known_pairs(flags.to_vec()).unwrap().states_with_a_choice(), [StateId(0)]);
    // Other dynamics, same knowledge.
    let same = known.clone().with_dynamics(Dynamics::Shared(kernel(None))).unwrap();
    assert_eq!(same.known_pairs(), Some(&KNOWN[..]));
    flags[4] = false;
    let error = all.clone().with_known_pairs(flags.to_vec()).unwrap_err();
    assert!(matches!(error, Error::NoKnownAction { state: 1 }), "{error}");
    let error = all.with_known_pairs(vec![true; 11]).unwrap_err().to_string();
    assert!(error.contains("known pairs") && error.contains("12") && error.contains("11"), "{error}");
}

/// Two kernels: in the first action 0 always succeeds, in the second never; action 1 succeeds nine times in ten in both.
#[test]
fn one_policy_is_planned_in_the_mean_kernel() {
    let base = |first: f64| {
        let rows = [
            [0.0, first, 1.0 - first],
            [0.0, 0.9, 0.1],
            [0.0, 1.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, 1.0],
        ];
        Kernel::from_dense(3, 2, &rows.concat(), None).unwrap()
    };
    let features = Features::per_state(3, 1, vec![0.0, 1.0, 0.0]).unwrap();
    let dynamics = Dynamics::Mixture(Mixture::new(&[base(1.0), base(0.0)]).unwrap());
    let criterion = Criterion::discounted(0.5).unwrap();
    let model = Cmdp::new(dynamics, features, vec![1.0, 0.0, 0.0], criterion).unwrap();
    assert_eq!(model.states_with_a_choice(), [StateId(0)]);
    let contexts = [[1.0, 0.0], [0.0, 1.0]].map(|c| model.context_space().context(c).unwrap());
    let truth = LinearMapping::new(2, 1, vec![1.0, 1.0]).unwrap();
    let examination = Examination::new(&model, &truth, contexts.into()).unwrap();
    // Success is worth ½·2. The mean kernel prefers action 1, by 0.9 to 0.5; the first context's own would not.
    let one = examination.one_policy().unwrap();
    near(one.value, 0.9);
    near(one.relative_value, (0.9 - 0.7) / (0.95 - 0.7));
    near(one.visited_accuracy, 0.5);
}

fn seen(model: &Cmdp, states: &[u32], taken: &[u32]) -> Demonstration {
    let path = Trajectory { states: states.iter().map(|&s| StateId(s)).collect(), actions: actions(taken) };
    let context = model.context_space().context([0.5, 0.5]).unwrap();
    Demonstration::from_trajectories(model, context, vec![path]).unwrap()
}

fn run(problem: &Problem<'_>, method: Method) -> coirl::Result<Fitted> {
    fit(problem, &Settings::new(method), Watch::default(), &mut ())
}

#[test]
fn trivial_baselines_do_what_is_known_where_nobody_was_seen() {
    // Action 0 of the first state is not known there: nobody was seen in it, and 0 is what is done everywhere else.
    let mut flags = vec![true; 12];
    flags[0] = false;
    let model = model_over(kernel(None)).with_known_pairs(flags).unwrap();
    let train = Train::new(vec![seen(&model, &[1, 3, 3, 3], &[0, 0, 0])]);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let majority = run(&problem, Method::Majority(Majority {})).unwrap();
    assert_eq!(majority.agent, Agent::Fixed(actions(&[1, 0, 0, 0])));
    let nearest = run(&problem, Method::NearestContext(NearestContext {})).unwrap();
    let Agent::Copied(copied) = &nearest.agent else { panic!("actions per context") };
    assert_eq!(copied.all_actions(), actions(&[1, 0, 0, 0]));
}

/// A demonstrated action that is not known: done by those who copy, never by chance, and left out by cloning.
#[test]
fn demonstrated_actions_that_are_not_known() {
    let model = model();
    let (first, second) = (seen(&model, &[0, 1, 3, 3], &[0, 0, 0]), seen(&model, &[0, 2], &[1]));
    let train = Train::new(vec![first, second.clone(), second]);
    let problem = Problem::new(&model, &train, &Estimator::default()).unwrap();
    let Agent::Fixed(copied) = run(&problem, Method::Majority(Majority {})).unwrap().agent else { panic!("actions") };
    assert_eq!(copied[1], ActionId(0));
    let chance = run(&problem, Method::Uniform(Uniform {})).unwrap().history.last().unwrap().training_accuracy;
    near(chance.unwrap(), (0.5 + 0.0 + 1.0 / 3.0 + 0.5 + 0.5) / 5.0);
    let fitted = run(&problem, Method::Cloning(Cloning::default())).unwrap();
    assert!(
        fitted.certificate.guarantee.to_string().contains("1 of 5 demonstrated actions"),
        "{}",
        fitted.certificate.guarantee.to_string()
    );
    let last = fitted.history.last().unwrap();
    assert!(last.log_likelihood.unwrap().is_finite() && last.training_accuracy.unwrap() < 0.75);
    let policy = |fitted: &Fitted| {
        let acting = act(&model, &fitted.agent, &contexts(&model)).unwrap();
        let Policy::Stochastic(shares) = acting[0][0].policy.clone() else { panic!("a distribution") };
        shares
    };
    let shares = policy(&fitted);
    assert!((0..12).all(|pair| (shares[pair] == 0.0) != KNOWN[pair]), "{shares:?}");
    let unmasked = run(&problem, Method::Cloning(Cloning { masked: false, ..Cloning::default() })).unwrap();
    assert!(!unmasked.certificate.guarantee.to_string().contains("left out"));
    let shares = policy(&unmasked);
    // In the ends, states 2 and 3, nobody decides.
    assert!(shares[..6].iter().all(|&share| share > 0.0) && shares[3] > 1.0 / 3.0, "{shares:?}");
    let greedy = run(&problem, Method::Cloning(Cloning { most_probable: true, ..Cloning::default() })).unwrap();
    let acting = act(&model, &greedy.agent, &contexts(&model)).unwrap();
    let taken = acting[0][0].policy.actions().unwrap();
    assert!((0..4).all(|s| KNOWN[s * 3 + taken[s].index()]), "{taken:?}");

    for masked in [true, false] {
        let own = NeuralCloning { masked, ..NeuralCloning::default() };
        let fitted = run(&problem, Method::NeuralCloning(own)).unwrap();
        assert_eq!(fitted.certificate.guarantee.to_string().contains("1 of 5 demonstrated actions"), masked);
        let shares = policy(&fitted);
        if masked {
            assert!((0..12).all(|pair| shares[pair] == 0.0 || KNOWN[pair]), "{shares:?}");
        } else {
            assert!(shares[3] > 0.9, "{shares:?}");
        }
    }

    let strange = Train::new(vec![seen(&model, &[0, 3], &[2])]);
    let problem = Problem::new(&model, &strange, &Estimator::default()).unwrap();
    let error = run(&problem, Method::Cloning(Cloning::default())).unwrap_err().to_string();
    assert!(error.contains("known") && error.contains("all admissible actions"), "{error}");

    let demonstrations = [seen(&model, &[0, 1, 3], &[0, 0]), seen(&model, &[0, 2], &[1])];
    let settings = CheckSettings { max_steps: 0, ..CheckSettings::default() };
    let listener = &mut |_| ControlFlow::Continue(());
    let found = check(&model, &demonstrations, &Estimator::default(), &settings, listener).unwrap();
    let (state, action) = (StateId(1), ActionId(0));
    let expected = Finding::NotKnown { demonstration: 0, step: 1, state, action };
    let unknown: Vec<&Finding> = found.findings.iter().filter(|f| matches!(f, Finding::NotKnown { .. })).collect();
    assert_eq!(unknown, [&expected]);
    assert!(found.can_be_fitted() && expected.level() == Level::Warning);
}

/// Masking what is not known is the same as not having it: cloning learns the same policy.
#[test]
fn masked_cloning_is_cloning_of_the_masked_model() {
    let (open, masked) = (model(), model_over(kernel(Some(&KNOWN))));
    let paths: [(&[u32], &[u32]); 3] = [(&[0, 1, 0, 2], &[0, 2, 1]), (&[0, 2, 2], &[1, 1]), (&[1, 2, 2], &[1, 2])];
    let own = Cloning { components: Some(0), gradient_tolerance: 1e-10, ..Cloning::default() };
    let shares = |model: &Cmdp| {
        let train = Train::new(paths.iter().map(|(states, taken)| seen(model, states, taken)).collect());
        let problem = Problem::new(model, &train, &Estimator::default()).unwrap();
        let fitted = run(&problem, Method::Cloning(own)).unwrap();
        let acting = act(model, &fitted.agent, &contexts(model)).unwrap();
        let Policy::Stochastic(shares) = acting[1][0].policy.clone() else { panic!("a distribution") };
        shares
    };
    let (open, masked) = (shares(&open), shares(&masked));
    let pairs = Pairs::from_mask(4, 3, &KNOWN).unwrap();
    for (pair, share) in open.iter().enumerate() {
        match pairs.find(pair / 3, pair % 3) {
            Some(own) => assert!((share - masked[own]).abs() < 1e-9, "{pair}: {share} and {}", masked[own]),
            None => assert_eq!(*share, 0.0),
        }
    }
}

#[test]
fn a_digest_tells_what_is_known() {
    let digest = |model: &Cmdp| {
        let train = Train::new(vec![seen(model, &[0, 2], &[1])]);
        let problem = Problem::new(model, &train, &Estimator::Truncated { horizon: None }).unwrap();
        run(&problem, Method::Uniform(Uniform {})).unwrap().digest
    };
    let (all, some) = (model_over(kernel(None)), model());
    assert_ne!(digest(&all), digest(&some));
    assert_eq!(digest(&all.with_known_pairs(KNOWN.to_vec()).unwrap()), digest(&some));
}

/// The simulator in which anything may be done and the one in which only admissible actions may are one to whoever acts at random.
#[test]
fn sepsis_masked_or_not_is_the_same_at_random() {
    let open = Sepsis::default().build().unwrap();
    let masked = Sepsis { inadmissible: Inadmissible::Masked, ..Sepsis::default() }.build().unwrap();
    let contexts: Vec<Context> = Sepsis::patients(20, 3).unwrap().into_iter().map(|patient| patient.context).collect();
    let truth = Sepsis::linear_mapping();
    let [of_open, of_masked] = [&open, &masked].map(|model| Examination::new(model, &truth, contexts.clone()).unwrap());
    assert!((of_open.random_value() - of_masked.random_value()).abs() < 1e-9);
    assert!((of_open.expert_value() - of_masked.expert_value()).abs() < 1e-9);
    let [of_open, of_masked] = [of_open, of_masked].map(|examination| {
        let random = examination.score(&Agent::Uniform).unwrap();
        near(random.relative_value, 0.0);
        (random, examination.one_policy().unwrap())
    });
    for (a, b) in [(of_open.0, of_masked.0), (of_open.1, of_masked.1)] {
        assert!((a.value - b.value).abs() < 1e-9, "{a:?} {b:?}");
        assert!((a.choice_accuracy - b.choice_accuracy).abs() < 1e-9, "{a:?} {b:?}");
        assert!((a.visited_accuracy - b.visited_accuracy).abs() < 1e-9, "{a:?} {b:?}");
    }
    let mdp = masked.shared_mdp().unwrap();
    for (i, context) in contexts.iter().enumerate().take(5) {
        let path = Trajectory::sample(&mdp, &masked.random_policy(), 12, 4, i as u64).unwrap();
        let [a, b] = [&open, &masked].map(|model| {
            let shown = Demonstration::from_trajectories(model, context.clone(), vec![path.clone()]).unwrap();
            let estimates = Estimates::new(model, Estimator::ControlVariate, Reference::Uniform).unwrap();
            estimates.estimate(&shown).unwrap()
        });
        let apart = a.feature_expectations.iter().zip(&b.feature_expectations).map(|(x, y)| (x - y).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-9);
        assert_eq!(a.bias_bound, b.bias_bound);
    }
}
