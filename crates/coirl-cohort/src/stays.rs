//! From rows to stays: rows of a stay in the order of time, and the flow of stays that were left out, with the reason.

use super::natural_order::natural_order;
use super::spec::{FilterSpec, Gaps, SameStep, Spec};
use super::step_length::StepLength;
use super::table::Table;
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// The rows of a stay, in the order of time, one per step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stay {
    /// Number of the stay in the table.
    pub(super) number: u32,
    /// Number of the patient; of the stay where the table names none.
    pub(super) patient: u32,
    /// Rows of the table.
    pub(super) rows: Vec<u32>,
    /// Whether the record ends before the stay does.
    pub(super) cut: bool,
}

/// What was left after a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStep {
    /// The rule, in words.
    pub rule: String,
    /// Stays left out by it.
    pub stays_out: usize,
    /// Rows left out by it.
    pub rows_out: usize,
    /// Stays left.
    pub stays: usize,
    /// Rows left.
    pub rows: usize,
}

/// How many stays there were, and why they were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow(pub Vec<FlowStep>);

impl Flow {
    fn note(&mut self, rule: impl Into<String>, stays: &[Stay]) {
        let rows = stays.iter().map(|stay| stay.rows.len()).sum();
        let (stays_before, rows_before) = self.0.last().map_or((stays.len(), rows), |last| (last.stays, last.rows));
        self.0.push(FlowStep {
            rule: rule.into(),
            stays_out: stays_before - stays.len(),
            rows_out: rows_before.saturating_sub(rows),
            stays: stays.len(),
            rows,
        });
    }
}

/// The stays that are kept.
pub(super) fn assemble(table: &Table, spec: &Spec) -> Result<(Vec<Stay>, Flow)> {
    let filter = &spec.cohort;
    if let (StepLength::Duration { written, .. }, false) = (&filter.step, table.is_dated()) {
        let reason = format!(
            "'{written}' divides dates, but the times in {} are numbers; give a number in their unit",
            spec.table.time
        );
        return Err(Error::Spec { place: "cohort.step".into(), reason });
    }
    let mut flow = Flow::default();
    let mut stays = grouped(table);
    flow.note("in the table", &stays);
    for stay in &mut stays {
        one_row_per_step(table, filter, stay)?;
    }
    let rule = match filter.same_step {
        SameStep::Refuse => "the same row twice",
        SameStep::First => "not the first row of its step",
        SameStep::Last => "not the last row of its step",
    };
    flow.note(rule, &stays);
    if filter.gaps == Gaps::Cut {
        for stay in &mut stays {
            let gap = stay.rows.windows(2).position(|two| steps_between(table, filter, two) > 1);
            if let Some(before) = gap {
                stay.rows.truncate(before + 1);
                stay.cut = true;
            }
        }
        flow.note("after a skipped step", &stays);
    }
    for (name, range) in &filter.keep {
        let column = table.column(name)?;
        stays.retain(|stay| stay.rows.first().is_some_and(|&row| within(column[row as usize], range)));
        flow.note(format!("{name} outside {} to {}", range[0], range[1]), &stays);
    }
    if let Some(outcome) = &spec.outcome {
        let column = table.column(&outcome.column)?;
        stays.retain(|stay| stay.rows.last().is_some_and(|&row| !column[row as usize].is_nan()));
        flow.note(format!("no {}", outcome.column), &stays);
    }
    for name in spec.action.column.iter().chain(&spec.state.column) {
        let column = table.column(name)?;
        stays.retain(|stay| stay.rows.iter().all(|&row| !column[row as usize].is_nan()));
        flow.note(format!("a step without {name}"), &stays);
    }
    stays.retain(|stay| stay.rows.len() >= filter.min_steps);
    flow.note(format!("fewer than {} steps", filter.min_steps), &stays);
    if let Some(most) = filter.max_steps {
        for stay in stays.iter_mut().filter(|stay| stay.rows.len() > most) {
            stay.rows.truncate(most);
            stay.cut = true;
        }
        flow.note(format!("beyond {most} steps"), &stays);
    }
    if stays.is_empty() {
        let reason = flow.0.iter().max_by_key(|step| step.stays_out).map_or_else(String::new, |step| step.rule.clone());
        return Err(Error::EmptyCohort { stays: table.n_stays(), reason });
    }
    Ok((stays, flow))
}

