//! What can be typed.

use crate::commands::check::CheckArgs;
use crate::commands::cohort::CohortArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::domain::DomainArgs;
use crate::commands::experiment::ExperimentArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::fit::FitArgs;
use crate::commands::info::InfoArgs;
use crate::commands::plan::PlanArgs;
use crate::commands::predict::PredictArgs;
use crate::commands::report::ReportArgs;
use crate::commands::reproduce::ReproduceArgs;
use clap::{Args, Parser, Subcommand};

const WORKFLOW: &str = "\
Workflow:
  coirl check model.npz mu.csv --contexts contexts.csv
                                               can it be learned from?
  coirl fit                                    learn from what ships with it
  coirl fit --model model.npz --contexts contexts.csv \\
      --feature-expectations mu.csv            and from your own
  coirl cohort build table.csv --out cohort    from a table of patients
  coirl fit cohort --out run                   to a model and a mapping
  coirl cohort score run                       on patients not learned from
  coirl cohort apply run other.csv             and on another table
  coirl info coirl-fit/fitted.safetensors      what was learned
  coirl explain coirl-fit                      what of it is certain, and why
  coirl predict coirl-fit --context 0.2,0.3,0.5  how to act in a new context
  coirl report coirl-fit                       a page about it
  coirl reproduce                              the paper's figures, run again
  coirl domain list                            which models are built in
  coirl domain show driving                    what one of them looks like
  coirl domain export driving --out model.npz  write it to a file
  coirl info model.npz                         what a model file holds
  coirl plan model.npz --weights 0.1,-1,-0.5   the best policy for one reward
  coirl plan model.npz --mapping mapping.csv --contexts contexts.csv \\
      --out plans.parquet                      and for thousands of contexts

Results go to standard output, everything else to standard error; --json makes
the results readable for programs.

Exit status:
  0  done
  1  the input or the computation was refused
  2  wrong usage
  3  done, but planning met its limit of sweeps before it converged
  130  stopped by Ctrl-C, with a checkpoint saved";

/// Pages with the explanation below the title. No text is kept for `--help` alone, so that `-h` and `--help` give the
/// same compact page.
pub(crate) const PAGE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const EXPLANATION: &str = "\
A contextual Markov decision process has states, actions, transition probabilities and features; a mapping turns a \
context into the weights of the features in the reward. This program learns such mappings from demonstrations, shows and \
writes models, and plans in them: every plan comes with a certificate that says how far from optimal it can be.";

/// Inverse reinforcement learning in contextual Markov decision processes
#[derive(Debug, Parser)]
#[command(
    name = "coirl",
    version,
    before_help = EXPLANATION,
    after_help = WORKFLOW,
    help_template = PAGE,
    max_term_width = 80,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Threads [default: one per processor]; results are the same
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of everything random
    #[arg(long, global = true, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The words that were typed after the name of the program.
    #[arg(skip)]
    pub(crate) typed: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Cohort(Box<CohortArgs>),
    Check(Box<CheckArgs>),
    Fit(Box<FitArgs>),
    Explain(Box<ExplainArgs>),
    Predict(Box<PredictArgs>),
    Report(Box<ReportArgs>),
    Experiment(ExperimentArgs),
    Reproduce(ReproduceArgs),
    Domain(DomainArgs),
    Plan(Box<PlanArgs>),
    Info(InfoArgs),
    Completions(CompletionsArgs),
}
