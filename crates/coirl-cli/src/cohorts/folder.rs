//! A built cohort on disk: the model, how rows become its numbers, and the stays by what they are for.
//!
//! ```text
//! cohort.json          how it was built: spec, encoder, flow, findings
//! spec.toml            the spec, complete: `coirl cohort build spec.toml` builds it again
//! model.safetensors    the model
//! flow.csv, states.csv who was left out and why; what the states look like
//! columns.csv          where every variable comes from and what became of it
//! train/ validation/ test/
//!   contexts.csv       a row per stay
//!   trajectories.csv   demonstration, step, state, action
//!   stays.csv          ids, fields and the end of each stay
//!   points.npy         the measurements of every step, as distances see them
//! ```

use super::limits::Limits;
use crate::arguments::Global;
use crate::commands::fit::write_matrix;
use crate::destination::to_file;
use crate::failure::Failure;
use crate::numbers::full;
use crate::output::{Manifest, OutputFolder};
use crate::plans::npy_header;
use coirl::artifact::{digest_of_file, open_regular, read_model, read_numbers, read_text, write_model};
use coirl::demos::Trajectory;
use coirl::model::{Cmdp, Context};
use coirl_cohort::synthetic::Synthetic;
use coirl_cohort::{
    Cohort, ColumnProvenance, Encoder, Ends, Finding, Flow, FlowStep, Measurement, PartSummary, RecordedStay,
    Reference, Spec, SupportSummary, TestStays, TrainStays, ValidationStays, admitted_share,
};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Version of the format.
const VERSION: u32 = 2;
const COHORT: &str = "cohort.json";
const MODEL: &str = "model.safetensors";
const STAYS: &str = "stays.csv";
const COLUMNS: &str = "columns.csv";
const POINTS: &str = "points.npy";
pub(crate) const FLOW: &str = "flow.csv";

/// What stays are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Train,
    Validation,
    Test,
}

impl Part {
    fn folder(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Validation => "validation",
            Part::Test => "test",
        }
    }
}

/// How a cohort was built.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CohortFile {
    version: u32,
    /// The table.
    pub(crate) table: PathBuf,
    pub(crate) seed: u64,
    pub(crate) spec: Spec,
    pub(crate) flow: Flow,
    pub(crate) support: SupportSummary,
    /// Mean squared distance of training rows from their centroid.
    pub(crate) inertia: f64,
    /// Mean squared distance of training rows from their mean.
    pub(crate) variance: f64,
    /// What training stays look like.
    pub(crate) reference: Reference,
    pub(crate) findings: Vec<Finding>,
    /// What the table was made with, where it is synthetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<Synthetic>,
    pub(crate) encoder: Encoder,
}

impl CohortFile {
    /// Who splits and intervals are of: patients, or stays where no column of the patient is known.
    pub(crate) fn people(&self) -> &'static str {
        if self.spec.table.patient.is_some() { "patients" } else { "stays" }
    }
}

/// What every version of `cohort.json` says.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A cohort that was written.
pub(crate) struct CohortFolder {
    path: PathBuf,
    pub(crate) file: CohortFile,
}

impl CohortFolder {
    /// Whether a folder holds a cohort.
    pub(crate) fn is_in(path: &Path) -> bool {
        path.join(COHORT).is_file()
    }

    /// A folder to write a cohort to: a new one, or that of an earlier cohort.
    pub(crate) fn create(path: &Path, global: &Global) -> Result<OutputFolder, Failure> {
        OutputFolder::open_own(path, &[COHORT], &[], global)
    }