/// Steps from one row to the next.
pub(super) fn steps_between(table: &Table, filter: &FilterSpec, rows: &[u32]) -> i64 {
    let step = |row: u32| number(table, filter, row);
    step(rows[1]) - step(rows[0])
}

/// The step of a row. Times that are a rounding error below a whole number of steps count as that number.
fn number(table: &Table, filter: &FilterSpec, row: u32) -> i64 {
    (table.times[row as usize] / filter.step.value() + 1e-6).floor() as i64
}

fn within(x: f32, range: &[f64; 2]) -> bool {
    (range[0]..=range[1]).contains(&f64::from(x))
}

/// The rows of every stay in the order of time, and stays in the natural order of their ids. Rows of the very same time are ordered by what
/// is in them, for the order of a table is often that of chance.
fn grouped(table: &Table) -> Vec<Stay> {
    let mut stays: Vec<Stay> = (0..table.n_stays() as u32)
        .map(|number| Stay { number, patient: number, rows: Vec::new(), cut: false })
        .collect();
    for row in 0..table.n_rows() {
        stays[table.stays.of_row(row) as usize].rows.push(row as u32);
    }
    for stay in &mut stays {
        stay.rows.sort_by(|&a, &b| table.order_in_time(a as usize, b as usize));
        if let (Some(patients), Some(&first)) = (&table.patients, stay.rows.first()) {
            stay.patient = patients.of_row(first as usize);
        }
    }
    stays.sort_by(|a, b| natural_order(table.stays.name(a.number), table.stays.name(b.number)));
    stays
}

fn one_row_per_step(table: &Table, filter: &FilterSpec, stay: &mut Stay) -> Result<()> {
    let mut kept: Vec<u32> = Vec::with_capacity(stay.rows.len());
    for &row in &stay.rows {
        let Some(&last) = kept.last() else {
            kept.push(row);
            continue;
        };
        if number(table, filter, last) != number(table, filter, row) {
            kept.push(row);
            continue;
        }
        match (filter.same_step, table.differs(last as usize, row as usize)) {
            (_, None) | (SameStep::First, _) => {}
            (SameStep::Last, Some(_)) => {
                kept.pop();
                kept.push(row);
            }
            (SameStep::Refuse, Some(column)) => {
                let name = &table.names()[column];
                let value = |row: u32| table.column(name).map_or(f32::NAN, |column| column[row as usize]);
                let (first, second) = (last.min(row), last.max(row));
                let [a, b] = [first, second].map(|row| table.time_in_words(row as usize));
                let id = table.stays.name(stay.number);
                let reason = if table.times[first as usize] == table.times[second as usize] {
                    format!(
                        "{} in the same stay ({id}) and step as row {}, where it is {}; two people under one id, or say \
                         same_step = \"first\" or \"last\" under [cohort]",
                        value(second),
                        first + 1,
                        value(first),
                    )
                } else {
                    format!(
                        "{} at time {b}, in the same step of stay {id} as row {} at time {a}, where it is {}: a step is {} long and \
                         the model has one row per step; give a shorter step, or say same_step = \"first\" or \"last\" under [cohort]",
                        value(second),
                        first + 1,
                        value(first),
                        match (&filter.step, table.is_dated()) {
                            (StepLength::Number(x), true) => format!("{x} seconds"),
                            (step, _) => step.to_string(),
                        },
                    )
                };
                return Err(Error::Cell { row: u64::from(second) + 1, column: name.clone(), reason });
            }
        }
    }
    stay.rows = kept;
    Ok(())
}
