//! One file per command.

pub(crate) mod check;
pub(crate) mod cohort;
pub(crate) mod completions;
pub(crate) mod demonstrate;
pub(crate) mod domain;
pub(crate) mod draw;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod info;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod reproduce;

use crate::arguments::{Cli, Command};
use crate::failure::{Failure, Outcome};

pub(crate) fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.command {
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
    }
}
