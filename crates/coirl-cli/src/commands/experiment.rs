//! `coirl experiment`: the experiments of the paper and ours, one by one.

use crate::arguments::{Global, PAGE};
use crate::destination::{note, to_file, to_stdout, to_terminal};
use crate::experiments::{
    GivenArgs, RESULT_FILES, Results, SETTINGS, SHIPPED, Task, read_folder, shipped, write_overview, write_page,
};
use crate::failure::{Failure, Outcome};
use crate::fitting::on_interrupt;
use crate::output::{FolderLock, Manifest, OutputFolder};
use crate::pictures::{experiment_pictures, png_of};
use crate::text::{pair, shell_word};
use clap::{Args, Subcommand};
use coirl::artifact::read_text;
use coirl_experiments::{Experiment, Scale};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXPLANATION: &str = "\
An experiment is a TOML file: what is studied, who takes part, what is drawn, and what the paper claims about it. `run` runs it \
seed by seed and writes results.json and results.csv (no times in them: the same seed gives the same bytes), timings.json, pictures, \
and a page with every claim beside what was measured. A run that is stopped goes on where it was.";

const EXAMPLES: &str = "\
Examples:
  coirl experiment list
  coirl experiment show driving-online > mine.toml
  coirl experiment run driving-online --out results
  coirl experiment run mine.toml --seeds 20 --set study.contexts=1000 --out mine
  coirl experiment run driving-online --contexts sequence.npy --out given";

/// Run the experiments of the paper one by one, or your own
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE, arg_required_else_help = true)]
pub(crate) struct ExperimentArgs {
    #[command(subcommand)]
    command: ExperimentCommand,
}

#[derive(Debug, Subcommand)]
enum ExperimentCommand {
    /// Which experiments there are
    #[command(help_template = PAGE)]
    List,
    /// Print the file of an experiment
    #[command(help_template = PAGE)]
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    Run(Box<RunArgs>),
}

/// How large an experiment is run.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ScaleArgs {
    /// A few contexts and seeds: to see that everything works
    #[arg(long, conflicts_with = "paper_scale")]
    quick: bool,
    /// As large as in the paper, whatever that takes
    #[arg(long)]
    paper_scale: bool,
}

impl ScaleArgs {
    pub(crate) fn scale(self) -> Scale {
        match (self.quick, self.paper_scale) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Paper,
            _ => Scale::Usual,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self.scale() {
            Scale::Quick => " --quick",
            Scale::Paper => " --paper-scale",
            Scale::Usual => "",
        }
    }
}

const RUN: &str = "\
Runs an experiment and writes DIR/NAME: results.json, results.csv, timings.json, experiment.toml (the exact settings), pictures as SVG and PNG, and a file \
per seed; DIR/report.html tells of all experiments in DIR.";

