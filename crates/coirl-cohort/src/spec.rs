//! What a cohort is made of: one TOML file that says which column is what and how the model is built from them.
//!
//! ```toml
//! preset = "ai-clinician"            # start from these settings; everything below goes before them
//!
//! [table]
//! path = "table.csv"
//!
//! [state]
//! measurements = ["MeanBP", "Shock_Index", "input_4hourly"]
//! clusters = 500
//!
//! [state.columns.input_4hourly]
//! lag = 1                            # the dose of a row is the action of that row
//! ```

use super::presets;
use super::select::Candidate;
use super::step_length::StepLength;
use coirl::settings_file::{merge, refused};
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that decides how a table becomes a contextual model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// The preset that this spec starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// γ.
    pub discount: f64,
    /// Which columns say who and when.
    pub table: TableSpec,
    /// Which stays are kept.
    pub cohort: FilterSpec,
    /// What is known of a person from the start.
    pub context: ContextSpec,
    /// What is measured at every step.
    pub state: StateSpec,
    /// What was done.
    pub action: ActionSpec,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeSpec>,
    /// Shares of the patients.
    pub split: SplitSpec,
    /// How transitions are estimated.
    pub dynamics: DynamicsSpec,
    /// What the reward may depend on.
    pub reward: RewardSpec,
    /// Units of columns, for those who read the results and for the linter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// Options of `coirl fit`, by their names without the dashes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub learner: BTreeMap<String, toml::Value>,
}

/// Which columns say who and when.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSpec {
    /// The file, relative to the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Column of the stay: one trajectory.
    pub stay: String,
    /// Column of the patient; by default the first candidate that the table has, else the stay itself. Splits are by patient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patient: Option<String>,
    /// Columns that may be that of the patient, where `patient` is not given: the first of them that the table has is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patient_candidates: Vec<String>,
    /// Column of the time, in any unit.
    pub time: String,
    /// Cells that mean "not measured", besides empty ones and NaN.
    pub missing: Vec<String>,
    /// The numbers that words of a column stand for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, BTreeMap<String, f64>>,
    /// Where a table has a row per observation: the columns of its code and its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<ObservationsSpec>,
}

/// How a table with a row per observation, as FHIR servers export it, becomes one with a row per step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservationsSpec {
    /// Column of what was observed. Its values are the names of measurements, fields, doses and outcomes.
    pub code: String,
    /// Column of the number, or of the word that stands for one.
    pub value: String,
    /// What counts of several measurements in one step. Doses of a step are added up.
    pub several: Several,
}

/// What counts of several measurements of one kind in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// The last one.
    #[default]
    Last,
    /// Their mean.
    Mean,
}

/// Which stays are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterSpec {
    /// Time between two steps: a number in the unit of the time column (seconds where times are dates), or a number with a unit.
    pub step: StepLength,
    /// What becomes of several rows in one step that differ.
    pub same_step: SameStep,
    /// What becomes of steps without a row.
    pub gaps: Gaps,
    /// Steps that a stay must have.
    pub min_steps: usize,
    /// Steps after which a stay is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<usize>,
    /// Range of a column in the first row; stays outside are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, [f64; 2]>,
    /// Range of a column in any row; values outside count as not measured.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub plausible: BTreeMap<String, [f64; 2]>,
}

/// What becomes of several rows in one step. Rows that are the same in every column are always one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameStep {
    /// The table is refused, with both rows named.
    #[default]
    Refuse,
    /// The first row counts.
    First,
    /// The last row counts.
    Last,
}

/// What becomes of steps without a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Rows before and after follow each other.
    #[default]
    Join,
    /// The stay ends before the first gap, with an end that nobody knows.
    Cut,
}

/// What is known of a person from the start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextSpec {
    /// Columns that do not change during a stay.
    pub fields: Vec<String>,
    /// Columns of which the first row counts.
    pub at_start: Vec<String>,
    /// How fields become a context.
    pub scale: ContextScale,
    /// Range of a field; where nothing is said, its 1st and 99th percentile in the training stays.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, [f64; 2]>,
}

