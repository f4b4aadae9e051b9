//! What scripts rely on: the export and plan commands, their JSON and their numbers.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, json, numbers};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../../coirl/tests/data/golden.json")).unwrap()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let close = found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-9);
    assert!(close, "{found:?}, expected {expected:?}");
}

#[test]
fn an_exported_model_plans_the_reference_values() {
    let folder = Folder::new();
    folder.coirl("domain export driving --actions 3 --polarity code --out model.npz").success();
    folder.coirl("domain export driving --actions 3 --polarity paper --out paper.safetensors").success();
    for case in golden()["driving"].as_array().unwrap().iter().filter(|case| case.get("w").is_some()) {
        let model = if case["polarity"] == "code" { "model.npz" } else { "paper.safetensors" };
        let weights: Vec<String> = numbers(&case["w"]).iter().map(f64::to_string).collect();
        let plan = json(folder.coirl(&format!("plan {model} --weights {} --json", weights.join(","))).success());
        assert_close(&[plan["value"].as_f64().unwrap()], &[case["V0"].as_f64().unwrap()]);
        assert_close(&numbers(&plan["feature_expectations"]), &numbers(&case["mu"]));
        let policy = numbers(&plan["policy"]);
        assert_eq!(policy[0], case["first_action"].as_f64().unwrap());
        let counts: Vec<f64> = [0.0, 1.0, 2.0].map(|a| policy.iter().filter(|&&x| x == a).count() as f64).into();
        assert_eq!(counts, numbers(&case["action_counts"]));
        let certificate = &plan["certificate"];
        assert_eq!(certificate["status"], "exact");
        assert!(certificate["suboptimality_bound"].as_f64().unwrap() < 1e-9);
        for key in ["residual", "value_error_bound", "sweeps"] {
            assert!(certificate[key].is_number(), "{key}");
        }
        assert!(plan.get("values").is_none() && plan.get("index").is_none());
    }
}

#[test]
fn the_documented_example() {
    let folder = Folder::new();
    folder.coirl("domain export driving --actions 3 --polarity code --out model.npz").success();
    let plan = json(folder.coirl("plan model.npz --weights 0.1,-1,-0.5 --json").success());
    assert_close(&[plan["value"].as_f64().unwrap()], &[0.225]);
    assert_close(&numbers(&plan["feature_expectations"]), &[9.75, 0.5, 0.5]);
    assert_eq!(plan["policy"][0], 2);
}

#[test]
fn a_domain_name_stands_for_its_model() {
    let folder = Folder::new();
    folder.coirl("domain export driving --out model.npz").success();
    let of_file = folder.coirl("plan model.npz --weights 0.1,-1,-0.5 --json").success();
    let of_name = folder.coirl("plan driving --weights 0.1,-1,-0.5 --json").success();
    assert_eq!(of_file.get_output().stdout, of_name.get_output().stdout);
}

#[test]
fn a_finite_horizon_gives_a_policy_per_decision() {
    let folder = Folder::new();
    let plan = json(folder.coirl("plan grid --weights 1,0,0,0,0,0,0,0,0,0,0,0 --horizon 3 --values --json").success());
    assert_eq!(plan["policy"].as_array().unwrap().len(), 3);
    assert_eq!(plan["policy"][0].as_array().unwrap().len(), 12);
    assert_eq!(plan["values"].as_array().unwrap().len(), 12);
}

#[test]
fn discount_start_and_average_replace_what_the_model_says() {
    let folder = Folder::new();
    let value = |options: &str| {
        let command = format!("plan grid --weights 1,0,0,0,0,0,0,0,0,0,0,0 --json {options}");
        json(folder.coirl(&command).success())["value"].as_f64().unwrap()
    };
    // From cell 0: collect 1 in cell 0, leave and come back every second step.
    assert_close(&[value("--start 0")], &[1.0 / (1.0 - 0.81)]);
    assert_close(&[value("--start 0 --discount 0.5")], &[1.0 / (1.0 - 0.25)]);
    assert_close(&[value("--average")], &[0.5]);
}

#[test]
fn dynamics_that_depend_on_the_context_plan_for_one() {
    let folder = Folder::new();
    folder.coirl("domain export garnet --kernels 3 --seed 4 --out mixed.npz").success();
    let plan = json(folder.coirl("plan mixed.npz --weights 1,0,0,0,-1 --context 0.2,0.3,0.5 --json").success());
    folder.write("contexts.csv", "0.2,0.3,0.5\n1,0,0\n");
    let plans = json(folder.coirl("plan mixed.npz --weights 1,0,0,0,-1 --contexts contexts.csv --json").success());
    assert_eq!(plans["plans"][0]["value"], plan["value"]);
    assert_ne!(plans["plans"][1]["value"], plan["value"]);
}

#[test]
fn what_did_not_converge_is_printed_with_its_own_exit_code() {
    let folder = Folder::new();
    let run = folder.coirl("plan driving --weights 0.1,-1,-0.5 --method value-iteration --max-sweeps 2 --json").code(3);
    assert_eq!(json(run)["certificate"]["status"], "sweep_limit");
}

#[test]
fn info_says_what_show_says() {
    let folder = Folder::new();
    folder.coirl("domain export driving --out model.npz").success();
    let info = json(folder.coirl("info model.npz --json").success());
    let show = json(folder.coirl("domain show driving --json").success());
    for (key, value) in show.as_object().unwrap() {
        assert_eq!(&info[key], value, "{key}");
    }
    assert_eq!(info["states"], 1531);
    assert_eq!(info["reachable_states"], 766);
    assert!(info["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn quiet_says_nothing_and_notes_go_to_standard_error() {
    let folder = Folder::new();
    let quiet = folder.coirl("--quiet domain export grid --out grid.npz").success();
    assert!(quiet.get_output().stdout.is_empty() && quiet.get_output().stderr.is_empty());
    let told = folder.coirl("domain export grid --out grid.npz").success();
    assert!(told.get_output().stdout.is_empty() && !told.get_output().stderr.is_empty());
}

#[test]
fn every_shell_has_completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.coirl(&format!("completions {shell}")).success();
        assert!(String::from_utf8_lossy(&script.get_output().stdout).contains("coirl"), "{shell}");
    }
}
