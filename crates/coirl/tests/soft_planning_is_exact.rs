//! Soft planning against closed forms, against all trajectories of a tiny process, and at its limits.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::model::{Cmdp, Criterion, Dynamics, Features, Kernel, Mdp, Pairs, Reward, SparseRows};
use coirl::plan::{Planner, Policy, SoftMethod, SoftPlan, SoftPlanner, Status, evaluate};
use proptest::prelude::*;
use random_models::{largest, sketches, solve};

/// One state with an action per reward, which is the only feature.
fn bandit(rewards: &[f64], criterion: Criterion) -> Cmdp {
    let kernel = Kernel::from_dense(1, rewards.len(), &vec![1.0; rewards.len()], None).unwrap();
    let starts = (0..=rewards.len()).collect();
    let rows = SparseRows::new(1, starts, vec![0; rewards.len()], rewards.to_vec()).unwrap();
    let features = Features::per_pair(kernel.pairs(), rows).unwrap();
    Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0], criterion).unwrap()
}

fn soft(model: &Cmdp, planner: SoftPlanner, weights: &[f64]) -> SoftPlan {
    let mdp = model.shared_mdp().unwrap();
    planner.plan(&mdp, &mdp.reward(weights).unwrap()).unwrap()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= tolerance, "{found:?}, expected {expected:?}");
    }
}

fn shares(policy: &Policy) -> &[f64] {
    let Policy::Stochastic(shares) = policy else { panic!("a stationary policy") };
    shares
}

#[test]
fn one_state() {
    let rewards = [0.3_f64, -1.2, 2.0];
    for (gamma, temperature) in [(0.0, 1.0), (0.9, 0.5), (0.99, 3.0)] {
        let model = bandit(&rewards, Criterion::discounted(gamma).unwrap());
        let sum: f64 = rewards.iter().map(|r| (r / temperature).exp()).sum();
        for method in [SoftMethod::PolicyIteration, SoftMethod::ValueIteration] {
            let plan = soft(&model, SoftPlanner { method, ..SoftPlanner::at(temperature) }, &[1.0]);
            assert_eq!(plan.certificate.status, Status::Converged);
            let expected = temperature * sum.ln() / (1.0 - gamma);
            assert_near(&plan.values, &[expected], 1e-8);
            assert!((plan.value - expected).abs() <= plan.certificate.value_error_bound + 1e-12);
            let odds: Vec<f64> = rewards.iter().map(|r| (r / temperature).exp() / sum).collect();
            assert_near(shares(&plan.policy), &odds, 1e-12);
            let logs: Vec<f64> = odds.iter().map(|p| p.ln()).collect();
            assert_near(plan.log_probabilities(7).unwrap(), &logs, 1e-12);
        }
    }
}

/// Stay for a reward r per step, or leave for the absorbing state that pays nothing and offers one action. By hand, with
/// τ = 1: V = log(e^{r + γV} + 1), whose solution at γ = 1/2 is x = e^{V/2} with x² = e^r x + 1.
#[test]
fn two_states() {
    let transitions = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    let kernel = Kernel::from_dense(2, 2, &transitions, Some(&[true, true, true, false])).unwrap();
    let rows = SparseRows::new(1, vec![0, 1, 1, 1], vec![0], vec![1.0]).unwrap();
    let features = Features::per_pair(kernel.pairs(), rows).unwrap();
    let model =
        Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0], Criterion::discounted(0.5).unwrap()).unwrap();
    for r in [-2.0_f64, 0.0, 0.7, 5.0] {
        let x = 0.5 * (r.exp() + (r.exp().powi(2) + 4.0).sqrt());
        let plan = soft(&model, SoftPlanner::default(), &[r]);
        assert_near(&plan.values, &[2.0 * x.ln(), 0.0], 1e-10);
        assert_near(&[shares(&plan.policy)[1]], &[x.powi(-2)], 1e-10);
    }
}