/// How fields become a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextScale {
    /// Scaled to their bounds, raised by a tenth so that none is without a voice, and divided by their sum.
    #[default]
    Simplex,
    /// Less the mean, divided by the standard deviation, with a constant 1 at the end.
    Standardise,
}

/// What is measured at every step, and how it becomes a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateSpec {
    /// Columns that make the state.
    pub measurements: Vec<String>,
    /// A column with the numbers of states, 0, 1, 2, …, instead of measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Number of states in that column; by default one more than the largest of the training rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// What replaces cells that were not measured.
    pub impute: Impute,
    /// Number of states; where nothing is said, 1,500, or fewer so that each has twenty training rows on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    /// Times that k-means is started; the best result is kept.
    pub restarts: usize,
    /// What is special about a measurement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnSpec>,
}

/// What replaces cells that were not measured. Nothing later in time is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impute {
    /// The last measurement of the stay; the training median before the first.
    #[default]
    CarryForward,
    /// The training median.
    Median,
    /// The training mean.
    Mean,
    /// Zero.
    Zero,
    /// The table is refused, with row and column.
    Refuse,
}

/// What is special about a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnSpec {
    /// Steps by which it is late: 1 uses the value of the row before.
    pub lag: usize,
    /// What is done to it first.
    pub transform: Transform,
    /// Range that values are brought into, in the unit of the column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Whether it is brought to mean zero and variance one.
    pub standardise: bool,
    /// How much it counts in the distance between two rows.
    pub weight: f64,
    /// What replaces cells of this column that were not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impute: Option<Impute>,
}

/// What is done to a measurement before it is standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// Nothing.
    #[default]
    None,
    /// ln(x + 0.1), for what has a long tail; below zero counts as zero.
    Log,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionSpec {
    /// Columns of doses; the first counts most in the number of an action.
    pub doses: Vec<String>,
    /// Levels of a dose: zero, and quantiles of the non-zero doses of the training rows.
    pub levels: usize,
    /// Upper edges of the levels above zero but the last, instead of quantiles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub edges: BTreeMap<String, Vec<f64>>,
    /// A column with the numbers of actions, 0, 1, 2, …, instead of doses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Number of actions in that column; where nothing is said, one more than the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Whether the action of the step before is part of the state: people go on with what they began.
    pub previous: bool,
    /// Distance between none and the highest level of a dose before, or between two numbered actions, where one standard deviation in every
    /// measurement is 1.
    pub previous_weight: f64,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeSpec {
    /// The column; the last row of a stay counts. May be left to the preset.
    #[serde(default)]
    pub column: String,
    /// The value that is a bad end.
    #[serde(default = "one")]
    pub bad: f64,
    /// Columns that are known only afterwards as well, such as other outcomes: never a field, a measurement or a dose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

fn one() -> f64 {
    1.0
}

/// Shares of the patients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SplitSpec {
    /// To learn from; everything is fitted on these only.
    pub train: f64,
    /// To stop and choose by.
    pub validation: f64,
    /// To score on.
    pub test: f64,
}

/// How transitions are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DynamicsSpec {
    /// Clusters of contexts with a kernel each.
    pub context_clusters: usize,
    /// Times that an action must have been seen in a state for the model to know where it leads.
    pub min_support: u64,
    /// What becomes of actions that were seen less.
    pub unsupported: Unsupported,
    /// Observations' worth of the successors of the state, after whichever action.
    pub prior: f64,
    /// Observations' worth by which a cluster of contexts is drawn to all of them together.
    pub shrinkage: f64,
}

/// What becomes of actions that were seen too rarely in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsupported {
    /// They cannot be taken. Demonstrations are learned from up to such a step and from the next on.
    #[default]
    Masked,
    /// They lead to *unknown*, an absorbing state where every feature is −1, as in the paper's simulator. A learned reward may come to like it.
    Unknown,
}

