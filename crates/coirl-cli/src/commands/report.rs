//! `coirl report`: a finished run as one page to read, print and hand on.

use crate::arguments::{Global, PAGE};
use crate::cohorts::{CohortFolder, ExamArgs, Scores, actions_in_words};
use crate::contexts::{ContextText, mean_context};
use crate::destination::{check_can_be_written, note, to_file, to_stdout};
use crate::experiments::{read_folder, write_page};
use crate::failure::{Failure, Outcome};
use crate::fitting::{FITTED, Run, SourceData};
use crate::reporting::{
    CohortSections, Overview, Page, against_the_truth, agreement, change, convergence, coverage, features_in_words,
    fields_of_contexts, mapping, reward, states_known,
};
use crate::text::shell_word;
use clap::Args;
use coirl::demos::Demonstration;
use coirl::model::{Cmdp, Context};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The name of the page in the folder of a run.
const PAGE_FILE: &str = "report.html";

const EXPLANATION: &str = "\
Writes one HTML file about a run: what was learned from what, how the learner converged, the mapping as a heat map, the \
reward in one context and, where a truth is known, how close to it the run came. Of a run on a cohort also who was left out and \
why, what to look at in the table, and the scores of `coirl cohort score`. The page needs no network and no script; it can be \
printed. RUN is the folder that `coirl fit` wrote, or one of `coirl reproduce` or \
`coirl experiment run`, whose verdicts are then computed again. The same run gives the same bytes.";

const EXAMPLES: &str = "\
Examples:
  coirl report coirl-fit
  coirl report coirl-fit --context 0.2,0.5,0.3 --out page.html
  coirl report run --resamples 2000 --no-off-policy";

/// Write a page about a run
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct ReportArgs {
    /// The folder of a run, or its fitted.safetensors
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The page to write [default: report.html in the folder of the run]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The context whose reward is shown, as numbers or name=number [default: the mean of those learned from]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    context: Option<ContextText>,
    #[command(flatten, next_help_heading = "Scores of runs on a cohort")]
    exam: ExamArgs,
}

pub(crate) fn run(args: &ReportArgs, global: &Global) -> Result<Outcome, Failure> {
    if args.run.is_dir() && !args.run.join(FITTED).exists() {
        let experiments = read_folder(&args.run)?;
        if !experiments.is_empty() {
            let out = args.out.clone().unwrap_or_else(|| args.run.join(PAGE_FILE));
            check_can_be_written(&out)?;
            write_page(&out, &experiments, format!("coirl report {}", shell_word(&args.run.display().to_string())))?;
            return written(&out, global);
        }
    }
    let run = Run::finished(&args.run)?;
    let out = args.out.clone().unwrap_or_else(|| run.path.with_file_name(PAGE_FILE));
    check_can_be_written(&out)?;
    let SourceData { data, train, .. } = run.data()?;
    let (model, fitted) = (&data.model, &run.fitted);
    let contexts: Vec<&Context> = train.demonstrations().iter().map(Demonstration::context).collect();
    let context = match &args.context {
        Some(typed) => {
            fitted.agent.reward_mapping()?;
            typed.resolve_for(&run, model)?
        }
        None => mean_context(model, contexts.iter().copied())?,
    };
    let cohort = run.cohort().map(CohortFolder::open).transpose()?;

    let method = run.method()?;
    let overview = Overview { fitted, source: &data.source, method: &method };
    let features = match &cohort {
        Some(cohort) => {
            let known = states_known(&cohort.train(model)?, model.n_states(), args.exam.smallest_cell);
            features_in_words(&cohort.file, &fitted.names.features, &known)
        }
        None => fitted.names.features.clone(),
    };
    let scores = match &cohort {
        Some(cohort) => scores(args, &run, cohort, model, global)?,
        None => None,
    };
    let own = cohort.as_ref().map(|cohort| CohortSections {
        cohort,
        model,
        scores: scores.as_ref(),
        smallest_cell: args.exam.smallest_cell,
    });
    let (mut sections, last) = match &own {
        // Of patients the results come first, and how they were come by last.
        Some(own) => (own.results()?, own.origins()?.into_iter().chain([overview.section()?]).collect()),
        None => (vec![overview.section()?], Vec::new()),
    };
    sections.extend(convergence(&fitted.history, &method));
    let learned =
        mapping(fitted, &features).map_or_else(|| change(fitted, &features, &contexts), |section| Ok(Some(section)));
    sections.extend(learned?);
    let fields = own.as_ref().map(CohortSections::fields).transpose()?;
    sections.extend(reward(
        fitted,
        &features,
        &context,
        args.context.is_some(),
        fields.as_deref().unwrap_or_default(),
    )?);
    // Only of patients can too much be told.
    let smallest = if cohort.is_some() { args.exam.smallest_cell } else { 0 };
    let actions = cohort.as_ref().map(|cohort| actions_in_words(&cohort.file));
    let actions = actions.unwrap_or_else(|| fitted.names.actions.clone());
    sections.extend(agreement(model, fitted, &actions, &train, smallest)?);
    let fields = fields.unwrap_or_else(|| fields_of_contexts(model, &train));
    sections.push(coverage(model, &train, &fields, smallest));
    sections.extend(last);
    // Where the dynamics were learned, those that the expert acted in are no longer at hand.
    if let Some(truth) = data.truth.as_ref().filter(|_| !run.learned_dynamics()) {
        sections.push(against_the_truth(model, fitted, truth)?);
    }
    let named = args.run.display().to_string();
    let page = Page {
        title: format!("Report on {named}"),
        lead: format!("Learned by {method} from {}.", data.source),
        clinical: cohort.is_some() || fitted.names.model == "sepsis",
        command: format!("coirl report {}", shell_word(&named)),
        sections,
    };
    to_file(&out, |file| page.write(file))?;
    written(&out, global)
}

/// Says where the page is.
fn written(out: &Path, global: &Global) -> Result<Outcome, Failure> {
    if global.json {
        let line = json!({"report": out});
        to_stdout(|stdout| Ok(writeln!(stdout, "{line}")?))?;
    }
    note(global.quiet, &format!("wrote {}", out.display()));
    Ok(Outcome::Done)
}

/// Scores on the test stays; nothing where a cohort kept none.
fn scores(
    args: &ReportArgs,
    run: &Run,
    cohort: &CohortFolder,
    model: &Cmdp,
    global: &Global,
) -> Result<Option<Scores>, Failure> {
    if cohort.test(model)?.stays().iter().all(|stay| stay.trajectory.actions.is_empty()) {
        return Ok(None);
    }
    args.exam.score(cohort, &[(&args.run, &run.fitted)], global.seed, global.quiet).map(Some)
}
