//! `coirl predict`: how to act in a context that nobody has seen, by what was learned.

use crate::arguments::{Global, PAGE};
use crate::cohorts::{CohortFolder, levels_in_words};
use crate::contexts::{ContextText, context_names, read_contexts};
use crate::destination::{note, to_file, to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::fitting::{DataArgs, Run};
use crate::numbers::count;
use crate::predicting::{Answer, Answers, Followed, KnownArgs, Report};
use crate::progress;
use crate::text;
use clap::{ArgGroup, Args};
use coirl::mapping::LearnedMapping;
use coirl::model::{Cmdp, Context};
use coirl::transfer::{Prediction, Transfer};
use coirl_cohort::Unusual;
use std::io::Write;
use std::path::PathBuf;

const EXPLANATION: &str = "\
Acts in a new context by what `coirl fit` has learned. For agents that plan for a mapping, linear or a network, policies of contexts that were planned for before are \
transferred: with shared dynamics, and inside a cluster, by generalised policy improvement, which is as good as any of \
them and often better; with a mixture of kernels, the policy of the nearest context. A bound says how much better any \
policy could be. It is relative to the learned mapping, not to the expert. With --bound, what cannot be transferred that \
well is planned, from the transferred policy, and known from then on. Other agents are followed as they are: clones, \
mixtures, soft policies and habits have a policy for every context, which may draw its actions, and no bound.";

const EXAMPLES: &str = "\
Examples:
  coirl predict coirl-fit --context 0.2,0.3,0.5
  coirl predict clinic --context age=0.2,weight=0.8 --states 3,17
  coirl predict coirl-fit --context 0.2,0.3,0.5 --bound 0.01 --realised
  coirl predict coirl-fit --contexts new.csv --library cover --radius 0.05 \\
      --save-library library.safetensors --out policies.csv
  coirl predict coirl-fit --contexts new.csv --library library.safetensors \\
      --realised --json";

const USAGE: &str = "\
coirl predict [OPTIONS] <RUN> --context <C,…>
       coirl predict [OPTIONS] <RUN> --contexts <FILE>";

/// Act in a new context by what was learned
#[derive(Debug, Args)]
#[command(
    before_help = EXPLANATION,
    after_help = EXAMPLES,
    help_template = PAGE,
    override_usage = USAGE,
    group = ArgGroup::new("asked").args(["context", "contexts"]).required(true)
)]
pub(crate) struct PredictArgs {
    /// The folder that `coirl fit` has written, or the fitted.safetensors in it
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    asked: AskedArgs,
    #[command(flatten)]
    known: KnownArgs,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Where to act")]
struct AskedArgs {
    /// A context, its numbers alone or by name: age=0.2,weight=0.8; by name in the units of the table for runs on a cohort
    #[arg(long, value_name = "C,…", allow_hyphen_values = true)]
    context: Option<ContextText>,
    /// File of contexts (.csv, .npy, .npz, .parquet), columns by name where it names them
    #[arg(long, value_name = "FILE")]
    contexts: Option<PathBuf>,
    /// States to give the action of [default: all of them]
    #[arg(long, value_name = "S,…", value_delimiter = ',')]
    states: Option<Vec<usize>>,
    /// The model, where RUN does not say: a file or the name of a domain
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How")]
struct HowArgs {
    /// Plan where transfer cannot promise to be this close to the best policy, in every state
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    bound: Option<f64>,
    /// Plan in any case, from scratch
    #[arg(long, conflicts_with_all = ["transfer", "bound"])]
    plan: bool,
    /// Transfer in any case
    #[arg(long, conflicts_with = "bound")]
    transfer: bool,
    /// Plan as well, and say what transfer has lost
    #[arg(long)]
    realised: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// File for the actions (.csv: a row per context and state, or .json)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &PredictArgs, global: &Global) -> Result<Outcome, Failure> {
    args.output.is_csv()?;
    args.how.check()?;
    let opened = Run::open(&args.run, &DataArgs::of_model(args.asked.model.as_deref()))?;
    let agent = &opened.fitted.agent;
    let mapping = agent.planned_for();
    if let (None, Some(option)) = (&mapping, args.how.given().or(args.known.given())) {
        let kind = agent.kind();
        let reason = "is for agents that plan for a mapping; this run's agent is followed as it is";
        return Err(Failure::Usage(format!("{option} {reason} ({kind})")));
    }
    let model = opened.model()?;
    let names = context_names(&model, &opened.fitted);
    let contexts = args.asked.resolve(&opened, &model, names)?;
    args.asked.check_states(&model)?;
    let unusual = args.asked.context.as_ref().map_or(Ok(Vec::new()), |typed| typed.unusual_for(&opened))?;
    for own in &unusual {
        note(global.quiet, &format!("warning: {}", own.message()));
    }
    match mapping {
        Some(mapping) => args.plan(&opened, &model, &mapping, contexts, &unusual, global)?,
        None => {
            let (states, single) = (args.asked.states.as_deref(), args.asked.context.is_some());
            args.output.show(&Followed::new(&model, agent, names, states, single, contexts, &unusual)?, global)?;
        }
    }
    if let Some(cohort) = opened.cohort().filter(|_| !global.json) {
        let file = CohortFolder::open(cohort)?.file;
        to_terminal(|out| write_levels(out, &levels_in_words(&file.spec, &file.encoder)))?;
    }
    Ok(Outcome::Done)
}

/// What the levels of doses in the names of actions mean.
fn write_levels(out: &mut dyn Write, levels: &[(String, String)]) -> Result<(), Failure> {
    if levels.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    text::title(out, "Levels of the doses")?;
    for (dose, words) in levels {
        text::pair(out, dose, words)?;
    }
    Ok(())
}

impl PredictArgs {
    /// Answers of an agent that plans for a mapping: transferred where that is good enough.
    fn plan(
        &self,
        opened: &Run,
        model: &Cmdp,
        mapping: &LearnedMapping,
        contexts: Vec<Context>,
        unusual: &[Unusual],
        global: &Global,
    ) -> Result<(), Failure> {
        let names = context_names(model, &opened.fitted);
        let mut transfer = match self.how.plan {
            true => Transfer::new(model, mapping.clone())?,
            false => self.known.open(opened, model, mapping, names, self.how.bound, global.quiet)?,
        };
        self.known.prune(&mut transfer, &contexts, global.quiet)?;
        let (n_contexts, n_policies) = (transfer.n_contexts(), transfer.n_policies());

        let bar = progress::bar(contexts.len(), global.quiet);
        let mut answers = Vec::with_capacity(contexts.len());
        for context in contexts {
            let prediction = self.how.predict(&mut transfer, &context, self.known.save_library.is_some())?;
            let realised =
                self.how.realised.then(|| transfer.realised_gap(&context, &prediction.values)).transpose()?;
            answers.push(Answer { context, prediction, realised });
            bar.inc(1);
        }
        bar.finish_and_clear();
        if let Some(path) = &self.known.save_library {
            coirl::artifact::write_library(path, &transfer)?;
            let (contexts, policies) = (count(transfer.n_contexts()), count(transfer.n_policies()));
            note(global.quiet, &format!("wrote {} ({contexts} contexts, {policies} policies)", path.display()));
        }
        let report = Report {
            model,
            names,
            states: self.asked.states.as_deref(),
            single: self.asked.context.is_some(),
            n_contexts,
            n_policies,
            answers: &answers,
            unusual,
        };
        self.output.show(&report, global)
    }
}

impl AskedArgs {
    fn resolve(&self, run: &Run, model: &Cmdp, names: &[String]) -> Result<Vec<Context>, Failure> {
        match (&self.context, &self.contexts) {
            (Some(typed), _) => Ok(vec![typed.resolve_for(run, model)?]),
            (None, Some(path)) => read_contexts(path, model, names),
            (None, None) => Err(Failure::Usage("give --context or --contexts".into())),
        }
    }

