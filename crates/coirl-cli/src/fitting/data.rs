//! What a run learns from: the model, the demonstrations, and a truth to be scored against where one is known.

use super::shipped::{Shipped, ShippedDemonstrations};
use super::trajectories;
use crate::cohorts::CohortFolder;
use crate::failure::Failure;
use crate::models;
use crate::tables::{Cells, Table};
use clap::{Args, ValueEnum};
use coirl::contextual::plan_mapping;
use coirl::demos::{Demonstration, Estimator, Trajectory, Validation, truncation_horizon};
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, methods};
use coirl::model::{Cmdp, Context, StateId};
use coirl::plan::{ManyOptions, PlannedReward};
use coirl_cohort::ValidationStays;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, Args, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "What to learn from [default: the demonstrations that ship with coirl]")]
pub(crate) struct DataArgs {
    /// A cohort, in place of everything below.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cohort: Option<PathBuf>,
    /// Demonstrations that ship with coirl: sepsis, 300 trajectories in intensive care, simulated, or driving, the feature expectations
    /// of a driver in 100 contexts [default: sepsis]
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["model", "contexts", "feature_expectations", "trajectories"])]
    shipped: Option<Shipped>,
    /// A model file (.npz, .safetensors) or the name of a built-in domain
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Contexts, a row per demonstration (.csv, .npy, .npz, .parquet)
    #[arg(long, value_name = "FILE")]
    contexts: Option<PathBuf>,
    /// The expert's feature expectations, a row per demonstration (.csv, .npy, .npz, .parquet)
    #[arg(long, value_name = "FILE")]
    feature_expectations: Option<PathBuf>,
    /// The expert's trajectories (.csv, .npz, .parquet): columns demonstration, step, state, action
    #[arg(long, value_name = "FILE")]
    trajectories: Option<PathBuf>,
    /// One start state per demonstration [default: as the model or the trajectory starts]
    #[arg(long, value_name = "FILE")]
    starts: Option<PathBuf>,
    /// From trajectories to feature expectations: truncated adds up along the path, geometric does for paths ended with
    /// probability 1 - discount, control-variate uses the known dynamics against noise, decisions compares action by action [default: control-variate]
    #[arg(long, value_name = "NAME", value_enum)]
    estimator: Option<EstimatorArg>,
    /// Whether the estimator is that of the spec of a cohort.
    #[arg(skip)]
    #[serde(skip)]
    estimator_of_spec: bool,
    /// Use the first H transitions of every trajectory
    #[arg(long, value_name = "H")]
    horizon: Option<usize>,
    /// Use as many transitions as leave a discounted tail of at most E, instead of --horizon
    #[arg(long, value_name = "E", allow_negative_numbers = true, conflicts_with = "horizon")]
    tail: Option<f64>,
    /// The expert's mapping, for scoring: a row per context number, a column per feature
    #[arg(long, value_name = "FILE")]
    true_mapping: Option<PathBuf>,
    /// Contexts to score on [default: those of the demonstrations]
    #[arg(long, value_name = "FILE", requires = "true_mapping")]
    test_contexts: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EstimatorArg {
    Truncated,
    Geometric,
    #[default]
    ControlVariate,
    Decisions,
}

/// Everything read and checked.
pub(crate) struct Data {
    pub(crate) model: Cmdp,
    pub(crate) demonstrations: Vec<Demonstration>,
    /// How feature expectations are read off trajectories, where that was chosen.
    pub(crate) estimator: Option<Estimator>,
    pub(crate) truth: Option<Truth>,
    /// What was learned from, in words.
    pub(crate) source: String,
}

/// The expert's mapping and where to compare with it.
pub(crate) struct Truth {
    pub(crate) mapping: LinearMapping,
    pub(crate) contexts: Vec<Context>,
    /// Whether these are contexts that nothing was learned from.
    pub(crate) held_out: bool,
}

impl Truth {
    /// Where scores are taken, in words; of an agent that was learned in other dynamics, that it is in the given ones.
    pub(crate) fn scored_on(&self, learned_dynamics: bool) -> String {
        let n = self.contexts.len();
        match (learned_dynamics, self.held_out) {
            (false, true) => format!("on {n} test contexts"),
            (false, false) => format!("on {n} contexts that were learned from"),
            (true, true) => format!("in --model, {n} test contexts"),
            (true, false) => format!("in --model, {n} contexts learned from"),
        }
    }
}

impl DataArgs {
    /// A model without demonstrations.
    pub(crate) fn of_model(model: Option<&Path>) -> Self {
        Self { model: model.map(Path::to_owned), ..Self::default() }
    }