/// Leave with probability one half whatever is done, two ways to do it, r per step: V = r + log 2 + V/2 without a discount.
#[test]
fn total_reward_ends_where_it_is_absorbed() {
    let transitions = [0.5, 0.5, 0.5, 0.5, 0.0, 1.0, 0.0, 1.0];
    let kernel = Kernel::from_dense(2, 2, &transitions, None).unwrap();
    let features = Features::per_state(2, 1, vec![1.0, 0.0]).unwrap();
    let model =
        Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0], Criterion::discounted(1.0).unwrap()).unwrap();
    for method in [SoftMethod::PolicyIteration, SoftMethod::ValueIteration] {
        let plan = soft(&model, SoftPlanner { method, ..SoftPlanner::default() }, &[-0.4]);
        assert_eq!(plan.certificate.status, Status::Converged);
        assert_near(&plan.values, &[2.0 * (2.0_f64.ln() - 0.4), 0.0], 1e-9);
        assert_near(shares(&plan.policy), &[0.5; 4], 1e-12);
    }
}

/// Every path of `steps` decisions from the start distribution, as pairs, with the last state and its probability under a
/// policy in stages.
fn paths(mdp: &Mdp<'_>, policy: &Policy, steps: usize) -> Vec<(Vec<usize>, f64)> {
    let Policy::StagedStochastic(stages) = policy else { panic!("a policy in stages") };
    let first = mdp.initial().iter().enumerate().map(|(s, &p)| (Vec::new(), s, p));
    let mut all: Vec<(Vec<usize>, usize, f64)> = first.collect();
    for stage in stages.iter().take(steps) {
        let longer = |(path, s, p): (Vec<usize>, usize, f64)| {
            let next = mdp.pairs().of_state(s).flat_map(move |pair| {
                let path = [path.clone(), vec![pair]].concat();
                let step = move |(to, q)| (path.clone(), to, p * stage[pair] * q);
                mdp.kernel().successors(pair).map(step).collect::<Vec<_>>()
            });
            next.collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).filter(|entry| entry.2 > 0.0).collect();
    }
    all.into_iter().map(|(path, _, p)| (path, p)).collect()
}

/// With certain transitions the soft policy draws a trajectory with probability proportional to exp(Σ r / τ).
#[test]
fn trajectories_of_certain_dynamics_are_a_boltzmann_distribution() {
    let (n_states, n_actions, steps, temperature) = (3, 2, 5, 0.8);
    let mut transitions = vec![0.0; n_states * n_actions * n_states];
    for s in 0..n_states {
        for a in 0..n_actions {
            transitions[(s * n_actions + a) * n_states + (2 * s + a + 1) % n_states] = 1.0;
        }
    }
    let kernel = Kernel::from_dense(n_states, n_actions, &transitions, None).unwrap();
    let features = Features::per_state(n_states, 1, vec![0.2, -0.7, 1.1]).unwrap();
    let criterion = Criterion::finite_horizon(steps, 1.0).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0, 0.0, 0.0], criterion).unwrap();
    let mdp = model.shared_mdp().unwrap();
    let reward = mdp.reward(&[1.0]).unwrap();
    let plan = SoftPlanner::at(temperature).plan(&mdp, &reward).unwrap();
    let all = paths(&mdp, &plan.policy, steps);
    assert_eq!(all.len(), n_actions.pow(steps as u32));
    let weight = |path: &[usize]| {
        let sum: f64 = path.iter().map(|&pair| reward.at(mdp.pairs().state(pair).index(), pair)).sum();
        (sum / temperature).exp()
    };
    let partition: f64 = all.iter().map(|(path, _)| weight(path)).sum();
    assert_near(&[plan.value], &[temperature * partition.ln()], 1e-12);
    for (path, p) in &all {
        assert_near(&[*p], &[weight(path) / partition], 1e-13);
        let likelihood = path.iter().enumerate().map(|(t, &pair)| plan.log_probabilities(t).unwrap()[pair]);
        assert_near(&[likelihood.sum::<f64>().exp()], &[*p], 1e-13);
    }
    assert!(plan.log_probabilities(steps).is_none());
}

