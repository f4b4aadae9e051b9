//! The planners reproduce exact reference values of the driving simulator and the grid world, computed independently.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::domains::{Driving, Grid, Polarity};
use coirl::model::Cmdp;
use coirl::plan::{Method, Planner, evaluate};
use serde_json::Value;

const METHODS: [Method; 4] = [
    Method::Automatic,
    Method::ValueIteration,
    Method::ModifiedPolicyIteration { sweeps: 20 },
    Method::PolicyIteration,
];

fn golden() -> Value {
    serde_json::from_str(include_str!("data/golden.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Policy actions, feature expectations and value for a weight vector.
fn solve(model: &Cmdp, method: Method, weights: &[f64]) -> (Vec<u8>, Vec<f64>, f64) {
    let mdp = model.shared_mdp().unwrap();
    let plan = Planner::exact(method).plan(&mdp, &mdp.reward(weights).unwrap()).unwrap();
    let mu = evaluate::feature_expectations(&mdp, &plan.policy).unwrap();
    let actions = plan.policy.actions().unwrap().iter().map(|a| a.0 as u8).collect();
    (actions, mu, plan.value)
}

fn assert_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-9, "{what}: {found:?}, expected {expected:?}");
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn driving_matches_the_reference() {
    let golden = golden();
    for case in golden["driving"].as_array().unwrap().iter().filter(|case| case.get("w").is_some()) {
        let polarity = if case["polarity"] == "code" { Polarity::Code } else { Polarity::Paper };
        let model = Driving { polarity, ..Driving::default() }.build().unwrap();
        for method in METHODS {
            let what = format!("{method:?} {} {}", case["polarity"], case["w"]);
            let (actions, mu, value) = solve(&model, method, &numbers(&case["w"]));
            assert_close(&what, &mu, &numbers(&case["mu"]));
            assert_close(&what, &[value], &[case["V0"].as_f64().unwrap()]);
            assert_eq!(u64::from(actions[0]), case["first_action"].as_u64().unwrap(), "{what}");
            let counts: Vec<f64> = (0..3).map(|a| actions.iter().filter(|&&x| x == a).count() as f64).collect();
            assert_eq!(counts, numbers(&case["action_counts"]), "{what}");
            assert_eq!(u64::from(crc32(&actions)), case["policy_crc32"].as_u64().unwrap(), "{what}");
        }
    }
}

#[test]
fn grid_matches_the_reference() {
    let golden = golden();
    let model = Grid::default().build().unwrap();
    for case in golden["grid"].as_array().unwrap() {
        for method in METHODS {
            let (actions, mu, _) = solve(&model, method, &numbers(&case["w"]));
            assert_close(&format!("{method:?}"), &mu, &numbers(&case["mu_uniform_start"]));
            let expected: Vec<u8> = numbers(&case["policy"]).iter().map(|&a| a as u8).collect();
            assert_eq!(actions, expected);
        }
    }
}
