//! `coirl cohort`: from a table of people to a contextual model, and how what was learned from it does on people it has not seen.

use super::apply::{self, ApplyArgs};
use crate::arguments::{Global, PAGE};
use crate::cohorts::{
    CohortFolder, CohortRun, ExamArgs, InputArgs, NOT_FOR_CLINICAL_USE, TruthFile, selection_picture, warnings,
    write_build, write_comparison, write_findings, write_scores, write_selection,
};
use crate::destination::{note, to_file, to_stdout, to_terminal};
use crate::experiments::shipped;
use crate::failure::{Failure, Outcome};
use crate::numbers::{count, full};
use crate::output::OutputFolder;
use crate::progress;
use clap::{Args, Subcommand, ValueEnum};
use coirl::clustering::Step;
use coirl::methods::Fitted;
use coirl_cohort::synthetic::{Clinician, Synthetic};
use coirl_cohort::{BuildStage, Cohort, Selected, Selection, Spec, Table, build, lint, presets, select};
use coirl_experiments::cohort::{Fared, enter};
use coirl_experiments::{Entrant, Experiment, Scale};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const EXPLANATION: &str = "\
A long table has one row per stay and step: who, when, measurements, doses and the outcome. `build` makes a contextual \
model of it, with everything fitted on training patients only; `fit` learns from it; `score` compares with patients that \
nothing was learned from. A spec, one TOML file, says which column is what; presets know the tables of the AI Clinician and \
its variants. `synthesize` writes such a table of simulated patients whose truth is known. Research software, not for \
clinical use.";

const EXAMPLES: &str = "\
Examples:
  coirl cohort synthesize --stays 15000 --seed 1 --out table.csv
  coirl cohort lint table.csv
  coirl cohort build table.csv --states 750 --out cohort
  coirl fit cohort --out run
  coirl cohort score run
  coirl cohort apply run other.csv            the same on another table
  coirl cohort compare table.csv --seeds 5
  coirl cohort select table.csv --out choice
  coirl cohort spec long > spec.toml          your own table: fill it in, then
  coirl cohort build spec.toml --out cohort";

/// From a table of people to a contextual model
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE, arg_required_else_help = true)]
pub(crate) struct CohortArgs {
    #[command(subcommand)]
    command: CohortCommand,
}

#[derive(Debug, Subcommand)]
enum CohortCommand {
    Synthesize(SynthesizeArgs),
    Spec(SpecArgs),
    Lint(LintArgs),
    Build(BuildArgs),
    Select(SelectArgs),
    Score(ScoreArgs),
    Apply(ApplyArgs),
    Compare(CompareArgs),
}

pub(crate) fn run(args: CohortArgs, global: &Global) -> Result<Outcome, Failure> {
    match args.command {
        CohortCommand::Synthesize(args) => synthesize(&args, global)?,
        CohortCommand::Spec(args) => spec(&args, global)?,
        CohortCommand::Lint(args) => lint_table(&args, global)?,
        CohortCommand::Build(args) => drop(build_cohort(&args.input, &args.out, global)?),
        CohortCommand::Select(args) => select_states(&args, global)?,
        CohortCommand::Score(args) => score(&args, global)?,
        CohortCommand::Apply(args) => apply::run(&args, global)?,
        CohortCommand::Compare(args) => compare(&args, global)?,
    }
    Ok(Outcome::Done)
}

const SYNTHESIZE: &str = "\
Writes a table with exactly the columns and units of the AI Clinician's, of patients in the sepsis simulator, treated by clinicians \
whose wishes are known. Doses are standard amounts, so that binning gives every action back. Beside the table lies \
TABLE.truth.json, what it was made with: `build` keeps it, and `score` then knows what a policy is worth in truth.";