    fn check_states(&self, model: &Cmdp) -> Result<(), Failure> {
        match self.states.iter().flatten().find(|&&state| state >= model.n_states()) {
            Some(state) => {
                let last = model.n_states() - 1;
                Err(Failure::refused(format!("--states: there is no state {state}; the model has states 0 to {last}")))
            }
            None => Ok(()),
        }
    }
}

impl HowArgs {
    fn check(&self) -> Result<(), Failure> {
        match self.bound {
            Some(bound) if !(bound >= 0.0) => {
                Err(Failure::refused(format!("--bound {bound}: expected a number that is not negative")))
            }
            _ => Ok(()),
        }
    }

    /// The first option that was given.
    fn given(&self) -> Option<&'static str> {
        let options = [
            ("--bound", self.bound.is_some()),
            ("--plan", self.plan),
            ("--transfer", self.transfer),
            ("--realised", self.realised),
        ];
        options.into_iter().find(|option| option.1).map(|option| option.0)
    }

    /// The policy for a context; `saved` says whether what is planned here will be kept for later.
    fn predict(&self, transfer: &mut Transfer<'_>, context: &Context, saved: bool) -> Result<Prediction, Failure> {
        Ok(match (self.plan, self.transfer) {
            (true, _) => {
                let planned = transfer.plan(context, None)?;
                // Evaluating a policy for later can take longer than planning it.
                if saved {
                    transfer.remember(std::slice::from_ref(context), std::slice::from_ref(&planned.policy))?;
                }
                planned
            }
            (_, true) => transfer.transfer(context, None)?,
            (false, false) => transfer.predict_and_learn(context, self.bound)?,
        })
    }
}

impl OutputArgs {
    /// Writes the answers where they were asked for.
    fn show(&self, answers: &dyn Answers, global: &Global) -> Result<(), Failure> {
        let as_csv = self.is_csv()?;
        if let Some(path) = &self.out {
            to_file(path, |out| if as_csv { answers.write_csv(out) } else { answers.write_json(out) })?;
        }
        match global.json {
            true => to_stdout(|out| answers.write_json(out))?,
            false => to_terminal(|out| answers.write_text(out))?,
        }
        if let Some(path) = &self.out {
            note(global.quiet, &format!("wrote {}", path.display()));
        }
        Ok(())
    }

    /// Whether the file is a table rather than JSON.
    fn is_csv(&self) -> Result<bool, Failure> {
        let Some(path) = &self.out else { return Ok(false) };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(true),
            Some("json") => Ok(false),
            _ => Err(Failure::in_file(path, "the extension names no format; expected .csv or .json")),
        }
    }
}