/// What the reward may depend on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardSpec {
    /// The features.
    pub features: RewardFeatures,
}

/// Features of the reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardFeatures {
    /// An indicator of the state beside one of the action: e_state ⊕ e_action.
    #[default]
    Indicators,
    /// The centroid of the state, clipped to three standard deviations and divided by three, and the outcome.
    Centroids,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            preset: None,
            discount: 0.7,
            table: TableSpec::default(),
            cohort: FilterSpec::default(),
            context: ContextSpec::default(),
            state: StateSpec::default(),
            action: ActionSpec::default(),
            outcome: None,
            split: SplitSpec::default(),
            dynamics: DynamicsSpec::default(),
            reward: RewardSpec::default(),
            units: BTreeMap::new(),
            learner: BTreeMap::new(),
        }
    }
}

impl Default for FilterSpec {
    fn default() -> Self {
        Self {
            step: StepLength::Number(1.0),
            same_step: SameStep::default(),
            gaps: Gaps::default(),
            min_steps: 2,
            max_steps: None,
            keep: BTreeMap::new(),
            plausible: BTreeMap::new(),
        }
    }
}

impl Default for StateSpec {
    fn default() -> Self {
        Self {
            measurements: Vec::new(),
            column: None,
            number: None,
            impute: Impute::default(),
            clusters: None,
            restarts: 1,
            columns: BTreeMap::new(),
        }
    }
}

impl Default for ColumnSpec {
    fn default() -> Self {
        Self { lag: 0, transform: Transform::None, clip: None, standardise: true, weight: 1.0, impute: None }
    }
}

impl Default for ObservationsSpec {
    fn default() -> Self {
        Self { code: "code".into(), value: "value".into(), several: Several::default() }
    }
}

impl Default for ActionSpec {
    fn default() -> Self {
        Self {
            doses: Vec::new(),
            levels: 5,
            edges: BTreeMap::new(),
            column: None,
            number: None,
            previous: false,
            previous_weight: 4.0,
        }
    }
}

impl Default for SplitSpec {
    fn default() -> Self {
        Self { train: 0.6, validation: 0.2, test: 0.2 }
    }
}

impl Default for DynamicsSpec {
    fn default() -> Self {
        Self { context_clusters: 1, min_support: 5, unsupported: Unsupported::Masked, prior: 1.0, shrinkage: 5.0 }
    }
}

/// A complaint about a place in the spec.
fn refuse(place: &str, reason: String) -> Result<()> {
    Err(Error::Spec { place: place.into(), reason })
}

impl Spec {
    /// A preset by its name.
    pub fn preset(name: &str) -> Result<Self> {
        let text = presets::text(name)?;
        toml::from_str(text)
            .map_err(|error| Error::Spec { place: format!("preset {name}"), reason: error.message().into() })
    }

    /// From the text of a TOML file; what it does not say comes from its preset.
    pub fn from_toml(text: &str) -> Result<Self> {
        // Read alone first: only so do complaints know their line.
        let alone: Self = toml::from_str(text).map_err(|error| refused(text, &error))?;
        let Some(name) = &alone.preset else { return Ok(alone) };
        let table = |text: &str| text.parse::<toml::Table>().map_err(|error| refused(text, &error));
        let mut merged = table(presets::text(name)?)?;
        let own = table(text)?;
        // Settings of one method say nothing about another.
        if own.get("learner").is_some_and(|learner| learner.get("method").is_some()) {
            merged.remove("learner");
        }
        merge(&mut merged, own);
        let mut spec: Self =
            toml::Value::Table(merged).try_into().map_err(|error: toml::de::Error| refused("", &error))?;
        // What the preset says of columns that this spec does not use is of no concern; what the spec itself says may be mistyped.
        let Self { state, context, action, cohort, .. } = &mut spec;
        let contexts: Vec<String> = context.columns().map(str::to_owned).collect();
        state.columns.retain(|name, _| state.measurements.contains(name) || alone.state.columns.contains_key(name));
        context.bounds.retain(|name, _| contexts.contains(name) || alone.context.bounds.contains_key(name));
        action.edges.retain(|name, _| action.doses.contains(name) || alone.action.edges.contains_key(name));
        cohort.plausible.retain(|name, _| {
            state.measurements.contains(name) || contexts.contains(name) || alone.cohort.plausible.contains_key(name)
        });
        let used: Vec<String> = spec.columns().into_iter().map(str::to_owned).collect();
        spec.table.codes.retain(|name, _| used.contains(name) || alone.table.codes.contains_key(name));
        Ok(spec)
    }

