//! `coirl fit`: from demonstrations to a mapping.

use crate::arguments::{Global, PAGE};
use crate::cohorts::{CohortFolder, InputArgs, too_many_parameters};
use crate::commands::cohort::build_cohort;
use crate::destination::{check_can_be_written, note, to_file, to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::fitting::{
    CHECKPOINT, Data, DataArgs, DynamicsArgs, EstimatorArg, FITTED, LEARNED_MODEL, MethodArgs, Report, Source,
    SourceData, Watcher, mapping_of, on_interrupt, picture, table_of_methods,
};
use crate::numbers::full;
use crate::output::{Manifest, OutputFolder};
use crate::tables::Table;
use clap::{Args, ValueEnum};
use coirl::agent::ContextualPolicy;
use coirl::artifact::{read_checkpoint, write_fitted, write_model};
use coirl::learn::{PATIENCE, Problem, Status, Watch, Watched};
use coirl::methods::{self, Checkpoint, Fitted, Reference, Settings, references};
use coirl::score::Examination;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    table_of_methods()
        + "
Methods that ask an expert go through the contexts one by one and learn only
from demonstrations that the expert gives when the agent does badly. With
--true-mapping the expert is simulated; without, it is the record, which
objects whenever the agent acts differently.

Examples:
  coirl fit
  coirl fit cohort --out run              from `coirl cohort build`
  coirl fit --method psgd --settings      what can be set, and the defaults
  coirl fit --method ew --set step_size.theory.multiplier=100 --json
  coirl fit --method network --set batch.without_replacement.size=64
  coirl fit --model driving --contexts contexts.csv \\
      --feature-expectations mu.csv --out my-fit
  coirl fit --model model.npz --contexts contexts.parquet \\
      --trajectories paths.parquet --true-mapping truth.csv \\
      --test-contexts test.csv
  coirl fit --model model.npz --contexts contexts.csv \\
      --trajectories paths.csv --learn-dynamics pooled --prior 2
  coirl info coirl-fit/fitted.safetensors

Exit status: as always, and 130 after Ctrl-C, with a checkpoint in --out."
}

/// Learn a mapping from demonstrations
#[derive(Debug, Clone, Args)]
#[command(before_help = EXPLANATION, after_help = examples(), help_template = PAGE)]
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
    /// Fraction of the demonstrations held out as validation set, for early stopping
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    validation: Option<f64>,
    /// Early stopping: end after N records without anything better on the validation set [default: 10]
    #[arg(long, value_name = "N")]
    patience: Option<u64>,
    /// What is better there: the loss, or the share of the actions that the agent would take [default: loss; accuracy for
    /// cohorts]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// The `[learner]` of a spec: options of a run, and settings of its method.
#[derive(Debug, Default, serde::Deserialize)]
struct LearnerSpec {
    method: Option<String>,
    steps: Option<u64>,
    passes: Option<u64>,
    stop_loss: Option<f64>,
    stop_gap: Option<f64>,
    patience: Option<u64>,
    watch: Option<WatchArg>,
    record_every: Option<u64>,
    tolerance: Option<f64>,
    estimator: Option<EstimatorArg>,
    #[serde(flatten)]
    settings: BTreeMap<String, toml::Value>,
}

impl FitArgs {
    /// With the learner that a spec asks for, but for what was typed.
    fn with_learner(&self, options: &BTreeMap<String, toml::Value>) -> Result<Self, Failure> {
        let table: toml::Table = options.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let spec: LearnerSpec =
            table.try_into().map_err(|error| Failure::refused(format!("[learner] of the spec: {error}")))?;
        let mut args = self.clone();
        args.method = self.method.with_spec(spec.method.as_deref(), spec.tolerance, spec.settings)?;
        args.data = args.data.or_estimator(spec.estimator);
        let run = &mut args.run;
        if run.steps.is_none() && run.passes.is_none() {
            (run.steps, run.passes) = (spec.steps, spec.passes);
        }
        run.stop_loss = run.stop_loss.or(spec.stop_loss);
        run.stop_gap = run.stop_gap.or(spec.stop_gap);
        run.patience = run.patience.or(spec.patience);
        run.watch = run.watch.or(spec.watch);
        args.output.record_every = args.output.record_every.or(spec.record_every);
        Ok(args)
    }

