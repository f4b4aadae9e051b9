//! Planners under attack: what they promise is checked by [`Judge`].

use crate::attempt::attempt;
use crate::effort::{Tally, effort, seed};
use crate::extremes::{NONSENSE, NUMBERS, Sketch, TINIEST, discounts, distribution, numbers, one_of};
use crate::truth::Judge;
use coirl::model::{Cmdp, Criterion, Reward};
use coirl::plan::{
    Accuracy, Certificate, Limits, ManyOptions, Method, Plan, Planner, Policy, SoftMethod, SoftPlanner, Start, evaluate,
};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

const METHODS: [Method; 6] = [
    Method::Automatic,
    Method::ValueIteration,
    Method::ModifiedPolicyIteration { sweeps: 0 },
    Method::ModifiedPolicyIteration { sweeps: 5 },
    Method::ModifiedPolicyIteration { sweeps: usize::MAX },
    Method::PolicyIteration,
];

const TOLERANCES: [f64; 11] = [0.0, TINIEST, 1e-310, 1e-12, 1e-6, 1.0, 1e100, 1e308, f64::NAN, f64::INFINITY, -1.0];

/// Rounding of the judge itself, relative to the size of the values: at discounts a rounding error below one, sixteen of its
/// thirty-two digits are lost.
const JUDGE: f64 = 1e-14;

fn limits(random: &mut impl Rng) -> Limits {
    Limits { max_sweeps: one_of(&[0, 1, 2, 30, 1_000_000, 1_000_000, usize::MAX], random) }
}

fn planner(random: &mut impl Rng) -> Planner {
    let accuracy = match random.random_bool(0.5) {
        true => Accuracy::Exact,
        false => Accuracy::Tolerance(one_of(&TOLERANCES, random)),
    };
    Planner { method: one_of(&METHODS, random), accuracy, limits: limits(random), ..Planner::default() }
}

fn any_criterion(random: &mut impl Rng) -> Criterion {
    match random.random_range(0..6) {
        0 => Criterion::TotalReward,
        1 => Criterion::Average,
        2 => {
            let steps = one_of(&[1, 1, 2, 5, 40, 1000], random);
            let discount = one_of(&[0.0, 0.5, 1.0 - 1e-12, 1.0_f64.next_down(), 1.0, 1.0], random);
            Criterion::finite_horizon(steps, discount).unwrap()
        }
        _ => Criterion::discounted(one_of(&discounts(), random)).unwrap(),
    }
}

/// A model that fits the criterion.
fn sketch_for(criterion: Criterion, random: &mut impl Rng) -> Sketch {
    let sketch = Sketch::random(random);
    match criterion {
        Criterion::TotalReward => sketch.absorbed(random),
        Criterion::Average => sketch.returning(random),
        Criterion::Discounted { .. } | Criterion::FiniteHorizon { .. } => sketch,
    }
}

fn check_certificate(certificate: &Certificate) -> Result<(), String> {
    let bounds = [certificate.suboptimality_bound, certificate.value_error_bound, certificate.residual];
    match bounds.iter().all(|&bound| bound >= 0.0) {
        true => Ok(()),
        false => Err(format!("bounds that bound nothing: {certificate:?}")),
    }
}

fn check_finite(what: &str, values: &[f64]) -> Result<(), String> {
    match values.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(format!("{what}[{at}] is {}", values[at])),
        None => Ok(()),
    }
}

/// What is wrong with a promise, if anything.
fn check_promise(model: &Cmdp, reward: &Reward, policy: &Policy, certificate: &Certificate) -> Result<(), String> {
    check_certificate(certificate)?;
    let mdp = model.shared_mdp().unwrap();
    let judge = Judge::new(&mdp, reward);
    let (short, size) = judge.shortfall(policy);
    let bound = certificate.suboptimality_bound / judge.scale;
    match short <= bound + JUDGE * size {
        true => Ok(()),
        false => Err(format!("{short:e} short of {size:e}, and {bound:e} promised: {certificate:?}")),
    }
}

