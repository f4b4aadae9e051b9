//! `coirl plan`: the best policy for a reward, or for the rewards of many contexts.

use crate::arguments::{Global, PAGE};
use crate::destination::{check_is_not_read, note, to_file, to_stdout, to_terminal};
use crate::failure::{Failure, Outcome};
use crate::models;
use crate::numbers::{NumberList, bytes, count};
use crate::plans::{Columns, Contexts, Format, PlanWriter, file_writer, text_writer};
use crate::progress;
use crate::tables::Table;
use clap::{ArgGroup, Args, ValueEnum};
use coirl::contextual::plan_contexts;
use coirl::mapping::LinearMapping;
use coirl::model::{Cmdp, Context, Criterion, Dynamics};
use coirl::plan::{Accuracy, Limits, ManyOptions, Method, PlannedReward, Planner, Simd, Status};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Policy sweeps between two backups of modified policy iteration.
const POLICY_SWEEPS: usize = 20;

const EXAMPLES: &str = "\
Examples:
  coirl plan driving --weights 0.1,-1,-0.5
  coirl plan driving --weights 0.1,-1,-0.5 --horizon 20 --json
  coirl plan garnet --weights 1,0,0,0,-1 --tolerance 1e-6 --values
  coirl plan model.npz --mapping mapping.csv --contexts contexts.csv \\
      --out plans.parquet";

const EXPLANATION: &str = "\
Finds the policy with the highest expected sum of rewards w·φ. The weights w are given as they are (--weights, \
--weights-file) or follow from a context by a mapping (--mapping with --context or --contexts). Each plan comes with \
the feature expectations of its policy and a certificate: no policy is better by more than the stated bound. A file of \
weights or contexts gives one plan per row, written as they are found. As JSON, one plan is one object, and the plans of \
a file are one object with a list \"plans\".";

const USAGE: &str = "\
coirl plan [OPTIONS] <MODEL> --weights <W,…>
       coirl plan [OPTIONS] <MODEL> --weights-file <FILE>
       coirl plan [OPTIONS] <MODEL> --mapping <FILE> --context <C,…>
       coirl plan [OPTIONS] <MODEL> --mapping <FILE> --contexts <FILE>";

/// Plan for one reward, or for many contexts
#[derive(Debug, Args)]
#[command(
    before_help = EXPLANATION,
    after_help = EXAMPLES,
    help_template = PAGE,
    override_usage = USAGE,
    group = ArgGroup::new("reward").args(["weights", "weights_file", "mapping"]).required(true),
    group = ArgGroup::new("where").args(["context", "contexts"])
)]
pub(crate) struct PlanArgs {
    /// A model file (.npz, .safetensors) or the name of a built-in domain
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    reward: RewardArgs,
    #[command(flatten)]
    planning: PlanningArgs,
    #[command(flatten)]
    criterion: CriterionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reward and context")]
struct RewardArgs {
    /// Reward weights, one per feature
    #[arg(long, value_name = "W,…", allow_hyphen_values = true)]
    weights: Option<NumberList>,
    /// File of reward weights (.csv, .npy, .npz, .parquet), one row per plan
    #[arg(long, value_name = "FILE")]
    weights_file: Option<PathBuf>,
    /// File of a linear mapping (.csv, .npy, .npz, .parquet, or what `coirl fit` has written): a row per context number, a column per feature
    #[arg(long, value_name = "FILE", requires = "where")]
    mapping: Option<PathBuf>,
    /// A context, for the mapping and for dynamics that depend on it
    #[arg(long, value_name = "C,…", allow_hyphen_values = true)]
    context: Option<NumberList>,
    /// File of contexts (.csv, .npy, .npz, .parquet), one row per plan
    #[arg(long, value_name = "FILE")]
    contexts: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Planning")]
struct PlanningArgs {
    /// How to plan; all methods give the same policy when planning exactly
    #[arg(long, value_enum, default_value_t = MethodArg::Automatic)]
    method: MethodArg,
    /// Stop at this Bellman residual [default: plan exactly]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Stop after this many sweeps
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_sweeps)]
    max_sweeps: usize,
    /// Instructions to use; results do not depend on it
    #[arg(long, value_enum, default_value_t = SimdArg::Auto)]
    simd: SimdArg,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "In place of what the model says")]
