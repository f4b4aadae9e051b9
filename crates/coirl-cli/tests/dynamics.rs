//! `coirl fit --learn-dynamics`: what is learned, what is said about it, what is written and what is refused.
#![allow(missing_docs, clippy::unwrap_used)]

mod running;

use coirl::artifact::read_model;
use coirl::model::Dynamics;
use running::{Folder, json, text};
use serde_json::Value;

const OWN: &str =
    "fit --model demos/model.npz --contexts demos/contexts.csv --trajectories demos/trajectories.csv --learn-dynamics";
const SCORED: &str = "--true-mapping demos/true-mapping.csv --test-contexts demos/test-contexts.csv";

/// A small mixture with trajectories in 30 contexts under `demos`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("truth.csv", "0.5,-0.2,0.1\n-0.3,0.6,0.4\n0.2,0.1,-0.7\n");
    let domain = "garnet --states 20 --actions 3 --features 3 --kernels 3 --admissible 0.9 --seed 3";
    let expert = "--mapping truth.csv --contexts 30 --test-contexts 10 --transitions 60 --out demos";
    folder.coirl(&format!("domain demonstrate {domain} {expert}")).success();
    folder
}

fn refused(folder: &Folder, options: &str, words: &str) {
    let output = folder.coirl(&format!("{OWN} {options}")).failure();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains(words), "{options}: {said}");
    assert!(said.lines().count() <= 4, "{said}");
}

fn round(found: &Value, i: usize) -> &Value {
    &found["dynamics"]["rounds"][i]
}

#[test]
fn the_model_is_written_with_its_learned_dynamics() {
    let folder = folder();
    let given = read_model(&folder.path("demos/model.npz")).unwrap();
    for (how, options) in [("pooled", ""), ("clusters", "--clusters 2 --prior 3"), ("mixture", "--prior-mean stay")] {
        let found = json(folder.coirl(&format!("{OWN} {how} {options} {SCORED} --json --out {how}")).success());
        let own = read_model(&folder.path(&format!("{how}/dynamics.safetensors"))).unwrap();
        match (how, own.dynamics()) {
            ("pooled", Dynamics::Shared(_)) => {}
            ("clusters", Dynamics::Clusters(clusters)) => assert_eq!(clusters.kernels().len(), 2),
            ("mixture", Dynamics::Mixture(mixture)) => assert_eq!(mixture.n_kernels(), 3),
            (_, other) => panic!("{how} gave {other:?}"),
        }
        assert_eq!((own.features(), own.names(), own.initial()), (given.features(), given.names(), given.initial()));
        assert_eq!(
            (own.pairs(), own.criterion(), own.context_space()),
            (given.pairs(), given.criterion(), given.context_space())
        );
        assert_eq!(found["dynamics"]["structure"], how);
        assert_eq!(found["dynamics"]["pairs"], given.pairs().len());
        assert_eq!(round(&found, 0)["transitions"], 30 * 60);
        assert!(round(&found, 0)["pairs_seen"].as_u64().unwrap() < given.pairs().len() as u64);
        assert!(round(&found, 0)["log_likelihood"]["possible"].as_f64().unwrap() < 0.0);
        assert!(found["dynamics"]["thinnest_pair"]["observations"].as_f64().unwrap() >= 1.0);
        // The score is that of the model given; the agent with its own model does no better.
        assert_eq!(found["scored_on"], "in --model, 10 test contexts");
        let (score, acting) = (&found["value_ratio"], &round(&found, 0)["acting"]["value_ratio"]);
        assert_eq!(score, &round(&found, 0)["score"]["value_ratio"]);
        assert!(score.as_f64().unwrap() > 0.5 && acting.as_f64().unwrap() > 0.5, "{how}: {score}, {acting}");
        // With the learned model given, the same data are the same problem, to the bit.
        let known = OWN
            .replace("--learn-dynamics", "--json")
            .replace("demos/model.npz", &format!("{how}/dynamics.safetensors"));
        assert_eq!(json(folder.coirl(&format!("{known} --out known")).success())["digest"], found["digest"]);
        // Later commands find the model that was learned in.
        let source: Value = serde_json::from_slice(&folder.read(&format!("{how}/source.json"))).unwrap();
        let named = source["data"]["model"].as_str().unwrap();
        assert!(named.ends_with(&format!("{how}/dynamics.safetensors")), "{named}");
        folder
            .coirl(&format!("plan {how}/dynamics.safetensors --context 0.2,0.3,0.5 --mapping {how}/mapping.csv"))
            .success();
    }
    // A later run with known dynamics does not leave them there.
    folder.coirl(&OWN.replace("--learn-dynamics", "--out pooled")).success();
    assert!(!folder.path("pooled/dynamics.safetensors").exists());
}

