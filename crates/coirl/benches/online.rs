//! The paper's online comparison on the driving domain, complete: projected subgradients, exponential weights and evolution
//! strategies, from feature expectations and from trajectories of 40 steps, five seeds, 500 contexts, tested on 80 contexts
//! every 5 contexts. `cargo bench --bench online [-- --seeds N] [-- --resolved]`.
#![allow(clippy::print_stdout)] // a benchmark reports on standard output

use coirl::demos::{Demonstration, Estimator, Train, Trajectory};
use coirl::domains::Driving;
use coirl::evaluate::{Examination, plan_mapping};
use coirl::learn::{
    Adaptive, EvolutionStrategies, Geometry, Method, MirrorDescent, Policies, Problem, Settings, StepSize, Watch, fit,
};
use coirl::model::{Cmdp, Context, ContextSpace};
use coirl::plan::ManyOptions;
use rayon::prelude::*;
use std::time::Instant;

const CONTEXTS: usize = 500;
const TEST_CONTEXTS: usize = 80;
const TRANSITIONS: usize = 40;
const TEST_EVERY: u64 = 5;

/// One seed's data: contexts with both kinds of demonstrations, and a common start.
struct Sequence {
    seed: u64,
    exact: Train,
    sampled: Train,
    test: Vec<Context>,
    initial: Vec<f64>,
}

fn sequence(model: &Cmdp, seed: u64) -> coirl::Result<Sequence> {
    let truth = Driving::online_mapping();
    let contexts = model.context_space().sample(CONTEXTS, 2 * seed)?;
    let plans = plan_mapping(model, &truth, &contexts, ManyOptions::default())?;
    let (mut exact, mut sampled) = (Vec::new(), Vec::new());
    for (i, (context, plan)) in contexts.iter().zip(plans).enumerate() {
        let mu = plan.feature_expectations.unwrap_or_default();
        exact.push(Demonstration::from_feature_expectations(model, context.clone(), mu)?);
        let path = Trajectory::sample(&model.mdp(context)?, &plan.policy, TRANSITIONS, seed, i as u64)?;
        sampled.push(Demonstration::from_trajectories(model, context.clone(), vec![path])?);
    }
    let start = ContextSpace::Simplex { dimension: 9 }.sample(1, seed)?;
    Ok(Sequence {
        seed,
        exact: Train::new(exact),
        sampled: Train::new(sampled),
        test: model.context_space().sample(TEST_CONTEXTS, 2 * seed + 1)?,
        initial: start[0].values().to_vec(),
    })
}

fn methods(resolved: bool) -> Vec<(&'static str, Method)> {
    let simplex = |multiplier| MirrorDescent {
        geometry: Geometry::Simplex,
        step_size: StepSize::Theory { multiplier },
        ..MirrorDescent::default()
    };
    let mut methods = vec![
        ("PSGD, ball, theory step", Method::MirrorDescent(MirrorDescent::default())),
        ("EW x100", Method::MirrorDescent(simplex(100.0))),
        ("ES, fixed policies", Method::EvolutionStrategies(EvolutionStrategies::default())),
    ];
    if resolved {
        let own = EvolutionStrategies { policies: Policies::Resolved, ..EvolutionStrategies::default() };
        methods = vec![
            ("EW, theory step", Method::MirrorDescent(simplex(1.0))),
            ("adaptive", Method::Adaptive(Adaptive::default())),
            ("ES, re-solved", Method::EvolutionStrategies(own)),
            ("ES, literal formula", Method::EvolutionStrategies(EvolutionStrategies::literal())),
        ];
    }
    methods
}

fn main() -> coirl::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let seeds: u64 = after("--seeds").and_then(|n| n.parse().ok()).unwrap_or(5);
    let model = Driving::default().build()?;
    let truth = Driving::online_mapping();
    let begun = Instant::now();
    let sequences: Vec<Sequence> = (0..seeds).map(|seed| sequence(&model, seed)).collect::<coirl::Result<_>>()?;
    println!("| method | from | value after 25 | 100 | 500 | lowest | accuracy | seconds |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut compared = begun.elapsed().as_secs_f64();
    for resolved in [false, true] {
        if resolved && !arguments.iter().any(|a| a == "--resolved") {
            break;
        }
        for (name, method) in methods(resolved) {
            for setup in ["feature expectations", "trajectories"] {
                let begun = Instant::now();
                let run = |sequence: &Sequence| -> coirl::Result<[f64; 4]> {
                    let train = if setup == "trajectories" { &sequence.sampled } else { &sequence.exact };
                    let problem = Problem::new(&model, train, &Estimator::Truncated { horizon: None })?;
                    let examination = Examination::new(&model, &truth, sequence.test.clone())?;
                    let settings = Settings {
                        seed: sequence.seed,
                        initial: Some(sequence.initial.clone()),
                        record_every: TEST_EVERY,
                        record_loss: false,
                        ..Settings::new(method.clone())
                    };
                    let watch = Watch { examination: Some(&examination), validation: None };
                    let fitted = fit(&problem, &settings, watch, &mut ())?;
                    let ratio = |step| {
                        let record = fitted.history.iter().find(|record| record.step == step);
                        record.and_then(|record| record.score).map_or(f64::NAN, |score| score.value_ratio)
                    };
                    let accuracy =
                        fitted.history.last().and_then(|record| record.score).map_or(f64::NAN, |s| s.accuracy);
                    Ok([ratio(25), ratio(100), ratio(500), accuracy])
                };
                let rows: Vec<[f64; 4]> = sequences.par_iter().map(run).collect::<coirl::Result<_>>()?;
                let mean = |j: usize| 100.0 * rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64;
                let lowest = 100.0 * rows.iter().map(|row| row[2]).fold(f64::INFINITY, f64::min);
                let seconds = begun.elapsed().as_secs_f64();
                println!(
                    "| {name} | {setup} | {:.2} | {:.2} | {:.2} | {lowest:.2} | {:.1} | {seconds:.1} |",
                    mean(0),
                    mean(1),
                    mean(2),
                    mean(3)
                );
                if !resolved {
                    compared += seconds;
                }
            }
        }
    }
    println!("\nThe comparison (first six rows, {seeds} seeds, demonstrations included) took {compared:.1} seconds.");
    Ok(())
}
