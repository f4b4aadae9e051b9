//! Models that say which pairs are known, from the command line: what is shown of them, and who keeps to them.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use running::{Folder, json, text};

const SEEN: &str = "--contexts demos/contexts.csv --trajectories demos/trajectories.csv";
const SCORED: &str = "--true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";

#[test]
fn a_model_tells_how_much_of_it_is_known() {
    let folder = Folder::new();
    for file in ["sepsis.npz", "sepsis.safetensors"] {
        folder.coirl(&format!("domain export sepsis --out {file}")).success();
        let shown = text(folder.coirl(&format!("info {file}")).success());
        assert!(shown.contains("2,313 of 17,900 pairs are known"), "{shown}");
        assert_eq!(json(folder.coirl(&format!("info {file} --json")).success())["known_pairs"], 2313);
    }
    folder.coirl("domain export sepsis --masked --out masked.npz").success();
    let shown = text(folder.coirl("info masked.npz").success());
    assert!(!shown.contains("known") && shown.contains("admissible"), "{shown}");
}

#[test]
fn agents_keep_to_what_is_known_unless_told_otherwise() {
    let folder = Folder::new();
    let demonstrations = "--contexts 20 --test-contexts 10 --transitions 10 --seed 1 --out demos";
    folder.coirl(&format!("domain demonstrate sepsis {demonstrations}")).success();
    let run = |method: &str| {
        let command = format!("fit --model sepsis {SEEN} {SCORED} --json --method {method}");
        json(folder.coirl(&command).success())
    };
    let above_random = |found: &serde_json::Value| found["relative_value"].as_f64().unwrap();
    let random = run("uniform");
    assert!(above_random(&random).abs() < 1e-9);
    let majority = run("majority");
    assert!(above_random(&majority) > 0.0, "{majority}");
    for accuracy in ["accuracy", "choice_accuracy", "visited_accuracy"] {
        assert!(majority[accuracy].as_f64().unwrap() > random[accuracy].as_f64().unwrap(), "{majority}");
    }
    let masked = run("bc --set components=0 --steps 20");
    let unmasked = run("bc --set components=0 --steps 20 --set masked=false");
    assert!(above_random(&masked) > above_random(&unmasked) + 1.0, "{masked} {unmasked}");
    assert!(above_random(&masked) > -0.5, "{masked}");

    let refused = folder.coirl(&format!("fit --model sepsis {SEEN} --method majority --set masked=false")).code(1);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.contains("majority") && told.contains("masked"), "{told}");
}