fn check_plan(model: &Cmdp, reward: &Reward, plan: &Plan) -> Result<(), String> {
    check_finite("values", &plan.values)?;
    check_finite("value", &[plan.value])?;
    check_promise(model, reward, &plan.policy, &plan.certificate)
}

/// Plans, and says what is wrong with the result; an error is a right answer.
fn plan_once(tally: &mut Tally, i: u64, criterion: impl FnOnce(&mut ChaCha8Rng) -> Criterion) {
    let mut random = tally.random(i);
    let criterion = criterion(&mut random);
    let sketch = sketch_for(criterion, &mut random);
    let reward = sketch.reward(&mut random);
    let planner = planner(&mut random);
    let hint = random.random_bool(0.2).then(|| numbers(sketch.n_states, &mut random));
    let name = format!("seed {}, attempt {i}: {sketch:?} {criterion:?} {reward:?} {planner:?} from {hint:?}", seed());
    let planned = attempt(&name, move || {
        let Ok(model) = sketch.bare(criterion) else { return Ok(false) };
        let start = hint.as_deref().map_or(Start::Cold, Start::Values);
        match planner.plan_from(&model.shared_mdp().unwrap(), &reward, start) {
            Ok(plan) => check_plan(&model, &reward, &plan).map(|()| true),
            Err(_) => Ok(false),
        }
    });
    tally.tried(1);
    if let Err(wrong) = planned {
        panic!("{name}: {wrong}");
    }
}

#[test]
fn discounted_plans_keep_their_promises() {
    let mut tally = Tally::new("discounted planning", "plans");
    for i in 0..effort(4000) {
        plan_once(&mut tally, i, |random| Criterion::discounted(one_of(&discounts(), random)).unwrap());
    }
}

#[test]
fn plans_of_other_criteria_keep_their_promises() {
    let mut tally = Tally::new("planning by any criterion", "plans");
    for i in 0..effort(4000) {
        plan_once(&mut tally, i, any_criterion);
    }
}