    /// The same, learning from a cohort.
    pub(crate) fn in_cohort(&self, folder: &Path) -> Result<Self, Failure> {
        if self.is_given() {
            return Err(Failure::refused(format!(
                "{} is a cohort and has its own model and demonstrations; --model, --contexts, --feature-expectations and \
                 --trajectories go without it",
                folder.display()
            )));
        }
        Ok(Self { cohort: Some(folder.to_owned()), ..self.clone() })
    }

    /// The cohort that is learned from.
    pub(crate) fn cohort(&self) -> Option<&Path> {
        self.cohort.as_deref()
    }

    /// Whether anything but the shipped data was asked for.
    pub(crate) fn is_given(&self) -> bool {
        [&self.cohort, &self.model, &self.contexts, &self.feature_expectations, &self.trajectories]
            .iter()
            .any(|path| path.is_some())
    }

    /// The same with a model and demonstrations that were typed without a flag. Files with a column `demonstration`, or with
    /// matrices of states, hold trajectories; all others feature expectations.
    pub(crate) fn with_files(&self, model: Option<&Path>, demonstrations: Option<&Path>) -> Result<Self, Failure> {
        let mut data = self.clone();
        let twice = |flag: &str| Failure::refused(format!("{flag} was given, and a file in its place as well"));
        if let Some(model) = model
            && data.model.replace(model.to_owned()).is_some()
        {
            return Err(twice("--model"));
        }
        if let Some(path) = demonstrations {
            if data.feature_expectations.is_some() || data.trajectories.is_some() {
                return Err(twice("--feature-expectations or --trajectories"));
            }
            let place = match trajectories::are_in(path) {
                true => &mut data.trajectories,
                false => &mut data.feature_expectations,
            };
            *place = Some(path.to_owned());
        }
        Ok(data)
    }

    /// With an estimator of feature expectations, where none was typed.
    pub(crate) fn or_estimator(self, estimator: Option<EstimatorArg>) -> Self {
        Self { estimator: self.estimator.or(estimator), estimator_of_spec: self.estimator.is_none(), ..self }
    }

    /// Refuses an estimator that was typed for a method that uses none. One from a spec may serve another method.
    pub(crate) fn check_estimator(&self, name: &str, method: &Method) -> Result<(), Failure> {
        if self.estimator.is_none() || self.estimator_of_spec || method.uses_expectations() {
            return Ok(());
        }
        let others = methods().filter(|entry| (entry.method)().uses_expectations()).map(|entry| entry.name);
        let others = others.collect::<Vec<_>>().join(", ");
        Err(Failure::refused(format!(
            "--method {name} with these settings uses no feature expectations, and so no --estimator of them; these do: {others}"
        )))
    }

    /// The model: a file or a domain.
    pub(crate) fn model_path(&self) -> &Path {
        self.model.as_deref().unwrap_or(Path::new(self.shipped.unwrap_or_default().domain()))
    }

    /// The same data in another model.
    pub(crate) fn in_model(mut self, model: PathBuf) -> Self {
        self.model = Some(model);
        self
    }

    /// The same data whatever folder a command is run in. Names of domains stay as they are.
    pub(crate) fn anchored(&self) -> Result<Self, Failure> {
        let mut anchored = self.clone();
        let Self {
            cohort,
            model,
            contexts,
            feature_expectations,
            trajectories,
            starts,
            true_mapping,
            test_contexts,
            ..
        } = &mut anchored;
        for path in [cohort, model, contexts, feature_expectations, trajectories, starts, true_mapping, test_contexts] {
            if let Some(typed) = path
                && !models::is_domain(typed)
            {
                *typed = std::path::absolute(&*typed).map_err(|error| Failure::in_file(typed, error))?;
            }
        }
        Ok(anchored)
    }

    /// The same with the cohort named from a folder, where both are on one disk.
    pub(crate) fn seen_from(&self, folder: &Path) -> Self {
        let cohort = self.cohort.as_ref().map(|cohort| relative(cohort, folder).unwrap_or_else(|| cohort.clone()));
        Self { cohort, ..self.clone() }
    }

    /// The same with a cohort that was named from a folder.
    pub(crate) fn found_from(&self, folder: &Path) -> Self {
        let found = |cohort: &PathBuf| {
            let joined = folder.join(cohort);
            joined.canonicalize().unwrap_or(joined)
        };
        Self { cohort: self.cohort.as_ref().map(found), ..self.clone() }
    }

