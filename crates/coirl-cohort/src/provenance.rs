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
pub enum Role {
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
    /// What it is used as. A column of two roles is listed twice.
    pub role: Role,
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
    for measurement in encoder.measurements.iter() {
        let mut own = of_column(table, spec, train, &measurement.column, Role::Measurement)?;
        own.lag = measurement.lag;
        own.transform = Some(measurement.transform);
        own.impute = Some(measurement.impute);
        own.fill = Some(measurement.fill);
        all.push(own);
    }
    for field in &encoder.contexts.fields {
        let role = if spec.context.fields.contains(&field.column) { Role::Field } else { Role::AtStart };
        let mut own = of_column(table, spec, train, &field.column, role)?;
        own.fill = Some(field.fill);
        all.push(own);
    }
    for dose in &spec.action.doses {
        let mut own = of_column(table, spec, train, dose, Role::Dose)?;
        own.fill = Some(0.0);
        all.push(own);
    }
    for (name, role) in spec
        .action
        .column
        .iter()
        .map(|name| (name, Role::Action))
        .chain(spec.outcome.iter().map(|outcome| (&outcome.column, Role::Outcome)))
    {
        all.push(of_column(table, spec, train, name, role)?);
    }
    Ok(all)
}

fn of_column(table: &Table, spec: &Spec, train: &[Stay], name: &str, role: Role) -> Result<ColumnProvenance> {
    let column = table.column(name)?;
    // Of a field the first row counts, of an outcome the last.
    let rows: Vec<u32> = match role {
        Role::Field | Role::AtStart => train.iter().filter_map(|stay| stay.rows.first().copied()).collect(),
        Role::Outcome => train.iter().filter_map(|stay| stay.rows.last().copied()).collect(),
        _ => train.iter().flat_map(|stay| stay.rows.iter().copied()).collect(),
    };
    let plausible = spec
        .cohort
        .plausible
        .get(name)
        .copied()
        .filter(|_| matches!(role, Role::Measurement | Role::Field | Role::AtStart));
    let measured: Vec<f64> = rows.iter().map(|&row| f64::from(column[row as usize])).filter(|x| !x.is_nan()).collect();
    let believed = |x: &f64| plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(x));
    let mut seen: Vec<f64> = measured.iter().copied().filter(believed).collect();
    seen.sort_by(f64::total_cmp);
    let share = |n: usize| n as f64 / rows.len().max(1) as f64;
    Ok(ColumnProvenance {
        column: name.into(),
        role,
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
