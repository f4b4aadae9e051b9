//! `coirl fit` with methods that are not contextual inverse reinforcement learning: the same files, the same scores.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use coirl::agent::Agent;
use running::{Folder, json, text};

const DATA: &str = "fit --model demos/model.npz --contexts demos/contexts.csv \
                    --feature-expectations demos/feature-expectations.csv \
                    --true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";

/// A small model with its demonstrations under `demos`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 25 --actions 3 --features 3 --kernels 3 --seed 3";
    let expert = "--mapping truth.csv --contexts 12 --test-contexts 10 --transitions 12 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder
}

#[test]
fn apprentices_return_mixed_policies_and_the_value_of_their_game() {
    let folder = folder();
    for method in ["projection", "max-margin", "frank-wolfe", "mwal --set step_multiplier=20 --steps 100"] {
        let found = json(folder.coirl(&format!("{DATA} --json --method {method}")).success());
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{method}, {key}: {}", found[key]));
        assert_eq!(found["agent"], "mixed", "{method}");
        assert!(found.get("mapping").is_none() && found["loss"].is_null(), "{found}");
        let game = &found["game_value"];
        let (lower, upper) = (game["lower"].as_f64().unwrap(), game["upper"].as_f64().unwrap());
        assert!(lower <= upper);
        let rewards = if method.starts_with("mwal") { "unit_cross_polytope" } else { "unit_ball" };
        assert_eq!(game["rewards"], rewards, "{method}");
        assert!((number("gap") - (upper - lower)).abs() < 1e-9, "{method}: {game}");
        assert!(number("distance") < 0.2 && number("value_ratio") > 0.9, "{found}");
        assert_eq!(found["bound"].is_f64(), method.starts_with("mwal"), "{method}");
        // No mapping to be written, not even one that an earlier run left behind.
        assert!(!folder.path("coirl-fit/mapping.csv").exists());
        let fitted = coirl::artifact::read_fitted(&folder.path("coirl-fit/fitted.safetensors")).unwrap();
        assert!(matches!(&fitted.agent, Agent::Mixed(mixture) if mixture.shares().iter().all(|share| *share > 0.0)));
        let history = String::from_utf8(folder.read("coirl-fit/history.jsonl")).unwrap();
        let last: serde_json::Value = serde_json::from_str(history.lines().last().unwrap()).unwrap();
        assert_eq!(last["distance"], found["distance"]);
        assert!(String::from_utf8(folder.read("coirl-fit/fit.svg")).unwrap().contains("distance from"));
    }
    // What an earlier run left behind goes.
    folder.coirl(&format!("{DATA} --quiet --out other")).success();
    assert!(folder.path("other/mapping.csv").exists());
    folder.coirl(&format!("{DATA} --quiet --out other --method projection --steps 5")).success();
    assert!(!folder.path("other/mapping.csv").exists());
}