    /// As a TOML file.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string_pretty(self).map_err(|error| Error::Spec { place: "spec".into(), reason: error.to_string() })
    }

    /// Refuses what does not go together, before any data are read.
    pub fn check(&self) -> Result<()> {
        self.check_given()?;
        self.check_names()?;
        self.check_actions_and_ranges()?;
        self.check_numbers()
    }

    /// Refuses a spec that leaves out what it cannot do without.
    fn check_given(&self) -> Result<()> {
        for (place, column) in [("table.stay", &self.table.stay), ("table.time", &self.table.time)] {
            if column.is_empty() {
                return refuse(place, "is not given; expected the name of a column".into());
            }
        }
        self.check_state()?;
        if self.context.fields.is_empty() && self.context.at_start.is_empty() {
            return refuse("context.fields", "is empty; expected the columns that make the context".into());
        }
        if self.action.doses.is_empty() == self.action.column.is_none() {
            return refuse(
                "action",
                "expected either doses, to be binned, or column, with the numbers of actions".into(),
            );
        }
        Ok(())
    }

    /// Refuses states that are neither made of measurements nor given by a column, or both.
    fn check_state(&self) -> Result<()> {
        let state = &self.state;
        let Some(column) = &state.column else {
            if state.measurements.is_empty() {
                let reason =
                    "is empty; expected the columns that make the state, or column, with the numbers of states";
                return refuse("state.measurements", reason.into());
            }
            return match state.number {
                Some(_) => {
                    refuse("state.number", "goes with state.column; clusters says how many states to find".into())
                }
                None => Ok(()),
            };
        };
        if !state.measurements.is_empty() {
            let reason =
                format!("{column} gives the states, and measurements as well; expected one (measurements = [])");
            return refuse("state", reason);
        }
        if state.clusters.is_some() {
            return refuse(
                "state.clusters",
                format!("no states are looked for: they are those in {column}; see state.number"),
            );
        }
        if self.action.previous {
            let reason = format!("goes with measurements; here states are the numbers in {column}");
            return refuse("action.previous", reason);
        }
        if self.action.column.as_ref() == Some(column) || self.action.doses.contains(column) {
            return refuse("state.column", format!("names {column}, which is the action as well"));
        }
        if self.outcome.as_ref().is_some_and(|outcome| outcome.column == *column) {
            return refuse("state.column", format!("names {column}, the outcome: what is to come gives itself away"));
        }
        Ok(())
    }

    /// Refuses columns that are named twice, settings of columns that are not used, and an outcome among what it is foreseen by.
    fn check_names(&self) -> Result<()> {
        let lists = [("state.measurements", &self.state.measurements), ("action.doses", &self.action.doses)];
        let contexts: Vec<String> = self.context.columns().map(str::to_owned).collect();
        for (place, list) in lists.into_iter().chain([("context", &contexts)]) {
            let twice = list.iter().enumerate().find(|(i, name)| list[..*i].contains(name));
            if let Some((_, name)) = twice {
                return refuse(place, format!("names {name} twice"));
            }
        }
        if let Some(outcome) = &self.outcome {
            if outcome.column.is_empty() {
                return refuse("outcome.column", "is not given; expected the name of a column".into());
            }
            let places = [
                ("context.fields", &self.context.fields),
                ("context.at_start", &self.context.at_start),
                ("state.measurements", &self.state.measurements),
                ("action.doses", &self.action.doses),
            ];
            let known_after = |name: &&String| **name == outcome.column || outcome.others.contains(name);
            let found = places.into_iter().find_map(|(place, list)| Some((place, list.iter().find(known_after)?)));
            if let Some((place, name)) = found {
                let what = if *name == outcome.column { "the outcome" } else { "which is known only afterwards" };
                return refuse(place, format!("names {name}, {what}: what is to come gives itself away; leave it out"));
            }
        }
        self.check_observations()?;
        let used = self.columns();
        for (name, codes) in &self.table.codes {
            if !used.contains(&name.as_str()) {
                return refuse("table.codes", format!("{name} is no column of numbers that the spec uses"));
            }
            if let Some((word, x)) = codes.iter().find(|(_, x)| !x.is_finite()) {
                return refuse(&format!("table.codes.{name}"), format!("{word} = {x}; expected a finite number"));
            }
        }
        for (place, settings, list) in [
            ("state.columns", self.state.columns.keys().collect::<Vec<_>>(), &self.state.measurements),
            ("action.edges", self.action.edges.keys().collect(), &self.action.doses),
            ("context.bounds", self.context.bounds.keys().collect(), &contexts),
            // Doses are no measurements: one that is not believed cannot be left out.
            (
                "cohort.plausible",
                self.cohort.plausible.keys().collect(),
                &self.state.measurements.iter().chain(&contexts).cloned().collect(),
            ),
        ] {
            if let Some(name) = settings.into_iter().find(|name| !list.contains(name)) {
                return refuse(place, format!("{name} is not among {}", list.join(", ")));
            }
        }
        Ok(())
    }

    /// Refuses observations whose columns have no names or another purpose.
    fn check_observations(&self) -> Result<()> {
        let Some(observations) = &self.table.observations else { return Ok(()) };
        for (place, name) in
            [("table.observations.code", &observations.code), ("table.observations.value", &observations.value)]
        {
            if name.is_empty() {
                return refuse(place, "is not given; expected the name of a column".into());
            }
            if self.columns().contains(&name.as_str()) {
                return refuse(place, format!("{name} is a column of numbers that the spec uses as well"));
            }
        }
        if observations.code == observations.value {
            return refuse("table.observations", format!("code and value are both {}", observations.code));
        }
        Ok(())
    }

    /// Refuses levels, edges, ranges and weights that are none.
    fn check_actions_and_ranges(&self) -> Result<()> {
        if !(2..=100).contains(&self.action.levels) {
            return refuse("action.levels", format!("{}; expected 2 to 100", self.action.levels));
        }
        for (name, edges) in &self.action.edges {
            let rising = edges.windows(2).all(|two| two[0] < two[1]) && edges.iter().all(|x| *x > 0.0 && x.is_finite());
            if !rising || edges.len() + 2 != self.action.levels {
                let wanted = self.action.levels - 2;
                return refuse("action.edges", format!("{name}: {edges:?}; expected {wanted} rising doses above zero"));
            }
        }
        let ranges = self.cohort.keep.iter().chain(&self.cohort.plausible).chain(&self.context.bounds);
        let clips = self.state.columns.iter().filter_map(|(name, column)| Some((name, column.clip.as_ref()?)));
        for (name, [lo, hi]) in ranges.chain(clips) {
            if !(lo < hi) {
                return refuse(name, format!("the range [{lo}, {hi}] is empty"));
            }
        }
        if let Some((name, column)) =
            self.state.columns.iter().find(|(_, column)| !(column.weight >= 0.0 && column.weight.is_finite()))
        {
            return refuse(&format!("state.columns.{name}.weight"), format!("{}; expected 0 or more", column.weight));
        }
        Ok(())
    }

    /// Refuses shares, discounts and counts outside their range.
    fn check_numbers(&self) -> Result<()> {
        let SplitSpec { train, validation, test } = self.split;
        let sum = train + validation + test;
        if !(train > 0.0 && validation >= 0.0 && test >= 0.0 && (sum - 1.0).abs() < 1e-6) {
            return refuse(
                "split",
                format!("{train}, {validation}, {test}; expected shares that add up to 1, some of it to train"),
            );
        }
        if !(self.discount > 0.0 && self.discount < 1.0) {
            return refuse("discount", format!("{}; expected a number between 0 and 1", self.discount));
        }
        let weight = self.action.previous_weight;
        if !(weight >= 0.0 && weight.is_finite()) {
            return refuse("action.previous_weight", format!("{weight}; expected 0 or more"));
        }
        let step = self.cohort.step.value();
        if !(step > 0.0 && step.is_finite()) {
            return refuse("cohort.step", format!("{}; expected a number above 0", self.cohort.step));
        }
        for (place, value) in [("dynamics.prior", self.dynamics.prior), ("dynamics.shrinkage", self.dynamics.shrinkage)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(place, format!("{value}; expected a number of observations: finite and not negative"));
            }
        }
        for (place, value) in [
            ("cohort.min_steps", self.cohort.min_steps),
            ("cohort.max_steps", self.cohort.max_steps.unwrap_or(1)),
            ("state.clusters", self.state.clusters.unwrap_or(1)),
            ("state.restarts", self.state.restarts),
            ("state.number", self.state.number.unwrap_or(1)),
            ("dynamics.context_clusters", self.dynamics.context_clusters),
        ] {
            if value == 0 {
                return refuse(place, "0; expected at least 1".into());
            }
        }
        Ok(())
    }

    /// The columns of numbers that are needed, each once.
    pub fn columns(&self) -> Vec<&str> {
        let mut columns: Vec<&str> = Vec::new();
        let named = self
            .context
            .columns()
            .chain(self.state.measurements.iter().map(String::as_str))
            .chain(self.state.column.as_deref())
            .chain(self.action.doses.iter().map(String::as_str))
            .chain(self.action.column.as_deref())
            .chain(self.outcome.iter().map(|outcome| outcome.column.as_str()))
            .chain(self.cohort.keep.keys().map(String::as_str))
            .chain(self.cohort.plausible.keys().map(String::as_str));
        for name in named {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        columns
    }

    /// The unit that numbers of a column are read with. A range of grades, such as 3-15, is none.
    pub fn unit_of(&self, column: &str) -> Option<&str> {
        let is_scale = |unit: &str| unit == "score" || unit.starts_with(|c: char| c.is_ascii_digit());
        self.units.get(column).map(String::as_str).filter(|unit| !is_scale(unit))
    }

    /// What is special about a measurement.
    pub fn column(&self, name: &str) -> ColumnSpec {
        self.state.columns.get(name).cloned().unwrap_or_default()
    }

    /// The spec for a table with these columns: the patient's column is the one that is named, or the first candidate that is there.
    pub fn for_columns(&self, header: &[String]) -> Self {
        let mut spec = self.clone();
        let there = |name: &&String| header.contains(*name);
        spec.table.patient = spec.table.patient.or_else(|| spec.table.patient_candidates.iter().find(there).cloned());
        spec
    }

    /// The spec of a cohort for a new table with these columns, which may do without an outcome, and without a patient where that was
    /// looked for among candidates.
    pub fn for_new_columns(&self, header: &[String]) -> Self {
        let mut spec = self.clone();
        let there = |name: &String| header.contains(name);
        let sought = |name: &String| self.table.patient_candidates.contains(name);
        spec.table.patient = spec.table.patient.filter(|name| there(name) || !sought(name));
        // Of observations nobody knows beforehand which codes there are.
        let coded = self.table.observations.is_some();
        spec.outcome = spec.outcome.filter(|outcome| coded || there(&outcome.column));
        spec.for_columns(header)
    }

    /// The same with states that were chosen.
    pub fn with_states(&self, chosen: &Candidate) -> Self {
        let mut spec = self.clone();
        spec.state.clusters = Some(chosen.clusters);
        spec.state.measurements = chosen.measurements.iter().map(|(name, _)| name.clone()).collect();
        let StateSpec { measurements, columns, .. } = &mut spec.state;
        columns.retain(|name, _| measurements.contains(name));
        let contexts: Vec<&str> = self.context.columns().collect();
        spec.cohort.plausible.retain(|name, _| measurements.contains(name) || contexts.contains(&name.as_str()));
        for (name, weight) in &chosen.measurements {
            let column = spec.state.columns.entry(name.clone()).or_default();
            column.weight = *weight;
        }
        spec
    }

    /// The table, where the spec names one; `beside` is the folder of the spec.
    pub fn table_path(&self, beside: &Path) -> Option<PathBuf> {
        self.table.path.as_ref().map(|path| beside.join(path))
    }
}

