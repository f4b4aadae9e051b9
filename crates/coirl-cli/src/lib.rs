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
mod pictures;
mod plans;
mod predicting;
mod progress;
mod reporting;
mod summary;
mod tables;
mod text;

use arguments::Cli;
use clap::Parser;
use failure::{Failure, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(outcome) => outcome.code(),
        Err(failure) => failure.report(),
    }
}

/// Runs the command on its own pool of threads, so that `--threads` holds for everything below.
fn run(cli: Cli) -> Result<Outcome, Failure> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = cli.global.threads {
        pool = pool.num_threads(threads as usize);
    }
    let pool = pool.build().map_err(|error| Failure::refused(format!("starting the threads: {error}")))?;
    pool.install(|| commands::run(cli))
}
