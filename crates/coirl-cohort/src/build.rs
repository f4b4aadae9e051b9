//! The pipeline: from a table to a contextual model with its stays. Every step is fitted on the training stays only.

use super::contexts::ContextScaling;
use super::doses::DoseLevels;
use super::encoder::{Actions, Encoder, MOST_ACTIONS};
use super::lint::{self, Finding};
use super::measurements::Measurements;
use super::model::{Ends, SupportSummary, model};
use super::new_tables::Reference;
use super::provenance::{ColumnProvenance, provenance};
use super::recorded::{RecordedStay, TestStays, TrainStays, ValidationStays};
use super::spec::Spec;
use super::split::{Parts, split};
use super::stays::{Flow, Stay, assemble};
use super::table::Table;
use coirl::clustering::{Centroids, KMeans, Points, Progress};
use coirl::demos::Trajectory;
use coirl::model::{ActionId, Cmdp, StateId};
use coirl::{Error, Result};

/// States where nothing is said, and the training rows that each has on average at least.
const MOST_STATES: usize = 1500;
const ROWS_PER_STATE: usize = 20;

/// A table that became a model.
#[derive(Debug, Clone)]
pub struct Cohort {
    /// The settings, complete.
    pub spec: Spec,
    /// Seed of the split and of the clusters.
    pub seed: u64,
    /// Which stays were left out, and why.
    pub flow: Flow,
    /// From rows to states, actions and contexts.
    pub encoder: Encoder,
    /// The model.
    pub model: Cmdp,
    /// What its transitions rest on.
    pub support: SupportSummary,
    /// Mean squared distance of training rows from the centroid of their state.
    pub inertia: f64,
    /// Mean squared distance of training rows from their mean.
    pub variance: f64,
    /// What training stays look like, for people who come later.
    pub reference: Reference,
    /// What somebody should look at.
    pub findings: Vec<Finding>,
    /// Where every variable comes from.
    pub columns: Vec<ColumnProvenance>,
    /// Stays to learn from.
    pub train: TrainStays,
    /// Stays to stop and choose by.
    pub validation: ValidationStays,
    /// Stays to score on.
    pub test: TestStays,
}

/// What a build is doing, for progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage {
    /// Finding states.
    States(Progress),
    /// Counting transitions and putting the model together.
    Model,
}

/// Builds the model of a table. `progress` may stop the work.
pub fn build(
    table: &Table,
    spec: &Spec,
    seed: u64,
    mut progress: impl FnMut(Stage) -> std::ops::ControlFlow<()>,
) -> Result<Cohort> {
    let prepared = Prepared::new(table, spec, seed)?;
    let Prepared { parts, flow, measurements, actions, contexts, train_points, filled } = prepared;
    let variance = variance(&train_points, measurements.len());
    let (centroids, inertia) = match measurements.of_numbered_states() {
        Some(points) => (Centroids::new(points, 1)?, 0.0),
        None => {
            let n_rows = train_points.len() / measurements.len();
            let clusters = spec.state.clusters.unwrap_or_else(|| MOST_STATES.min(n_rows / ROWS_PER_STATE).max(1));
            let points = Points::new(train_points, measurements.len())?;
            let settings = KMeans { clusters, restarts: spec.state.restarts, seed, ..KMeans::default() };
            let clustering = settings.fit_with(&points, &mut |step| progress(Stage::States(step)))?;
            (clustering.centroids, clustering.inertia / n_rows as f64)
        }
    };
    let encoder = Encoder { measurements, centroids, actions, contexts };
    if progress(Stage::Model).is_break() {
        return Err(Error::Interrupted { done: 1, total: 2 });
    }
    let ends = Ends::of_spec(encoder.centroids.n_clusters(), spec);
    let recorded = |stays: &[Stay]| recorded(table, spec, &encoder, Some(ends), stays);
    let (train, validation, test) = (recorded(&parts.train)?, recorded(&parts.validation)?, recorded(&parts.test)?);
    let (model, support) = model(spec, &encoder, &train, seed)?;
    let reference = Reference::fit(table, spec, &encoder, &model, &parts.train, &train, &validation)?;
    let mut findings = lint::table(table, spec, &parts)?;
    findings.extend(lint::actions(&encoder.actions, table, &parts.train)?);
    findings.extend(lint::model(spec, &encoder, &support, filled));
    let columns = provenance(table, spec, &encoder, &parts.train)?;
    Ok(Cohort {
        spec: spec.clone(),
        seed,
        flow,
        encoder,
        model,
        support,
        inertia,
        variance,
        reference,
        findings,
        columns,
        train: TrainStays::new(train),
        validation: ValidationStays::new(validation),
        test: TestStays::new(test),
    })
}

/// What somebody should look at in a table, without building anything.
pub fn lint(table: &Table, spec: &Spec, seed: u64) -> Result<Vec<Finding>> {
    spec.check()?;
    let (stays, _) = assemble(table, spec)?;
    let parts = split(stays, table, spec.outcome.as_ref(), spec.split, seed)?;
    let mut findings = lint::table(table, spec, &parts)?;
    findings.extend(lint::actions(&actions(table, spec, &parts.train)?, table, &parts.train)?);
    Ok(findings)
}