struct CriterionArgs {
    /// Optimise the first N decisions
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// Optimise the average reward per step
    #[arg(long, conflicts_with_all = ["horizon", "discount"])]
    average: bool,
    /// Discount factor
    #[arg(long, value_name = "G", allow_negative_numbers = true)]
    discount: Option<f64>,
    /// Start in this state
    #[arg(long, value_name = "STATE")]
    start: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Format of the result [default: by the extension of --out, else table]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// File to write; it appears whole or not at all
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Include the values of all states
    #[arg(long)]
    values: bool,
    /// Include policies in tables, csv and parquet (json and npz have them)
    #[arg(long)]
    policy: bool,
    /// Leave out feature expectations
    #[arg(long)]
    no_feature_expectations: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    Automatic,
    ValueIteration,
    ModifiedPolicyIteration,
    PolicyIteration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SimdArg {
    Auto,
    Portable,
    Avx2,
    Avx512,
}

pub(crate) fn run(args: PlanArgs, global: &Global) -> Result<Outcome, Failure> {
    let format = args.output.resolve(global)?;
    if let Some(out) = &args.output.out {
        let RewardArgs { weights_file, mapping, contexts, .. } = &args.reward;
        let read = [Some(&args.model), weights_file.as_ref(), mapping.as_ref(), contexts.as_ref()];
        check_is_not_read(out, read.into_iter().flatten())?;
    }
    let model = args.criterion.apply(models::open(&args.model, global.seed)?)?;
    let (weights, contexts) = args.reward.resolve(&model)?;
    let columns = Columns {
        model: &model,
        contexts: &contexts,
        weights: &weights,
        single: args.reward.weights_file.is_none() && args.reward.contexts.is_none(),
        policy: args.output.policy,
        options: ManyOptions { feature_expectations: !args.output.no_feature_expectations, values: args.output.values },
    };
    let planner = args.planning.planner();
    let mut limited = 0;
    let mut plan_into = |mut writer: Box<dyn PlanWriter + '_>| {
        limited = plan_all(&columns, &planner, global.quiet, writer.as_mut())?;
        writer.finish()
    };
    match &args.output.out {
        None if format == Format::Table => to_terminal(|out| plan_into(text_writer(format, &columns, out)?))?,
        None => to_stdout(|out| plan_into(text_writer(format, &columns, out)?))?,
        Some(path) => {
            to_file(path, |out| plan_into(file_writer(format, &columns, path, out)?))?;
            let size = std::fs::metadata(path).map_err(|error| Failure::in_file(path, error))?.len();
            let plans = if columns.n_plans() == 1 { "plan" } else { "plans" };
            let written = format!("wrote {} ({} {plans}, {})", path.display(), count(columns.n_plans()), bytes(size));
            note(global.quiet, &written);
        }
    }
    if limited == 0 {
        return Ok(Outcome::Done);
    }
    let limit = planner.limits.max_sweeps;
    let warning = format!("{limited} of {} plans did not converge within {limit} sweeps", columns.n_plans());
    note(global.quiet, &warning);
    Ok(Outcome::NotConverged)
}