impl ContextSpec {
    /// All columns of the context, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().chain(&self.at_start).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        match Spec::from_toml(text).and_then(|spec| spec.check()) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("accepted: {text}"),
        }
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_name_and_the_line() {
        let message = reason("preset = \"ai-clinician\"\n\n[state]\nclusers = 5\n");
        assert!(
            message.contains("line 4") && message.contains("'clusers'") && message.contains("'clusters'"),
            "{message}"
        );
        let message = reason("[state]\nimpute = \"carry-foward\"\n");
        assert!(message.contains("did you mean 'carry-forward'"), "{message}");
        let message = reason("preset = \"ai-clinican\"\n");
        assert!(message.contains("ai-clinician"), "{message}");
    }

    #[test]
    fn a_spec_goes_before_its_preset_key_by_key() -> Result<()> {
        let spec = Spec::from_toml(
            "preset = \"ai-clinician\"\n[state]\nclusters = 12\n[split]\ntrain = 0.8\nvalidation = 0.1\ntest = 0.1\n",
        )?;
        let preset = Spec::preset("ai-clinician")?;
        assert_eq!(spec.state.clusters, Some(12));
        assert_eq!(spec.state.measurements, preset.state.measurements);
        assert_eq!(spec.split.train, 0.8);
        Ok(())
    }

    #[test]
    fn settings_of_columns_that_are_not_used_stay_with_the_preset() -> Result<()> {
        let spec = Spec::from_toml("preset = \"ai-clinician\"\n[state]\nmeasurements = [\"HR\", \"BUN\"]\n")?;
        spec.check()?;
        assert_eq!(spec.state.columns.keys().collect::<Vec<_>>(), ["BUN"]);
        Ok(())
    }

    #[test]
    fn ranges_of_columns_that_are_not_used_stay_with_the_preset() -> Result<()> {
        let text = "preset = \"ai-clinician\"\n[state]\nmeasurements = [\"HR\"]\n[context]\nfields = [\"age\"]\nat_start = []\n";
        let spec = Spec::from_toml(text)?;
        spec.check()?;
        assert_eq!(spec.cohort.plausible.keys().collect::<Vec<_>>(), ["HR", "age"]);
        let mistyped = Spec::from_toml(&format!("{text}[cohort.plausible]\nHHR = [1.0, 2.0]\n"))?;
        assert!(mistyped.check().is_err_and(|error| error.to_string().contains("HHR is not among")));
        Ok(())
    }

    #[test]
    fn every_preset_is_valid_and_survives_being_written() -> Result<()> {
        for name in presets::NAMES {
            let spec = Spec::preset(name)?;
            if presets::OPEN.contains(name) {
                assert!(spec.check().is_err(), "{name}");
            } else {
                spec.check()?;
            }
            assert_eq!(Spec::from_toml(&spec.to_toml()?)?, spec, "{name}");
        }
        Ok(())
    }

    #[test]
    fn every_clinical_preset_has_a_range_and_a_unit_for_what_it_uses() -> Result<()> {
        for name in presets::NAMES.iter().filter(|name| !presets::OPEN.contains(name)) {
            let spec = Spec::preset(name)?;
            // What that file calls an age is in a unit that is not documented.
            let open = |column: &&str| *column == "o:age";
            for column in spec.context.columns().chain(spec.state.measurements.iter().map(String::as_str)) {
                if !open(&column) {
                    assert!(spec.cohort.plausible.contains_key(column), "{name}: {column} has no plausible range");
                    assert!(spec.units.contains_key(column), "{name}: {column} has no unit");
                }
            }
            for dose in &spec.action.doses {
                assert!(spec.units.contains_key(dose), "{name}: {dose} has no unit");
            }
            let outcome = spec.outcome.as_ref().map(|outcome| outcome.others.len()).unwrap_or_default();
            assert!(outcome > 0, "{name} knows no outcome columns");
            for late in [
                "SOFA",
                "o:SOFA",
                "sofa_24hours",
                "input_total",
                "o:input_total",
                "cumulated_balance",
                "o:cumulated_balance",
            ] {
                let used = spec.state.measurements.iter().any(|own| own == late);
                assert!(!used || spec.column(late).lag == 1, "{name}: {late} knows the dose of its step");
            }
        }
        Ok(())
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let with = |text: &str| reason(&format!("preset = \"ai-clinician\"\n{text}"));
        assert!(with("[split]\ntrain = 0.9\n").contains("add up to 1"));
        assert!(with("discount = 1.0\n").contains("discount"));
        assert!(with("[state.columns.HRR]\nlag = 1\n").contains("HRR is not among"));
        assert!(with("[action]\ncolumn = \"a\"\n").contains("either doses"));
        assert!(with("[action.edges]\nmax_dose_vaso = [1.0, 0.5, 2.0]\n").contains("rising"));
        assert!(with("[cohort.keep]\nage = [5.0, 1.0]\n").contains("empty"));
        let leaking = with("[context]\nfields = [\"age\", \"mortality_90d\"]\n");
        assert!(leaking.contains("context.fields") && leaking.contains("the outcome"), "{leaking}");
        let leaking = with("[state]\nmeasurements = [\"HR\", \"mortality_90d\"]\n[state.columns]\n");
        assert!(leaking.contains("state.measurements") && leaking.contains("the outcome"), "{leaking}");
        for column in ["died_in_hosp", "delay_end_of_record_and_discharge_or_death"] {
            let leaking = with(&format!("[context]\nfields = [\"age\", \"{column}\"]\n"));
            assert!(leaking.contains(column) && leaking.contains("only afterwards"), "{leaking}");
            let leaking = with(&format!("[state]\nmeasurements = [\"HR\", \"{column}\"]\n"));
            assert!(leaking.contains(column) && leaking.contains("only afterwards"), "{leaking}");
        }
        assert!(reason("[table]\nstay = \"a\"\ntime = \"b\"\n[context]\nfields = [\"c\"]\n[state]\nmeasurements = [\"d\"]\n[action]\ncolumn = \"e\"\n[outcome]\nbad = 2\n").contains("outcome.column"));
        assert!(with("[cohort.plausible]\nmax_dose_vaso = [0.0, 5.0]\n").contains("max_dose_vaso is not among"));
        assert!(with("[table.codes.sex]\nM = 0\n").contains("sex is no column"));
        let unit = with("[cohort]\nstep = \"2 fortnights\"\n");
        assert!(unit.contains("line 3") && unit.contains("'fortnights'"), "{unit}");
    }

    #[test]
    fn a_key_that_is_said_twice_is_named() {
        let message = reason("[state.columns]\nHR = { lag = 1 }\n[state.columns.HR]\nlag = 2\n");
        assert!(message.contains("line 3") && message.contains("'HR'"), "{message}");
    }
}