    /// Writes a cohort; `truth` is what its table was made with, where it is synthetic.
    pub(crate) fn write(
        folder: &OutputFolder,
        cohort: &Cohort,
        table: &Path,
        truth: Option<Synthetic>,
    ) -> Result<CohortFile, Failure> {
        let model = &cohort.model;
        Manifest::withdraw(folder)?;
        // A folder without it is no cohort: what is left of an earlier one must not be taken for its parts.
        let _ = std::fs::remove_file(folder.file(COHORT));
        for (part, stays) in [
            (Part::Train, cohort.train.stays()),
            (Part::Validation, cohort.validation.stays()),
            (Part::Test, cohort.test.stays()),
        ] {
            let own = folder.folder(part.folder())?;
            write_coded(&own, model, &cohort.encoder, stays)?;
        }
        write_model(&folder.file(MODEL), model)?;
        write_flow(&folder.file(FLOW), &cohort.flow)?;
        write_columns(&folder.file(COLUMNS), &cohort.columns)?;
        let mut rows = vec![0_u64; cohort.encoder.centroids.n_clusters()];
        for state in cohort.train.stays().iter().flat_map(|stay| &stay.trajectory.states) {
            if let Some(n) = rows.get_mut(state.index()) {
                *n += 1;
            }
        }
        let measurements = || cohort.encoder.measurements.iter();
        let named: Vec<String> = measurements().map(Measurement::name).collect();
        let names: Vec<&str> = ["state", "training_rows"].into_iter().chain(named.iter().map(String::as_str)).collect();
        write_table(&folder.file("states.csv"), &names, {
            let row = |((state, centroid), n): ((usize, &[f64]), &u64)| {
                let values = measurements().zip(centroid).map(|(measurement, x)| full(measurement.in_unit(*x)));
                [state.to_string(), n.to_string()].into_iter().chain(values).collect()
            };
            cohort.encoder.centroids.rows().enumerate().zip(&rows).map(row)
        })?;
        let mut spec = cohort.spec.clone();
        spec.table.path = Some(std::path::absolute(table).map_err(|error| Failure::in_file(table, error))?);
        let n_states = Some(cohort.encoder.centroids.n_clusters());
        match spec.state.column {
            Some(_) => spec.state.number = n_states,
            None => spec.state.clusters = n_states,
        }
        let text = spec.to_toml()?;
        to_file(&folder.file("spec.toml"), |out| Ok(out.write_all(text.as_bytes())?))?;
        let file = CohortFile {
            version: VERSION,
            table: spec.table.path.clone().unwrap_or_default(),
            seed: cohort.seed,
            spec,
            flow: cohort.flow.clone(),
            support: cohort.support,
            inertia: cohort.inertia,
            variance: cohort.variance,
            reference: cohort.reference.clone(),
            // What is passed on with a model, and shown in reports, names nobody.
            findings: cohort.findings.iter().map(Finding::anonymous).collect(),
            truth,
            encoder: cohort.encoder.clone(),
        };
        let text = serde_json::to_string_pretty(&file).map_err(std::io::Error::from)?;
        to_file(&folder.file(COHORT), |out| Ok(writeln!(out, "{text}")?))?;
        // The parts are patients' data, which nobody needs a fingerprint of.
        Manifest::new("cohort build", cohort.seed, &file.spec)?
            .with_data("table", digest_of_file(table)?)
            .write(folder, [COHORT, MODEL, FLOW, "states.csv", COLUMNS, "spec.toml"])?;
        Ok(file)
    }