/// What comes before the states: stays, splits, points and actions.
pub(super) struct Prepared {
    pub(super) parts: Parts,
    pub(super) flow: Flow,
    pub(super) measurements: Measurements,
    pub(super) actions: Actions,
    pub(super) contexts: ContextScaling,
    /// Points of all training rows.
    pub(super) train_points: Vec<f32>,
    /// Share of the cells of training rows that were filled in.
    pub(super) filled: f64,
}

impl Prepared {
    pub(super) fn new(table: &Table, spec: &Spec, seed: u64) -> Result<Self> {
        spec.check()?;
        let (stays, flow) = assemble(table, spec)?;
        let parts = split(stays, table, spec.outcome.as_ref(), spec.split, seed)?;
        let actions = actions(table, spec, &parts.train)?;
        let measurements = Measurements::fit(table, spec, &actions, &parts.train)?;
        let contexts = ContextScaling::fit(table, spec, &parts.train)?;
        let (train_points, filled) = Encoder::points(&measurements, table, &parts.train)?;
        let filled = filled as f64 / train_points.len().max(1) as f64;
        Ok(Self { parts, flow, measurements, actions, contexts, train_points, filled })
    }
}

/// Mean squared distance of points from their mean.
fn variance(points: &[f32], width: usize) -> f64 {
    let n = (points.len() / width).max(1) as f64;
    let mut mean = vec![0.0; width];
    for row in points.chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    mean.iter_mut().for_each(|sum| *sum /= n);
    let squared = |row: &[f32]| row.iter().zip(&mean).map(|(x, m)| (f64::from(*x) - m).powi(2)).sum::<f64>();
    points.chunks_exact(width).map(squared).sum::<f64>() / n
}

/// What an action is, from training rows.
fn actions(table: &Table, spec: &Spec, train: &[Stay]) -> Result<Actions> {
    let rows = || train.iter().flat_map(|stay| &stay.rows).map(|&row| row as usize);
    let Some(name) = &spec.action.column else {
        let fit = |name: &String| {
            let column = table.column(name)?;
            let given = spec.action.edges.get(name).map(Vec::as_slice);
            Ok(DoseLevels::fit(name, rows().map(|row| f64::from(column[row])), spec.action.levels, given))
        };
        let actions = Actions::Doses(spec.action.doses.iter().map(fit).collect::<Result<_>>()?);
        return actions.check().map(|()| actions);
    };
    let column = table.column(name)?;
    let largest = rows().map(|row| column[row]).fold(0.0, f32::max);
    if spec.action.number.is_none()
        && largest >= MOST_ACTIONS as f32
        && let Some(row) = rows().find(|&row| column[row] == largest)
    {
        let reason = format!("{largest}; expected the number of an action, below {MOST_ACTIONS}");
        return Err(Error::Cell { row: row as u64 + 1, column: name.clone(), reason });
    }
    let actions =
        Actions::Numbered { column: name.clone(), number: spec.action.number.unwrap_or(largest as usize + 1) };
    actions.check().map(|()| actions)
}

/// The stays in the numbers of the model. Without `ends` nobody knows where the last step of a stay leads, and its states end there.
pub(crate) fn recorded(
    table: &Table,
    spec: &Spec,
    encoder: &Encoder,
    ends: Option<Ends>,
    stays: &[Stay],
) -> Result<Vec<RecordedStay>> {
    let (points, _) = Encoder::points(&encoder.measurements, table, stays)?;
    let width = encoder.measurements.len();
    let states: Vec<StateId> = encoder.states(points.clone())?;
    let mut at = 0;
    let mut all = Vec::with_capacity(stays.len());
    for stay in stays {
        let n = stay.rows.len();
        let bad_end = match &spec.outcome {
            Some(outcome) if !stay.cut => {
                let last = stay.rows[n - 1] as usize;
                Some(f64::from(table.column(&outcome.column)?[last]) == outcome.bad)
            }
            _ => None,
        };
        let mut visited = states[at..at + n].to_vec();
        let rows = stay.rows.iter().map(|&row| row as usize);
        let mut taken: Vec<ActionId> = rows.map(|row| encoder.actions.of_row(table, row)).collect::<Result<_>>()?;
        // Of a record that breaks off nobody knows where the last action led.
        if stay.cut {
            taken.truncate(n - 1)
        } else {
            visited.extend(ends.map(|ends| ends.of(bad_end)));
        }
        let fields = encoder.contexts.fields_of(table, stay)?;
        all.push(RecordedStay {
            stay: table.stays.name(stay.number).to_owned(),
            patient: match &table.patients {
                Some(patients) => patients.name(stay.patient).to_owned(),
                None => table.stays.name(stay.number).to_owned(),
            },
            context: encoder.contexts.context(&fields)?,
            fields,
            points: points[at * width..(at + taken.len()) * width].to_vec(),
            trajectory: Trajectory { states: visited, actions: taken },
            bad_end,
        });
        at += n;
    }
    Ok(all)
}