#[test]
fn people_are_told_what_it_rests_on() {
    let folder = folder();
    let output = folder.coirl(&format!("{OWN} pooled {SCORED}")).success();
    let notes = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(notes.contains("dynamics.safetensors"), "{notes}");
    let table = text(output);
    for words in
        ["transitions", "1,800", "pairs seen", "observations at least", "thin visits", "value with learned dynamics"]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    // Hardly anything seen: a note says that the prior decides.
    folder.coirl("domain demonstrate driving --contexts 5 --transitions 10 --out few").success();
    let few =
        "fit --model driving --contexts few/contexts.csv --trajectories few/trajectories.csv --learn-dynamics pooled";
    let notes = |options: &str| {
        let output = folder.coirl(&format!("{few} {options}")).success();
        String::from_utf8(output.get_output().stderr.clone()).unwrap()
    };
    assert!(notes("").contains("on pairs seen fewer than 5 times, where the prior decides"), "{}", notes(""));
    assert!(notes("--method ellipsoid --true-mapping few/true-mapping.csv").contains("the record, not a simulation"));
}

#[test]
fn rounds_take_the_demonstrations_in_turn() {
    let folder = folder();
    let run = |options: &str| json(folder.coirl(&format!("{OWN} pooled --json {options}")).success());
    let found = run("--rounds 4 --out rounds");
    let rounds = found["dynamics"]["rounds"].as_array().unwrap();
    let numbers = |key: &str| rounds.iter().map(|round| round[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((numbers("round"), numbers("demonstrations")), (vec![1, 2, 3, 4], vec![7, 15, 22, 30]));
    assert_eq!(numbers("transitions"), [420, 900, 1320, 1800]);
    assert!(rounds[0]["foreseen"].is_null() && rounds[3]["foreseen"]["transitions"] == 480);
    // In the end the dynamics are those of one round, and only the start of the mapping differs.
    run("--out once");
    let dynamics = |out: &str| folder.read(&format!("{out}/dynamics.safetensors"));
    assert!(dynamics("rounds") == dynamics("once"));
    // The same bytes again, with other threads, and through an interruption.
    let files = |out: &str| ["fitted.safetensors", "dynamics.safetensors"].map(|f| folder.read(&format!("{out}/{f}")));
    run("--rounds 4 --threads 1 --out again");
    assert!(files("again") == files("rounds"));
    folder.coirl(&format!("{OWN} pooled --rounds 4 --stop-after 3 --out stopped")).code(130);
    run("--rounds 4 --resume --out stopped");
    assert!(files("stopped") == files("rounds"));
}

#[test]
fn nonsense_is_refused() {
    let folder = folder();
    refused(&folder, "pooled --rounds 0", "--rounds 0: expected 1 to 30");
    refused(&folder, "pooled --rounds 31", "--rounds 31: expected 1 to 30");
    refused(&folder, "pooled --clusters 2", "--clusters 2 goes with --learn-dynamics clusters");
    refused(&folder, "clusters --clusters 31", "clusters has shape 31; expected between 1 and 30");
    refused(&folder, "pooled --prior -1", "prior strength = -1");
    refused(&folder, "pooled --prior 0", "was never seen and the prior has no strength");
    refused(&folder, "mixture --prior-mean model", "the dynamics of --model depend on the context");
    let shown = "fit --model demos/model.npz --contexts demos/contexts.csv --learn-dynamics pooled \
                 --feature-expectations demos/feature-expectations.csv";
    folder.coirl(shown).code(2);
    folder.coirl("fit --prior 2").code(2);
    // Contexts off the simplex cannot weight a mixture, but clusters take them.
    folder.coirl("domain export garnet --states 12 --actions 2 --features 3 --seed 3 --out any.npz").success();
    folder.write("c.csv", "0.5,-0.5\n1.0,2.0\n");
    folder.write("t.csv", "demonstration,step,state,action\n0,0,0,1\n0,1,3,\n1,0,2,0\n1,1,4,\n");
    let off = "fit --model any.npz --contexts c.csv --trajectories t.csv --learn-dynamics";
    let output = folder.coirl(&format!("{off} mixture")).failure();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("entry 1 is -0.5") && said.contains("learn clusters of contexts instead"), "{said}");
    folder.coirl(&format!("{off} clusters --clusters 2")).success();
}