/// Plans for every row of weights; returns how many plans met the limit of sweeps.
fn plan_all(
    columns: &Columns<'_>,
    planner: &Planner,
    quiet: bool,
    writer: &mut dyn PlanWriter,
) -> Result<usize, Failure> {
    let bar = progress::bar(columns.n_plans(), quiet);
    let mut limited = 0;
    let mut failure = None;
    let sink = |plan: PlannedReward| {
        limited += usize::from(plan.certificate.status == Status::SweepLimit);
        bar.inc(1);
        match writer.push(&plan) {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => {
                failure = Some(reason);
                ControlFlow::Break(())
            }
        }
    };
    let Columns { model, weights, options, .. } = *columns;
    let done = match (columns.contexts, model.dynamics()) {
        (Contexts::None, _) | (Contexts::Many(_), Dynamics::Shared(_)) => {
            model.shared_mdp().and_then(|mdp| planner.plan_many(&mdp, weights, options, sink))
        }
        (Contexts::One(context), _) => {
            model.mdp(context).and_then(|mdp| planner.plan_many(&mdp, weights, options, sink))
        }
        (Contexts::Many(contexts), Dynamics::Mixture(_) | Dynamics::Clusters(_)) => {
            plan_contexts(model, contexts, weights, planner, options, sink)
        }
    };
    bar.finish_and_clear();
    match failure {
        Some(failure) => Err(failure),
        None => done.map(|()| limited).map_err(Failure::from),
    }
}

impl OutputArgs {
    /// The format, once it is clear that it can be written.
    fn resolve(&self, global: &Global) -> Result<Format, Failure> {
        let typed = match (self.format, global.json) {
            (Some(format), true) if format != Format::Json => {
                return Err(Failure::Usage("--json asks for another format than --format".into()));
            }
            (None, true) => Some(Format::Json),
            (format, _) => format,
        };
        let format = match (typed, &self.out) {
            (Some(format), _) => format,
            (None, None) => Format::Table,
            (None, Some(path)) => Format::of_extension(path).ok_or_else(|| {
                let reason = "the extension names no format; expected .json, .csv, .parquet, .npz or .txt, or --format";
                Failure::in_file(path, reason)
            })?,
        };
        if format.is_binary() && self.out.is_none() {
            return Err(Failure::Usage("parquet and npz are not for the terminal; give --out FILE".into()));
        }
        Ok(format)
    }
}

impl PlanningArgs {
    fn planner(&self) -> Planner {
        Planner {
            method: match self.method {
                MethodArg::Automatic => Method::Automatic,
                MethodArg::ValueIteration => Method::ValueIteration,
                MethodArg::ModifiedPolicyIteration => Method::ModifiedPolicyIteration { sweeps: POLICY_SWEEPS },
                MethodArg::PolicyIteration => Method::PolicyIteration,
            },
            accuracy: self.tolerance.map_or(Accuracy::Exact, Accuracy::Tolerance),
            limits: Limits { max_sweeps: self.max_sweeps },
            simd: match self.simd {
                SimdArg::Auto => Simd::Auto,
                SimdArg::Portable => Simd::Portable,
                SimdArg::Avx2 => Simd::Avx2,
                SimdArg::Avx512 => Simd::Avx512,
            },
        }
    }
}

impl CriterionArgs {
    /// The model with what was typed in place of what it says.
    fn apply(&self, model: Cmdp) -> Result<Cmdp, Failure> {
        let discount = self.discount.unwrap_or(model.criterion().discount());
        let criterion = match (self.horizon, self.average, self.discount) {
            (Some(steps), _, _) => Criterion::finite_horizon(steps, discount)?,
            (None, true, _) => Criterion::Average,
            (None, false, Some(discount)) => Criterion::discounted(discount)?,
            (None, false, None) => model.criterion(),
        };
        let model = model.with_criterion(criterion)?;
        match self.start {
            Some(state) => started_in(model, state),
            None => Ok(model),
        }
    }
}

/// The same model, started in one state.
fn started_in(model: Cmdp, state: usize) -> Result<Cmdp, Failure> {
    let n_states = model.n_states();
    if state >= n_states {
        return Err(Failure::refused(format!("--start {state}: the model has states 0 to {}", n_states - 1)));
    }
    let mut initial = vec![0.0; n_states];
    initial[state] = 1.0;
    Ok(model.with_initial(initial)?)
}

