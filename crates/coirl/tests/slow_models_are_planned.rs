//! Models that mix slowly: chains, grids, nearly decomposable and nearly periodic models, with discounts up to 1 − 1e-6. Plans are compared with
//! the truth of small models, certificates with Bellman's equation, and large ones between threads.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod random_models;

use coirl::model::{Cmdp, Criterion, Dynamics, Features, Kernel};
use coirl::plan::{ManyOptions, Method, Plan, Planner, Status, Way};
use proptest::prelude::*;
use rand::SeedableRng as _;
use random_models::dense_values;
use std::ops::ControlFlow;

const DISCOUNTS: [f64; 4] = [0.99, 0.999, 0.9999, 1.0 - 1e-6];

/// A model of two actions: where each leads from a state, and with which probabilities. One feature for each of three thirds of the states and
/// one for the action.
fn model(n: usize, discount: f64, row: impl Fn(usize, usize) -> Vec<(usize, f64)>) -> Cmdp {
    let (mut start, mut next, mut p) = (vec![0], Vec::new(), Vec::new());
    for s in 0..n {
        for a in 0..2 {
            for (to, probability) in row(s, a) {
                next.push(to as i64);
                p.push(probability);
            }
            start.push(next.len());
        }
    }
    let kernel = Kernel::from_csr(n, 2, &start, &next, &p, None).unwrap();
    let features = (0..n).flat_map(|s| [0, 1, 2].map(|third| f64::from(u8::from(s * 3 / n == third)))).collect();
    let features = Features::per_state(n, 3, features).unwrap();
    Cmdp::new(Dynamics::Shared(kernel), features, vec![1.0 / n as f64; n], Criterion::discounted(discount).unwrap())
        .unwrap()
}

/// The kinds of slow models, of `n` states.
fn kind(kind: usize, n: usize, slip: f64, discount: f64) -> Cmdp {
    match kind {
        // A chain: one step forth or back, or none.
        0 => model(n, discount, |s, a| {
            let (left, right) = (s.saturating_sub(1), (s + 1).min(n - 1));
            let (wanted, other) = if a == 0 { (left, right) } else { (right, left) };
            vec![(wanted, 0.6 - slip), (s, 0.3), (other, 0.1 + slip)]
        }),
        // A grid, along rows or columns.
        1 => {
            let side = (n as f64).sqrt() as usize;
            model(side * side, discount, move |s, a| {
                let (i, j) = (s / side, s % side);
                let down = (i + 1).min(side - 1) * side + j;
                let along = i * side + (j + 1) % side;
                let up = i.saturating_sub(1) * side + j;
                let (wanted, other) = if a == 0 { (down, along) } else { (along, up) };
                vec![(wanted, 1.0 - slip), (other, slip)]
            })
        }
        // Nearly decomposable: parts that are hardly ever left.
        2 => model(n, discount, |s, a| {
            let size = n.div_ceil(3);
            let part = s / size * size;
            let width = size.min(n - part);
            let inside = |by: usize| part + (s - part + by) % width;
            vec![(inside(1), 0.7), (inside(2 + a), 0.3 - slip * 1e-3), ((s + size) % n, slip * 1e-3)]
        }),
        // Nearly periodic: a cycle that is rarely left out of step.
        _ => model(n, discount, |s, a| vec![((s + 1) % n, 1.0 - slip * 1e-2), ((s + 1 + a) % n, slip * 1e-2)]),
    }
}

/// By how much Bellman's equation is missed by values, in plain arithmetic.
fn residual(model: &Cmdp, weights: &[f64], values: &[f64]) -> f64 {
    let mdp = model.shared_mdp().unwrap();
    let (kernel, gamma) = (mdp.kernel(), mdp.criterion().discount());
    let third = |s: usize| weights[s * 3 / values.len()];
    (0..values.len())
        .map(|s| {
            let pairs = mdp.pairs().of_state(s);
            let best = pairs.map(|pair| kernel.expect(pair, values)).fold(f64::NEG_INFINITY, f64::max);
            (third(s) + gamma * best - values[s]).abs()
        })
        .fold(0.0, f64::max)
}

