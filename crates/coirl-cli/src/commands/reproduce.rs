//! `coirl reproduce`: every experiment, and one page about all of them.

use super::experiment::{PAGE_FILE, ScaleArgs, finish, interrupted, run_task};
use crate::arguments::{Global, PAGE};
use crate::destination::{note, to_stdout, to_terminal};
use crate::experiments::{Results, SHIPPED, Task, write_scenes};
use crate::failure::{Failure, Outcome};
use crate::fitting::on_interrupt;
use crate::output::OutputFolder;
use crate::text::table;
use clap::Args;
use coirl_experiments::{Experiment, Given, Verdict};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// The folder of pictures that belong to no experiment.
const PICTURES: &str = "pictures";

const EXPLANATION: &str = "\
Runs every experiment of `coirl experiment list` and writes a folder for each, and report.html: the figures and tables of the paper again, with each of its claims \
beside what was measured. Under a quarter of an hour on two processors; --quick takes about a minute, --paper-scale as long as it takes. What was finished is not run again.";

const EXAMPLES: &str = "\
Examples:
  coirl reproduce --quick --out look
  coirl reproduce --out reproduced";

/// Run every experiment of the paper and write a report
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct ReproduceArgs {
    #[command(flatten)]
    scale: ScaleArgs,
    /// The folder to write to
    #[arg(long, short, value_name = "DIR", default_value = "coirl-reproduced")]
    out: PathBuf,
}

pub(crate) fn run(args: &ReproduceArgs, global: &Global) -> Result<Outcome, Failure> {
    let read = |(name, text): &(&str, &str)| -> Result<Task, Failure> {
        Ok(Task {
            name: (*name).into(),
            experiment: Experiment::read(text, args.scale.scale(), &[])?,
            scale: args.scale.scale(),
            first_seed: global.seed,
            given: Given::default(),
            given_files: Vec::new(),
        })
    };
    let tasks: Vec<Task> = SHIPPED.iter().map(read).collect::<Result<_, _>>()?;
    on_interrupt();
    let out = OutputFolder::open_shared(&args.out)?;
    let mut all = Vec::with_capacity(tasks.len());
    for (i, task) in tasks.iter().enumerate() {
        let place = format!("{} of {}: ", i + 1, tasks.len());
        let Some(results) = run_task(task, out.path(), &place, global)? else { return interrupted(global) };
        all.push(results);
    }
    let pictures = OutputFolder::open(&out.file(PICTURES), global)?;
    write_scenes(pictures.path())?;
    finish(out.path(), &format!("coirl reproduce{}", args.scale.words()), global)?;
    if global.json {
        let claims = |results: &Results| json!({"experiment": results.kept.name, "claims": results.claims});
        let listed: Vec<_> = all.iter().map(claims).collect();
        to_stdout(|out| Ok(writeln!(out, "{}", json!({"experiments": listed}))?))?;
    } else {
        to_terminal(|out| verdicts(out, &all))?;
    }
    note(global.quiet, &format!("wrote {}", args.out.join(PAGE_FILE).display()));
    Ok(Outcome::Done)
}

/// How many claims of each experiment came to what.
fn verdicts(out: &mut dyn Write, all: &[Results]) -> Result<(), Failure> {
    let row = |results: &Results| {
        let of = |verdict: Verdict| match results.claims.iter().filter(|judged| judged.verdict == verdict).count() {
            0 => String::new(),
            n => n.to_string(),
        };
        let kinds = [Verdict::Reproduced, Verdict::InPart, Verdict::NotReproduced, Verdict::NotMeasured];
        [results.kept.name.clone()].into_iter().chain(kinds.map(of)).collect()
    };
    let header = ["claims", "reproduced", "in part", "not so", "not measured"];
    Ok(table(out, &header, &[1, 2, 3, 4], all.iter().map(row).collect())?)
}