    /// Some validation stays of the cohort, as demonstrations, and the share of their steps that the model does not admit.
    pub(crate) fn validation_of_cohort(
        &self,
        model: &Cmdp,
        most: usize,
        seed: u64,
    ) -> Result<Option<(Validation, f64)>, Failure> {
        let Some(folder) = &self.cohort else { return Ok(None) };
        let stays = CohortFolder::open(folder)?.validation(model)?;
        let drawn = coirl_cohort::draw(stays.stays().len(), most, seed);
        let some = ValidationStays::new(drawn.into_iter().map(|i| stays.stays()[i].clone()).collect());
        let demonstrations = some.demonstrations(model)?;
        if demonstrations.demonstrations().is_empty() {
            return Ok(None);
        }
        let all = some.stays().iter().flat_map(|stay| stay.trajectory.states.iter().zip(&stay.trajectory.actions));
        let (mut steps, mut left_out) = (0_u64, 0_u64);
        for (state, action) in all {
            steps += 1;
            left_out += u64::from(model.pairs().find(state.index(), action.index()).is_none());
        }
        Ok(Some((demonstrations, left_out as f64 / steps.max(1) as f64)))
    }

    /// Reads everything, and refuses what is missing.
    pub(crate) fn read(&self, seed: u64) -> Result<Data, Failure> {
        self.read_for(seed, false)
    }

    /// The same for a method that asks an expert, where `simulated`: with --true-mapping the expert is simulated, and a table of what it showed
    /// elsewhere may be left out.
    pub(crate) fn read_for(&self, seed: u64, simulated: bool) -> Result<Data, Failure> {
        if let (Some(_), None, None) =
            (self.estimator.map(drop).or(self.horizon.map(drop)), &self.trajectories, &self.cohort)
        {
            return Err(Failure::refused("--estimator and --horizon go with --trajectories or a cohort"));
        }
        if let Some(folder) = &self.cohort {
            let cohort = CohortFolder::open(folder)?;
            let model = match &self.model {
                Some(path) => models::open(path, seed)?,
                None => cohort.model()?,
            };
            let demonstrations = cohort.train(&model)?.demonstrations(&model)?.demonstrations().to_vec();
            let source = format!("{} stays of the cohort in {}", demonstrations.len(), folder.display());
            return Ok(Data { model, demonstrations, estimator: self.estimator(), truth: None, source });
        }
        if !self.is_given() {
            let with_data = [("--starts", &self.starts), ("--true-mapping", &self.true_mapping)];
            return match with_data.iter().find(|(_, path)| path.is_some()) {
                Some((flag, _)) => Err(Failure::refused(format!(
                    "{flag} goes with your own data: give --model, --contexts and --feature-expectations or --trajectories"
                ))),
                None => self.shipped_data(seed),
            };
        }
        let needed = |flag: &str| {
            Failure::refused(format!(
                "{flag} is missing; your own data need --model, --contexts and --feature-expectations or --trajectories"
            ))
        };
        match (&self.feature_expectations, &self.trajectories) {
            (Some(_), Some(_)) => {
                return Err(Failure::refused(
                    "--feature-expectations and --trajectories were both given; expected one",
                ));
            }
            (None, None) if simulated && self.true_mapping.is_some() => {}
            (None, None) => return Err(needed("--feature-expectations or --trajectories")),
            _ => {}
        }
        let model = models::open(self.model.as_deref().ok_or_else(|| needed("--model"))?, seed)?;
        let names = model.names();
        let table = Table::read(self.contexts.as_deref().ok_or_else(|| needed("--contexts"))?, "contexts")?;
        let table = table.ordered_by(&names.contexts)?;
        let contexts = contexts_of(&model, &table)?;
        let truth = self.truth(&model, &contexts)?;
        let (mut demonstrations, what) = match (&self.feature_expectations, &self.trajectories) {
            (Some(path), _) => {
                let expectations = Table::read(path, "feature_expectations")?.ordered_by(&names.features)?;
                (from_expectations(&model, &contexts, &table, &expectations)?, "feature expectations")
            }
            (None, Some(path)) => (self.along_trajectories(&model, &contexts, path)?, "trajectories"),
            (None, None) => {
                let mapping =
                    &truth.as_ref().ok_or_else(|| needed("--feature-expectations or --trajectories"))?.mapping;
                (by_simulation(&model, &contexts, mapping)?, "an expert who is simulated")
            }
        };
        if let Some(path) = &self.starts {
            demonstrations = with_starts(&model, demonstrations, &Table::read(path, "starts")?)?;
        }
        let source = format!("{what} in {} contexts", demonstrations.len());
        Ok(Data { model, demonstrations, estimator: self.estimator(), truth, source })
    }