fn size(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, v| most.max(v.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn values_are_those_of_the_policy_and_no_policy_is_better(
        which in 0..4_usize,
        n in 4..60_usize,
        slip in 0.0..0.3_f64,
        discount in 0..4_usize,
        weights in prop::collection::vec(-1.0..1.0_f64, 3),
    ) {
        let discount = DISCOUNTS[discount];
        let model = kind(which, n, slip, discount);
        let mdp = model.shared_mdp().unwrap();
        let reward = mdp.reward(&weights).unwrap();
        for method in [Method::Automatic, Method::PolicyIteration] {
            let plan = Planner::exact(method).plan(&mdp, &reward).unwrap();
            prop_assert_eq!(plan.certificate.status, Status::Exact);
            // The truth, by elimination in a dense matrix.
            let own = dense_values(&mdp, &reward, plan.policy.actions().unwrap());
            let rounding = 1e-13 * n as f64 * size(&own).max(1.0) / (1.0 - discount).min(1e-3);
            for (value, own) in plan.values.iter().zip(&own) {
                prop_assert!((value - own).abs() <= rounding + plan.certificate.value_error_bound, "{} for {}", value, own);
            }
            // Actions within a billionth of the largest value count as equal.
            let missed = residual(&model, &weights, &own);
            prop_assert!(missed <= 3e-9 * size(&own) + 1e-12, "Bellman's equation is missed by {}", missed);
        }
        let near = Planner::to_tolerance(Method::Automatic, 1e-8).plan(&mdp, &reward).unwrap();
        let best = Planner::default().plan(&mdp, &reward).unwrap();
        let allowed = near.certificate.value_error_bound + best.certificate.value_error_bound;
        for (near, best) in near.values.iter().zip(&best.values) {
            prop_assert!((near - best).abs() <= allowed, "{} and {} differ by more than {}", near, best, allowed);
        }
    }

    #[test]
    fn many_rewards_are_planned_for_as_each_alone(
        which in 0..4_usize,
        n in 4..200_usize,
        discount in 0..4_usize,
        rows in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 3), 4..20),
    ) {
        let model = kind(which, n, 0.1, DISCOUNTS[discount]);
        let mdp = model.shared_mdp().unwrap();
        let mut many = Vec::new();
        let options = ManyOptions { feature_expectations: true, values: true };
        Planner::default().plan_many(&mdp, &rows.concat(), options, |plan| { many.push(plan); ControlFlow::Continue(()) }).unwrap();
        for (plan, w) in many.iter().zip(&rows) {
            let alone = Planner::default().plan(&mdp, &mdp.reward(w).unwrap()).unwrap();
            let allowed = plan.certificate.value_error_bound + alone.certificate.value_error_bound;
            let off = plan.values.as_ref().unwrap().iter().zip(&alone.values).fold(0.0, |off: f64, (a, b)| off.max((a - b).abs()));
            prop_assert!(off <= allowed, "off by {}, allowed {}", off, allowed);
            let mu = plan.feature_expectations.as_ref().unwrap();
            let value: f64 = mu.iter().zip(w).map(|(m, w)| m * w).sum();
            // A residual within rounding leaves 1 / (1 − γ) times as much in the sums.
            let rounding = 4e-15 * size(mu).max(1.0) * 3.0 / (1.0 - DISCOUNTS[discount]);
            prop_assert!((value - plan.value).abs() <= rounding + plan.certificate.value_error_bound, "w·μ = {} but ξ·V = {}", value, plan.value);
        }
    }
}