/// Run an experiment
#[derive(Debug, Args)]
#[command(before_help = RUN, help_template = PAGE)]
struct RunArgs {
    /// A name of `coirl experiment list`, or a file of your own (.toml)
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Seeds, from --seed on [default: as the experiment says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    #[command(flatten)]
    scale: ScaleArgs,
    /// Another value for a setting, such as study.contexts=200 or method.0.steps=50
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    given: GivenArgs,
    /// The folder to write to; the experiment has a folder of its own there
    #[arg(long, short, value_name = "DIR", default_value = "coirl-experiments")]
    out: PathBuf,
}

pub(crate) fn run(args: ExperimentArgs, global: &Global) -> Result<Outcome, Failure> {
    match args.command {
        ExperimentCommand::List => list(global).map(|()| Outcome::Done),
        ExperimentCommand::Show { name } => {
            let text = shipped(&name)?;
            to_stdout(|out| Ok(out.write_all(text.as_bytes())?)).map(|()| Outcome::Done)
        }
        ExperimentCommand::Run(args) => run_one(&args, global),
    }
}

fn list(global: &Global) -> Result<(), Failure> {
    let read = |(name, text): &(&'static str, &str)| Ok((*name, Experiment::read(text, Scale::Usual, &[])?));
    let all: Vec<(&str, Experiment)> = SHIPPED.iter().map(read).collect::<Result<_, Failure>>()?;
    if global.json {
        let listed: Vec<_> =
            all.iter().map(|(name, e)| json!({"name": name, "title": e.title, "paper": e.paper})).collect();
        return to_stdout(|out| Ok(writeln!(out, "{}", json!({"experiments": listed}))?));
    }
    to_terminal(|out| {
        for (name, experiment) in &all {
            writeln!(out, "{name}")?;
            pair(out, "", &experiment.title)?;
            if let Some(paper) = &experiment.paper {
                pair(out, "", paper)?;
            }
        }
        Ok(())
    })
}

fn run_one(args: &RunArgs, global: &Global) -> Result<Outcome, Failure> {
    let path = Path::new(&args.name);
    let own = path.extension().is_some_and(|extension| extension == "toml");
    let (name, text) = if own {
        let text = read_text(path, "an experiment (.toml)")?;
        (path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()), text)
    } else {
        (args.name.clone(), shipped(&args.name)?.to_owned())
    };
    let mut replaced = args.set.iter().map(|pair| setting(pair)).collect::<Result<Vec<_>, _>>()?;
    if let Some(seeds) = args.seeds {
        replaced.push(("seeds".into(), toml::Value::Integer(i64::try_from(seeds).unwrap_or(i64::MAX))));
    }
    let in_file = |error: coirl::Error| if own { Failure::in_file(path, error) } else { Failure::from(error) };
    let experiment = Experiment::read(&text, args.scale.scale(), &replaced).map_err(in_file)?;
    let (given, given_files) = args.given.read(&experiment)?;
    let task = Task { name, experiment, scale: args.scale.scale(), first_seed: global.seed, given, given_files };
    on_interrupt();
    let out = OutputFolder::open_shared(&args.out)?;
    let command = format!("coirl experiment run {}{}", shell_word(&args.name), args.scale.words());
    let Some(results) = run_task(&task, out.path(), "", global)? else { return interrupted(global) };
    finish(out.path(), &command, global)?;
    if global.json {
        let json = results.json()?;
        to_stdout(|out| Ok(writeln!(out, "{json}")?))?;
    } else {
        to_terminal(|out| write_overview(out, &results))?;
    }
    note(
        global.quiet,
        &format!("wrote {} and {}", args.out.join(&task.name).display(), args.out.join(PAGE_FILE).display()),
    );
    Ok(Outcome::Done)
}

/// The page about all experiments of a folder.
pub(crate) const PAGE_FILE: &str = "report.html";

/// Runs a task into its own folder, pictures included. Nothing where it was stopped.
pub(crate) fn run_task(task: &Task, out: &Path, place: &str, global: &Global) -> Result<Option<Results>, Failure> {
    let folder = OutputFolder::open(&out.join(&task.name), global)?;
    Manifest::withdraw(&folder)?;
    let Some(results) = task.run(&folder, place, global.quiet)? else { return Ok(None) };
    let mut files: Vec<String> = RESULT_FILES.map(str::to_owned).into();
    files.push(SETTINGS.into());
    for (stem, svg) in experiment_pictures(&task.experiment, &results.means) {
        to_file(&folder.file(&format!("{stem}.svg")), |file| Ok(file.write_all(svg.as_bytes())?))?;
        let png = png_of(&svg)?;
        to_file(&folder.file(&format!("{stem}.png")), |file| Ok(file.write_all(&png)?))?;
        files.extend([format!("{stem}.svg"), format!("{stem}.png")]);
    }
    let manifest = Manifest::new("experiment run", task.first_seed, &task.experiment)?;
    let given = task.given_files.iter().cloned();
    given
        .fold(manifest, |manifest, (name, digest)| manifest.with_data(name, digest))
        .write(&folder, files.iter().map(String::as_str))?;
    Ok(Some(results))
}

/// Writes the page about everything in a folder.
pub(crate) fn finish(out: &Path, command: &str, global: &Global) -> Result<(), Failure> {
    // The last of several that end at once must see them all.
    let _alone = FolderLock::wait(out, global)?;
    write_page(&out.join(PAGE_FILE), &read_folder(out)?, command.to_owned())
}

pub(crate) fn interrupted(global: &Global) -> Result<Outcome, Failure> {
    note(global.quiet, "stopped; the same command goes on with the seed that was under way");
    Ok(Outcome::Interrupted)
}

/// A setting as typed: the value is TOML, or text where it is not.
fn setting(typed: &str) -> Result<(String, toml::Value), Failure> {
    let Some((key, value)) = typed.split_once('=') else {
        return Err(Failure::Usage(format!("--set {typed}: expected KEY=VALUE")));
    };
    let parsed = format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    Ok((key.trim().to_owned(), parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()))))
}
