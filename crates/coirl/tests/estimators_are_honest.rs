//! Estimators of feature expectations: bias and variance as theory says, against exact values.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::demos::{Demonstration, Estimate, Estimates, Estimator, Reference, Train, Trajectory, truncation_horizon};
use coirl::domains::Garnet;
use coirl::learn::Problem;
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, ContextSpace, Criterion, Dynamics, Features, Kernel, StateId};
use coirl::plan::{Planner, Policy, evaluate};

const GAMMA: f64 = 0.8;
const RUNS: u64 = 4000;

/// A model that starts in state 0, a context, and the expert's policy there.
fn scene() -> (Cmdp, Context, LinearMapping, Policy) {
    let garnet =
        Garnet { n_states: 12, n_actions: 3, n_successors: 4, n_features: 3, discount: GAMMA, ..Garnet::default() };
    let model = garnet.build().unwrap().with_context_space(ContextSpace::Simplex { dimension: 2 }).unwrap();
    let mut initial = vec![0.0; 12];
    initial[0] = 1.0;
    let model = model.with_initial(initial).unwrap();
    let truth = LinearMapping::new(2, 3, vec![1.0, -0.5, 0.25, -1.0, 0.5, 0.75]).unwrap();
    let context = model.context_space().context([0.3, 0.7]).unwrap();
    let mdp = model.mdp(&context).unwrap();
    let policy = Planner::default().plan(&mdp, &mdp.reward(&truth.weights(&context).unwrap()).unwrap()).unwrap().policy;
    (model.clone(), context, truth, policy)
}