#[test]
fn what_people_read_of_a_mixed_policy() {
    let folder = folder();
    let table = text(folder.coirl(&format!("{DATA} --quiet --method projection --steps 7")).success());
    for words in [
        "one of 7 rewards, drawn per episode",
        "distance",
        "game value",
        "to the value of the game",
        "rewards of length",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let info = text(folder.coirl("info coirl-fit/fitted.safetensors").success());
    assert!(info.contains("mixed: one of 7") && info.contains("between -"), "{info}");
}

#[test]
fn the_large_mdp_is_another_way_to_the_same_numbers() {
    let folder = folder();
    let run = |options: &str| json(folder.coirl(&format!("{DATA} --json --steps 10 {options}")).success());
    let (apart, together) = (run("--method projection"), run("--method projection --set states=joint"));
    let distance = |found: &serde_json::Value| found["distance"].as_f64().unwrap();
    assert!((distance(&apart) - distance(&together)).abs() < 1e-9);
    assert_eq!(apart["planner_calls"], together["planner_calls"]);
    // Rewards without negative weights are fewer: an agent can be surer.
    let (signed, positive) = (run("--method mwal"), run("--method mwal --set signed=false"));
    let game = |found: &serde_json::Value, key: &str| found["game_value"][key].as_f64().unwrap();
    assert!(game(&signed, "lower") <= game(&positive, "upper"), "{signed}, {positive}");
    assert!(game(&signed, "upper") <= 1e-9 && game(&positive, "upper") > 1e-3, "{signed}, {positive}");
    assert_ne!(signed["game_value"]["rewards"], positive["game_value"]["rewards"]);
}

#[test]
fn options_of_other_methods_are_refused() {
    let folder = folder();
    for (options, reason) in [
        ("--method adaptive --set states=joint", "unknown key 'states'"),
        ("--method projection --set signed=false", "did you mean 'states'?"),
        ("--method frank-wolfe --set batch=3", "frank-wolfe: unknown key 'batch'"),
        ("--method mwal --set step_size=0.1", "did you mean 'states'?"),
        ("--method mwal --initial truth.csv", "equal weights"),
        ("--method projection --stop-loss 0.1", "no mapping"),
    ] {
        let run = folder.coirl(&format!("{DATA} {options}")).failure();
        let message = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(message.contains(reason), "{options}: {message}");
    }
    assert!(!folder.path("coirl-fit").exists());
}

/// An estimator of feature expectations is refused by methods that use none, with those that do.
#[test]
fn an_estimator_that_is_not_used() {
    let folder = folder();
    let seen =
        "fit --model demos/model.npz --contexts demos/contexts.csv --trajectories demos/trajectories.csv --quiet";
    for method in ["bc", "bc-network", "majority", "nearest", "uniform", "network --set objective=likelihood"] {
        let run =
            folder.coirl(&format!("{seen} --method {method} --estimator truncated --out refused")).failure().code(1);
        let error = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        let words = [method.split(' ').next().unwrap(), "--estimator", "bundle, psgd"];
        assert!(words.iter().all(|word| error.contains(word)) && !error.contains(", bc"), "{error}");
    }
    folder.coirl(&format!("{seen} --method bc --out bc")).success();
    folder.coirl(&format!("{seen} --method projection --estimator truncated --out projection")).success();
}

/// Columns without names are numbered, and tables from before that have no header are read as they were.
#[test]
fn tables_of_models_without_names_have_a_header() {
    let folder = folder();
    folder.coirl(&format!("{DATA} --quiet --method bundle --steps 5")).success();
    let lines = |file: &str| -> Vec<String> {
        String::from_utf8(folder.read(file)).unwrap().lines().map(str::to_owned).collect()
    };
    let learned = lines("coirl-fit/mapping.csv");
    assert_eq!((learned[0].as_str(), learned.len()), ("feature_0,feature_1,feature_2", 4));
    assert_eq!(lines("demos/contexts.csv")[0], "context_0,context_1,context_2");
    assert_eq!(lines("demos/true-mapping.csv")[0], "feature_0,feature_1,feature_2");
    folder.write("bare.csv", learned[1..].join("\n"));
    let plan = |file: &str| {
        text(folder.coirl(&format!("plan demos/model.npz --context 0.2,0.5,0.3 --json --mapping {file}")).success())
    };
    assert_eq!(plan("bare.csv"), plan("coirl-fit/mapping.csv"));
}

/// Who asks a simulated expert needs no table of what it showed.
#[test]
fn a_simulated_expert_needs_no_table() {
    let folder = folder();
    let data =
        "fit --model demos/model.npz --contexts demos/contexts.csv --true-mapping demos/true-mapping.csv --quiet";
    let shown = "--feature-expectations demos/feature-expectations.csv";
    for method in ["cutting-plane", "ellipsoid --steps 12", "replayed-psgd --steps 2"] {
        folder.coirl(&format!("{data} {shown} --method {method} --out with")).success();
        folder.coirl(&format!("{data} --method {method} --out without")).success();
        assert_eq!(folder.read("with/mapping.csv"), folder.read("without/mapping.csv"), "{method}");
        folder.coirl("explain without --bootstrap 0 --folds 0 --entries 1 --quiet").success();
    }
    for refused in
        [format!("{data} --method bundle"), data.replace("--true-mapping demos/true-mapping.csv", "--method ellipsoid")]
    {
        let run = folder.coirl(&format!("{refused} --out refused")).failure().code(1);
        let error = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(error.contains("--feature-expectations or --trajectories is missing"), "{error}");
    }
}

/// Settings that a method does not have are refused with those that it has, and names of old with what they are now.
#[test]
fn settings_of_other_methods() {
    let folder = Folder::new();
    for (typed, words) in [
        ("--method mwal --tolerance 0.1", ["--tolerance", "ellipsoid"]),
        ("--set horizon=3", ["'horizon'", "mapping, penalty"]),
        ("--method psgd --set states=joint", ["'states'", "step_size"]),
        ("--method psgd --set geometry=bal", ["'bal'", "did you mean 'ball'?"]),
        ("--method psgd --set geometry", ["geometry", "key=value"]),
        ("--method uniform --set penalty=2", ["'penalty'", "uniform"]),
        ("--method psgd --set preset=paper", ["preset", "psgd"]),
        ("--method psgd-sphere", ["psgd-sphere", "--method psgd --set geometry=sphere"]),
        ("--method network-paper", ["network-paper", "--set preset=paper"]),
    ] {
        let run = folder.coirl(&format!("fit {typed} --out run")).failure().code(1);
        let error = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(words.iter().all(|word| error.contains(word)), "{typed}: {error}");
    }
    assert!(!folder.path("run").exists());
}

#[test]
fn the_settings_of_a_method_are_listed() {
    let folder = Folder::new();
    let listed = text(folder.coirl("fit --method psgd --settings").success());
    for words in ["geometry", "ball", "step_size", "theory", "average", "after_update", "batch", "in_order"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    assert!(!folder.path("coirl-fit").exists());
}
