//! `coirl fit`: from demonstrations to a mapping.

use crate::arguments::{Cli, Command, Global, PAGE};
use crate::cohorts::{CohortFolder, InputArgs};
use crate::commands::cohort::build_cohort;
use crate::destination::{check_can_be_written, note, to_file, to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::fitting::{
    CHECKPOINT, Data, DataArgs, DynamicsArgs, FITTED, LEARNED_MODEL, METHODS, MethodArgs, Report, Source, SourceData,
    Watcher, mapping_of, on_interrupt, picture,
};
use crate::numbers::full;
use crate::output::{Manifest, OutputFolder};
use crate::tables::Table;
use clap::{Args, Parser, ValueEnum};
use coirl::artifact::{read_checkpoint, write_fitted, write_model};
use coirl::demos::SimulatedExpert;
use coirl::learn::{self, Batch, Checkpoint, Fitted, Method, Problem, Settings, Status, Stop, Watch, Watched};
use coirl::score::Examination;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// About as many records are written where nothing is said, and never more often than every so many steps.
const RECORDS: u64 = 100;
const LEAST_BETWEEN_RECORDS: u64 = 5;
/// The same for cohorts: a record plans for the validation stays, which are some ten batches.
const IN_COHORTS: u64 = 10;
/// A record plans for every demonstration. With so many entries of the kernel to read for one, a step of one demonstration passes until
/// the next: the record must not cost many times what is learned.
const ENTRIES_PER_STEP: u64 = 300_000;
/// Records without a better validation loss, where nothing is said.
const PATIENCE: u64 = 10;
/// The folder of a cohort that is built from a spec, within --out.
const COHORT_WITHIN: &str = "cohort";

const EXPLANATION: &str = "\
Learns the mapping from a context to the weights of the reward, from demonstrations of somebody who acts well. Without \
arguments it learns from 300 stays in intensive care, simulated, that ship with the program. Your own: a cohort that `coirl cohort build` made of a \
table, or a model, a table of contexts, and beside it the expert's feature expectations, or trajectories. The folder --out holds the result \
(fitted.safetensors, and mapping.csv where the mapping is linear), where the data came from (source.json), what happened on the way (history.jsonl) and a picture of it (fit.svg). The same seed \
gives the same bytes, whatever the threads. Ctrl-C saves: the same command with --resume goes on, to the same bytes.";

/// The page below the options, with the table of methods.
fn examples() -> String {
    let mut page = String::from("Which method:\n");
    for entry in METHODS {
        page.push_str(&format!("  {:<16} {}\n", entry.name, entry.about));
    }
    page.push_str(
        "
Methods that ask an expert go through the contexts one by one and learn only
from demonstrations that the expert gives when the agent does badly. With
--true-mapping the expert is simulated; without, it is the record, which
objects whenever the agent acts differently.

Examples:
  coirl fit
  coirl fit cohort --out run              from `coirl cohort build`
  coirl fit --method ew --step-multiplier 100 --json
  coirl fit --model driving --contexts contexts.csv \\
      --feature-expectations mu.csv --out my-fit
  coirl fit --model model.npz --contexts contexts.parquet \\
      --trajectories paths.parquet --true-mapping truth.csv \\
      --test-contexts test.csv
  coirl fit --model model.npz --contexts contexts.csv \\
      --trajectories paths.csv --learn-dynamics pooled --prior 2
  coirl info coirl-fit/fitted.safetensors

Exit status: as always, and 130 after Ctrl-C, with a checkpoint in --out.",
    );
    page
}

/// Learn a mapping from demonstrations
#[derive(Debug, Clone, Args)]
#[command(before_help = EXPLANATION, after_help = examples(), help_template = PAGE, args_override_self = true)]
pub(crate) struct FitArgs {
    /// A cohort that `coirl cohort build` wrote, or a spec (.toml) to build one from into --out
    #[arg(value_name = "COHORT|SPEC")]
    cohort: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    dynamics: DynamicsArgs,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Start and end")]
struct RunArgs {
    /// The mapping to start from (.csv, .npy) [default: what the method starts from]
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,
    /// Steps to take [default: what the method needs, often one pass]
    #[arg(long, value_name = "N", conflicts_with = "passes")]
    steps: Option<u64>,
    /// Passes over the demonstrations, instead of steps
    #[arg(long, value_name = "N")]
    passes: Option<u64>,
    /// Stop at this loss
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    stop_loss: Option<f64>,
    /// Stop at this gap, for methods that know one
    #[arg(long, value_name = "G", allow_negative_numbers = true)]
    stop_gap: Option<f64>,
    /// Keep this share of the demonstrations to stop by
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    validation: Option<f64>,
    /// Stop after N records without anything better on validation demonstrations [default: 10]
    #[arg(long, value_name = "N")]
    patience: Option<u64>,
    /// What is better on them: the loss, or the share of their actions that the agent would take [default: loss; accuracy
    /// for cohorts]
    #[arg(long, value_name = "WHAT", value_enum)]
    watch: Option<WatchArg>,
    /// Go on from the checkpoint in --out, where there is one
    #[arg(long)]
    resume: bool,
    /// Seconds between checkpoints, the work that a crash may cost; 0 for one at every step
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    checkpoint_every: f64,
    /// Stop after N steps as if by Ctrl-C
    #[arg(long, value_name = "N", hide = true)]
    stop_after: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WatchArg {
    Loss,
    Accuracy,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Folder to write to
    #[arg(long, short, value_name = "DIR", default_value = "coirl-fit")]
    out: PathBuf,
    /// Write the history to this file too; history.jsonl in --out is always there
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    history: Option<Option<PathBuf>>,
    /// Steps between two records [default: 5, or more for about 100 records; fewer of a large model]
    #[arg(long, value_name = "N")]
    record_every: Option<u64>,
}

impl OutputArgs {
    fn open(&self, global: &Global) -> Result<OutputFolder, Failure> {
        OutputFolder::open_own(&self.out, &[FITTED, CHECKPOINT], &[COHORT_WITHIN], global)
    }
}

impl FitArgs {
    /// The same with the learner that a spec asks for, but for what was typed.
    fn with_learner(&self, options: &BTreeMap<String, toml::Value>, typed: &[String]) -> Result<Self, Failure> {
        let cli = Cli::try_parse_from(with_options(options, typed)).map_err(|error| {
            let message = error.render().to_string();
            let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Failure::refused(format!("[learner] of the spec: {first}"))
        })?;
        match cli.command {
            Command::Fit(args) => Ok(*args),
            _ => Ok(self.clone()),
        }
    }

    /// The settings of a run on this problem, with or without demonstrations to stop by, and how much worse than the expert is good enough.
    fn settings(&self, problem: &Problem<'_>, has_validation: bool, seed: u64) -> Result<(Settings, f64), Failure> {
        let actions = (0..problem.len()).all(|i| !problem.trajectories(i).is_empty());
        let typed = self.method.seeing_actions(actions && !self.data.wants_expectations());
        let (method, tolerance) = typed.resolve(typed.entry()?, problem.sum_bound()?)?;
        let batch = if let Method::Neural(own) = &method { own.batch } else { self.method.batch() };
        let per_pass = match &method {
            Method::NeuralCloning(own) => own.steps_per_pass(problem)?,
            _ => batch.steps_per_pass(problem.len()),
        };
        let steps = self.run.steps.or(self.run.passes.map(|n| n.saturating_mul(per_pass)));
        let default_steps = match &method {
            Method::NeuralCloning(own) => Some(own.default_steps(problem)?),
            _ => None,
        };
        let in_cohort = self.data.cohort().is_some();
        let validated = in_cohort || self.run.validation.is_some();
        if let (Some(_), false) = (self.run.patience, validated) {
            return Err(Failure::refused("--patience goes with --validation: there are no demonstrations to stop by"));
        }
        let mapping = |path: &PathBuf| mapping_of(problem.model(), problem.dimension(), Table::read(path, "mapping")?);
        let settings = Settings {
            seed,
            stop: Stop {
                max_steps: steps,
                loss: self.run.stop_loss,
                gap: self.run.stop_gap,
                patience: (validated && has_validation).then(|| self.run.patience.unwrap_or(PATIENCE)),
                watched: match self.run.watch {
                    Some(WatchArg::Loss) => Watched::Loss,
                    Some(WatchArg::Accuracy) => Watched::Accuracy,
                    None if in_cohort && has_validation => Watched::Accuracy,
                    None => Watched::Loss,
                },
            },
            initial: self.run.initial.as_ref().map(mapping).transpose()?.map(|mapping| mapping.values().to_vec()),
            record_every: match self.output.record_every {
                Some(steps) => steps,
                None if in_cohort => IN_COHORTS,
                None => between_records(problem, steps.or(default_steps), batch)?,
            },
            // A loss on every stay of a cohort costs more than what is learned.
            record_loss: !in_cohort,
            ..Settings::new(method)
        };
        Ok((settings, tolerance))
    }
}

/// A number of seconds as typed.
fn seconds(typed: &str) -> Result<f64, String> {
    match typed.parse() {
        // What no clock reaches would overflow it.
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, at least 0".into()),
    }
}

/// The command line with options of a spec before those that were typed, which count.
fn with_options(options: &BTreeMap<String, toml::Value>, typed: &[String]) -> Vec<String> {
    let mut words: Vec<String> = std::iter::once("coirl".to_owned()).chain(typed.iter().cloned()).collect();
    let at = words.iter().position(|word| word == "fit").map_or(words.len(), |at| at + 1);
    let flags = options.iter().flat_map(|(name, value)| {
        let flag = format!("--{}", name.replace('_', "-"));
        match value {
            toml::Value::Boolean(true) => vec![flag],
            toml::Value::Boolean(false) => Vec::new(),
            toml::Value::String(text) => vec![format!("{flag}={text}")],
            other => vec![format!("{flag}={other}")],
        }
    });
    words.splice(at..at, flags.collect::<Vec<_>>());
    words
}

/// Steps between two records, where nothing is said.
fn between_records(problem: &Problem<'_>, steps: Option<u64>, batch: Batch) -> Result<u64, Failure> {
    let n = problem.len() as u64;
    let entries = n.saturating_mul(problem.mdp(0)?.kernel().n_entries() as u64);
    let of_a_pass = entries / ENTRIES_PER_STEP * batch.steps_per_pass(problem.len()) / n;
    Ok(steps.unwrap_or(n).div_ceil(RECORDS).max(LEAST_BETWEEN_RECORDS).max(of_a_pass))
}

pub(crate) fn run(args: &FitArgs, global: &Global) -> Result<Outcome, Failure> {
    match &args.cohort {
        None => fit(args, None, global),
        Some(given) => {
            let (folder, out) = if CohortFolder::is_in(given) {
                (given.clone(), None)
            } else if given.extension().is_some_and(|extension| extension == "toml") {
                let out = args.output.open(global)?;
                let folder = out.file(COHORT_WITHIN);
                build_cohort(&InputArgs::of(given), &folder, global)?;
                (folder, Some(out))
            } else {
                let reason = "is neither a cohort nor a spec; `coirl cohort build` makes a cohort of a table";
                return Err(Failure::in_file(given, reason));
            };
            let learner = CohortFolder::open(&folder)?.file.spec.learner;
            let args = args.with_learner(&learner, &global.typed)?;
            fit(&FitArgs { data: args.data.in_cohort(&folder)?, ..args }, out, global)
        }
    }
}

/// Fits; `out` is the folder for the result, where it was opened before.
fn fit(args: &FitArgs, out: Option<OutputFolder>, global: &Global) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let entry = args.method.entry()?;
    let origin = Source {
        data: args.data.anchored()?,
        seed: global.seed,
        validation: args.run.validation,
        method: Some(entry.name.to_owned()),
    };
    // Before anything is learned, be it dynamics: an hour later is late to hear that nothing can be written.
    let folder = out.map_or_else(|| args.output.open(global), Ok)?;
    let SourceData { data: Data { model: given, estimator, truth, source, .. }, train, validation, left_out } =
        origin.open()?;
    if args.data.cohort().is_some() && validation.is_none() {
        let way_out =
            "give --steps, or build the cohort with more patients to validate on (see [split] in docs/cohorts.md)";
        note(
            global.quiet,
            &format!("the cohort has no stays to choose by, so that nothing says when to stop; {way_out}"),
        );
    }
    let examination =
        truth.as_ref().map(|truth| Examination::new(&given, &truth.mapping, truth.contexts.clone())).transpose()?;
    let has_validation = validation.is_some();
    let of_round = |problem: &Problem<'_>| Ok(args.settings(problem, has_validation, global.seed)?.0);
    let learned = args.dynamics.learn(&given, &train, &estimator, global.seed, examination.as_ref(), of_round)?;
    let model = learned.as_ref().map_or(Ok(&given), |learned| learned.model())?;
    let validation = validation.map(|kept| Problem::validation(model, &kept, &estimator)).transpose()?;
    let problem = Problem::new(model, &train, &estimator)?;
    let (settings, tolerance) = args.settings(&problem, has_validation, global.seed)?;
    let settings = learned.as_ref().map_or(Ok(settings.clone()), |learned| learned.settings(&settings))?;
    let expert = match (&truth, &learned) {
        (Some(truth), None) if entry.interactive => {
            Some(SimulatedExpert::new(model, truth.mapping.clone(), tolerance, global.seed)?)
        }
        (Some(_), Some(_)) if entry.interactive => {
            // A simulated expert would act in the learned dynamics, as no expert did.
            note(global.quiet, "with --learn-dynamics the expert that is asked is the record, not a simulation");
            None
        }
        _ => None,
    };
    let problem = match &expert {
        Some(expert) => problem.with_expert(expert),
        None => problem,
    };
    let scored_on = truth.as_ref().map(|truth| {
        let n = truth.contexts.len();
        match (&learned, truth.held_out) {
            (None, _) => truth.scored_on(),
            (Some(_), true) => format!("in --model, {n} test contexts"),
            (Some(_), false) => format!("in --model, {n} contexts learned from"),
        }
    });
    let watch = Watch { examination: examination.as_ref(), validation: validation.as_ref() };

    let extra_history = args.output.history.as_ref().and_then(Option::as_deref);
    if let Some(path) = extra_history {
        check_can_be_written(path)?;
    }
    let checkpoint_file = folder.file(CHECKPOINT);
    let from = if args.run.resume { earlier_run(&checkpoint_file, &settings, global)? } else { None };
    if from.is_none() && checkpoint_file.exists() {
        let there = format!("{} is there; with --resume the run goes on from it", checkpoint_file.display());
        note(global.quiet, &there);
    }
    on_interrupt();
    let between = Duration::from_secs_f64(args.run.checkpoint_every);
    let mut watcher = Watcher::new(checkpoint_file.clone(), between, args.run.stop_after, global.quiet);
    let fitted = match from {
        None => learn::fit(&problem, &settings, watch, &mut watcher)?,
        Some(checkpoint) => learn::resume(&problem, checkpoint, watch, &mut watcher)
            .map_err(|error| Failure::in_file(&checkpoint_file, error))?,
    };
    drop(watcher);
    if fitted.status == Status::Interrupted {
        let saved = format!("stopped after step {}; {} is saved", fitted.steps, checkpoint_file.display());
        note(global.quiet, &saved);
        note(global.quiet, &format!("to go on: {}", typed_command_with(&global.typed, "--resume")));
        return Ok(Outcome::Interrupted);
    }
    let score = match (&examination, scored_on) {
        (Some(examination), Some(on)) => Some((examination.score(&fitted.agent)?, on)),
        _ => None,
    };
    let by_accuracy = settings.stop.watched == Watched::Accuracy;
    let validation_accuracy = match &validation {
        Some(problem) if by_accuracy => Some(problem.accuracy(&fitted.agent)?),
        _ => None,
    };
    let validation_loss = match (&validation, fitted.mapping()) {
        _ if by_accuracy => None,
        (Some(problem), Ok(mapping)) => problem.unit_loss(mapping.values())?,
        _ => recorded_validation_loss(&fitted),
    };
    Manifest::withdraw(&folder)?;
    let mut files = write_files(&folder, &fitted, entry.name, extra_history)?;
    let own_model = folder.file(LEARNED_MODEL);
    let origin = if learned.is_some() {
        write_model(&own_model, model)?;
        files.insert("dynamics", own_model.display().to_string());
        let path = std::path::absolute(&own_model).map_err(|error| Failure::in_file(&own_model, error))?;
        Source { data: origin.data.in_model(path), ..origin }
    } else {
        // Dynamics that an earlier run left there are not this run's.
        let _ = std::fs::remove_file(&own_model);
        origin
    };
    origin.write(folder.path())?;
    let names = files.values().filter_map(|path| Path::new(path).file_name()?.to_str());
    let names: Vec<&str> = names.chain(["source.json"]).collect();
    Manifest::new("fit", global.seed, &fitted.settings)?
        .with_data("model and demonstrations", &fitted.digest)
        .write(&folder, names.iter().copied())?;
    let written = names.into_iter().chain(["manifest.json"]).collect::<Vec<_>>().join(", ");
    // Only what another run left behind can be missing here.
    let _ = std::fs::remove_file(&checkpoint_file);
    let dynamics = learned.as_ref().map(|learned| learned.report(&fitted, examination.as_ref())).transpose()?;
    dynamics.iter().flat_map(|dynamics| dynamics.notes()).for_each(|line| note(global.quiet, line));
    let report = Report::new(entry.name, &source, &fitted, score, validation_loss, files)
        .with_dynamics(dynamics)
        .with_validation_accuracy(validation_accuracy, left_out);
    if global.json {
        let line = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| report.write(out, began.elapsed(), problem.time_spent()))?;
    }
    note(global.quiet, &format!("\nwrote {written} to {}", folder.path().display()));
    if args.data.cohort().is_some() && fitted.agent.keeps_contexts() {
        note(
            global.quiet,
            "this method keeps the contexts of the stays it learned from: the result is as confidential as they are",
        );
    }
    Ok(Outcome::Done)
}

/// The validation loss of what was returned, where it has no mapping to compute it from.
fn recorded_validation_loss(fitted: &Fitted) -> Option<f64> {
    let mut losses = fitted.history.iter().filter_map(|record| record.validation_loss);
    match fitted.status {
        Status::ValidationStalled => losses.reduce(f64::min),
        _ => losses.next_back(),
    }
}

/// The checkpoint to go on from; none where there is none.
fn earlier_run(path: &Path, settings: &Settings, global: &Global) -> Result<Option<Checkpoint>, Failure> {
    if !path.exists() {
        note(global.quiet, &format!("{} is not there: starting from the beginning", path.display()));
        return Ok(None);
    }
    let checkpoint = read_checkpoint(path)?;
    if checkpoint.settings == *settings {
        return Ok(Some(checkpoint));
    }
    let as_json = |settings: &Settings| serde_json::to_value(settings).map_err(std::io::Error::from);
    let (then, now) = (as_json(&checkpoint.settings)?, as_json(settings)?);
    let differs = now.as_object().into_iter().flatten().find(|(key, value)| then.get(key) != Some(value));
    let reason = match differs {
        Some((key, value)) => {
            let before = then.get(key).unwrap_or(&serde_json::Value::Null);
            format!("was written by a run with other settings: {key} was {before} and is now {value}")
        }
        None => "was written by a run with other settings".into(),
    };
    Err(Failure::in_file(path, reason))
}

/// Writes the results; the files by what they are.
fn write_files(
    folder: &OutputFolder,
    fitted: &Fitted,
    method: &str,
    history: Option<&Path>,
) -> Result<BTreeMap<&'static str, String>, Failure> {
    let mut files = BTreeMap::new();
    let mut written = |what, path: PathBuf| drop(files.insert(what, path.display().to_string()));
    let write_history = |path: &Path| {
        to_file(path, |out| {
            for record in &fitted.history {
                serde_json::to_writer(&mut *out, record).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            Ok(())
        })
    };
    let lines = folder.file("history.jsonl");
    write_history(&lines)?;
    if let Some(path) = history {
        write_history(path)?;
    }
    written("history", lines);
    let matrix = folder.file("mapping.csv");
    match fitted.mapping() {
        Ok(mapping) => {
            let names = &fitted.names.features;
            to_file(&matrix, |out| write_matrix(out, names, mapping.values(), mapping.n_features()))?;
            written("mapping", matrix);
        }
        // A mapping that an earlier run left there is not this run's.
        Err(_) => drop(std::fs::remove_file(&matrix)),
    }
    let title = match fitted.names.model.as_str() {
        "" => method.to_owned(),
        model => format!("{model}, {method}"),
    };
    let svg = folder.file("fit.svg");
    match picture(&fitted.history, &title) {
        Some(image) => {
            to_file(&svg, |out| Ok(out.write_all(image.as_bytes())?))?;
            written("picture", svg);
        }
        None => drop(std::fs::remove_file(&svg)),
    }
    let artifact = folder.file(FITTED);
    write_fitted(&artifact, fitted)?;
    written("fitted", artifact);
    Ok(files)
}

/// A matrix below the names of its columns, where these cannot be taken for numbers.
pub(crate) fn write_matrix(
    out: &mut dyn Write,
    names: &[String],
    values: &[f64],
    n_columns: usize,
) -> Result<(), Failure> {
    let mut table = csv::Writer::from_writer(out);
    let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
    if names.len() == n_columns && names.iter().all(|name| name.trim().parse::<f64>().is_err()) {
        table.write_record(names).map_err(refused)?;
    }
    for row in values.chunks_exact(n_columns) {
        table.write_record(row.iter().copied().map(full)).map_err(refused)?;
    }
    Ok(table.flush()?)
}

/// The command that was typed, with one option more.
fn typed_command_with(typed: &[String], option: &str) -> String {
    let others = typed.iter().map(String::as_str).filter(|word| *word != option);
    let words = std::iter::once("coirl").chain(others).chain([option]);
    words.map(crate::text::shell_word).collect::<Vec<_>>().join(" ")
}