    /// The expert's mapping, where it was given, and where to compare with it.
    fn truth(&self, model: &Cmdp, contexts: &[Context]) -> Result<Option<Truth>, Failure> {
        let Some(path) = &self.true_mapping else { return Ok(None) };
        let mapping = mapping_of(model, contexts[0].values().len(), Table::read(path, "mapping")?)?;
        let read = |path: &Path| Table::read(path, "contexts")?.ordered_by(&model.names().contexts);
        let test = self.test_contexts.as_deref().map(read).transpose()?;
        let test = test.map(|table| same_length(contexts_of(model, &table)?, &contexts[0], &table)).transpose()?;
        Ok(Some(Truth { mapping, held_out: test.is_some(), contexts: test.unwrap_or_else(|| contexts.to_vec()) }))
    }

    /// The demonstrations that ship with the program.
    fn shipped_data(&self, seed: u64) -> Result<Data, Failure> {
        let shipped = self.shipped.unwrap_or_default();
        let files = shipped.files();
        let model = models::open(Path::new(shipped.domain()), seed)?;
        let table = Table::shipped("contexts.csv", files.contexts, "contexts")?;
        let contexts = contexts_of(&model, &table)?;
        let (demonstrations, what) = match files.demonstrations {
            ShippedDemonstrations::FeatureExpectations(text) => {
                let expectations = Table::shipped("feature-expectations.csv", text, "feature_expectations")?;
                (from_expectations(&model, &contexts, &table, &expectations)?, "feature expectations of a driver")
            }
            ShippedDemonstrations::Trajectories(text) => {
                let cells = Cells::shipped("trajectories.csv", text)?;
                let paths = trajectories::of_cells(&cells, &model, contexts.len(), trajectories::Allowed::Admissible)?;
                let demonstration = |(paths, context): (Vec<Trajectory>, &Context)| {
                    Ok(Demonstration::from_trajectories(&model, context.clone(), paths)?)
                };
                let demonstrations =
                    paths.into_iter().zip(&contexts).map(demonstration).collect::<Result<_, Failure>>()?;
                (demonstrations, "stays in intensive care, simulated")
            }
        };
        let dimension = contexts[0].values().len();
        let mapping =
            mapping_of(&model, dimension, Table::shipped("true-mapping.csv", files.true_mapping, "mapping")?)?;
        let test = contexts_of(&model, &Table::shipped("test-contexts.csv", files.test_contexts, "contexts")?)?;
        let source = format!("{} {what}, shipped with coirl", contexts.len());
        let truth = Some(Truth { mapping, contexts: test, held_out: true });
        Ok(Data { model, demonstrations, estimator: self.estimator(), truth, source })
    }

    /// Transitions to use of every trajectory, where that was said.
    fn transitions(&self, model: &Cmdp) -> Result<Option<usize>, Failure> {
        match self.tail {
            Some(tail) => Ok(Some(truncation_horizon(model.criterion().discount(), tail)?)),
            None => Ok(self.horizon),
        }
    }

    fn estimator(&self) -> Option<Estimator> {
        self.estimator.map(|chosen| match chosen {
            EstimatorArg::Truncated => Estimator::Truncated { horizon: None },
            EstimatorArg::Geometric => Estimator::Geometric,
            EstimatorArg::ControlVariate => Estimator::ControlVariate,
            EstimatorArg::Decisions => Estimator::Decisions,
        })
    }

    fn along_trajectories(
        &self,
        model: &Cmdp,
        contexts: &[Context],
        path: &Path,
    ) -> Result<Vec<Demonstration>, Failure> {
        let transitions = self.transitions(model)?;
        let shortened = |trajectory: Trajectory| match (transitions, self.estimator) {
            (Some(_), Some(EstimatorArg::Geometric)) => Err(Failure::refused(
                "--horizon or --tail would cut what --estimator geometric adds up; give one of them",
            )),
            (Some(horizon), _) => Ok(trajectory.truncated(horizon)),
            (None, _) => Ok(trajectory),
        };
        let found = trajectories::read(path, model, contexts.len())?;
        let demonstration = |(paths, context): (Vec<Trajectory>, &Context)| {
            let paths = paths.into_iter().map(shortened).collect::<Result<_, _>>()?;
            let demonstration = Demonstration::from_trajectories(model, context.clone(), paths);
            demonstration.map_err(|error| Failure::in_file(path, error))
        };
        found.into_iter().zip(contexts).map(demonstration).collect()
    }
}

/// A path as it is named from a folder; both must exist. Nothing where they have no common root.
fn relative(path: &Path, folder: &Path) -> Option<PathBuf> {
    let (path, folder) = (path.canonicalize().ok()?, folder.canonicalize().ok()?);
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    (shared > 0).then(|| up.chain(path.components().skip(shared)).collect())
}

