//! `coirl check` and `coirl explain`: what people and programs read, and what is refused.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use assert_cmd::assert::Assert;
use coirl::mapping::RewardMapping;
use coirl::model::ContextSpace;
use running::{Folder, as_network, json, numbers, text};
use serde_json::Value;

/// A small model with demonstrations under `demos` and a fit of them under `fit`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 25 --actions 3 --features 3 --kernels 3 --admissible 0.7 --seed 3";
    let expert = "--mapping truth.csv --contexts 24 --test-contexts 10 --transitions 12 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder
}

fn complaint(run: Assert) -> String {
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

const DATA: &str = "--contexts demos/contexts.csv";

fn fitted() -> Folder {
    let folder = folder();
    let shown = "--model demos/model.npz --feature-expectations demos/feature-expectations.csv";
    folder.coirl(&format!("fit --method bundle {shown} {DATA} --out fit --quiet")).success();
    folder
}

#[test]
fn what_ships_is_fine() {
    let page = text(Folder::new().coirl("check --shipped driving --quiet").success());
    assert_eq!(page.lines().filter(|line| line.trim_start().starts_with("fine")).count(), 6, "{page}");
    assert!(!page.contains("warning") && page.contains("least loss"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn files_may_be_given_without_flags() {
    let folder = folder();
    let shown = json(
        folder.coirl(&format!("check demos/model.npz demos/feature-expectations.csv {DATA} --json --quiet")).success(),
    );
    assert_eq!((shown["level"].as_str(), shown["can_be_fitted"].as_bool()), (Some("fine"), Some(true)), "{shown}");
    assert_eq!(shown["support"]["trajectories"], 0);
    let (reached, least) = (&shown["least_loss"]["reached"], &shown["least_loss"]["lower_bound"]);
    assert!(reached.as_f64().unwrap().abs() < 1e-2 && least.as_f64().unwrap() <= reached.as_f64().unwrap());
    let seen = format!("check demos/model.npz demos/trajectories.csv {DATA} --json --quiet --loss-steps 0");
    let seen = json(folder.coirl(&seen).success());
    assert_eq!((&seen["support"]["trajectories"], &seen["least_loss"]), (&24.into(), &Value::Null));
    let twice = format!("check demos/model.npz demos/trajectories.csv --model driving {DATA}");
    assert!(complaint(folder.coirl(&twice).failure().code(1)).contains("--model was given"));
}

#[test]
fn what_is_wrong_is_named_and_fails() {
    let folder = Folder::new();
    let contexts: String = (0..3).map(|i| format!("0.{},0.{},0.3\n", 2 + i, 5 - i)).collect();
    folder.write("contexts.csv", &contexts);
    folder.write("mu.csv", "7.5,0.1,0.2\n7.5,0.1,0.2\n99,0.1,0.2\n");
    let check = "check driving mu.csv --contexts contexts.csv --quiet --loss-steps 5";
    let page = text(folder.coirl(check).failure().code(1));
    assert!(page.contains("error") && page.contains("speed: demonstration 2: feature 0 has expectation 99"), "{page}");
    let found = json(folder.coirl(&format!("{check} --json")).failure());
    assert_eq!((found["level"].as_str(), found["can_be_fitted"].as_bool()), (Some("error"), Some(true)));
    // Admissible actions are the reader's business, and it names the line.
    folder.write("paths.csv", "demonstration,step,state,action\n0,0,0,7\n0,1,1,\n");
    folder.coirl("check driving paths.csv --contexts contexts.csv").failure().code(1);
}

#[test]
fn a_run_is_explained() {
    let folder = fitted();
    let page = text(folder.coirl("explain fit --bootstrap 4 --folds 3 --quiet").success());
    for words in ["determined?", "In the mean of the contexts", "rather than", "Does the context help?", "|W| = 1"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let command =
        "explain fit/fitted.safetensors --context 0.2,0.5,0.3 --state 4 --bootstrap 4 --folds 3 --json --quiet";
    let found = json(folder.coirl(command).success());
    let entries = found["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 9);
    for entry in entries {
        assert!(entry["determined"].is_boolean() && entry["bootstrap"]["lower"].is_f64(), "{entry}");
        assert_eq!(entry["determined"] == false, entry.get("reason").is_some(), "{entry}");
    }
    assert_eq!(found["determination"]["null_dimension"], 0);
    assert_eq!(found["choice"]["state"], 4);
    let sum = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        rows.map(|x| x.as_f64().unwrap()).sum::<f64>()
    };
    let weights: f64 = sum(&found["weights"]);
    assert!(weights.is_finite() && sum(&found["value"]).is_finite());
    assert!(["helps", "does_not_help", "not_decided"].contains(&found["context_helps"]["verdict"].as_str().unwrap()));
    // The same bytes on any number of threads.
    let again = folder.coirl(&format!("{command} --threads 1")).success();
    assert_eq!(json(again), found);
}

#[test]
fn contexts_may_be_named() {
    let folder = Folder::new();
    folder.coirl("fit --shipped driving --method adaptive --quiet --steps 20 --out fit").success();
    let quick = "explain fit --bootstrap 0 --folds 0 --entries 1 --json --quiet --context";
    let numbers = json(folder.coirl(&format!("{quick} 0.2,0.5,0.3")).success());
    let named =
        ["explain", "fit", "--bootstrap", "0", "--folds", "0", "--entries", "1", "--json", "--quiet", "--context"];
    let run = |context: &str| {
        let mut command = assert_cmd::Command::cargo_bin("coirl").unwrap();
        command.current_dir(folder.path(".")).args(named).arg(context).assert()
    };
    let found = json(run("collision priority=0.5,off-road priority=0.3,speed priority=0.2").success());
    assert_eq!(found, numbers);
    assert_eq!((&found["bootstrap"], &found["context_helps"]), (&Value::Null, &Value::Null));
    let refused = run("colision priority=0.5,off-road priority=0.3,speed priority=0.2").failure().code(1);
    assert!(complaint(refused).contains("the nearest is 'collision priority'"));
    run("0.2,0.5").failure().code(1);
    folder.coirl("explain fit --state 99999 --bootstrap 0 --folds 0 --quiet").failure().code(1);
    folder.coirl("explain nowhere").failure().code(1);
}

/// At a discount next to one, paths of twelve steps show next to nothing, and nobody says otherwise.
#[test]
fn paths_that_are_short_for_the_discount_leave_nothing_certain() {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 25 --actions 3 --features 3 --kernels 3 --discount 0.9999 --seed 3";
    let expert = "--mapping truth.csv --contexts 24 --test-contexts 10 --transitions 12 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    let check = format!("check demos/model.npz demos/trajectories.csv {DATA} --quiet --loss-steps 20");
    let page = text(folder.coirl(&check).success());
    assert!(page.contains("short for the discount") && !page.contains("(certain)"), "{page}");
    let found = json(folder.coirl(&format!("{check} --json")).success());
    assert_eq!(found["least_loss"]["certain"], false, "{found}");
    assert!(found["least_loss"]["unseen"].as_f64().unwrap() > 0.5, "{found}");
    let shown = "--model demos/model.npz --trajectories demos/trajectories.csv";
    folder.coirl(&format!("fit --method bundle --steps 20 {shown} {DATA} --out fit --quiet")).success();
    let page = text(folder.coirl("explain fit --bootstrap 0 --folds 0 --quiet").success());
    assert!(page.contains("paths too short") && !page.contains(" yes"), "{page}");
}

/// What a network says in a context is explained; what needs a matrix is left out, and said to be.
#[test]
fn a_network_is_explained_as_far_as_it_goes() {
    let folder = fitted();
    let network = as_network(&folder, "fit", 1);
    let info = json(folder.coirl("info fit/fitted.safetensors --json").success());
    assert_eq!((&info["agent"], info.get("mapping")), (&"neural".into(), None));
    assert_eq!(numbers(&info["network"]["layers"]), [3.0, 6.0, 4.0, 3.0]);
    // Two numbers more per normalised unit than there are inputs, one more for the others.
    assert_eq!(info["network"]["parameters"], 6 * 5 + 4 * 7 + 3 * 5);
    let page = text(folder.coirl("info fit/fitted.safetensors").success());
    for words in ["3 → 6 → 4 → 3", "73 parameters", "batch normalisation in hidden layer 1", "length 1"] {
        assert!(page.contains(words), "{words}: {page}");
    }

    let page = text(folder.coirl("explain fit --folds 2 --quiet").success());
    let words = ["no matrix W", "In the mean of the contexts", "all fields", "rather than", "Does the context help?"];
    for words in words {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("|W|") && !page.contains("determined?") && !page.contains("resampled"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let command = "explain fit --context 0.2,0.5,0.3 --state 4 --bootstrap 4 --folds 2 --json --quiet";
    let found = json(folder.coirl(command).success());
    let context = ContextSpace::Simplex { dimension: 3 }.context(vec![0.2, 0.5, 0.3]).unwrap();
    assert_eq!(found["weights"].as_array().unwrap().len(), 1);
    assert_eq!(numbers(&found["weights"][0]), network.weights(&context).unwrap());
    for left_out in ["determination", "bootstrap"] {
        assert!(found[left_out]["refused"].as_str().unwrap().contains("a network, not a matrix"), "{found}");
    }
    assert_eq!((found["entries"].as_array().unwrap().len(), &found["choice"]["state"]), (0, &4.into()));
    assert!(["helps", "does_not_help", "not_decided"].contains(&found["context_helps"]["verdict"].as_str().unwrap()));
    assert_eq!(found["network"]["unit_output"], true);
}