    /// The settings of a run on this problem, with or without validation demonstrations: what was typed, and what the data decide.
    fn settings(&self, problem: &Problem<'_>, validated: bool, seed: u64) -> Result<Settings, Failure> {
        let in_cohort = self.data.cohort().is_some();
        let mut settings = self.method.settings(seed)?;
        let patient = self.run.patience.or(settings.stop.patience).is_some();
        if patient && !in_cohort && self.run.validation.is_none() {
            return Err(Failure::refused("--patience goes with --validation: there are no demonstrations to stop by"));
        }
        let per_pass = settings.method.steps_per_pass(problem)?;
        let stop = &mut settings.stop;
        let passes = self.run.passes.map(|n| n.saturating_mul(per_pass));
        stop.max_steps = self.run.steps.or(passes).or(stop.max_steps);
        stop.loss = self.run.stop_loss.or(stop.loss);
        stop.gap = self.run.stop_gap.or(stop.gap);
        // Who holds demonstrations out wants to stop by them: a method that cannot is refused.
        let held_out = self.run.validation.map(|_| PATIENCE);
        stop.patience = self.run.patience.or(stop.patience).or(held_out).filter(|_| validated);
        stop.watched = match self.run.watch {
            Some(WatchArg::Loss) => Some(Watched::Loss),
            Some(WatchArg::Accuracy) => Some(Watched::Accuracy),
            None => stop.watched,
        };
        settings.record_every = self.output.record_every.or(settings.record_every);
        if let Some(path) = &self.run.initial {
            let table = Table::read(path, "mapping")?;
            settings.initial = Some(mapping_of(problem.model(), problem.data().dimension(), table)?.values().to_vec());
        }
        if in_cohort {
            settings = coirl_cohort::run_defaults(settings, validated);
        }
        Ok(settings.resolved_for(problem, validated)?)
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

pub(crate) fn run(args: &FitArgs, global: &Global) -> Result<Outcome, Failure> {
    if args.method.lists_settings() {
        let show = |out: &mut dyn Write| args.method.write_settings(out, global.json);
        if global.json {
            to_stdout(show)?
        } else {
            to_terminal(show)?
        }
        return Ok(Outcome::Done);
    }
    let Some(given) = &args.cohort else { return fit(args, None, global) };
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
    let args = args.with_learner(&CohortFolder::open(&folder)?.file.spec.learner)?;
    fit(&FitArgs { data: args.data.in_cohort(&folder)?, ..args }, out, global)
}

/// Said before a cohort is learned from that leaves nothing to validate on.
const NOTHING_TO_VALIDATE_ON: &str = "the cohort has no stays to choose by, so that nothing says when to stop; \
    give --steps, or build the cohort with more patients to validate on (see [split] in docs/cohorts.md)";
/// Said of a result that holds more of the patients than a mapping.
const KEEPS_CONTEXTS: &str =
    "this method keeps the contexts of the stays it learned from: the result is as confidential as they are";

/// Fits; `out` is the folder for the result, where it was opened before.
fn fit(args: &FitArgs, out: Option<OutputFolder>, global: &Global) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let entry = args.method.entry()?;
    args.data.check_estimator(entry.name, &args.method.settings(global.seed)?.method)?;
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
    let validated = validation.is_some();
    if args.data.cohort().is_some() && !validated {
        note(global.quiet, NOTHING_TO_VALIDATE_ON);
    }
    let examination =
        truth.as_ref().map(|truth| Examination::new(&given, &truth.mapping, truth.contexts.clone())).transpose()?;
    let of_round = |problem: &Problem<'_>| args.settings(problem, validated, global.seed);
    let learned =
        args.dynamics.learn(&given, &train, estimator.as_ref(), global.seed, examination.as_ref(), of_round)?;
    let model = learned.as_ref().map_or(Ok(&given), |learned| learned.model())?;
    let validation = validation.map(|kept| Problem::validation(model, &kept, estimator.as_ref())).transpose()?;
    let problem = Problem::new(model, &train, estimator.as_ref())?;
    let settings = args.settings(&problem, validated, global.seed)?;
    let settings = learned.as_ref().map_or(Ok(settings.clone()), |learned| learned.settings(&settings))?;
    let expert = match (&truth, &learned) {
        (Some(truth), None) if entry.is_interactive() => {
            Some(args.method.expert(&problem, &settings, truth.mapping.clone())?)
        }
        (Some(_), Some(_)) if entry.is_interactive() => {
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
    let watch = Watch { examination: examination.as_ref(), validation: validation.as_ref() };
    let Some(fitted) = learn(args, &problem, &settings, watch, &folder, global)? else {
        return Ok(Outcome::Interrupted);
    };
    let origin = Source { data: args.model_written(&folder, learned.as_ref().map(|_| model), origin.data)?, ..origin };
    let files = args.write_result(&folder, &fitted, entry.name, learned.is_some(), &origin, global)?;
    let dynamics = learned.as_ref().map(|learned| learned.report(&fitted, examination.as_ref())).transpose()?;
    dynamics.iter().flat_map(|dynamics| dynamics.notes()).for_each(|line| note(global.quiet, line));
    let score = match (&examination, &truth) {
        (Some(examination), Some(truth)) => {
            Some((examination.score(&fitted.agent)?, truth.scored_on(dynamics.is_some())))
        }
        _ => None,
    };
    let (validation_loss, accuracy) = validation_figures(&fitted, validation.as_ref())?;
    let written = files.values().filter_map(|path| Path::new(path).file_name()?.to_str());
    let written: Vec<&str> = written.chain(["source.json", "manifest.json"]).collect();
    let written = format!("\nwrote {} to {}", written.join(", "), folder.path().display());
    let report = Report::new(entry.name, &source, &fitted, score, validation_loss, files.clone())
        .with_dynamics(dynamics)
        .with_references(trivial_rules(&fitted, &problem)?)
        .with_validation_accuracy(accuracy, left_out)
        .with_limits(args.limits(&fitted, &problem)?);
    if global.json {
        let line = serde_json::to_string(&report).map_err(std::io::Error::from)?;
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| report.write(out, began.elapsed(), problem.planner().time()))?;
    }
    note(global.quiet, &written);
    if args.data.cohort().is_some() && fitted.agent.keeps_contexts() {
        note(global.quiet, KEEPS_CONTEXTS);
    }
    Ok(Outcome::Done)
}

/// Learns, from a checkpoint where one is to be gone on from; nothing where the run was interrupted.
fn learn(
    args: &FitArgs,
    problem: &Problem<'_>,
    settings: &Settings,
    watch: Watch<'_>,
    folder: &OutputFolder,
    global: &Global,
) -> Result<Option<Fitted>, Failure> {
    if let Some(path) = args.output.history.as_ref().and_then(Option::as_deref) {
        check_can_be_written(path)?;
    }
    let file = folder.file(CHECKPOINT);
    let from = if args.run.resume { earlier_run(&file, settings, global)? } else { None };
    if from.is_none() && file.exists() {
        let there = format!("{} is there; with --resume the run goes on from it", file.display());
        note(global.quiet, &there);
    }
    on_interrupt();
    let between = Duration::from_secs_f64(args.run.checkpoint_every);
    let mut watcher = Watcher::new(file.clone(), between, args.run.stop_after, global.quiet);
    let fitted = match from {
        None => methods::fit(problem, settings, watch, &mut watcher)?,
        Some(checkpoint) => {
            methods::resume(problem, checkpoint, watch, &mut watcher).map_err(|error| Failure::in_file(&file, error))?
        }
    };
    drop(watcher);
    if fitted.status != Status::Interrupted {
        return Ok(Some(fitted));
    }
    note(global.quiet, &format!("stopped after step {}; {} is saved", fitted.steps, file.display()));
    note(global.quiet, &format!("to go on: {}", typed_command_with(&global.typed, "--resume")));
    Ok(None)
}

/// Loss and accuracy on the validation demonstrations of what was returned: whichever was watched.
fn validation_figures(
    fitted: &Fitted,
    validation: Option<&Problem<'_>>,
) -> Result<(Option<f64>, Option<f64>), Failure> {
    let by_accuracy = fitted.settings.stop.watched == Some(Watched::Accuracy);
    Ok(match (validation, fitted.mapping()) {
        (Some(problem), _) if by_accuracy => (None, Some(problem.accuracy(&fitted.agent)?)),
        (Some(problem), Ok(mapping)) => (problem.unit_loss_of(mapping)?, None),
        _ if by_accuracy => (None, None),
        _ => (recorded_validation_loss(fitted), None),
    })
}

impl FitArgs {
    /// Writes a model whose dynamics were learned, and says where the data are to be found from now on.
    fn model_written(
        &self,
        folder: &OutputFolder,
        learned: Option<&coirl::model::Cmdp>,
        data: DataArgs,
    ) -> Result<DataArgs, Failure> {
        let own = folder.file(LEARNED_MODEL);
        Manifest::withdraw(folder)?;
        let Some(model) = learned else {
            // Dynamics that an earlier run left there are not this run's.
            let _ = std::fs::remove_file(&own);
            return Ok(data);
        };
        write_model(&own, model)?;
        Ok(data.in_model(std::path::absolute(&own).map_err(|error| Failure::in_file(&own, error))?))
    }

    /// What limits a run on a cohort, in words; nothing for others.
    fn limits(&self, fitted: &Fitted, problem: &Problem<'_>) -> Result<Vec<(&'static str, String)>, Failure> {
        let Some(cohort) = self.data.cohort() else { return Ok(Vec::new()) };
        let steps =
            (0..problem.len()).flat_map(|i| problem.data().trajectories(i)).map(|path| path.actions.len()).sum();
        let told = too_many_parameters("the agent", &fitted.agent, steps, problem.len());
        // What was done to those who are scored on is for scores to tell.
        let limits = CohortFolder::open(cohort)?.limits()?.before_scoring();
        Ok(limits.in_words(&[]).into_iter().chain(told).collect())
    }

    /// Writes everything else, the manifest last; the files by what they are.
    fn write_result(
        &self,
        folder: &OutputFolder,
        fitted: &Fitted,
        method: &str,
        learned_dynamics: bool,
        origin: &Source,
        global: &Global,
    ) -> Result<BTreeMap<&'static str, String>, Failure> {
        let mut files = write_files(folder, fitted, method, self.output.history.as_ref().and_then(Option::as_deref))?;
        if learned_dynamics {
            files.insert("dynamics", folder.file(LEARNED_MODEL).display().to_string());
        }
        origin.write(folder.path())?;
        let names = files.values().filter_map(|path| Path::new(path).file_name()?.to_str());
        Manifest::new("fit", global.seed, &fitted.settings)?
            .with_data("model and demonstrations", &fitted.digest)
            .write(folder, names.chain(["source.json"]))?;
        // Only what another run left behind can be missing here.
        let _ = std::fs::remove_file(folder.file(CHECKPOINT));
        Ok(files)
    }
}

/// Rules that a choice model has to beat.
fn trivial_rules(fitted: &Fitted, problem: &Problem<'_>) -> Result<Vec<Reference>, Failure> {
    match &fitted.certificate.explained {
        Some(explained) if explained.lapses.is_some() => Ok(references(problem, fitted.settings.seed)?),
        _ => Ok(Vec::new()),
    }
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
            // Weights that everybody has are one more row, the last.
            let values = mapping.all_weights();
            to_file(&matrix, |out| write_matrix(out, names, "feature", &values, mapping.n_features()))?;
            written("mapping", matrix);
            let errors = fitted.certificate.explained.as_ref().and_then(|own| own.standard_errors.as_ref());
            if let Some(errors) = errors {
                let all = errors.mapping.iter().chain(errors.intercept.iter().flatten());
                let values: Vec<f64> = all.map(|error| error.unwrap_or(f64::NAN)).collect();
                let table = folder.file("standard-errors.csv");
                to_file(&table, |out| write_matrix(out, names, "feature", &values, mapping.n_features()))?;
                written("standard errors", table);
            }
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

/// A matrix below the names of its columns, where these cannot be taken for numbers; columns without names are numbered, `feature_0` and so on.
pub(crate) fn write_matrix(
    out: &mut dyn Write,
    names: &[String],
    of_one: &str,
    values: &[f64],
    n_columns: usize,
) -> Result<(), Failure> {
    let mut table = csv::Writer::from_writer(out);
    let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
    if names.len() != n_columns {
        table.write_record((0..n_columns).map(|i| format!("{of_one}_{i}"))).map_err(refused)?;
    } else if names.iter().all(|name| name.trim().parse::<f64>().is_err()) {
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
