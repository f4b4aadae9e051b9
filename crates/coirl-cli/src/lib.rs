//! `coirl`: the command line of the library. Parses, calls the library, shows progress and writes files; all the
//! mathematics is in the `coirl` crate.

mod arguments;
mod cohorts;
mod commands;
mod contexts;
mod destination;
mod domains;
mod experiments;
mod explaining;
mod failure;
mod fitting;
mod models;
mod networks;
mod numbers;
mod output;
mod pictures;
mod plans;
mod predicting;
mod progress;
mod reporting;
mod summary;
mod tables;
mod text;

use arguments::{Cli, Command, Global};
use clap::Parser;
use commands::{check, cohort, completions, domain, experiment, explain, fit, info, plan, predict, report, reproduce};
use failure::{Failure, Outcome};
use std::ffi::OsString;

/// Runs the command of these arguments, the name of the program first, and gives its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let typed = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => Cli { global: Global { typed, ..cli.global }, ..cli },
        Err(usage) => {
            // With nobody to read it there is nothing left to say.
            let _ = usage.print();
            return u8::from(usage.use_stderr()) * WRONG_USAGE;
        }
    };
    match in_own_threads(cli) {
        Ok(outcome) => outcome.code(),
        Err(failure) => failure.report(),
    }
}

/// What parsers exit with.
const WRONG_USAGE: u8 = 2;

/// Runs the command on its own pool of threads, so that `--threads` holds for everything below.
fn in_own_threads(cli: Cli) -> Result<Outcome, Failure> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = cli.global.threads {
        pool = pool.num_threads(threads as usize);
    }
    let pool = pool.build().map_err(|error| Failure::refused(format!("starting the threads: {error}")))?;
    pool.install(|| match cli.command {
        Command::Check(args) => check::run(&args, &cli.global),
        Command::Cohort(args) => cohort::run(*args, &cli.global),
        Command::Fit(args) => fit::run(&args, &cli.global),
        Command::Explain(args) => explain::run(&args, &cli.global),
        Command::Domain(args) => domain::run(args, &cli.global),
        Command::Plan(args) => plan::run(*args, &cli.global),
        Command::Predict(args) => predict::run(&args, &cli.global),
        Command::Report(args) => report::run(&args, &cli.global),
        Command::Experiment(args) => experiment::run(args, &cli.global),
        Command::Reproduce(args) => reproduce::run(&args, &cli.global),
        Command::Info(args) => info::run(&args, &cli.global),
        Command::Completions(args) => completions::run(&args),
    })
}