/// Mean, variance and the first bias bound over many single-trajectory estimates.
fn moments(estimate: impl Fn(u64) -> Estimate) -> (Vec<f64>, Vec<f64>, f64) {
    let all: Vec<Estimate> = (0..RUNS).map(estimate).collect();
    let k = all[0].feature_expectations.len();
    let mean = |j: usize| all.iter().map(|e| e.feature_expectations[j]).sum::<f64>() / RUNS as f64;
    let means: Vec<f64> = (0..k).map(mean).collect();
    let variance =
        |j: usize| all.iter().map(|e| (e.feature_expectations[j] - means[j]).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
    let variances = (0..k).map(variance).collect();
    (means, variances, all[0].bias_bound)
}

/// Whether a mean over the runs is a sample of this expectation: within five standard errors.
fn agrees(mean: f64, variance: f64, expectation: f64) -> bool {
    (mean - expectation).abs() <= 5.0 * (variance / RUNS as f64).sqrt() + 1e-9
}

#[test]
fn truncation_costs_its_tail_and_no_more() {
    let (model, context, _, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let exact = evaluate::feature_expectations(&mdp, &policy).unwrap();
    let horizon = 6;
    // The expectation of the truncated sum: a finite horizon of seven rewards.
    let finite = model.clone().with_criterion(Criterion::finite_horizon(horizon + 1, GAMMA).unwrap()).unwrap();
    let shortened = evaluate::feature_expectations(&finite.mdp(&context).unwrap(), &policy).unwrap();
    let estimator = Estimator::Truncated { horizon: Some(horizon) };
    let estimates = Estimates::new(&model, estimator, Reference::Uniform).unwrap();
    let (means, variances, bias) = moments(|i| {
        let path = Trajectory::sample(&mdp, &policy, 30, 1, i).unwrap();
        estimates.estimate(&Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()).unwrap()
    });
    for j in 0..3 {
        assert!(agrees(means[j], variances[j], shortened[j]), "feature {j}: {} of {}", means[j], shortened[j]);
        assert!(exact[j] - shortened[j] > 0.1, "the tail is worth seeing");
        assert!((exact[j] - shortened[j]).abs() <= bias + 1e-12, "feature {j} is off by more than {bias}");
    }
    let tail = GAMMA.powi(horizon as i32 + 1) / (1.0 - GAMMA);
    assert!(bias <= tail, "features are at most one: {bias} > {tail}");
}

#[test]
fn the_horizon_makes_the_tail_small() {
    for (discount, tail) in [(0.9, 1e-3), (0.99, 0.1), (0.5, 1e-9), (0.0, 0.5)] {
        let horizon = truncation_horizon(discount, tail).unwrap();
        assert!(discount.powi(horizon as i32) <= tail);
        assert_eq!(horizon, ((1.0 / tail).ln() / (1.0 - discount)).ceil() as usize);
    }
    assert!(truncation_horizon(1.0, 0.1).is_err());
    assert!(truncation_horizon(0.9, 0.0).is_err());
}

#[test]
fn geometric_termination_has_no_bias() {
    let (model, context, _, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let exact = evaluate::feature_expectations(&mdp, &policy).unwrap();
    let estimates = Estimates::new(&model, Estimator::Geometric, Reference::Uniform).unwrap();
    let (means, variances, bias) = moments(|i| {
        let path = Trajectory::sample_geometric(&mdp, &policy, 2, i).unwrap();
        estimates.estimate(&Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()).unwrap()
    });
    assert_eq!(bias, 0.0);
    let truncated = Estimates::new(&model, Estimator::Truncated { horizon: None }, Reference::Uniform).unwrap();
    let (_, discounted, _) = moments(|i| {
        let path = Trajectory::sample(&mdp, &policy, 100, 3, i).unwrap();
        truncated.estimate(&Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()).unwrap()
    });
    for j in 0..3 {
        assert!(agrees(means[j], variances[j], exact[j]), "feature {j}: {} of {}", means[j], exact[j]);
        assert!(variances[j] > discounted[j], "the random length adds variance");
    }
}

#[test]
fn geometric_termination_counts_actions_where_features_do() {
    let (model, context, _, _) = scene();
    let Dynamics::Shared(kernel) = model.dynamics().clone() else { unreachable!() };
    let features = Features::indicators(model.pairs()).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, model.initial().to_vec(), model.criterion()).unwrap();
    let mdp = model.mdp(&context).unwrap();
    let policy = Policy::uniform(mdp.pairs());
    let exact = evaluate::feature_expectations(&mdp, &policy).unwrap();
    for (estimator, seed) in [(Estimator::Geometric, 4), (Estimator::ControlVariate, 5)] {
        let estimates = Estimates::new(&model, estimator.clone(), Reference::Uniform).unwrap();
        let (means, variances, _) = moments(|i| {
            let path = match estimator {
                Estimator::Geometric => Trajectory::sample_geometric(&mdp, &policy, seed, i).unwrap(),
                _ => Trajectory::sample(&mdp, &policy, 150, seed, i).unwrap(),
            };
            estimates.estimate(&Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()).unwrap()
        });
        for j in 0..exact.len() {
            assert!(
                agrees(means[j], variances[j], exact[j]),
                "{estimator:?}, feature {j}: {} of {}",
                means[j],
                exact[j]
            );
        }
    }
}

#[test]
fn the_control_variate_keeps_the_mean_and_loses_the_noise() {
    let (model, context, truth, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let exact = evaluate::feature_expectations(&mdp, &policy).unwrap();
    let demonstration = |i: u64| {
        let path = Trajectory::sample(&mdp, &policy, 100, 6, i).unwrap();
        Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap()
    };
    let plain = Estimates::new(&model, Estimator::Truncated { horizon: None }, Reference::Uniform).unwrap();
    let reduced = Estimates::new(&model, Estimator::ControlVariate, Reference::Uniform).unwrap();
    let (_, plain_variances, _) = moments(|i| plain.estimate(&demonstration(i)).unwrap());
    let (means, variances, _) = moments(|i| reduced.estimate(&demonstration(i)).unwrap());
    for j in 0..3 {
        assert!(agrees(means[j], variances[j], exact[j]), "feature {j}: {} of {}", means[j], exact[j]);
        assert!(variances[j] < 0.5 * plain_variances[j], "feature {j}: {} of {}", variances[j], plain_variances[j]);
    }
    // With the expert's own policy as reference nothing is left to chance.
    let own = Estimates::new(&model, Estimator::ControlVariate, Reference::Agent(truth)).unwrap();
    for i in 0..20 {
        let estimate = own.estimate(&demonstration(i)).unwrap();
        let off = estimate.feature_expectations.iter().zip(&exact).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(off <= 1e-9, "{off}");
    }
}

#[test]
fn an_absorbing_end_is_exact() {
    // 0 goes to 1 or 2 with equal chance; both are absorbing and collect different features for ever.
    let kernel = Kernel::from_dense(3, 1, &[0.0, 0.5, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], None).unwrap();
    let features = Features::per_state(3, 1, vec![0.5, 1.0, -1.0]).unwrap();
    let criterion = Criterion::discounted(0.9).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0, 0.0], criterion).unwrap();
    let context = model.context_space().context([1.0]).unwrap();
    let path =
        |end: u32| Trajectory { states: vec![StateId(0), StateId(end)], actions: vec![coirl::model::ActionId(0)] };
    let estimates = Estimates::new(&model, Estimator::ControlVariate, Reference::Uniform).unwrap();
    for end in [1, 2] {
        let demonstration = Demonstration::from_trajectories(&model, context.clone(), vec![path(end)]).unwrap();
        let estimate = estimates.estimate(&demonstration).unwrap();
        // The chance of the end itself is integrated out: 0.5 + 0.9 · (0.5·10 − 0.5·10).
        assert!((estimate.feature_expectations[0] - 0.5).abs() < 1e-12);
        assert_eq!(estimate.bias_bound, 0.0);
    }
}

#[test]
fn an_unfinished_path_at_discount_one_has_no_bound() {
    // 0 ends in 1 sooner or later; a path that has not may lack any number of features.
    let kernel = Kernel::from_dense(2, 1, &[0.5, 0.5, 0.0, 1.0], None).unwrap();
    let features = Features::per_state(2, 1, vec![1.0, 0.0]).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0], Criterion::TotalReward).unwrap();
    let context = model.context_space().context([1.0]).unwrap();
    for estimator in [Estimator::Geometric, Estimator::Truncated { horizon: None }] {
        let estimates = Estimates::new(&model, estimator, Reference::Uniform).unwrap();
        for (end, bound) in [(0, f64::INFINITY), (1, 0.0)] {
            let path = Trajectory { states: vec![StateId(0), StateId(end)], actions: vec![coirl::model::ActionId(0)] };
            let demonstration = Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap();
            assert_eq!(estimates.estimate(&demonstration).unwrap().bias_bound, bound);
        }
    }
}

