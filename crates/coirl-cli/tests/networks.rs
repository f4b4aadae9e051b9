//! Networks from context to reward on the command line: trained, resumed, examined and asked about a new context.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, json, text};

const SEEN: &str = "fit --model demos/model.npz --contexts demos/contexts.csv --trajectories demos/trajectories.csv";
const SCORED: &str = "--true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";

/// A driver's demonstrations under `demos`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.coirl("domain demonstrate driving --contexts 30 --test-contexts 10 --transitions 20 --out demos").success();
    folder
}

#[test]
fn a_network_is_trained_and_asked() {
    let folder = folder();
    let train = format!("{SEEN} {SCORED} --method network --set hidden.layers=24,24 --steps 150 --quiet");
    let page = text(folder.coirl(&format!("{train} --out net")).success());
    for words in ["plans for the reward of a network", "the likelihood of single actions", "planning"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!folder.path("net/mapping.csv").exists());
    let found = json(folder.coirl(&format!("{train} --json --out again")).success());
    assert_eq!((found["agent"].as_str(), found["method"].as_str()), (Some("neural"), Some("network")));
    assert!(found["value_ratio"].as_f64().unwrap() > 0.9, "{found}");
    assert_eq!(folder.read("net/fitted.safetensors"), folder.read("again/fitted.safetensors"));
    // A run in two parts leaves the same bytes.
    folder.coirl(&format!("{train} --stop-after 60 --out parts")).code(130);
    folder.coirl(&format!("{train} --resume --out parts")).success();
    assert_eq!(folder.read("net/fitted.safetensors"), folder.read("parts/fitted.safetensors"));
    let info = text(folder.coirl("info net/fitted.safetensors").success());
    assert!(info.contains("24") && info.contains("parameters"), "{info}");
    folder.coirl("predict net --context 0.2,0.3,0.5 --quiet").success();
}

/// Evolution strategies in place of the pull-back.
const ES: &str = "--set gradient.antithetic.deviation=1e-3 --set gradient.antithetic.pairs=5 --set gradient.antithetic.policies=fixed";

#[test]
fn losses_and_perturbations_train_too() {
    let folder = folder();
    for (name, set, objective) in [("paper", "--set preset=paper", "loss"), ("es", ES, "likelihood")] {
        let train =
            format!("{SEEN} --method network {set} --set hidden.layers=8n --steps 3 --json --quiet --out {name}");
        folder.coirl(&train).success();
        let info = json(folder.coirl(&format!("info {name}/fitted.safetensors --json")).success());
        let found = &info["settings"]["method"]["objective"];
        assert!(found == objective || found.get(objective).is_some(), "{name}: {found}");
    }
    // Without single actions there is only the loss.
    let shown =
        SEEN.replace("--trajectories demos/trajectories.csv", "--feature-expectations demos/feature-expectations.csv");
    let page = text(
        folder.coirl(&format!("{shown} --method network --set hidden.layers=8 --steps 3 --quiet --out mu")).success(),
    );
    assert!(page.contains("the loss of the paper"), "{page}");
}

#[test]
fn what_is_refused() {
    let folder = folder();
    for (typed, words) in [
        ("--method network --set hidden.layers=8,x", "hidden.layers"),
        ("--method network --set hidden.layers=0", "at least 1 unit"),
        ("--method network --set objective.loss.temperature=1", "objective"),
        ("--method network --set objective.likelihood.temperature=0", "expected a number above 0"),
        ("--method network --set step_size=0", "expected a number above 0"),
        ("--method network --set weight_decay=-1", "at least 0"),
        ("--method network --set step_size=constant", "step_size"),
        ("--method network --set step_size=1e30 --steps 5", "diverged"),
    ] {
        let run = folder.coirl(&format!("{SEEN} {typed} --quiet --out run")).code(1);
        let error = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(error.contains(words), "{typed}: {error}");
    }
}
