//! `coirl fit` with the baselines: maximum entropy, cloning and what takes no learning.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, json, numbers, text};

const OWN: &str = "fit --model demos/model.npz --contexts demos/contexts.csv";
const SHOWN: &str = "--feature-expectations demos/feature-expectations.csv";
const SEEN: &str = "--trajectories demos/trajectories.csv";
const SCORED: &str = "--true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";
const METHODS: [&str; 7] =
    ["max-entropy", "max-entropy-per-context", "bc", "bc-network", "majority", "nearest", "uniform"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "5,-2,1\n-3,6,4\n2,1,-7\n");
    let domain = "garnet --states 20 --actions 3 --features 3 --kernels 3 --admissible 0.8 --seed 3";
    let expert = "--mapping truth.csv --contexts 30 --test-contexts 10 --transitions 20 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder
}

#[test]
fn every_baseline_learns_is_scored_and_read_again() {
    let folder = folder();
    let mut relative = Vec::new();
    for method in METHODS {
        let found = json(folder.coirl(&format!("{OWN} {SEEN} {SCORED} --method {method} --json")).success());
        assert_eq!(found["method"], method);
        relative.push(found["relative_value"].as_f64().unwrap());
        assert!(found["accuracy"].is_f64() && found["training_accuracy"].is_f64(), "{method}: {found}");
        let has_mapping = method == "max-entropy";
        assert_eq!(found.get("mapping").is_some(), has_mapping, "{method}");
        assert_eq!(folder.path("coirl-fit/mapping.csv").exists(), has_mapping, "{method}");
        assert!(folder.path("coirl-fit/fit.svg").exists(), "{method}");
        let info = json(folder.coirl("info coirl-fit/fitted.safetensors --json").success());
        assert_eq!(info["agent"], found["agent"]);
        let likely = ["max-entropy", "max-entropy-per-context", "bc", "bc-network"].contains(&method);
        assert_eq!(found["log_likelihood"].as_f64().is_some_and(|x| x < 0.0), likely, "{method}");
    }
    // Acting at random is what values are relative to; whoever looks at the demonstrations does better.
    assert!(relative[6].abs() < 1e-9 && relative[..6].iter().all(|value| *value > 0.2), "{relative:?}");
}

#[test]
fn tables_for_people() {
    let folder = folder();
    for method in METHODS {
        let table = text(folder.coirl(&format!("{OWN} {SEEN} {SCORED} --method {method} --quiet")).success());
        assert!(table.contains("value relative to the expert") && table.contains("demonstrated actions"), "{table}");
        assert_eq!(table.contains("held-out loss"), method == "max-entropy", "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        // Without a truth and without a loss there may be nothing to draw.
        let table = text(folder.coirl(&format!("{OWN} {SEEN} --method {method} --quiet --out plain")).success());
        assert!(!table.contains("NaN"), "{table}");
        let drawn = !["majority", "nearest", "uniform"].contains(&method);
        assert_eq!(folder.path("plain/fit.svg").exists(), drawn, "{method}");
    }
}

#[test]
fn a_soft_mapping_serves_wherever_mappings_do() {
    let folder = folder();
    folder.coirl(&format!("{OWN} {SHOWN} --method max-entropy --set temperature=0.5 --set penalty=0.01")).success();
    let plan = "plan demos/model.npz --context 0.2,0.3,0.5 --json --mapping";
    let of_csv = folder.coirl(&format!("{plan} coirl-fit/mapping.csv")).success();
    let of_artifact = folder.coirl(&format!("{plan} coirl-fit/fitted.safetensors")).success();
    assert_eq!(of_csv.get_output().stdout, of_artifact.get_output().stdout);
    folder.coirl(&format!("{OWN} {SEEN} --method bc --out cloned")).success();
    let refused = folder.coirl(&format!("{plan} cloned/fitted.safetensors")).code(1);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.contains("cloned") && told.contains("no mapping"), "{told}");
}

#[test]
fn options_of_the_baselines() {
    let folder = folder();
    let run = |options: &str| json(folder.coirl(&format!("{OWN} {SEEN} {SCORED} --json --method {options}")).success());
    let size = |found: &serde_json::Value| {
        let rows = found["mapping"].as_array().unwrap().iter().flat_map(numbers);
        rows.map(|w| w * w).sum::<f64>().sqrt()
    };
    assert!(size(&run("max-entropy --set penalty=1")) < size(&run("max-entropy --set penalty=0.01")));
    assert_eq!(run("max-entropy --set greedy=true")["agent"], "planned");
    assert_eq!(run("max-entropy")["agent"], "soft");
    let (drawn, taken) = (run("bc"), run("bc --set most_probable=true"));
    assert!(taken["accuracy"].as_f64().unwrap() > drawn["accuracy"].as_f64().unwrap());
    let first = folder.read("coirl-fit/fitted.safetensors");
    run("bc --set most_probable=true --threads 1");
    assert!(first == folder.read("coirl-fit/fitted.safetensors"));
}

