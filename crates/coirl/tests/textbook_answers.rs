//! Problems whose answers are known in closed form.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::model::{ActionId, Cmdp, Criterion, Dynamics, Features, Kernel, StateId};
use coirl::plan::{ManyOptions, Method, PlannedReward, Planner, Policy, Start, Status, evaluate};
use std::ops::ControlFlow;

const METHODS: [Method; 4] = [
    Method::Automatic,
    Method::ValueIteration,
    Method::ModifiedPolicyIteration { sweeps: 10 },
    Method::PolicyIteration,
];

/// Per state and action: successors with their probabilities, and the reward.
type Rows = [Vec<(Vec<(usize, f64)>, f64)>];

/// A model with one feature, the reward, from `rows[s][a] = (successors, reward)`; missing actions are inadmissible.
fn model(rows: &Rows, criterion: Criterion) -> coirl::Result<Cmdp> {
    let n_states = rows.len();
    let n_actions = rows.iter().map(Vec::len).max().unwrap();
    let mut transitions = vec![0.0; n_states * n_actions * n_states];
    let mut admissible = vec![false; n_states * n_actions];
    let mut rewards = Vec::new();
    for (s, actions) in rows.iter().enumerate() {
        for (a, (successors, reward)) in actions.iter().enumerate() {
            admissible[s * n_actions + a] = true;
            rewards.push(*reward);
            for (next, p) in successors {
                transitions[(s * n_actions + a) * n_states + next] += p;
            }
        }
    }
    let kernel = Kernel::from_dense(n_states, n_actions, &transitions, Some(&admissible))?;
    let starts = (0..=rewards.len()).collect();
    let sparse = coirl::model::SparseRows::new(1, starts, vec![0; rewards.len()], rewards)?;
    let features = Features::per_pair(kernel.pairs(), sparse)?;
    let initial = vec![1.0 / n_states as f64; n_states];
    Cmdp::new(Dynamics::Shared(kernel), features, initial, criterion)
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= tolerance, "{found:?}, expected {expected:?}");
    }
}

fn actions(policy: &Policy) -> Vec<u32> {
    policy.actions().unwrap().iter().map(|a| a.0).collect()
}