#[test]
fn several_trajectories_are_averaged_with_their_error() {
    let (model, context, _, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let paths: Vec<Trajectory> = (0..50).map(|i| Trajectory::sample(&mdp, &policy, 40, 7, i).unwrap()).collect();
    let demonstration = Demonstration::from_trajectories(&model, context, paths.clone()).unwrap();
    let estimates = Estimates::new(&model, Estimator::Truncated { horizon: None }, Reference::Uniform).unwrap();
    let estimate = estimates.estimate(&demonstration).unwrap();
    let each: Vec<Vec<f64>> = paths.iter().map(|path| path.discounted_features(&mdp, GAMMA).unwrap()).collect();
    for j in 0..3 {
        let mean = each.iter().map(|x| x[j]).sum::<f64>() / 50.0;
        let variance = each.iter().map(|x| (x[j] - mean).powi(2)).sum::<f64>() / 49.0;
        assert!((estimate.feature_expectations[j] - mean).abs() < 1e-12);
        assert!((estimate.standard_error.as_ref().unwrap()[j] - (variance / 50.0).sqrt()).abs() < 1e-12);
    }
}

#[test]
fn decisions_cost_what_the_agent_thinks_they_cost() {
    // Loss on one trajectory: Σ γᵗ (V(s_t) − Q(s_t, a_t)) in the eyes of an agent with a reward of its own.
    let (model, context, truth, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let other: Vec<f64> = vec![-0.3, 0.8, 0.1, 0.4, -0.2, 0.9];
    let own = LinearMapping::new(2, 3, other.clone()).unwrap();
    let reward = mdp.reward(&own.weights(&context).unwrap()).unwrap();
    let values = Planner::default().plan(&mdp, &reward).unwrap().values;
    let q = evaluate::q_values(&mdp, &reward, &values).unwrap();
    let path = |i| Trajectory::sample(&mdp, &policy, 25, 3, i).unwrap();
    let loss = |mapping: &[f64], path: Trajectory| {
        let demonstration = Demonstration::from_trajectories(&model, context.clone(), vec![path]).unwrap();
        let problem = Problem::new(&model, &Train::new(vec![demonstration]), &Estimator::Decisions).unwrap();
        problem.loss(mapping, &[0]).unwrap().value
    };
    let mut sum = (0.0, 0.0);
    for i in 0..RUNS / 4 {
        let path = path(i);
        let by_hand: f64 = (0..25)
            .map(|t| {
                let state = path.states[t].index();
                let pair = mdp.pairs().find(state, path.actions[t].index()).unwrap();
                GAMMA.powi(t as i32) * (values[state] - q[pair])
            })
            .sum();
        let found = loss(&other, path);
        assert!((found - by_hand).abs() < 1e-9 && found > -1e-12, "{found} and {by_hand}");
        sum = (sum.0 + found, sum.1 + found * found);
    }
    // On average it is the loss of the paper: V(s₀) of the agent less what it thinks of the expert.
    let exact = evaluate::value(&mdp, &reward, &Planner::default().plan(&mdp, &reward).unwrap().policy).unwrap()
        - evaluate::value(&mdp, &reward, &policy).unwrap();
    let n = (RUNS / 4) as f64;
    let (mean, variance) = (sum.0 / n, sum.1 / n - (sum.0 / n).powi(2));
    let tail = GAMMA.powi(25) / (1.0 - GAMMA) * 2.0;
    assert!((mean - exact).abs() < 5.0 * (variance / n).sqrt() + tail, "{mean} and {exact}");
    // An agent that agrees with every action has nothing to object to.
    assert!(loss(truth.values(), path(0)).abs() < 1e-9);
}

#[test]
fn the_slope_at_zero_is_that_of_acting_at_random() {
    let (model, context, _, policy) = scene();
    let mdp = model.mdp(&context).unwrap();
    let mu = evaluate::feature_expectations(&mdp, &policy).unwrap();
    let demonstration = Demonstration::from_feature_expectations(&model, context.clone(), mu.clone()).unwrap();
    let train = Train::new(vec![demonstration.clone(), demonstration]);
    let problem = Problem::new(&model, &train, &Estimator::Decisions).unwrap();
    let random = evaluate::feature_expectations(&mdp, &model.random_policy()).unwrap();
    let g = problem.loss(&[0.0; 6], &[0, 1]).unwrap().subgradient;
    for (i, c) in context.values().iter().enumerate() {
        for j in 0..3 {
            assert!((g[3 * i + j] - c * (random[j] - mu[j])).abs() < 1e-12);
        }
    }
    // Asked how it acts, rather than for a slope, it takes the first action, as whoever plans for its mapping does.
    let first = Planner::default().plan(&mdp, &mdp.reward(&[0.0; 3]).unwrap()).unwrap().policy;
    assert_eq!(problem.best_response(&[0.0; 6], 0).unwrap().policy, first);
}