#[test]
fn policies_are_evaluated_to_numbers_or_refused() {
    let mut tally = Tally::new("policy evaluation", "policies");
    for i in 0..effort(2000) {
        let mut random = tally.random(i);
        let criterion = any_criterion(&mut random);
        let sketch = sketch_for(criterion, &mut random);
        let reward = sketch.reward(&mut random);
        let features = numbers(2 * sketch.n_states, &mut random);
        let shares: Vec<f64> = (0..sketch.n_states).flat_map(|_| distribution(sketch.n_actions, &mut random)).collect();
        let name = format!("seed {}, attempt {i}: {sketch:?} {criterion:?} {reward:?} {features:?} {shares:?}", seed());
        let checked = attempt(&name, move || {
            let Ok(model) = sketch.model(features, criterion) else { return Ok(()) };
            let mdp = model.shared_mdp().unwrap();
            let Ok(policy) = Policy::stochastic(mdp.pairs(), shares) else { return Ok(()) };
            if let Ok(values) = evaluate::values(&mdp, &reward, &policy) {
                check_finite("values", &values)?;
                if let Ok(q) = evaluate::q_values(&mdp, &reward, &values) {
                    check_finite("Q-values", &q)?;
                }
            }
            if let Ok(value) = evaluate::value(&mdp, &reward, &policy) {
                check_finite("value", &[value])?;
            }
            if let Ok(visits) = evaluate::occupancy(&mdp, &policy) {
                check_finite("visits", visits.of_pairs())?;
            }
            if let Ok(mu) = evaluate::feature_expectations(&mdp, &policy) {
                check_finite("feature expectations", &mu)?;
            }
            evaluate::successor_features(&mdp, &policy).map_or(Ok(()), |psi| check_finite("successor features", &psi))
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn plans_for_many_rewards_keep_their_promises() {
    let mut tally = Tally::new("planning for many rewards", "rewards");
    for i in 0..effort(400) {
        let mut random = tally.random(i);
        let criterion = any_criterion(&mut random);
        let sketch = sketch_for(criterion, &mut random);
        let features = match random.random_bool(0.3) {
            true => numbers(2 * sketch.n_states, &mut random),
            false => (0..2 * sketch.n_states).map(|_| random.random_range(-1.0..1.0)).collect(),
        };
        let n = one_of(&[1, 3, 4, 17, 33], &mut random);
        let weights: Vec<f64> = (0..n).flat_map(|_| numbers(2, &mut random)).collect();
        let planner = Planner { method: Method::Automatic, ..planner(&mut random) };
        let name =
            format!("seed {}, attempt {i}: {sketch:?} {criterion:?} {features:?} {weights:?} {planner:?}", seed());
        let checked = attempt(&name, move || {
            let Ok(model) = sketch.model(features, criterion) else { return Ok(()) };
            let mdp = model.shared_mdp().unwrap();
            let mut wrong = Ok(());
            let options = ManyOptions { feature_expectations: true, values: true };
            let _ = planner.plan_many(&mdp, &weights, options, |plan| {
                let reward = mdp.reward(&weights[2 * plan.index..2 * plan.index + 2]).unwrap();
                wrong = check_finite("values", &plan.values.unwrap())
                    .and_then(|()| check_finite("value", &[plan.value]))
                    .and_then(|()| check_finite("feature expectations", &plan.feature_expectations.unwrap()))
                    .and_then(|()| check_promise(&model, &reward, &plan.policy, &plan.certificate))
                    .map_err(|wrong| format!("reward {}: {wrong}", plan.index));
                if wrong.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            wrong
        });
        tally.tried(n as u64);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn soft_plans_are_numbers_or_refused() {
    let mut tally = Tally::new("soft planning", "plans");
    for i in 0..effort(2000) {
        let mut random = tally.random(i);
        let criterion = any_criterion(&mut random);
        let sketch = sketch_for(criterion, &mut random);
        let reward = sketch.reward(&mut random);
        let planner = SoftPlanner {
            temperature: one_of(&[TINIEST, 1e-310, 1e-12, 0.1, 1.0, 1.0, 1e150, 1e308, 0.0, f64::NAN], &mut random),
            method: one_of(&[SoftMethod::PolicyIteration, SoftMethod::ValueIteration], &mut random),
            tolerance: one_of(&TOLERANCES, &mut random),
            limits: limits(&mut random),
        };
        let name = format!("seed {}, attempt {i}: {sketch:?} {criterion:?} {reward:?} {planner:?}", seed());
        let checked = attempt(&name, move || {
            let Ok(model) = sketch.bare(criterion) else { return Ok(()) };
            let mdp = model.shared_mdp().unwrap();
            let Ok(plan) = planner.plan(&mdp, &reward) else { return Ok(()) };
            check_finite("values", &plan.values)?;
            check_finite("value", &[plan.value])?;
            check_certificate(&plan.certificate)?;
            let stages = match &plan.policy {
                Policy::Stochastic(stage) => std::slice::from_ref(stage),
                Policy::StagedStochastic(stages) => stages,
                other => return Err(format!("not a soft policy: {other:?}")),
            };
            let fits = |stage: &Vec<f64>| Policy::stochastic(mdp.pairs(), stage.clone()).map(|_| ());
            stages.iter().try_for_each(fits).map_err(|wrong| wrong.to_string())
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn rewards_that_are_no_numbers_are_refused() {
    let mut tally = Tally::new("rewards that are no numbers", "rewards");
    for i in 0..effort(100) {
        let mut random = tally.random(i);
        let criterion = any_criterion(&mut random);
        let sketch = sketch_for(criterion, &mut random);
        let Ok(model) = sketch.bare(criterion) else { continue };
        let mdp = model.shared_mdp().unwrap();
        for &nonsense in &NONSENSE {
            let mut rewards = numbers(sketch.n_states, &mut random);
            let at = random.random_range(0..sketch.n_states);
            rewards[at] = nonsense;
            let hint = Start::Values(&rewards);
            let refused = Planner::default().plan_from(&mdp, &Reward::State(vec![0.5; sketch.n_states]), hint);
            let staged = matches!(criterion, Criterion::FiniteHorizon { .. });
            assert!(staged || refused.is_err(), "seed {}, attempt {i}: a hint of {nonsense} was taken", seed());
            let reward = Reward::State(rewards);
            let name = format!("seed {}, attempt {i}: {nonsense} was planned for", seed());
            assert!(Planner::default().plan(&mdp, &reward).is_err(), "{name}");
            assert!(SoftPlanner::default().plan(&mdp, &reward).is_err(), "{name}");
            assert!(evaluate::values(&mdp, &reward, &Policy::uniform(mdp.pairs())).is_err(), "{name}");
            assert!(mdp.reward(&[nonsense]).is_err(), "{name}");
            tally.tried(1);
        }
    }
}

/// A chain of n states to the right; the last one absorbs.
fn chain(n: usize, criterion: Criterion) -> Cmdp {
    use coirl::model::{Dynamics, Features, Kernel};
    let (starts, next): (Vec<usize>, Vec<i64>) = ((0..=n).collect(), (1..n as i64).chain([n as i64 - 1]).collect());
    let kernel = Kernel::from_csr(n, 1, &starts, &next, &vec![1.0; n], None).unwrap();
    let mut features = vec![1.0; n];
    features[n - 1] = 0.0;
    let mut initial = vec![0.0; n];
    initial[0] = 1.0;
    Cmdp::new(Dynamics::Shared(kernel), Features::per_state(n, 1, features).unwrap(), initial, criterion).unwrap()
}

#[test]
fn a_long_chain_is_walked_to_its_end() {
    let mut tally = Tally::new("long chains", "states");
    let n = if effort(1) > 1 { 1_000_000 } else { 100_000 };
    for discount in [0.5, 1.0 - 1e-6, 1.0 - 1e-12, 1.0] {
        let name = format!("a chain of {n} states, discount {discount}");
        let (value, bound) = attempt(&name, move || {
            let model = chain(n, Criterion::discounted(discount).unwrap());
            let mdp = model.shared_mdp().unwrap();
            let plan = Planner::default().plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
            (plan.value, plan.certificate.value_error_bound)
        });
        // 1 + γ + … + γⁿ⁻².
        let steps = (n - 1) as f64;
        let expected = if discount == 1.0 { steps } else { -(steps * discount.ln()).exp_m1() / (1.0 - discount) };
        assert!((value - expected).abs() <= 1e-6 * expected, "{name}: {value} for {expected}");
        assert!(bound.is_finite(), "{name}: {bound}");
        tally.tried(n as u64);
    }
}

#[test]
fn a_million_decisions_are_planned_back_to_the_first() {
    let sketch = Sketch {
        n_states: 2,
        n_actions: 2,
        transitions: vec![0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.5, 0.5],
        initial: vec![1.0, 0.0],
    };
    let model = sketch.bare(Criterion::finite_horizon(1_000_000, 1.0).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::default().plan(&mdp, &Reward::State(vec![0.0, 1.0])).unwrap();
    // In and out again, half a step more where the second action stays.
    assert!(plan.value > 500_000.0 && plan.certificate.suboptimality_bound < 1.0, "{:?}", plan.certificate);
    let nothing = one_of(&NUMBERS[..1], &mut Tally::new("a million decisions", "decisions").random(0));
    assert_eq!(Planner::default().plan(&mdp, &Reward::State(vec![nothing; 2])).unwrap().value, 0.0);
}