    /// Opens a folder that `coirl cohort build` wrote.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let at = path.join(COHORT);
        let text = read_text(&at, "a cohort")?;
        // Of another version nothing but its number can be read.
        let Versioned { version } = serde_json::from_str(&text).map_err(|error| Failure::in_file(&at, error))?;
        if version != VERSION {
            let reason = format!("version {version}; this program reads version {VERSION}: build the cohort again");
            return Err(Failure::in_file(&at, reason));
        }
        let file: CohortFile = serde_json::from_str(&text).map_err(|error| Failure::in_file(&at, error))?;
        let checked = file.encoder.check().and_then(|()| file.reference.check(&file.encoder));
        checked.map_err(|error| Failure::in_file(&at, error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn model(&self) -> Result<Cmdp, Failure> {
        Ok(read_model(&self.path.join(MODEL))?)
    }

    /// The states that are no clusters.
    pub(crate) fn ends(&self) -> Ends {
        Ends::of_spec(self.file.encoder.centroids.n_clusters(), &self.file.spec)
    }

    /// Stays to learn from.
    pub(crate) fn train(&self, model: &Cmdp) -> Result<TrainStays, Failure> {
        Ok(TrainStays::new(self.stays(model, Part::Train, true)?))
    }

    /// Stays to stop and choose by.
    pub(crate) fn validation(&self, model: &Cmdp) -> Result<ValidationStays, Failure> {
        Ok(ValidationStays::new(self.stays(model, Part::Validation, true)?))
    }

    /// Stays to score on.
    pub(crate) fn test(&self, model: &Cmdp) -> Result<TestStays, Failure> {
        Ok(TestStays::new(self.stays(model, Part::Test, true)?))
    }

    /// What limits scores on it.
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let model = self.model()?;
        self.limits_on(&model, &self.stays(&model, Part::Test, false)?)
    }

    /// What limits scores on any stays, in the numbers of the cohort.
    pub(crate) fn limits_on(&self, model: &Cmdp, test: &[RecordedStay]) -> Result<Limits, Failure> {
        let stays = |part: Part| self.stays(model, part, false);
        let (train, validation) = (stays(Part::Train)?, stays(Part::Validation)?);
        let contexts = &self.file.encoder.contexts;
        let parts = [&train, &validation, test].map(|stays| PartSummary::of(stays, contexts));
        let admitted = admitted_share(model, test);
        let (n, train) = (train.len(), TrainStays::new(train));
        let left_out = n - train.demonstrations(model)?.demonstrations().len();
        Ok(Limits::new(&self.file, admitted, left_out, parts))
    }

    fn stays(&self, model: &Cmdp, part: Part, with_points: bool) -> Result<Vec<RecordedStay>, Failure> {
        let folder = self.path.join(part.folder());
        let (contexts, trajectories) = (folder.join("contexts.csv"), folder.join("trajectories.csv"));
        if !contexts.exists() {
            return Ok(Vec::new());
        }
        let path = folder.join(STAYS);
        let saved = SavedStay::read_all(&path, self.file.encoder.contexts.fields.len())?;
        // Nobody is in a part whose share is zero.
        if saved.is_empty() {
            return Ok(Vec::new());
        }
        let (contexts, trajectories) = crate::fitting::read_recorded(model, &contexts, &trajectories)?;
        if saved.len() != contexts.len() {
            let reason = format!("has {} stays, but there are {} contexts", saved.len(), contexts.len());
            return Err(Failure::in_file(&path, reason));
        }
        let n_steps = trajectories.iter().map(|path| path.actions.len()).sum();
        let points = if with_points { self.points(part, n_steps)? } else { Vec::new() };
        let width = self.file.encoder.measurements.len();
        let mut at = 0;
        let stay = |((saved, context), trajectory): ((SavedStay, Context), Trajectory)| {
            let end = at + width * trajectory.actions.len();
            let own = points.get(at..end).unwrap_or_default().to_vec();
            at = end;
            RecordedStay {
                stay: saved.stay,
                patient: saved.patient,
                fields: saved.fields,
                context,
                trajectory,
                bad_end: saved.bad_end,
                points: own,
            }
        };
        Ok(saved.into_iter().zip(contexts).zip(trajectories).map(stay).collect())
    }

    /// The points of all steps of a part; none where they were not kept.
    fn points(&self, part: Part, n_steps: usize) -> Result<Vec<f32>, Failure> {
        let path = self.path.join(part.folder()).join(POINTS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let (shape, values) = read_numbers(&path, "points")?;
        let width = self.file.encoder.measurements.len();
        if shape != [n_steps, width] {
            return Err(Failure::in_file(&path, format!("has shape {shape:?}; expected [{n_steps}, {width}]")));
        }
        Ok(values.into_iter().map(|x| x as f32).collect())
    }
}

/// Writes a table of words; names of columns may have commas and quotes.
fn write_table(path: &Path, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<(), Failure> {
    let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
    to_file(path, |out| {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(header).map_err(refused)?;
        for row in rows {
            table.write_record(row).map_err(refused)?;
        }
        Ok(table.flush()?)
    })
}

fn write_columns(path: &Path, columns: &[ColumnProvenance]) -> Result<(), Failure> {
    let header = [
        "column",
        "purpose",
        "unit",
        "lag",
        "transform",
        "impute",
        "fill",
        "missing",
        "implausible",
        "plausible_from",
        "plausible_to",
        "training_min",
        "training_median",
        "training_max",
    ];
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let row = |own: &ColumnProvenance| {
        let number = |x: Option<f64>| x.map(full).unwrap_or_default();
        let words = [
            own.column.clone(),
            word(serde_json::to_value(own.purpose)),
            own.unit.clone().unwrap_or_default(),
            own.lag.to_string(),
            word(serde_json::to_value(own.transform)),
            word(serde_json::to_value(own.impute)),
            number(own.fill),
            full(own.missing),
            full(own.implausible),
        ];
        let plausible = [0, 1].map(|i| number(own.plausible.map(|range| range[i])));
        let seen = [0, 1, 2].map(|i| number(own.seen.map(|seen| seen[i])));
        words.into_iter().chain(plausible).chain(seen).collect()
    };
    write_table(path, &header, columns.iter().map(row))
}

/// Who was left out and why.
pub(crate) fn write_flow(path: &Path, flow: &Flow) -> Result<(), Failure> {
    let row = |step: &FlowStep| {
        let numbers = [step.stays_out, step.rows_out, step.stays, step.rows].map(|n| n.to_string());
        std::iter::once(step.rule.clone()).chain(numbers).collect()
    };
    write_table(path, &["rule", "stays_out", "rows_out", "stays", "rows"], flow.0.iter().map(row))
}

/// Stays in the numbers of a cohort, with the points of their steps: neighbours are looked for among those that are scored, and rules are fitted on those
/// that were learned from.
pub(crate) fn write_coded(
    folder: &OutputFolder,
    model: &Cmdp,
    encoder: &Encoder,
    stays: &[RecordedStay],
) -> Result<(), Failure> {
    write_part(folder, model, encoder, stays)?;
    write_points(&folder.file(POINTS), encoder.measurements.len(), stays)
}

fn write_points(path: &Path, width: usize, stays: &[RecordedStay]) -> Result<(), Failure> {
    // As many as there are steps in trajectories.csv.
    let steps = |stay: &RecordedStay| stay.trajectory.actions.len().min(stay.trajectory.states.len().saturating_sub(1));
    let n_steps: usize = stays.iter().map(steps).sum();
    to_file(path, |out| {
        out.write_all(&npy_header("<f4", &[n_steps, width]))?;
        let mut all = stays.iter().flat_map(|stay| &stay.points[..width * steps(stay)]);
        Ok(all.try_for_each(|x| out.write_all(&x.to_le_bytes()))?)
    })
}

fn write_part(folder: &OutputFolder, model: &Cmdp, encoder: &Encoder, stays: &[RecordedStay]) -> Result<(), Failure> {
    let contexts: Vec<f64> = stays.iter().flat_map(|stay| stay.context.values().to_vec()).collect();
    let names = &model.names().contexts;
    to_file(&folder.file("contexts.csv"), |out| write_matrix(out, names, "context", &contexts, names.len()))?;
    to_file(&folder.file("trajectories.csv"), |out| {
        writeln!(out, "demonstration,step,state,action")?;
        for (i, stay) in stays.iter().enumerate() {
            for (t, state) in stay.trajectory.states.iter().enumerate() {
                // The last state is where it ends, or the last that is known: what was done there led nobody knows where.
                let last = t + 1 == stay.trajectory.states.len();
                match stay.trajectory.actions.get(t).filter(|_| !last) {
                    Some(action) => writeln!(out, "{i},{t},{},{}", state.0, action.0)?,
                    None => writeln!(out, "{i},{t},{},", state.0)?,
                }
            }
        }
        Ok(())
    })?;
    to_file(&folder.file(STAYS), |out| {
        let refused = |error: csv::Error| Failure::from(std::io::Error::from(error));
        let mut table = csv::Writer::from_writer(out);
        let fields = encoder.contexts.fields.iter().map(|field| field.column.as_str());
        let header: Vec<&str> = ["demonstration", "stay", "patient", "bad_end"].into_iter().chain(fields).collect();
        table.write_record(header).map_err(refused)?;
        for (i, stay) in stays.iter().enumerate() {
            let end = stay.bad_end.map_or("", |bad| if bad { "1" } else { "0" });
            let start = [i.to_string(), stay.stay.clone(), stay.patient.clone(), end.to_owned()];
            let fields = stay.fields.iter().map(|&x| if x.is_nan() { String::new() } else { full(x) });
            table.write_record(start.into_iter().chain(fields)).map_err(refused)?;
        }
        Ok(table.flush()?)
    })
}

/// What `stays.csv` says of a stay.
struct SavedStay {
    stay: String,
    patient: String,
    bad_end: Option<bool>,
    fields: Vec<f64>,
}

impl SavedStay {
    fn read_all(path: &Path, n_fields: usize) -> Result<Vec<Self>, Failure> {
        let (file, _) = open_regular(path, "a .csv file")?;
        let mut reader = csv::Reader::from_reader(file);
        let mut stays = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| Failure::in_file(path, error))?;
            let row = stays.len();
            let cell = |at: usize| {
                let missing = || Failure::in_file(path, format!("row {row}: nothing is there in column {at}"));
                record.get(at).ok_or_else(missing)
            };
            let field = |at: usize| match cell(at)? {
                "" => Ok(f64::NAN),
                text => text.parse().map_err(|_| {
                    Failure::in_file(path, format!("row {row}, column {at}: '{text}'; expected a number"))
                }),
            };
            stays.push(SavedStay {
                stay: cell(1)?.to_owned(),
                patient: cell(2)?.to_owned(),
                bad_end: match cell(3)? {
                    "0" => Some(false),
                    "1" => Some(true),
                    _ => None,
                },
                fields: (4..4 + n_fields).map(field).collect::<Result<_, _>>()?,
            });
        }
        Ok(stays)
    }
}