#[test]
fn a_network_is_trained_as_asked() {
    let folder = folder();
    let run = |options: &str| {
        json(folder.coirl(&format!("{OWN} {SEEN} {SCORED} --json --method bc-network {options}")).success())
    };
    let (drawn, taken) = (run("--passes 20"), run("--passes 20 --set most_probable=true"));
    assert!(taken["accuracy"].as_f64().unwrap() > drawn["accuracy"].as_f64().unwrap());
    // A pass is one over the decisions: at most thirty trajectories of twenty, in batches of 32 or 16.
    let per_pass = drawn["steps"].as_u64().unwrap() / 20;
    assert!((10..=19).contains(&per_pass), "{per_pass}");
    let smaller = run(
        "--passes 20 --set batch.without_replacement.size=16 --set step_size=0.002 --set step_decay.geometric.factor=0.999 --set components=3",
    );
    assert!((2 * per_pass - 1..=2 * per_pass).contains(&(smaller["steps"].as_u64().unwrap() / 20)));
    let history = String::from_utf8(folder.read("coirl-fit/history.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(history.lines().last().unwrap()).unwrap();
    let length = 0.002 * 0.999_f64.powf(last["step"].as_f64().unwrap() - 1.0);
    assert!((last["step_size"].as_f64().unwrap() - length).abs() < 1e-12);
    // Held-out decisions can end the run; what they say is reported.
    let stopped = run("--validation 0.3 --patience 2 --steps 4000 --record-every 20");
    assert!(stopped["status"] == "validation_stalled" && stopped["validation_loss"].as_f64().unwrap() > 0.0);
    assert!(stopped.get("loss").is_none_or(serde_json::Value::is_null), "{stopped}");
    let asked = "--method bc-network --validation 0.3 --quiet";
    let table = text(folder.coirl(&format!("{OWN} {SEEN} {asked}")).success());
    assert!(table.contains("held-out decision") && table.contains("by a network"), "{table}");
}

#[test]
fn what_is_refused() {
    let folder = folder();
    let refused = |arguments: &str, words: &[&str]| {
        let run = folder.coirl(&format!("{OWN} {arguments}")).code(1);
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        // One line that says why, and perhaps one that helps.
        let lines: Vec<&str> = told.lines().collect();
        assert!(matches!(lines[..], [_]) || lines.len() == 2 && lines[1].starts_with("help: "), "{arguments}: {told}");
        assert!(words.iter().all(|word| told.contains(word)), "{arguments}: {told}");
    };
    for method in ["bc", "bc-network", "majority", "nearest"] {
        refused(&format!("{SHOWN} --method {method}"), &["actions", "--trajectories"]);
    }
    folder.coirl(&format!("{OWN} {SHOWN} --method uniform")).success();
    refused(&format!("{SEEN} --method bc --set temperature=2"), &["bc", "temperature", "penalty"]);
    refused(&format!("{SEEN} --method max-entropy --set temperature=0"), &["temperature", "0"]);
    refused(&format!("{SEEN} --method max-entropy --set penalty=-1"), &["penalty", "-1"]);
    refused(&format!("{SEEN} --method max-entropy --set penalty=much"), &["penalty", "much"]);
    refused(&format!("{SEEN} --method bc --validation 0.2"), &["stop.patience", "no mapping"]);
    refused(&format!("{SEEN} --method bc --initial truth.csv"), &["initial"]);
    refused(&format!("{SEEN} --method bc-network --set penalty=1"), &["bc-network", "penalty"]);
    refused(&format!("{SEEN} --method bc-network --set step_size=0"), &["step size", "0"]);
    refused(&format!("{SEEN} --method bc-network --set batch.without_replacement.size=0"), &["batch size"]);
    refused(&format!("{SEEN} --method bc-network --stop-loss 1"), &["stop.loss", "no mapping"]);
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bytes() {
    let folder = folder();
    for method in ["max-entropy", "max-entropy-per-context", "bc", "bc-network"] {
        let run = format!("{OWN} {SEEN} {SCORED} --method {method} --steps 12");
        folder.coirl(&format!("{run} --out whole")).success();
        folder.coirl(&format!("{run} --stop-after 4 --out parts")).code(130);
        folder.coirl(&format!("{run} --resume --out parts")).success();
        for file in ["fitted.safetensors", "history.jsonl", "fit.svg"] {
            assert!(folder.read(&format!("whole/{file}")) == folder.read(&format!("parts/{file}")), "{method} {file}");
        }
    }
}