impl RewardArgs {
    /// The weights of every plan (row-major) and the contexts.
    fn resolve(&self, model: &Cmdp) -> Result<(Vec<f64>, Contexts), Failure> {
        let read = |path: &Path| Table::read(path, "contexts")?.ordered_by(&model.names().contexts);
        let table = self.contexts.as_deref().map(read).transpose()?;
        let contexts = match (&self.context, &table) {
            (Some(NumberList(values)), _) => Contexts::One(model.context_space().context(values.clone())?),
            (None, Some(table)) => Contexts::Many(checked_contexts(model, table)?),
            (None, None) if matches!(model.dynamics(), Dynamics::Shared(_)) => Contexts::None,
            (None, None) => {
                let message = coirl::Error::ContextNeeded.to_string();
                return Err(Failure::Refused { message, help: Some("add --context C,… or --contexts FILE".into()) });
            }
        };
        let weights = match (&self.weights, &self.weights_file, &self.mapping) {
            (Some(NumberList(weights)), _, _) => {
                let n_plans = if let Contexts::Many(contexts) = &contexts { contexts.len() } else { 1 };
                checked_weights(model, weights)?.repeat(n_plans)
            }
            (None, Some(path), _) => weights_of_file(model, path, &contexts)?,
            (None, None, Some(path)) => mapped_weights(model, path, &contexts, table.as_ref())?,
            (None, None, None) => {
                return Err(Failure::Usage("give --weights, --weights-file or --mapping".into()));
            }
        };
        Ok((weights, contexts))
    }
}

pub(super) fn checked_weights<'a>(model: &Cmdp, weights: &'a [f64]) -> Result<&'a [f64], Failure> {
    if weights.len() != model.n_features() {
        let reason = format!("{} numbers; the model has {}", weights.len(), features_in_words(model));
        return Err(Failure::refused(format!("--weights: {reason}")));
    }
    match weights.iter().position(|w| !w.is_finite()) {
        Some(i) => Err(Failure::refused(format!("--weights: entry {i} is {}; expected a finite number", weights[i]))),
        None => Ok(weights),
    }
}

fn checked_contexts(model: &Cmdp, table: &Table) -> Result<Vec<Context>, Failure> {
    let context = |(row, values): (usize, &[f64])| {
        model.context_space().context(values).map_err(|error| table.refuse_row(row, error))
    };
    table.rows().enumerate().map(context).collect()
}

fn weights_of_file(model: &Cmdp, path: &Path, contexts: &Contexts) -> Result<Vec<f64>, Failure> {
    let table = Table::read(path, "weights")?;
    table.expect_columns(model.n_features(), &format!("because the model has {}", features_in_words(model)))?;
    match contexts {
        Contexts::Many(contexts) if contexts.len() != table.n_rows() => {
            let reason = format!("has {} rows, but there are {} contexts", table.n_rows(), contexts.len());
            Err(table.refuse(reason))
        }
        _ => Ok(table.into_values()),
    }
}

pub(super) fn mapped_weights(
    model: &Cmdp,
    path: &Path,
    contexts: &Contexts,
    rows: Option<&Table>,
) -> Result<Vec<f64>, Failure> {
    let table = Table::read(path, "mapping")?;
    table.expect_columns(model.n_features(), &format!("because the model has {}", features_in_words(model)))?;
    let (dimension, n_features) = (table.n_rows(), table.n_columns());
    let mapping = LinearMapping::new(dimension, n_features, table.into_values())?;
    let weights = match contexts {
        Contexts::None => return Err(Failure::Usage("--mapping needs --context or --contexts".into())),
        Contexts::One(context) => mapping.weights(context)?,
        Contexts::Many(contexts) => {
            let mut weights = Vec::with_capacity(contexts.len() * n_features);
            for (row, context) in contexts.iter().enumerate() {
                weights.extend(mapping.weights(context).map_err(|error| match rows {
                    Some(table) => table.refuse_row(row, error),
                    None => error.into(),
                })?);
            }
            weights
        }
    };
    // Products of finite numbers may overflow.
    match weights.iter().position(|w| !w.is_finite()) {
        Some(i) => Err(Failure::in_file(path, format!("plan {} has the weight {}", i / n_features, weights[i]))),
        None => Ok(weights),
    }
}

fn features_in_words(model: &Cmdp) -> String {
    let names = &model.names().features;
    let listed = if names.is_empty() || names.len() > 12 { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("{} features{listed}", model.n_features())
}
