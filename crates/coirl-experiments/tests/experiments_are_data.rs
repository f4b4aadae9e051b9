//! The experiments that ship: every file is read at every scale, and runs in miniature.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use coirl::learn::Neural;
use coirl::methods::Method;
use coirl_experiments::{Expected, Experiment, Given, Scale, SeedCurves, Study, Verdict};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

fn shipped() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    named
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap()))
        .collect()
}

fn run(experiment: &Experiment, seed: u64) -> SeedCurves {
    experiment.run(0, seed, &Given::default(), &|_, _| ControlFlow::Continue(())).unwrap()
}

fn tiny(name: &str, replaced: &[(&str, toml::Value)]) -> Experiment {
    let replaced: Vec<(String, toml::Value)> =
        replaced.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Experiment::read(&shipped()[name], Scale::Quick, &replaced).unwrap()
}

#[test]
fn every_file_is_read_at_every_scale_and_says_itself_again() {
    let all = shipped();
    assert!(all.len() >= 11, "{:?}", all.keys());
    for (name, text) in &all {
        for scale in [Scale::Usual, Scale::Quick, Scale::Paper] {
            let experiment = Experiment::read(text, scale, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            let again = Experiment::read(&experiment.to_toml().unwrap(), Scale::Usual, &[]).unwrap();
            assert_eq!(again.study, experiment.study, "{name}");
            assert_eq!(again.methods.len(), experiment.methods.len(), "{name}");
            assert!(!experiment.claims.is_empty() && !experiment.pictures.is_empty(), "{name}");
        }
        // What is claimed and drawn is about methods and measures that exist.
        let experiment = Experiment::read(text, Scale::Usual, &[]).unwrap();
        let known = |method: &str| {
            experiment.methods.iter().any(|entrant| entrant.name == method)
                || ["one policy for everybody", "random", "one action everywhere", "policy improvement, value lost"]
                    .contains(&method)
        };
        for check in experiment.claims.iter().flat_map(|claim| &claim.checks) {
            assert!(known(&check.method), "{name}: {}", check.method);
            if let Expected::Above(other) | Expected::Below(other) = &check.is {
                assert!(known(other), "{name}: {other}");
            }
        }
    }
}

#[test]
fn the_scale_of_the_paper_has_its_model_and_its_network() {
    let experiment = Experiment::read(&shipped()["patients"], Scale::Paper, &[]).unwrap();
    let Study::Patients(study) = &experiment.study else { panic!("{:?}", experiment.study) };
    assert_eq!((study.states, study.preset.as_str()), (Some(5000), "coirl-paper"));
    let Method::Neural(network) = &experiment.methods[0].learner else { panic!("{:?}", experiment.methods[0]) };
    assert!(network.architecture(7, 5005).n_parameters() > 340_000_000);
    assert_eq!(*network, Neural::paper_patients());
}

#[test]
fn measures_that_are_drawn_or_claimed_are_measured() {
    for name in [
        "grid-run-time",
        "driving-interactive",
        "driving-online",
        "sepsis-online",
        "guarantees",
        "beyond-demonstrations",
        "beyond-plans",
    ] {
        let list = |n: &[i64]| toml::Value::Array(n.iter().map(|n| toml::Value::Integer(*n)).collect());
        let mut small = vec![("study.contexts", toml::Value::Integer(12))];
        if ["grid-run-time", "guarantees"].contains(&name) {
            small = vec![("study.contexts", list(&[6, 12]))];
        }
        if !["guarantees"].contains(&name) {
            small.push(("study.every", toml::Value::Integer(4)));
            small.push(("study.test_contexts", toml::Value::Integer(5)));
        }
        let experiment = tiny(name, &small);
        let curves = run(&experiment, 1).curves;
        let has = |method: &str, measure: &str| {
            curves.iter().any(|curve| curve.method == method && curve.measure == measure && !curve.points.is_empty())
        };
        for picture in &experiment.pictures {
            assert!(
                experiment.methods.iter().any(|entrant| has(&entrant.name, &picture.measure)),
                "{name}: {}",
                picture.measure
            );
        }
        for check in experiment.claims.iter().flat_map(|claim| &claim.checks) {
            assert!(has(&check.method, &check.measure), "{name}: {} of {}", check.measure, check.method);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_curves_for_any_number_of_threads() {
    let experiment = tiny(
        "driving-trajectories",
        &[("study.contexts", toml::Value::Integer(20)), ("study.test_contexts", toml::Value::Integer(5))],
    );
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        serde_json::to_string(&pool.install(|| run(&experiment, 3))).unwrap()
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(7));
}

#[test]
fn the_published_orderings_hold_in_miniature() {
    let experiment = tiny("driving-online", &[("study.contexts", toml::Value::Integer(150))]);
    let mut runs = vec![run(&experiment, 0), run(&experiment, 1)];
    let judged = experiment.judge(&runs);
    assert_eq!(judged[0].verdict, Verdict::Reproduced, "{:?}", judged[0]);
    assert_eq!(judged[1].verdict, Verdict::NotReproduced, "{:?}", judged[1]);
    // A verdict is computed: with other results it is another.
    for curve in runs.iter_mut().flat_map(|run| &mut run.curves).filter(|curve| curve.method == "EW") {
        curve.points.iter_mut().for_each(|point| point.1 *= 0.5);
    }
    assert_eq!(experiment.judge(&runs)[0].verdict, Verdict::InPart);
}

#[test]
fn an_iteration_of_apprenticeship_learning_costs_more_with_more_contexts() {
    let experiment = tiny("grid-run-time", &[]);
    let judged = experiment.judge(&[run(&experiment, 0)]);
    assert_eq!(judged[0].verdict, Verdict::Reproduced, "{:?}", judged[0]);
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let text = &shipped()["driving-online"];
    let refused = |text: &str, replaced: &[(String, toml::Value)]| {
        Experiment::read(text, Scale::Usual, replaced).unwrap_err().to_string()
    };
    let message = refused(&text.replace("place = \"driving\"", "place = \"drivin\""), &[]);
    assert!(message.contains("line") && message.contains("did you mean 'driving'"), "{message}");
    let message = refused(&text.replace("seeds = 5", "sedes = 5"), &[]);
    assert!(message.contains("'sedes'") && message.contains("'seeds'"), "{message}");
    let message = refused(text, &[("study.contexts".into(), toml::Value::Integer(0))]);
    assert!(message.contains("study.contexts"), "{message}");
    let message = refused(text, &[("method.9.name".into(), toml::Value::String("x".into()))]);
    assert!(message.contains("method.9.name"), "{message}");
    let experiment =
        Experiment::read(text, Scale::Usual, &[("study.contexts".into(), toml::Value::Integer(7))]).unwrap();
    assert!(matches!(experiment.study, Study::Online(online) if online.contexts == 7));
}