/// Contexts, and what was recorded in each.
pub(crate) fn read_recorded(
    model: &Cmdp,
    contexts: &Path,
    paths: &Path,
) -> Result<(Vec<Context>, Vec<Trajectory>), Failure> {
    let table = Table::read(contexts, "contexts")?.ordered_by(&model.names().contexts)?;
    let contexts = contexts_of(model, &table)?;
    let found = trajectories::read_recorded(paths, model, contexts.len())?;
    let only = found.into_iter().filter_map(|mut of_context| of_context.pop()).collect();
    Ok((contexts, only))
}

pub(crate) fn contexts_of(model: &Cmdp, table: &Table) -> Result<Vec<Context>, Failure> {
    let context = |(row, values): (usize, &[f64])| {
        model.context_space().context(values).map_err(|error| table.refuse_row(row, error))
    };
    table.rows().enumerate().map(context).collect()
}

fn same_length(contexts: Vec<Context>, first: &Context, table: &Table) -> Result<Vec<Context>, Failure> {
    table.expect_columns(first.values().len(), "as the contexts of the demonstrations have")?;
    Ok(contexts)
}

fn from_expectations(
    model: &Cmdp,
    contexts: &[Context],
    table: &Table,
    expectations: &Table,
) -> Result<Vec<Demonstration>, Failure> {
    expectations.expect_columns(model.n_features(), "one per feature of the model")?;
    if expectations.n_rows() != contexts.len() {
        let there = format!("{} has {} contexts", table.path().display(), contexts.len());
        return Err(
            expectations.refuse(format!("has {} rows, but {there}; expected one row each", expectations.n_rows()))
        );
    }
    let demonstration = |(row, (context, mu)): (usize, (&Context, &[f64]))| {
        Demonstration::from_feature_expectations(model, context.clone(), mu.to_vec())
            .map_err(|error| expectations.refuse_row(row, error))
    };
    contexts.iter().zip(expectations.rows()).enumerate().map(demonstration).collect()
}

/// What an expert with a known mapping does in every context.
fn by_simulation(model: &Cmdp, contexts: &[Context], truth: &LinearMapping) -> Result<Vec<Demonstration>, Failure> {
    let plans = plan_mapping(model, truth, contexts, ManyOptions { feature_expectations: true, values: false })?;
    let demonstration = |(context, plan): (&Context, PlannedReward)| {
        let mu = plan.feature_expectations.unwrap_or_default();
        Ok(Demonstration::from_feature_expectations(model, context.clone(), mu)?)
    };
    contexts.iter().zip(plans).map(demonstration).collect()
}

fn with_starts(
    model: &Cmdp,
    demonstrations: Vec<Demonstration>,
    starts: &Table,
) -> Result<Vec<Demonstration>, Failure> {
    let n = demonstrations.len();
    // A vector in a .npy file is one row.
    let states: Vec<f64> = starts.rows().flatten().copied().collect();
    if states.len() != n || (starts.n_columns() != 1 && starts.n_rows() != 1) {
        let reason =
            format!("has {} rows of {} columns; expected {n} start states", starts.n_rows(), starts.n_columns());
        return Err(starts.refuse(reason));
    }
    let started = |(row, (demonstration, state)): (usize, (Demonstration, f64))| {
        if !(state.fract() == 0.0 && (0.0..model.n_states() as f64).contains(&state)) {
            let reason = format!("{state}; the model has states 0 to {}", model.n_states() - 1);
            return Err(starts.refuse_row(row, reason));
        }
        demonstration.starting_in(model, StateId(state as u32)).map_err(|error| starts.refuse_row(row, error))
    };
    demonstrations.into_iter().zip(states).enumerate().map(started).collect()
}

/// A mapping for contexts of this length.
pub(crate) fn mapping_of(model: &Cmdp, dimension: usize, table: Table) -> Result<LinearMapping, Failure> {
    let table = table.ordered_by(&model.names().features)?;
    table.expect_columns(model.n_features(), "one per feature of the model")?;
    if table.n_rows() != dimension && table.n_rows() != dimension + 1 {
        let reason = format!(
            "has {} rows; expected {dimension}, one per number of a context, and perhaps one more for weights that everybody has",
            table.n_rows()
        );
        return Err(table.refuse(reason));
    }
    let mut values = table.into_values();
    let intercept = values.split_off(dimension * model.n_features());
    let mapping = LinearMapping::new(dimension, model.n_features(), values)?;
    if intercept.is_empty() { Ok(mapping) } else { Ok(mapping.with_intercept(intercept)?) }
}