/// V of the policy with its entropy as a reward, by elimination.
fn dense_soft_values(mdp: &Mdp<'_>, reward: &Reward, shares: &[f64], temperature: f64) -> Vec<f64> {
    let (n, gamma) = (mdp.n_states(), mdp.criterion().discount());
    let mut system = vec![vec![0.0; n + 1]; n];
    for s in 0..n {
        system[s][s] += 1.0;
        for pair in mdp.pairs().of_state(s).filter(|&pair| shares[pair] > 0.0) {
            system[s][n] += shares[pair] * (reward.at(s, pair) - temperature * shares[pair].ln());
            mdp.kernel().successors(pair).for_each(|(next, p)| system[s][next] -= gamma * shares[pair] * p);
        }
    }
    solve(system)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// The values are those of the policy, entropy included; no other policy has more; and both methods agree.
    #[test]
    fn the_soft_policy_is_the_best(sketch in sketches(5, 3), temperature in 0.05..3.0_f64, seed in prop::collection::vec(0.01..1.0_f64, 15)) {
        prop_assume!(sketch.discount <= 0.99);
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let planner = SoftPlanner::at(temperature);
        let plan = planner.plan(&mdp, &reward).unwrap();
        prop_assert_eq!(plan.certificate.status, Status::Converged);
        let scale = 1e-9 * (1.0 + largest(&plan.values)) / (1.0 - sketch.discount);
        let own = dense_soft_values(&mdp, &reward, shares(&plan.policy), temperature);
        for s in 0..mdp.n_states() {
            prop_assert!((plan.values[s] - own[s]).abs() <= plan.certificate.value_error_bound + scale);
            let sum: f64 = shares(&plan.policy)[mdp.pairs().of_state(s)].iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-12);
        }
        let mut other: Vec<f64> = (0..mdp.pairs().len()).map(|pair| seed[pair % seed.len()]).collect();
        for s in 0..mdp.n_states() {
            let range = mdp.pairs().of_state(s);
            let sum: f64 = other[range.clone()].iter().sum();
            other[range].iter_mut().for_each(|p| *p /= sum);
        }
        let others = dense_soft_values(&mdp, &reward, &other, temperature);
        prop_assert!(others.iter().zip(&plan.values).all(|(other, own)| other <= &(own + scale)));
        let swept = SoftPlanner { method: SoftMethod::ValueIteration, ..planner }.plan(&mdp, &reward).unwrap();
        prop_assert!(swept.values.iter().zip(&plan.values).all(|(x, y)| (x - y).abs() <= scale));
    }

    /// The occupancy of the soft policy of a finite horizon, against all its paths; and the gradient of the soft value.
    #[test]
    fn occupancies_are_sums_over_paths(sketch in sketches(3, 2), steps in 1..5_usize, temperature in 0.1..2.0_f64) {
        let model = sketch.model_with(Criterion::finite_horizon(steps, sketch.discount).unwrap());
        let mdp = model.shared_mdp().unwrap();
        let planner = SoftPlanner::at(temperature);
        let plan = planner.plan(&mdp, &mdp.reward(&sketch.weights).unwrap()).unwrap();
        let mut visits = vec![0.0; mdp.pairs().len()];
        for (path, p) in paths(&mdp, &plan.policy, steps) {
            path.iter().enumerate().for_each(|(t, &pair)| visits[pair] += p * sketch.discount.powi(t as i32));
        }
        let occupancy = evaluate::occupancy(&mdp, &plan.policy).unwrap();
        prop_assert!(occupancy.of_pairs().iter().zip(&visits).all(|(x, y)| (x - y).abs() < 1e-12));
        let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
        for j in 0..mu.len() {
            let value = |shift: f64| {
                let mut weights = sketch.weights.clone();
                weights[j] += shift;
                planner.plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap().value
            };
            let slope = (value(1e-4) - value(-1e-4)) / 2e-4;
            prop_assert!((slope - mu[j]).abs() < 1e-6 * (1.0 + mu[j].abs()), "{} and {}", slope, mu[j]);
        }
    }

    /// As the temperature falls the values approach those of the best policy: V* ≤ V_τ ≤ V* + τ log |A| / (1 − γ).
    #[test]
    fn cold_plans_are_hard_plans(sketch in sketches(6, 3)) {
        prop_assume!(sketch.discount <= 0.99);
        let model = sketch.model();
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&sketch.weights).unwrap();
        let hard = Planner::default().plan(&mdp, &reward).unwrap();
        for temperature in [1e-2, 1e-5, 1e-9] {
            let plan = SoftPlanner::at(temperature).plan(&mdp, &reward).unwrap();
            let most = temperature * 3.0_f64.ln() / (1.0 - sketch.discount);
            for (soft, best) in plan.values.iter().zip(&hard.values) {
                prop_assert!(*soft >= best - 1e-9 && *soft <= best + most + 1e-9, "{} and {}", soft, best);
            }
        }
        let cold = SoftPlanner::at(1e-9).plan(&mdp, &reward).unwrap();
        let lost = hard.value - evaluate::value(&mdp, &reward, &cold.policy).unwrap();
        prop_assert!(lost <= 1e-6, "{}", lost);
    }
}