/// Write a table of simulated patients whose truth is known
#[derive(Debug, Args)]
#[command(before_help = SYNTHESIZE, help_template = PAGE)]
struct SynthesizeArgs {
    /// The schema
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Schema::AiClinician)]
    preset: Schema,
    /// Stays to write
    #[arg(long, value_name = "N", default_value_t = 15_000)]
    stays: usize,
    /// What clinicians want: a linear function of the context, or one of two rewards by age
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ClinicianArg::Linear)]
    clinician: ClinicianArg,
    /// Standard deviation of measurements around the centre of their state, in z-scores
    #[arg(long, value_name = "X", default_value_t = Synthetic::default().noise, allow_negative_numbers = true)]
    noise: f64,
    /// Share of actions that are not the best
    #[arg(long, value_name = "SHARE", default_value_t = Synthetic::default().lapses, allow_negative_numbers = true)]
    lapses: f64,
    /// Share of measurements that are left empty
    #[arg(long, value_name = "SHARE", default_value_t = Synthetic::default().missing, allow_negative_numbers = true)]
    missing: f64,
    /// The table to write (.csv, or .csv.gz for a compressed one)
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Schema {
    AiClinician,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClinicianArg {
    Linear,
    #[value(alias = "non-linear")]
    Threshold,
}

fn synthesize(args: &SynthesizeArgs, global: &Global) -> Result<(), Failure> {
    let settings = Synthetic {
        stays: args.stays,
        seed: global.seed,
        clinician: match args.clinician {
            ClinicianArg::Linear => Clinician::Linear,
            ClinicianArg::Threshold => Clinician::Threshold,
        },
        noise: args.noise,
        lapses: args.lapses,
        missing: args.missing,
        ..Synthetic::default()
    };
    let name = args.out.file_name().unwrap_or_default().to_string_lossy();
    let compressed = name.ends_with(".csv.gz");
    if !compressed && !name.ends_with(".csv") {
        return Err(Failure::in_file(&args.out, "the extension names no format; expected .csv or .csv.gz"));
    }
    let bar = progress::stage("simulating", global.quiet);
    bar.set_length(args.stays as u64);
    // Only who is in it: the digest of the table needs no numbers.
    let mut people = Table::new(&[], false);
    to_file(&args.out, |out| {
        if !compressed {
            return simulate(&settings, out, &mut people, &bar);
        }
        let mut encoder = GzEncoder::new(out, Compression::default());
        simulate(&settings, &mut encoder, &mut people, &bar)?;
        encoder.finish()?;
        Ok(())
    })?;
    bar.finish_and_clear();
    let truth = TruthFile::beside(&args.out);
    let rows = people.n_rows();
    TruthFile { settings, rows, stays: people.fingerprint() }.write(&truth)?;
    if global.json {
        let line = json!({"table": args.out, "truth": truth, "stays": args.stays, "rows": rows});
        return to_stdout(|out| Ok(writeln!(out, "{line}")?));
    }
    let (stays, rows) = (count(args.stays), count(rows));
    note(
        global.quiet,
        &format!("wrote {stays} stays, {rows} rows, to {}, and {}", args.out.display(), truth.display()),
    );
    note(global.quiet, NOT_FOR_CLINICAL_USE);
    Ok(())
}

/// Writes the rows of all stays; who they are of is also kept in `people`.
fn simulate(
    settings: &Synthetic,
    out: &mut dyn Write,
    people: &mut Table,
    bar: &indicatif::ProgressBar,
) -> Result<(), Failure> {
    let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
    let mut table = csv::Writer::from_writer(out);
    table.write_record(Synthetic::columns()).map_err(refused)?;
    let mut failure = None;
    let generated = settings.generate(|stay| {
        bar.inc(1);
        for row in &stay.rows {
            let cells = row.iter().map(|&x| if x.is_nan() { String::new() } else { x.to_string() });
            let written = table.write_record(cells).map_err(refused);
            let counted = written.and_then(|()| Ok(people.push(&stay.id.to_string(), None, 0.0, [])?));
            if let Err(error) = counted {
                failure = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    match failure {
        Some(failure) => return Err(failure),
        None => generated?,
    }
    Ok(table.flush()?)
}

const SPEC: &str = "\
Without a name lists the presets. With one prints it as TOML: save it, change what differs, name the table under [table], \
path, and build from the file.";

/// Print a preset to begin a spec from
#[derive(Debug, Args)]
#[command(before_help = SPEC, help_template = PAGE)]
struct SpecArgs {
    /// The preset
    #[arg(value_name = "NAME")]
    preset: Option<String>,
}

fn spec(args: &SpecArgs, global: &Global) -> Result<(), Failure> {
    let Some(name) = &args.preset else {
        let about = |name: &&str| -> Result<(String, String), Failure> {
            let comment = presets::text(name)?.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
            let comment = comment.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
            // The first sentence: a point before a capital letter. "et al. 2018" is none.
            let ends = |(at, _): &(usize, &str)| comment[at + 2..].starts_with(char::is_uppercase);
            let end = comment.match_indices(". ").find(ends).map_or(comment.len(), |(at, _)| at);
            Ok((name.to_string(), comment[..end].trim_end_matches(['.', ':']).to_owned()))
        };
        let all = presets::NAMES.iter().map(about).collect::<Result<Vec<_>, _>>()?;
        if global.json {
            let list: Vec<_> = all.iter().map(|(name, about)| json!({"name": name, "about": about})).collect();
            return to_stdout(|out| Ok(writeln!(out, "{}", json!(list))?));
        }
        return to_terminal(|out| {
            let rows = all.iter().map(|(name, about)| vec![name.clone(), about.clone()]).collect();
            Ok(crate::text::table(out, &["preset", "of"], &[], rows)?)
        });
    };
    let text = presets::text(name)?;
    if global.json {
        let spec = serde_json::to_string(&Spec::preset(name)?).map_err(std::io::Error::from)?;
        return to_stdout(|out| Ok(writeln!(out, "{spec}")?));
    }
    to_stdout(|out| Ok(out.write_all(text.as_bytes())?))
}

const LINT: &str = "\
Reads the table and says what somebody should look at before believing it: columns that know the action of their own step or \
the outcome, units that are not what they are said to be, two people under one id, a patient in two parts of the split, values that are \
missing for a reason, columns that say nothing, actions that are nearly always the same. `build` says the same and more.";

/// Say what is suspicious about a table
#[derive(Debug, Args)]
#[command(before_help = LINT, help_template = PAGE)]
struct LintArgs {
    #[command(flatten)]
    input: InputArgs,
}

fn lint_table(args: &LintArgs, global: &Global) -> Result<(), Failure> {
    let (spec, path, table) = args.input.read(global.quiet)?;
    let findings = lint(&table, &spec, global.seed).map_err(|error| Failure::in_file(&path, error))?;
    if global.json {
        let line =
            serde_json::to_string(&json!({"table": path, "findings": findings})).map_err(std::io::Error::from)?;
        return to_stdout(|out| Ok(writeln!(out, "{line}")?));
    }
    to_terminal(|out| {
        if findings.is_empty() {
            writeln!(out, "{}: nothing suspicious", path.display())?;
        }
        write_findings(out, &findings)
    })
}

const BUILD: &str = "\
Makes a contextual model of a table. Patients are split 60/20/20; on the training patients doses are binned, measurements \
standardised, rows clustered to states, contexts scaled and transitions counted. The folder --out holds the model, the stays of \
each part in the numbers of the model (contexts.csv, trajectories.csv, stays.csv), the flow of stays that were left out \
(flow.csv), what the states look like (states.csv), where every variable comes from and what became of it (columns.csv) and how it was built \
(cohort.json, spec.toml).";

const BUILD_EXAMPLES: &str = "\
Examples:
  coirl cohort build table.csv --out cohort
  coirl cohort build --preset ai-clinician table.csv.gz --states 750 --out cohort
  coirl cohort build table.parquet --set dynamics.context_clusters=5 --out c
  coirl cohort build spec.toml --seed 3 --out cohort";

/// Make a contextual model of a table
#[derive(Debug, Args)]
#[command(before_help = BUILD, after_help = BUILD_EXAMPLES, help_template = PAGE)]
struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Folder to write to
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

/// Builds a cohort and writes it.
pub(crate) fn build_cohort(input: &InputArgs, out: &Path, global: &Global) -> Result<Cohort, Failure> {
    let folder = CohortFolder::create(out, global)?;
    let (spec, path, table) = input.read(global.quiet)?;
    let bar = progress::counted("finding states", "rounds", global.quiet);
    let built = build(&table, &spec, global.seed, |stage| {
        if let BuildStage::States(progress) = stage {
            match progress.step {
                Step::Drawn { .. } => bar.tick(),
                Step::Moved { iterations, .. } => bar.set_position(iterations as u64),
            }
        }
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let cohort = built.map_err(|error| Failure::in_file(&path, error))?;
    let truth = TruthFile::read(&path, &table, global.quiet)?;
    drop(table);
    let file = CohortFolder::write(&folder, &cohort, &path, truth)?;
    if global.json {
        let line = json!({
            "out": out,
            "states": cohort.encoder.centroids.n_clusters(),
            "actions": cohort.encoder.actions.len(),
            "features": cohort.model.n_features(),
            "stays": {
                "train": cohort.train.stays().len(),
                "validation": cohort.validation.stays().len(),
                "test": cohort.test.stays().len(),
            },
            "flow": cohort.flow,
            "support": cohort.support,
            "inertia": cohort.inertia,
            "findings": cohort.findings,
        });
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| write_build(out, &cohort, &file))?;
    }
    note(global.quiet, &format!("\nwrote the cohort to {}; now: coirl fit {}", out.display(), out.display()));
    Ok(cohort)
}

const SELECT: &str = "\
Tries numbers of states, measurements and weights, and shows what the paper judges models by, beside what makes it honest: T1, different \
actions in one state (and the same for actions shuffled within their stay), T2, different states per step, the share of steps whose (state, action) no \
training stay has, and the negative log-likelihood of actions, all on validation stays, with what is gained on the shares of actions alone. Chosen is the \
smallest model within one standard error of the best likelihood. Warnings of the linter come first: what leaks the action is the best measurement.";

/// Defaults as they are typed.
static CLUSTERS: LazyLock<String> = LazyLock::new(|| as_typed(&Selection::default().clusters));
static WEIGHTS: LazyLock<String> = LazyLock::new(|| as_typed(&Selection::default().weights));

fn as_typed(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Choose the number of states and the measurements
#[derive(Debug, Args)]
#[command(before_help = SELECT, help_template = PAGE)]
struct SelectArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Numbers of states to try
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = CLUSTERS.as_str())]
    clusters: Vec<usize>,
    /// States for looking at measurements one by one
    #[arg(long, value_name = "K", default_value_t = Selection::default().screening_clusters)]
    screening: usize,
    /// How many of the best single measurements go on
    #[arg(long, value_name = "N", default_value_t = Selection::default().keep)]
    keep: usize,
    /// Factors to try on each weight
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = WEIGHTS.as_str())]
    weights: Vec<f64>,
    /// Folder for selection.csv, selection.svg and the chosen spec.toml
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

fn select_states(args: &SelectArgs, global: &Global) -> Result<(), Failure> {
    let (spec, path, table) = args.input.read(global.quiet)?;
    let selection = Selection {
        clusters: args.clusters.clone(),
        screening_clusters: args.screening,
        keep: args.keep,
        weights: args.weights.clone(),
    };
    let folder = OutputFolder::open(&args.out, global)?;
    // What leaks is chosen first: it is to be known before anything is believed.
    let findings = lint(&table, &spec, global.seed).map_err(|error| Failure::in_file(&path, error))?;
    let bar = progress::stage("trying states", global.quiet);
    let tried = select(&table, &spec, &selection, global.seed, |_, total| {
        bar.set_length(total as u64);
        bar.inc(1);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let selected = tried.map_err(|error| Failure::in_file(&path, error))?;
    write_candidates(&folder.file("selection.csv"), &selected)?;
    if let Some(image) = selection_picture(&selected.candidates) {
        to_file(&folder.file("selection.svg"), |out| Ok(out.write_all(image.as_bytes())?))?;
    }
    if let Some(chosen) = selected.chosen() {
        let mut spec = spec.with_states(&chosen.candidate);
        spec.table.path = Some(std::path::absolute(&path).map_err(|error| Failure::in_file(&path, error))?);
        let text = spec.to_toml()?;
        to_file(&folder.file("spec.toml"), |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    if global.json {
        let line = json!({
            "warnings": warnings(&findings),
            "without_state": selected.without_state,
            "candidates": selected.candidates,
        });
        return to_stdout(|out| Ok(writeln!(out, "{line}")?));
    }
    to_terminal(|out| write_selection(out, &findings, &selected))?;
    let out = args.out.display();
    note(
        global.quiet,
        &format!(
            "\nwrote selection.csv, selection.svg and spec.toml to {out}; now: coirl cohort build {out}/spec.toml --out cohort"
        ),
    );
    Ok(())
}

fn write_candidates(path: &Path, selected: &Selected) -> Result<(), Failure> {
    let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
    to_file(path, |out| {
        let mut table = csv::Writer::from_writer(out);
        let header = [
            "stage",
            "states",
            "measurements",
            "negative_log_likelihood",
            "standard_error",
            "gain",
            "gain_error",
            "actions_per_state",
            "actions_per_state_shuffled",
            "states_per_stay",
            "states_per_step",
            "unseen",
            "chosen",
        ];
        table.write_record(header).map_err(refused)?;
        let without = selected.without_state;
        let mut first = vec!["without_state".to_owned(), String::new(), String::new()];
        first.extend([without.negative_log_likelihood, without.standard_error].map(full));
        first.resize(header.len(), String::new());
        table.write_record(first).map_err(refused)?;
        for score in &selected.candidates {
            let candidate = &score.candidate;
            let named: Vec<String> =
                candidate.measurements.iter().map(|(name, weight)| format!("{name}*{weight}")).collect();
            let stage = serde_json::to_value(candidate.stage).map_err(std::io::Error::from)?;
            let words =
                [stage.as_str().unwrap_or_default().to_owned(), candidate.clusters.to_string(), named.join(" ")];
            let numbers = [
                score.negative_log_likelihood,
                score.standard_error,
                score.gain,
                score.gain_error,
                score.actions_per_state,
                score.actions_per_state_shuffled,
                score.states_per_stay,
                score.states_per_step,
                score.unseen,
            ];
            let chosen = u8::from(score.chosen).to_string();
            table.write_record(words.into_iter().chain(numbers.map(full)).chain([chosen])).map_err(refused)?;
        }
        Ok(table.flush()?)
    })
}

const SCORE: &str = "\
Compares what was learned with patients that nothing was learned from. Action matching: how often the agent would have done what was done, by step, \
by patient, by visited state as in the paper's code, among its first three, within one level of every dose, macro-F1 and log-loss, with intervals over resampled \
patients and by subgroup. Off-policy evaluation: what share of the patients would have survived, by fitted Q evaluation (FQE), weighted \
importance sampling (WIS, and per decision) and weighted doubly robust estimation (WDR); refused where it cannot be told. On a synthetic table: what the \
policy is worth in truth.";

/// Score what was learned on patients it has not seen
#[derive(Debug, Args)]
#[command(before_help = SCORE, help_template = PAGE)]
struct ScoreArgs {
    /// Output folders of `coirl fit`, all from one cohort
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    exam: ExamArgs,
}

fn score(args: &ScoreArgs, global: &Global) -> Result<(), Failure> {
    let runs = args.runs.iter().map(|path| CohortRun::open(path)).collect::<Result<Vec<_>, _>>()?;
    let cohort = &runs[0].cohort;
    if let Some((other, path)) = runs.iter().zip(&args.runs).find(|(run, _)| run.cohort.path() != cohort.path()) {
        let reason =
            format!("learned from {}, the first run from {}", other.cohort.path().display(), cohort.path().display());
        return Err(Failure::in_file(path, reason));
    }
    let examined: Vec<(&Path, &Fitted)> =
        args.runs.iter().zip(&runs).map(|(path, run)| (path.as_path(), &run.fitted)).collect();
    let scores = args.exam.score(cohort, &examined, global.seed, global.quiet)?;
    if global.json {
        let warnings = warnings(&cohort.file.findings);
        let line = scores.to_json(json!({"warnings": warnings, "note": NOT_FOR_CLINICAL_USE}))?;
        return to_stdout(|out| Ok(writeln!(out, "{line}")?));
    }
    to_terminal(|out| write_scores(out, &cohort.file, &cohort.file.findings, &scores))
}

const COMPARE: &str = "\
Trains and scores every method on the same table, once per seed: patients are split anew, states found anew. COIRL with a network and a linear mapping and \
cloning, each as the paper trains it and as it works best here, and what is trivial. Beside it stand the paper's figures, from \
other patients, other measurements, other states and a test set that its published code also validates on: the order of methods can be compared, the numbers cannot.";

/// Compare all methods over several seeds, beside the paper's table
#[derive(Debug, Args)]
#[command(before_help = COMPARE, help_template = PAGE)]
struct CompareArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Seeds, from --seed on
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Methods whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write every run to this file (.jsonl)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn compare(args: &CompareArgs, global: &Global) -> Result<(), Failure> {
    if args.seeds == 0 {
        return Err(Failure::refused("--seeds 0: expected at least 1"));
    }
    let (spec, path, table) = args.input.read(global.quiet)?;
    let truth = TruthFile::read(&path, &table, global.quiet)?;
    let wanted = |entrant: &Entrant| args.only.as_ref().is_none_or(|text| entrant.name.contains(text.as_str()));
    // Who takes part is the experiment that ships.
    let entrants = Experiment::read(shipped("patients")?, Scale::Usual, &[])?.methods;
    let entrants: Vec<Entrant> = entrants.into_iter().filter(wanted).collect();
    if entrants.is_empty() {
        return Err(Failure::refused("--only: no method has this in its name"));
    }
    let bar = progress::stage("comparing", global.quiet);
    bar.set_length(args.seeds * entrants.len() as u64);
    let mut fared: Vec<Fared> = Vec::new();
    for seed in global.seed..global.seed + args.seeds {
        let cohort = build(&table, &spec, seed, |_| ControlFlow::Continue(()))
            .map_err(|error| Failure::in_file(&path, error))?;
        for entrant in &entrants {
            fared.push(enter(entrant, &cohort, truth.as_ref(), &mut ())?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(out) = &args.out {
        to_file(out, |file| {
            for run in &fared {
                serde_json::to_writer(&mut *file, run).map_err(std::io::Error::from)?;
                writeln!(file)?;
            }
            Ok(())
        })?;
    }
    if global.json {
        let line = serde_json::to_string(&fared).map_err(std::io::Error::from)?;
        return to_stdout(|out| Ok(writeln!(out, "{line}")?));
    }
    to_terminal(|out| write_comparison(out, &entrants, &fared, args.seeds))
}
