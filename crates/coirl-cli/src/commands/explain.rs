//! `coirl explain`: what a mapping says, what of it the demonstrations determine, and whether the context is of use.

use crate::arguments::{Global, PAGE};
use crate::contexts::{ContextText, mean_context};
use crate::destination::{note, to_stdout, to_terminal};
use crate::explaining::{ChoiceReport, Effort, EntryReport, Explanation, write};
use crate::failure::{Failure, Outcome};
use crate::fitting::{DataArgs, Run, SourceData};
use crate::networks::NetworkReport;
use crate::progress;
use clap::Args;
use coirl::demos::Demonstration;
use coirl::inspect::{self, BootstrapSettings, ContextHelpsSettings, Contributions, Progress};
use coirl::learn::Problem;
use coirl::mapping::{LinearMapping, ParametricMapping};
use coirl::methods::settled;
use coirl::model::StateId;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;

const EXPLANATION: &str = "\
Says what a fitted mapping means. Which entries of the mapping do the demonstrations determine at all, and if not, why \
not; how much would they change with other demonstrations; what does every context field add, by way of every feature, to \
the reward and to the choice of an action over the next best one; and does the context help at all, against a mapping that \
does not see it. Of a network, which has no entries and does not add up fields, the weights of a context are shown as \
they are. RUN is the folder that `coirl fit` wrote; the model and the demonstrations are those that it names.";

const EXAMPLES: &str = "\
Examples:
  coirl explain coirl-fit
  coirl explain coirl-fit --context \\
      speed-priority=0.2,collision-priority=0.5,off-road-priority=0.3
  coirl explain coirl-fit --context 0.2,0.5,0.3 --state 12 --bootstrap 0
  coirl explain coirl-fit --json";

