//! The same seed gives the same bytes from every command, whatever the number of threads and the vector instructions.
#![allow(clippy::unwrap_used)]

#[path = "../../coirl/tests/effort/mod.rs"]
mod effort;
mod running;

use assert_cmd::Command;
use effort::{Tally, effort, seed};
use running::Folder;
use running::content::{assert_same, content};
use std::collections::BTreeMap;

const FIT: &str = "fit --model demos/model.npz --contexts demos/contexts.csv --json --record-every 20 --true-mapping \
                   demos/true-mapping.csv --test-contexts demos/test-contexts.csv";
const SHOWN: &str = "--feature-expectations demos/feature-expectations.csv";
const SEEN: &str = "--trajectories demos/trajectories.csv";
/// Every method that learns from feature expectations, and from trajectories.
const FROM_EXPECTATIONS: [&str; 16] = [
    "adaptive",
    "bundle",
    "psgd",
    "replayed-psgd",
    "ew",
    "es",
    "replayed-es",
    "cutting-plane",
    "ellipsoid",
    "batch-ellipsoid",
    "projection",
    "max-margin",
    "frank-wolfe",
    "mwal",
    "max-entropy",
    "max-entropy-per-context",
];
const FROM_TRAJECTORIES: [&str; 6] = ["network", "bc", "bc-network", "majority", "nearest", "uniform"];

/// Every command, in an order in which each finds what it needs.
fn script() -> Vec<String> {
    let demonstrate = "domain demonstrate driving --contexts 12 --test-contexts 4 --transitions 15 --out demos --json";
    let plans = "plan demos/model.npz --contexts demos/contexts.csv --mapping demos/true-mapping.csv";
    let before = [
        "domain list",
        "domain show driving --json",
        "domain export driving --actions 3 --polarity code --out model.npz",
        "domain export garnet --states 300 --actions 4 --kernels 3 --out garnet.safetensors",
        "domain export maze --side 40 --out maze.safetensors",
        demonstrate,
        "domain draw driving --weights 0.1,-1,-0.5 --roll-out --out drive.svg",
        "check demos/model.npz demos/feature-expectations.csv --contexts demos/contexts.csv --json",
        "plan model.npz --weights 0.1,-1,-0.5 --json",
    ];
    let outputs = ["plans.npz", "plans.csv", "plans.parquet", "plans.json"];
    let learned =
        FROM_EXPECTATIONS.map(|method| format!("{FIT} {SHOWN} --method {method} --steps 12 --out fits/{method}"));
    let seen = FROM_TRAJECTORIES.map(|method| format!("{FIT} {SEEN} --method {method} --steps 12 --out fits/{method}"));
    let after = [
        "info fits/bundle/fitted.safetensors --json",
        "explain fits/adaptive --json --bootstrap 3 --folds 2 --entries 1",
        "predict fits/adaptive --context 0.2,0.3,0.5 --json",
        "report fits/adaptive",
        "experiment list",
        "experiment show driving-online",
        "experiment run driving-online --quick --seeds 1 --out experiments --json",
        "experiment run beyond-plans --quick --seeds 1 --out experiments --json",
        "cohort spec ai-clinician",
        "cohort synthesize --preset ai-clinician --stays 150 --out table.csv",
        "cohort lint table.csv --preset ai-clinician --json",
        "cohort build table.csv --preset ai-clinician --states 30 --out cohort --json",
        "cohort select table.csv --preset ai-clinician --clusters 10,20 --screening 10 --keep 2 --weights 2 --out select --json",
        "fit cohort --method bc-network --steps 20 --out cloned --json",
        "cohort score cloned --resamples 20 --off-policy-resamples 5 --true-patients 20 --json",
        "cohort apply cloned table.csv --resamples 20 --off-policy-resamples 5 --out applied --json",
        "cohort apply cloned --measure HR=110,MeanBP=60 --context age=23000 --json",
        "report cloned --resamples 20 --off-policy-resamples 5 --true-patients 20",
        "completions bash",
    ];
    let plans = outputs.map(|out| format!("{plans} --out {out}"));
    let typed = |commands: &[&str]| commands.iter().map(|command| (*command).to_owned()).collect::<Vec<_>>();
    [typed(&before), plans.into(), learned.into(), seen.into(), typed(&after)].concat()
}

/// What all the commands print and write, by command and by file.
fn outcome(threads: usize, simd: Option<&str>, scripted: &[String]) -> BTreeMap<String, Vec<u8>> {
    let folder = Folder::new();
    // The same for all, for results name the data they are from.
    let mut all = BTreeMap::new();
    for typed in scripted {
        let mut command = Command::cargo_bin("coirl").unwrap();
        command.current_dir(folder.path(".")).env("COLUMNS", "80").env_remove("COIRL_SIMD");
        command.args(typed.split_whitespace()).args(["--threads", &threads.to_string(), "--seed", &seed().to_string()]);
        if let Some(simd) = simd {
            command.env("COIRL_SIMD", simd);
        }
        let run = command.assert().success();
        all.insert(format!("$ {typed}"), run.get_output().stdout.clone());
    }
    // Clocks are not part of a result, and a manifest says what it was computed with.
    let part = |name: &String| !name.ends_with("timings.json") && !name.ends_with("manifest.json");
    all.extend(content(&folder.path(".")).into_iter().filter(|(name, _)| part(name)));
    let own = folder.path(".").display().to_string();
    let own = own.trim_end_matches("/.");
    // Temporary folders have names of their own.
    all.into_iter().map(|(name, bytes)| (name, without(&bytes, own.as_bytes()))).collect()
}

/// The bytes with every occurrence of a word taken out.
fn without(bytes: &[u8], word: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(word.len()).position(|part| part == word) {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + word.len()..];
    }
    kept.extend_from_slice(rest);
    kept
}

#[test]
fn every_command_for_any_number_of_threads_and_vector_instructions() {
    let scripted = script();
    let mut tally = Tally::new("same bytes", "outputs compared");
    let one = outcome(1, None, &scripted);
    let mut others = vec![(2, None), (7, None), (2, Some("portable"))];
    if effort(1) > 1 {
        others.extend([(1, Some("portable")), (7, Some("avx2")), (16, None)]);
    }
    for (threads, simd) in others {
        let other = outcome(threads, simd, &scripted);
        assert_same(&one, &other, &format!("seed {}, {threads} threads, instructions {simd:?}", seed()));
        tally.tried(other.len() as u64);
    }
}

#[test]
fn no_command_is_left_out() {
    let commands = |of: &str| -> Vec<String> {
        let help = running::text(Folder::new().coirl(&format!("{of} --help")).success());
        let listed = help.split("Commands:\n").nth(1).map(|rest| rest.split("\n\n").next().unwrap().to_owned());
        let names = listed.unwrap_or_default();
        let names = names.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names.map(|line| format!("{of} {}", line.split_whitespace().next().unwrap()).trim().to_owned()).collect()
    };
    let scripted = script();
    // These are the others many times over.
    let compound = ["reproduce", "cohort compare"];
    for command in commands("") {
        let within = commands(&command);
        for name in if within.is_empty() { vec![command] } else { within } {
            let tried = scripted.iter().any(|typed| typed.starts_with(&name)) || compound.contains(&name.as_str());
            assert!(tried, "nothing compares what `coirl {name}` gives");
        }
    }
}
