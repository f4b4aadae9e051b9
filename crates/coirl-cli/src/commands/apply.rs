//! `coirl cohort apply`: a new table, or one person's measurements, in a cohort that was built and by what was learned from it.

use crate::arguments::{Global, PAGE};
use crate::cohorts::{
    Applying, CohortRun, ExamArgs, FLOW, NOT_FOR_CLINICAL_USE, PersonAnswer, TruthFile, warnings, write_coded,
    write_flow,
};
use crate::contexts::ContextText;
use crate::destination::{note, to_file, to_stdout, to_terminal};
use crate::failure::Failure;
use crate::output::OutputFolder;
use crate::progress;
use crate::tables::long;
use clap::{ArgGroup, Args};
use coirl_cohort::{Person, apply};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXPLANATION: &str = "\
Codes people that the cohort has never seen with the levels, scaling, fill values and states that were fitted on its training \
patients; nothing is fitted again. A table gets the scores of `cohort score`, all of its stays being test stays, and a drift report: \
how far each column is from training, how many steps are in states that are rare there, far from their state, or with actions \
that the model does not admit. The outcome may be missing. One person's measurements get their state, what similar patients \
were given in training, and what the agent would do. Columns have the names and units of the table that the cohort was built \
from; what is not given is filled in as in training, and said.";

const EXAMPLES: &str = "\
Examples:
  coirl cohort apply run other-hospital.csv
  coirl cohort apply run other-hospital.csv --json --out coded
  coirl cohort apply run --measure HR=110,MeanBP=60,RR=24 \\
      --context age=23000,gender=1,Weight_kg=80
  coirl cohort apply run --measure HR=105,MeanBP=66 --context age=23000 \\
      --before SOFA=9,input_4hourly=500,max_dose_vaso=0.1";

const USAGE: &str = "\
coirl cohort apply [OPTIONS] <RUN> <TABLE>
       coirl cohort apply [OPTIONS] <RUN> --measure <M=X,…>";

const CODED: &str = "drift.json";

/// Apply what was learned to a new table, or to one person
#[derive(Debug, Args)]
#[command(
    before_help = EXPLANATION,
    after_help = EXAMPLES,
    help_template = PAGE,
    override_usage = USAGE,
    group = ArgGroup::new("new").args(["table", "measure"]).required(true)
)]
pub(crate) struct ApplyArgs {
    /// The folder that `coirl fit` has written from a cohort
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// A table of other people (.csv, .csv.gz, .parquet), with the columns of the one that the cohort was built from
    #[arg(value_name = "TABLE")]
    table: Option<PathBuf>,
    /// Folder for the coded stays (contexts.csv, trajectories.csv, stays.csv, points.npy), flow.csv and drift.json
    #[arg(long, short, value_name = "DIR", requires = "table")]
    out: Option<PathBuf>,
    #[command(flatten)]
    person: PersonArgs,
    #[command(flatten, next_help_heading = "Scores of a table, as of `cohort score`")]
    exam: ExamArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "One person")]
struct PersonArgs {
    /// What is measured now, by column: HR=110,MeanBP=60
    #[arg(long, value_name = "M=X,…", allow_hyphen_values = true, conflicts_with = "table")]
    measure: Option<ContextText>,
    /// Fields of the context: age=23000,gender=1 [default: training medians]
    #[arg(long, value_name = "C=X,…", allow_hyphen_values = true, requires = "measure")]
    context: Option<ContextText>,
    /// What was measured and given in the step before [default: this is the first step]
    #[arg(long, value_name = "M=X,…", allow_hyphen_values = true, requires = "measure")]
    before: Option<ContextText>,
}

pub(crate) fn run(args: &ApplyArgs, global: &Global) -> Result<(), Failure> {
    let run = CohortRun::open(&args.run)?;
    match &args.table {
        Some(table) => apply_to_table(args, &run, table, global),
        None => apply_to_person(args, &run, global),
    }
}

fn apply_to_table(args: &ApplyArgs, run: &CohortRun, path: &Path, global: &Global) -> Result<(), Failure> {
    let folder = args.out.as_ref().map(|out| OutputFolder::open_own(out, &[CODED], &[], global)).transpose()?;
    let cohort = &run.cohort;
    let (file, model) = (&cohort.file, cohort.model()?);
    let bar = progress::counted("reading", "rows", global.quiet);
    let read = long::read_new(path, &file.spec, |rows| bar.set_position(rows));
    bar.finish_and_clear();
    let (table, spec) = read?;
    let truth = TruthFile::read(path, &table, global.quiet)?;
    let applied = apply(&table, &spec, &file.encoder, &model, &file.reference, cohort.ends())
        .map_err(|error| Failure::in_file(path, error))?;
    drop(table);
    let examined = [(args.run.as_path(), &run.fitted)];
    let scores =
        args.exam.score_on(cohort, &model, &examined, (&applied.stays, truth.as_ref()), global.seed, global.quiet)?;
    let learned_from = (cohort.train(&model)?, cohort.validation(&model)?);
    let applying =
        Applying::new(path, file, &spec, &applied, learned_from.0.stays().iter().chain(learned_from.1.stays()));
    if let Some(folder) = &folder {
        let _ = std::fs::remove_file(folder.file(CODED));
        write_coded(folder, &model, &file.encoder, applied.stays.stays())?;
        write_flow(&folder.file(FLOW), &applied.flow)?;
        let text = serde_json::to_string_pretty(&applied.drift).map_err(std::io::Error::from)?;
        to_file(&folder.file(CODED), |out| Ok(writeln!(out, "{text}")?))?;
    }
    if global.json {
        let line = scores.to_json(json!({
            "table": path, "flow": applied.flow, "drift": applied.drift, "known": applying.known, "outcome": applying.with_outcome,
            "warnings": warnings(&file.findings), "note": NOT_FOR_CLINICAL_USE,
        }))?;
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| applying.write(out, &scores))?;
    }
    if let Some(out) = &args.out {
        note(global.quiet, &format!("wrote the coded stays to {}", out.display()));
    }
    Ok(())
}

fn apply_to_person(args: &ApplyArgs, run: &CohortRun, global: &Global) -> Result<(), Failure> {
    let named = |option: &str, typed: &Option<ContextText>| {
        let named = typed.as_ref().map(ContextText::by_name).transpose();
        named.map_err(|reason| Failure::refused(format!("--{option}: {reason}")))
    };
    let PersonArgs { measure, context, before } = &args.person;
    let person = Person {
        measured: named("measure", measure)?.unwrap_or_default(),
        fields: named("context", context)?.unwrap_or_default(),
        before: named("before", before)?,
    };
    let file = &run.cohort.file;
    let recognised = person.recognise(&file.spec, &file.encoder, &file.reference).map_err(|error| match error {
        coirl::Error::Spec { place, reason } => Failure::refused(format!("--{place}: {reason}")),
        coirl::Error::Cell { column, reason, .. } => Failure::refused(format!("{column}: {reason}")),
        other => other.into(),
    })?;
    for unusual in &recognised.unusual {
        note(global.quiet, &format!("warning: {}", unusual.message()));
    }
    let model = run.cohort.model()?;
    let train = run.cohort.train(&model)?;
    let answer = PersonAnswer::new(file, &model, &run.fitted.agent, &train, recognised, args.exam.smallest_cell)?;
    match global.json {
        true => to_stdout(|out| answer.write_json(out)),
        false => to_terminal(|out| answer.write_text(out)),
    }
}