/// A grid of `side` × `side` cells with some slipping, and a goal in the last cell.
fn large(side: usize, discount: f64) -> (Cmdp, Vec<f64>) {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let open: Vec<bool> = (0..side * side).map(|s| s + 1 == side * side || rng.random::<f64>() < 0.8).collect();
    let goal = side * side - 1;
    let row = move |s: usize, a: usize| {
        let (i, j) = (s / side, s % side);
        let to = |i: usize, j: usize| if open[i * side + j] { i * side + j } else { s };
        let (down, right) = (to((i + 1).min(side - 1), j), to(i, (j + 1).min(side - 1)));
        let (up, left) = (to(i.saturating_sub(1), j), to(i, j.saturating_sub(1)));
        let (ahead, aside, back) = if a == 0 { (down, right, up) } else { (right, down, left) };
        if s == goal { vec![(goal, 1.0)] } else { vec![(ahead, 0.8), (aside, 0.1), (back, 0.1)] }
    };
    (model(side * side, discount, row), vec![-1.0, -0.9, -0.8])
}

fn on_threads(threads: usize, model: &Cmdp, weights: &[f64], planner: Planner) -> Plan {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mdp = model.shared_mdp().unwrap();
    pool.install(|| planner.plan(&mdp, &mdp.reward(weights).unwrap())).unwrap()
}

#[test]
fn one_large_model_has_the_same_bytes_on_any_number_of_threads() {
    for discount in [0.99, 0.9999] {
        let (model, weights) = large(200, discount);
        for planner in [Planner::default(), Planner::to_tolerance(Method::Automatic, 1e-6)] {
            let one = on_threads(1, &model, &weights, planner);
            let bits = |plan: &Plan| plan.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            for threads in [2, 5] {
                let more = on_threads(threads, &model, &weights, planner);
                assert_eq!(bits(&one), bits(&more), "{threads} threads, discount {discount}");
                assert_eq!(one.policy, more.policy);
            }
            assert!(residual(&model, &weights, &one.values) <= 1e-6 + 3e-9 * size(&one.values));
        }
    }
}

#[test]
fn what_is_never_returned_to_takes_one_pass() {
    // Stages in an order that the numbers of the states do not show.
    let n = 400;
    let stage = |s: usize| (s * 7) % n;
    let at = |stage: usize| (stage * 343) % n;
    for discount in DISCOUNTS {
        let rows = |s: usize, a: usize| {
            let later = |by: usize| at((stage(s) + by).min(n - 1));
            if stage(s) == n - 1 { vec![(s, 1.0)] } else { vec![(s, 0.5), (later(1 + a), 0.3), (later(3), 0.2)] }
        };
        assert!((0..n).all(|s| at(stage(s)) == s));
        let shuffled = model(n, discount, rows);
        let ordered = model(n, discount, |s, a| {
            if s == 0 { vec![(0, 1.0)] } else { vec![(s, 0.5), (s - 1, 0.3), (s.saturating_sub(2 + a), 0.2)] }
        });
        let weights = [0.3, -1.0, 0.9];
        for (model, pass) in [(&ordered, true), (&shuffled, false)] {
            let mdp = model.shared_mdp().unwrap();
            let plan = Planner::default().plan(&mdp, &mdp.reward(&weights).unwrap()).unwrap();
            assert!(plan.way == Way::OnePass || !pass, "{:?}", plan.way);
            let missed = residual(model, &weights, &plan.values);
            assert!(missed <= 3e-9 * size(&plan.values), "{missed}");
        }
    }
}

#[test]
fn a_slow_model_says_so() {
    let (model, weights) = large(120, 0.9999);
    let plan = on_threads(1, &model, &weights, Planner::default());
    assert!(matches!(plan.way, Way::AgainstTheFlow | Way::Policies), "{:?}", plan.way);
    let quick = on_threads(1, &coirl::domains::Garnet::default().build().unwrap(), &[1.0; 5], Planner::default());
    assert_eq!(quick.way, Way::Backups);
}
