//! How often intervals of off-policy evaluation hold the truth on cohorts whose truth is known: tables are written, built, learned from and
//! scored through the command line, as their users would.
#![allow(clippy::print_stdout)] // the table is the result

use crate::{Outcome, cargo, coirl, root};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Estimates, as `coirl cohort score` calls them.
const ESTIMATES: [&str; 2] = ["fitted_q", "weighted_doubly_robust"];

/// What became of one estimate over all tables.
#[derive(Default)]
struct Tally {
    refused: usize,
    held: usize,
    /// Estimate less truth, and width of the interval, where something was given.
    errors: Vec<f64>,
    widths: Vec<f64>,
}

pub(crate) fn measure(repetitions: u64, stays: u64, resamples: u64) -> Outcome {
    cargo(&["build", "--release", "--workspace", "--bin", "coirl"])?;
    let folder = root().join("target").join("coverage");
    let mut tallies: [Tally; ESTIMATES.len()] = Default::default();
    let mut truths = Vec::new();
    for seed in 1..=repetitions {
        let scores = scores(&folder, seed, stays, resamples)?;
        let survival = &scores["runs"][0]["truth"]["policy"]["survival"];
        let truth = survival.as_f64().ok_or("the score has no true survival")?;
        truths.push(truth);
        let assessment = &scores["off_policy"]["policies"][0][1];
        for (name, tally) in ESTIMATES.iter().zip(&mut tallies) {
            let number = |path: &str| assessment[*name].pointer(path).and_then(Value::as_f64);
            match (number("/value"), number("/interval/lower"), number("/interval/upper")) {
                (Some(value), Some(lower), Some(upper)) => {
                    tally.held += usize::from((lower..=upper).contains(&truth));
                    tally.errors.push(value - truth);
                    tally.widths.push(upper - lower);
                }
                _ => tally.refused += 1,
            }
        }
        eprintln!("{seed} of {repetitions}: true survival {truth:.4}, {}", brief(assessment));
    }
    println!(
        "\n{repetitions} cohorts of {stays} stays, {resamples} resamples, mean true survival {:.4}\n",
        mean(&truths)
    );
    println!("| estimate | refused | given | holds the truth | mean error | mean width |");
    println!("|---|---|---|---|---|---|");
    for (name, tally) in ESTIMATES.iter().zip(&tallies) {
        let given = tally.errors.len();
        let (error, width) = (mean(&tally.errors), mean(&tally.widths));
        println!("| {name} | {} | {given} | {} | {error:+.4} | {width:.4} |", tally.refused, tally.held);
    }
    Ok(())
}

/// Scores of a linear mapping that was learned from a table of this seed; kept, so that work that was stopped goes on.
fn scores(folder: &Path, seed: u64, stays: u64, resamples: u64) -> Outcome<Value> {
    let folder = folder.join(format!("{stays}-{resamples}")).join(seed.to_string());
    let kept = folder.join("scores.json");
    if let Ok(text) = fs::read_to_string(&kept) {
        return serde_json::from_str(&text).map_err(|error| format!("{}: {error}", kept.display()));
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (seed, stays, resamples) = (seed.to_string(), stays.to_string(), resamples.to_string());
    coirl(&folder, &["cohort", "synthesize", "--stays", &stays, "--seed", &seed, "--out", "table.csv"])?;
    coirl(&folder, &["cohort", "build", "table.csv", "--seed", &seed, "--out", "cohort"])?;
    let learner =
        ["--method", "adaptive", "--set", "batch.without_replacement.size=32", "--steps", "100", "--seed", &seed];
    coirl(&folder, &[&["fit", "cohort", "--out", "run"], &learner[..]].concat())?;
    // The truth is that of all test patients, as the estimate is.
    let all = ["--true-patients", &stays, "--off-policy-resamples", &resamples, "--resamples", "2", "--fitted-q-alone"];
    let text = coirl(&folder, &[&["cohort", "score", "run", "--json", "--seed", &seed], &all[..]].concat())?;
    let scores = serde_json::from_str(&text).map_err(|error| format!("coirl cohort score: {error}"))?;
    fs::write(&kept, text).map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(scores)
}

fn brief(assessment: &Value) -> String {
    let one = |name: &&str| {
        let interval = &assessment[*name]["interval"];
        match (interval["lower"].as_f64(), interval["upper"].as_f64()) {
            (Some(lower), Some(upper)) => format!("{name} {lower:.4}–{upper:.4}"),
            _ => format!("{name} refused"),
        }
    };
    ESTIMATES.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
