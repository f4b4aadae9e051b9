//! Where every variable of a cohort comes from and what became of it: its column, unit, lag, transform, what filled it in how often, and the range
//! that training rows have. A later table is compared with it, and a reader sees what was done without reading the spec.

use super::encoder::Encoder;
use super::spec::{Impute, Spec, Transform};
use super::stays::Stay;
use super::table::Table;
use coirl::Result;
use serde::Serialize;

/// What a column is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Makes the state.
    Measurement,
    /// Makes the context, and stays the same.
    Field,
    /// Makes the context by its first row.
    AtStart,
    /// Makes the action.
    Dose,
    /// Is the number of the action.
    Action,
    /// Says how it ended.
    Outcome,
}

/// A variable of a cohort.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnProvenance {
    /// The column of the table.
    pub column: String,
    /// What it is for. A column with two purposes is listed twice.
    pub purpose: Purpose,
    /// Its unit, where the spec says one.
    pub unit: Option<String>,
    /// Steps by which it is late.
    pub lag: usize,
    /// What is done to it first; nothing is done to what is no measurement.
    pub transform: Option<Transform>,
    /// What replaces cells that were not measured; fields take the training median, doses zero.
    pub impute: Option<Impute>,
    /// The training value that replaces them where nothing else does.
    pub fill: Option<f64>,
    /// Share of the training cells that are empty or implausible: of rows, of fields of stays.
    pub missing: f64,
    /// Share of the training cells that were measured and are outside the plausible range.
    pub implausible: f64,
    /// The range outside which values count as not measured.
    pub plausible: Option<[f64; 2]>,
    /// Smallest, median and largest plausible value of training rows; nothing where there is none.
    pub seen: Option<[f64; 3]>,
}

/// All variables, measurements first.
pub(super) fn provenance(
    table: &Table,
    spec: &Spec,
    encoder: &Encoder,
    train: &[Stay],
) -> Result<Vec<ColumnProvenance>> {
    let mut all = Vec::new();
    for measurement in encoder.measurements.iter().filter(|own| own.is_measured()) {
        let mut own = of_column(table, spec, train, &measurement.column, Purpose::Measurement)?;
        own.lag = measurement.lag;
        own.transform = Some(measurement.transform);
        own.impute = Some(measurement.impute);
        own.fill = Some(measurement.fill);
        all.push(own);
    }
    for field in &encoder.contexts.fields {
        let purpose = if spec.context.fields.contains(&field.column) { Purpose::Field } else { Purpose::AtStart };
        let mut own = of_column(table, spec, train, &field.column, purpose)?;
        own.fill = Some(field.fill);
        all.push(own);
    }
    for dose in &spec.action.doses {
        let mut own = of_column(table, spec, train, dose, Purpose::Dose)?;
        own.fill = Some(0.0);
        all.push(own);
    }
    for (name, purpose) in spec
        .action
        .column
        .iter()
        .map(|name| (name, Purpose::Action))
        .chain(spec.outcome.iter().map(|outcome| (&outcome.column, Purpose::Outcome)))
    {
        all.push(of_column(table, spec, train, name, purpose)?);
    }
    Ok(all)
}

fn of_column(table: &Table, spec: &Spec, train: &[Stay], name: &str, purpose: Purpose) -> Result<ColumnProvenance> {
    let column = table.column(name)?;
    // Of a field the first row counts, of an outcome the last.
    let rows: Vec<u32> = match purpose {
        Purpose::Field | Purpose::AtStart => train.iter().filter_map(|stay| stay.rows.first().copied()).collect(),
        Purpose::Outcome => train.iter().filter_map(|stay| stay.rows.last().copied()).collect(),
        _ => train.iter().flat_map(|stay| stay.rows.iter().copied()).collect(),
    };
    let plausible = spec
        .cohort
        .plausible
        .get(name)
        .copied()
        .filter(|_| matches!(purpose, Purpose::Measurement | Purpose::Field | Purpose::AtStart));
    let measured: Vec<f64> = rows.iter().map(|&row| f64::from(column[row as usize])).filter(|x| !x.is_nan()).collect();
    let believed = |x: &f64| plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(x));
    let mut seen: Vec<f64> = measured.iter().copied().filter(believed).collect();
    seen.sort_by(f64::total_cmp);
    let share = |n: usize| n as f64 / rows.len().max(1) as f64;
    Ok(ColumnProvenance {
        column: name.into(),
        purpose,
        unit: spec.units.get(name).cloned(),
        lag: 0,
        transform: None,
        impute: None,
        fill: None,
        missing: share(rows.len() - seen.len()),
        implausible: share(measured.len() - seen.len()),
        plausible,
        seen: match seen[..] {
            [] => None,
            _ => Some([seen[0], seen[seen.len() / 2], seen[seen.len() - 1]]),
        },
    })
}