/// Explain what was learned, and what of it is certain
#[derive(Debug, Args)]
#[command(before_help = EXPLANATION, after_help = EXAMPLES, help_template = PAGE)]
pub(crate) struct ExplainArgs {
    /// The folder of a run, or its fitted.safetensors
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The context to explain, as numbers or name=number [default: the mean of the demonstrations]
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    context: Option<ContextText>,
    /// The state whose choice is explained [default: the most frequent start]
    #[arg(long, value_name = "S")]
    state: Option<u32>,
    /// Fits on resampled demonstrations; 0 leaves them out [default: 50, or as many as take some seconds]
    #[arg(long, value_name = "N")]
    bootstrap: Option<usize>,
    /// Parts of the demonstrations, each held out once, to see whether context helps; 0 leaves it out [default: 5, or 0 where they take too long]
    #[arg(long, value_name = "N")]
    folds: Option<usize>,
    /// Entries of the mapping whose range is looked for, the largest first [default: 300, or as many as take some seconds]
    #[arg(long, value_name = "N")]
    entries: Option<usize>,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &ExplainArgs, global: &Global) -> Result<Outcome, Failure> {
    let run = Run::open(&args.run, &args.data)?;
    let SourceData { data, train, .. } = run.data()?;
    let (model, fitted) = (&data.model, &run.fitted);
    let problem = Problem::new(model, &train, &data.estimator)?;
    let network = NetworkReport::of(fitted);
    let linear = match network {
        Some(_) => None,
        None => Some(of_unit_length(fitted.mapping()?)?),
    };
    let (context, given) = match &args.context {
        Some(typed) => (typed.resolve_for(&run, model)?, true),
        None => (mean_context(model, train.demonstrations().iter().map(Demonstration::context))?, false),
    };
    let contributions = match &linear {
        Some(mapping) => Contributions::new(model, mapping, &context)?,
        None => Contributions::undivided(model, fitted.agent.reward_mapping()?, &context)?,
    };
    let state = args.state.map_or_else(|| contributions.usual_start(), StateId);
    // Refused before anything slow is done.
    let choice = contributions.choice(state);
    if args.state.is_some_and(|state| state as usize >= model.n_states()) {
        choice?;
        return Err(Failure::refused(format!("--state {}: the model has {} states", state.0, model.n_states())));
    }

    let effort = Effort::of(&problem, fitted);
    let determination = effort.determination(args.entries);
    let (bootstrap, folds) = (effort.bootstrap(args.bootstrap), effort.folds(args.folds));
    let found = match &linear {
        Some(mapping) => watched("looking for what is determined", global, |listener| {
            inspect::determine(&problem, mapping, &determination, listener)
        }),
        None => Err(coirl::Error::NotLinear),
    };
    let resampled = (bootstrap > 0).then(|| {
        if linear.is_none() {
            return Err(coirl::Error::NotLinear);
        }
        let settings = BootstrapSettings { replicates: bootstrap, seed: global.seed, ..BootstrapSettings::default() };
        watched("fitting resampled demonstrations", global, |listener| {
            inspect::bootstrap(&problem, &settled(fitted), &settings, listener)
        })
    });
    let helps = (folds > 0).then(|| {
        let folds = folds.min(problem.len());
        let settings = ContextHelpsSettings { folds, seed: global.seed, ..ContextHelpsSettings::default() };
        watched("fitting with and without context", global, |listener| {
            inspect::context_helps(&problem, &settled(fitted), &settings, listener)
        })
    });
    let can_be_left_out = fitted.certificate.explained.as_ref().map_or(&[][..], |own| &own.can_be_left_out);
    let entries = linear.as_ref().map_or_else(Vec::new, |mapping| {
        let resampled = resampled.as_ref().and_then(|r| r.as_ref().ok());
        EntryReport::all(mapping, found.as_ref().ok(), resampled, can_be_left_out)
    });
    let explanation = Explanation {
        run: run.path.display().to_string(),
        source: &data.source,
        names: model.names(),
        network,
        entries,
        determination: found.map_err(|error| error.to_string()),
        resampled: resampled.map(|found| found.map(|found| found.replicates).map_err(|error| error.to_string())),
        context: context.values().to_vec(),
        context_given: given,
        weights: contributions.weights().clone(),
        value: contributions.value()?,
        choice: choice
            .map(|choice| choice.map(|choice| ChoiceReport::new(choice, model.names())))
            .map_err(|e| e.to_string()),
        helps: helps.map(|found| found.map_err(|error| error.to_string())),
        shortened: effort.shortened(&determination, linear.is_some(), (args.bootstrap, bootstrap), (args.folds, folds)),
    };
    if global.json {
        let line = serde_json::to_string(&explanation.as_json()).map_err(std::io::Error::from)?;
        to_stdout(|out| Ok(writeln!(out, "{line}")?))?;
    } else {
        to_terminal(|out| write(out, &explanation))?;
    }
    Ok(Outcome::Done)
}

/// Runs a longer piece of work below a bar.
fn watched<T>(
    what: &'static str,
    global: &Global,
    work: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> coirl::Result<T>,
) -> coirl::Result<T> {
    // Whoever sees no bar hears at least what takes the time.
    if !std::io::stderr().is_terminal() {
        note(global.quiet, &format!("{what} ..."));
    }
    let bar = progress::stage(what, global.quiet);
    let found = work(&mut |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    found
}

/// The mapping at the scale at which it is shown.
fn of_unit_length(mapping: &LinearMapping) -> Result<LinearMapping, Failure> {
    let size = mapping.size(&[]);
    if size == 0.0 {
        return Err(Failure::refused("the mapping is zero: nothing was learned, and there is nothing to explain"));
    }
    let values = mapping.values().iter().map(|w| w / size).collect();
    let unit = LinearMapping::new(mapping.dimension(), mapping.n_features(), values)?;
    match mapping.intercept() {
        Some(intercept) => Ok(unit.with_intercept(intercept.iter().map(|w| w / size).collect())?),
        None => Ok(unit),
    }
}