/// Two actions lead to the same place, the second for a reward that is larger by less than what counts as a difference. In single precision
/// there is none, and nothing is left to do after two backups.
#[test]
fn ties_go_to_the_lowest_action_in_blocks_too() {
    let rows = vec![vec![(vec![(1, 1.0)], 1.0), (vec![(1, 1.0)], 1.0 + 1e-12)], vec![(vec![(1, 1.0)], 0.0)]];
    let model = model(&rows, Criterion::discounted(0.5).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let weights = [1.0, 2.0, 0.5, 4.0, 1.0, 8.0];
    let mut found = Vec::new();
    let keep = |plan: PlannedReward| {
        found.push((plan.certificate.status, actions(&plan.policy)));
        ControlFlow::Continue(())
    };
    Planner::default().plan_many(&mdp, &weights, ManyOptions::default(), keep).unwrap();
    assert_eq!(found, vec![(Status::Exact, vec![0, 0]); weights.len()]);
}

/// Two states that are never left, for next to nothing or nothing at all, from a hint that is far off: what is left of the hint is not small
/// beside values of zero, however small it is.
#[test]
fn a_hint_far_beyond_the_values() {
    let stay = |s: usize| vec![(vec![(s, 1.0)], 1.0)];
    let model = model(&[stay(0), stay(1)], Criterion::discounted(0.9999).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    for size in [0.0, 1e-320, 1e-310, 1e-300, 1e-200, 1e-20] {
        let reward = mdp.reward(&[size]).unwrap();
        for method in METHODS {
            let plan = Planner::exact(method).plan_from(&mdp, &reward, Start::Values(&[99.9, -55.0])).unwrap();
            assert_near(&plan.values, &[1e4 * size; 2], 1e-8 * size + 1e-319);
        }
    }
}

/// The best policy earns exactly nothing, though another would lose: from a hint within what the rewards allow, its evaluation ends.
#[test]
fn a_best_policy_that_earns_nothing() {
    let rows = vec![vec![(vec![(0, 0.05), (1, 0.95)], 0.0), (vec![(0, 1.0)], -0.1)], vec![(vec![(0, 1.0)], 0.0)]];
    let model = model(&rows, Criterion::discounted(0.5).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let reward = mdp.reward(&[1.0]).unwrap();
    for method in METHODS {
        for hint in [[0.2, -0.1], [73.0, -32.0], [1e-9, 1e-12]] {
            let plan = Planner::exact(method).plan_from(&mdp, &reward, Start::Values(&hint)).unwrap();
            assert_eq!(plan.values, [0.0, 0.0], "{method:?} from {hint:?}");
            assert_eq!(actions(&plan.policy), [0, 0]);
        }
    }
}

/// Puterman (1994), example 3.1.1: two states, the first with two actions, at discount 0.95.
#[test]
fn putermans_two_states() {
    let rows = vec![vec![(vec![(0, 0.5), (1, 0.5)], 5.0), (vec![(1, 1.0)], 10.0)], vec![(vec![(1, 1.0)], -1.0)]];
    let model = model(&rows, Criterion::discounted(0.95).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    // v(s2) = −1/0.05; staying half the time: (5 + 0.475·v2)/(1 − 0.475); leaving: 10 + 0.95·v2.
    let v2 = -20.0;
    let v1 = f64::max((5.0 + 0.475 * v2) / 0.525, 10.0 + 0.95 * v2);
    for method in METHODS {
        let plan = Planner::exact(method).plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
        assert_near(&plan.values, &[v1, v2], 1e-11);
        assert_eq!(actions(&plan.policy), [0, 0]);
    }
}

/// A chain that pays one in its last state: V(s) = γ^(n−1−s)/(1−γ). Krylov methods need n steps here.
#[test]
fn a_long_chain() {
    for (n, gamma) in [(50_usize, 0.9), (2_000, 0.999), (3_000, 0.9999)] {
        let rows: Vec<_> = (0..n)
            .map(|s| {
                let pays = if s == n - 1 { 1.0 } else { 0.0 };
                vec![(vec![((s + 1).min(n - 1), 1.0)], pays), (vec![(s.saturating_sub(1), 1.0)], pays)]
            })
            .collect();
        let mut expected: Vec<f64> = (0..n).map(|s| gamma_power(gamma, n - 1 - s) / (1.0 - gamma)).collect();
        // In the last state "stay" is action 0; it keeps paying.
        expected[n - 1] = 1.0 / (1.0 - gamma);
        let model = model_from_chain(&rows, gamma);
        let mdp = model.shared_mdp().unwrap();
        for method in [Method::Automatic, Method::PolicyIteration] {
            let plan = Planner::exact(method).plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
            assert_near(&plan.values, &expected, 1e-9 / (1.0 - gamma));
            assert!(plan.certificate.suboptimality_bound <= 1e-5 / (1.0 - gamma), "{:?}", plan.certificate);
        }
    }
}

fn gamma_power(gamma: f64, exponent: usize) -> f64 {
    gamma.powf(exponent as f64)
}

/// As [`model`], through compressed rows: a dense array of a long chain would not fit.
fn model_from_chain(rows: &Rows, gamma: f64) -> Cmdp {
    let n = rows.len();
    let (mut starts, mut next, mut p, mut features) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for state in rows {
        for (successors, _) in state {
            for (to, probability) in successors {
                next.push(*to as i64);
                p.push(*probability);
            }
            starts.push(next.len());
        }
        features.push(state[0].1);
    }
    let kernel = Kernel::from_csr(n, 2, &starts, &next, &p, None).unwrap();
    let features = Features::per_state(n, 1, features).unwrap();
    let mut initial = vec![0.0; n];
    initial[0] = 1.0;
    Cmdp::new(Dynamics::Shared(kernel), features, initial, Criterion::discounted(gamma).unwrap()).unwrap()
}

/// A cycle under a discount near one, where the eigenvalues of the policy's matrix fill a circle.
#[test]
fn a_cycle() {
    let (n, gamma) = (500, 0.9999);
    let rows: Vec<_> = (0..n).map(|s| vec![(vec![((s + 1) % n, 1.0)], f64::from(u8::from(s == 0))); 2]).collect();
    let model = model_from_chain(&rows, gamma);
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::default().plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
    let round_trip = 1.0 / (1.0 - gamma_power(gamma, n));
    let expected: Vec<f64> = (0..n).map(|s| gamma_power(gamma, (n - s) % n) * round_trip).collect();
    assert_near(&plan.values, &expected, 1e-9);
    let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
    assert_near(&mu, &[expected[0]], 1e-9);
}

#[test]
fn discount_zero_is_greedy() {
    let rows =
        vec![vec![(vec![(0, 1.0)], 1.0), (vec![(1, 1.0)], 3.0), (vec![(1, 1.0)], 3.0)], vec![(vec![(0, 1.0)], -2.0)]];
    let model = model(&rows, Criterion::discounted(0.0).unwrap()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    for method in METHODS {
        let plan = Planner::exact(method).plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap();
        assert_eq!(plan.values, [3.0, -2.0]);
        assert_eq!(actions(&plan.policy), [1, 0], "the lower index of two equal actions");
    }
}

/// Backward induction against hand-computed values; the best first action depends on the horizon.
#[test]
fn finite_horizon() {
    // Stay for 1, or invest: nothing now, 5 in the next state, which then falls back.
    let rows = vec![vec![(vec![(0, 1.0)], 1.0), (vec![(1, 1.0)], 0.0)], vec![(vec![(0, 1.0)], 5.0)]];
    for (steps, value, first) in [(1, 1.0, 0), (2, 5.0, 1), (3, 6.0, 0), (4, 10.0, 1)] {
        let model = model(&rows, Criterion::finite_horizon(steps, 1.0).unwrap()).unwrap();
        let mdp = model.shared_mdp().unwrap().starting_in(StateId(0)).unwrap();
        let reward = mdp.reward(&[1.0]).unwrap();
        let plan = Planner::default().plan(&mdp, &reward).unwrap();
        assert_eq!(plan.values[0], value);
        let Policy::Staged(stages) = &plan.policy else { panic!("a finite horizon has a policy in stages") };
        assert_eq!((stages.len(), stages[0][0]), (steps, ActionId(first)));
        assert_eq!(evaluate::values(&mdp, &reward, &plan.policy).unwrap(), plan.values);
        assert_near(&evaluate::feature_expectations(&mdp, &plan.policy).unwrap(), &[value], 1e-12);
    }
}

/// Discount one until absorption: a gambler who needs the fewest expected coin tosses.
#[test]
fn total_reward_until_absorption() {
    // Action 0 is absorbed with probability 1/2 per step (2 steps), action 1 with 1/4 (4 steps); each step costs 1.
    let rows =
        vec![vec![(vec![(0, 0.75), (1, 0.25)], -1.0), (vec![(0, 0.5), (1, 0.5)], -1.0)], vec![(vec![(1, 1.0)], 0.0)]];
    let model = model(&rows, Criterion::discounted(1.0).unwrap()).unwrap();
    assert_eq!(model.criterion(), Criterion::TotalReward);
    let mdp = model.shared_mdp().unwrap().starting_in(StateId(0)).unwrap();
    let reward = mdp.reward(&[1.0]).unwrap();
    for method in METHODS {
        let plan = Planner::exact(method).plan(&mdp, &reward).unwrap();
        assert_near(&plan.values, &[-2.0, 0.0], 1e-12);
        assert_eq!(actions(&plan.policy), [1, 0]);
        assert!(plan.certificate.suboptimality_bound < 1e-10, "{:?}", plan.certificate);
        assert_near(&evaluate::feature_expectations(&mdp, &plan.policy).unwrap(), &[-2.0], 1e-12);
        let rough = Planner::to_tolerance(method, 1e-3).plan(&mdp, &reward).unwrap();
        assert!((rough.values[0] + 2.0).abs() <= rough.certificate.value_error_bound, "{:?}", rough.certificate);
        assert!(rough.certificate.suboptimality_bound < 0.1, "{:?}", rough.certificate);
    }
}

/// The average-reward criterion on a model where every policy has one recurrent class.
#[test]
fn average_reward() {
    // State 0: stay for 1 per step, or go to 1 and back for (0 + 3)/2 per step.
    let rows = vec![vec![(vec![(0, 0.5), (1, 0.5)], 1.0), (vec![(1, 1.0)], 0.0)], vec![(vec![(0, 1.0)], 3.0)]];
    let model = model(&rows, Criterion::Average).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let reward = mdp.reward(&[1.0]).unwrap();
    // Action 0: stationary (2/3, 1/3), gain 2/3 + 1 = 5/3. Action 1: (1/2, 1/2), gain 3/2.
    let plan = Planner::default().plan(&mdp, &reward).unwrap();
    assert_eq!(plan.certificate.status, Status::Exact);
    assert!((plan.value - 5.0 / 3.0).abs() < 1e-12, "{}", plan.value);
    assert_eq!(actions(&plan.policy), [0, 0]);
    assert_near(&evaluate::feature_expectations(&mdp, &plan.policy).unwrap(), &[5.0 / 3.0], 1e-12);
    let occupancy = evaluate::occupancy(&mdp, &plan.policy).unwrap();
    assert_near(&occupancy.of_states(mdp.pairs()), &[2.0 / 3.0, 1.0 / 3.0], 1e-12);
    let other = Policy::stationary(mdp.pairs(), vec![ActionId(1), ActionId(0)]).unwrap();
    assert!((evaluate::value(&mdp, &reward, &other).unwrap() - 1.5).abs() < 1e-12);
    let rough = Planner::to_tolerance(Method::Automatic, 1e-3).plan(&mdp, &reward).unwrap();
    assert!((rough.value - 5.0 / 3.0).abs() <= rough.certificate.value_error_bound);
}

#[test]
fn average_reward_needs_one_recurrent_class() {
    let rows = vec![vec![(vec![(0, 1.0)], 1.0)], vec![(vec![(1, 1.0)], 2.0)]];
    let model = model(&rows, Criterion::Average).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let error = Planner::default().plan(&mdp, &mdp.reward(&[1.0]).unwrap()).unwrap_err();
    assert!(matches!(error, coirl::Error::NotUnichain { first: 0, second: 1 }), "{error}");
}

/// 5,000 states × 5,005 indicator features: μ is the occupancy itself, and nothing of size S × k is formed.
#[test]
fn indicator_features_return_the_occupancy() {
    let n = 5_000;
    let rows: Vec<_> = (0..n).map(|s| vec![(vec![((s * 7 + 1) % n, 0.5), ((s + 1) % n, 0.5)], 0.0); 2]).collect();
    let plain = model_from_chain(&rows, 0.9);
    let Dynamics::Shared(kernel) = plain.dynamics().clone() else { panic!("shared dynamics") };
    let features = Features::indicators(kernel.pairs()).unwrap();
    assert_eq!(features.n_features(), n + 2);
    let model = Cmdp::new(Dynamics::Shared(kernel), features, plain.initial().to_vec(), plain.criterion()).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let mut weights = vec![0.0; n + 2];
    weights[n + 1] = 1.0;
    let plan = Planner::default().plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
    assert!(plan.policy.actions().unwrap().iter().all(|a| a.0 == 1));
    assert_near(&[plan.value], &[10.0], 1e-9);
    let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
    let occupancy = evaluate::occupancy(&mdp, &plan.policy).unwrap();
    assert_near(&mu[..n], &occupancy.of_states(mdp.pairs()), 1e-12);
    assert_near(&mu[n..], &[0.0, 10.0], 1e-9);
}