/// Rewards of ±10⁶ at discount 0.9999: nothing overflows, and Newton's steps are few where sweeps would be a million.
#[test]
fn large_rewards_and_long_horizons() {
    let n = 200;
    let pairs = std::sync::Arc::new(Pairs::all(n, 3).unwrap());
    let mut builder = coirl::model::KernelBuilder::new(pairs);
    for s in 0..n {
        for a in 0..3 {
            let to = [(s * 7 + a * 13 + 1) % n, (s + n - a) % n];
            builder.push_row([(to[0] as i64, 0.7), (to[1] as i64, 0.3)].into_iter()).unwrap();
        }
    }
    let kernel = builder.finish().unwrap();
    let values = (0..n).map(|s| if s % 3 == 0 { 1e6 } else { -1e6 + s as f64 }).collect();
    let features = Features::per_state(n, 1, values).unwrap();
    let criterion = Criterion::discounted(0.9999).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0 / n as f64; n], criterion).unwrap();
    let mdp = model.shared_mdp().unwrap();
    for scale in [1.0, 1e-6] {
        let reward = mdp.reward(&[scale]).unwrap();
        let plan = SoftPlanner::default().plan(&mdp, &reward).unwrap();
        assert_eq!(plan.certificate.status, Status::Converged);
        assert!(plan.certificate.sweeps < 2_000, "{:?}", plan.certificate);
        assert!(plan.values.iter().all(|v| v.is_finite()));
        // The fixed point, checked with an independent log-sum-exp.
        let q = evaluate::q_values(&mdp, &reward, &plan.values).unwrap();
        for s in 0..n {
            let own = &q[mdp.pairs().of_state(s)];
            let best = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let soft = best + own.iter().map(|x| (x - best).exp()).sum::<f64>().ln();
            assert!((soft - plan.values[s]).abs() <= 1e-12 * largest(&plan.values), "{soft} {}", plan.values[s]);
        }
        let best = Planner::default().plan(&mdp, &reward).unwrap().value;
        let most = 3.0_f64.ln() / 1e-4;
        assert!(plan.value >= best - 1e-9 * best.abs() && plan.value <= best + most + 1e-9 * best.abs());
    }
}

/// Where states never meet, sweeps shrink the error by the discount only; Newton's steps do not mind.
#[test]
fn newton_steps_are_few() {
    let transitions = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let kernel = Kernel::from_dense(2, 2, &transitions, None).unwrap();
    let features = Features::per_state(2, 1, vec![1.0, -1.0]).unwrap();
    let criterion = Criterion::discounted(0.9999).unwrap();
    let model = Cmdp::new(Dynamics::Shared(kernel), features, vec![0.5, 0.5], criterion).unwrap();
    let newton = soft(&model, SoftPlanner::default(), &[1.0]);
    let swept = soft(&model, SoftPlanner { method: SoftMethod::ValueIteration, ..SoftPlanner::default() }, &[1.0]);
    assert!(
        swept.certificate.sweeps > 1000 * newton.certificate.sweeps,
        "{:?}",
        (swept.certificate, newton.certificate)
    );
    let expected = [1.0, -1.0].map(|r: f64| (r + 2.0_f64.ln()) / 1e-4);
    assert_near(&newton.values, &expected, 1e-6);
    let limits = coirl::plan::Limits { max_sweeps: 3 };
    let cut =
        soft(&model, SoftPlanner { method: SoftMethod::ValueIteration, limits, ..SoftPlanner::default() }, &[1.0]);
    assert_eq!(cut.certificate.status, Status::SweepLimit);
    assert!((cut.values[0] - expected[0]).abs() <= cut.certificate.value_error_bound);
}

#[test]
fn what_is_refused() {
    let model = bandit(&[0.0, 1.0], Criterion::discounted(0.5).unwrap());
    let mdp = model.shared_mdp().unwrap();
    let reward = mdp.reward(&[1.0]).unwrap();
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(SoftPlanner::at(temperature).plan(&mdp, &reward).unwrap_err().to_string().contains("temperature"));
    }
    let average = model.clone().with_criterion(Criterion::Average).unwrap();
    let mdp = average.shared_mdp().unwrap();
    assert!(SoftPlanner::default().plan(&mdp, &reward).unwrap_err().to_string().contains("average-reward"));
}
