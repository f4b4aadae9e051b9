//! What the training stays look like, column by column, and their rows as states: what people who come later are compared with.

use crate::encoder::Encoder;
use crate::recorded::RecordedStay;
use crate::spec::Spec;
use crate::stays::Stay;
use crate::table::Table;
use coirl::Result;
use coirl::check::check_length;
use coirl::model::Cmdp;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Bins of a column, with as many training values each as its repeated values allow.
const BINS: usize = 10;
/// Training steps below which a state is rare.
const RARE: u64 = 10;
/// Quantile of the distances beyond which a row is far from its state.
const FAR: f64 = 0.99;
/// Days of a year: ages are given in either.
const DAYS: f64 = 365.25;

/// What a column is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A field of the context: the first row of every stay.
    Field,
    /// A measurement: every row.
    Measurement,
    /// A dose, or the number of an action: every row.
    Action,
}

/// A column in the training stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnReference {
    /// The column.
    pub column: String,
    /// What it is used for.
    pub role: Role,
    /// Values outside cannot be right, and count as not recorded.
    pub plausible: Option<[f64; 2]>,
    /// Share of the cells without a value.
    pub missing: f64,
    /// Mean of the values.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The least and the largest; nothing where no value is known.
    pub range: Option<[f64; 2]>,
    /// Upper edges of all bins but the last.
    pub edges: Vec<f64>,
    /// Share of the values in each bin.
    pub shares: Vec<f64>,
}

impl ColumnReference {
    fn of(column: &str, role: Role, plausible: Option<[f64; 2]>, cells: impl Iterator<Item = f64>) -> Self {
        let mut all = 0_u64;
        let known = |x: &f64| !x.is_nan() && plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(x));
        let mut values: Vec<f64> = cells.inspect(|_| all += 1).filter(known).collect();
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let mut edges: Vec<f64> = (1..BINS)
            .filter_map(|i| values.get((i * values.len()).div_ceil(BINS).saturating_sub(1)).copied())
            .collect();
        edges.dedup();
        // The largest value ends the last bin.
        edges.retain(|edge| Some(edge) != values.last());
        let mut reference = Self {
            column: column.into(),
            role,
            plausible,
            missing: 1.0 - values.len() as f64 / all.max(1) as f64,
            mean,
            deviation: variance.sqrt(),
            range: values.first().zip(values.last()).map(|(lo, hi)| [*lo, *hi]),
            edges,
            shares: Vec::new(),
        };
        // Values are in order: those up to an edge are a beginning.
        let up_to = |edge: &f64| values.partition_point(|x| x <= edge);
        let ends: Vec<usize> = reference.edges.iter().map(up_to).chain([values.len()]).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        reference.shares = ends.iter().zip(starts).map(|(end, start)| (end - start) as f64 / n).collect();
        reference
    }

    /// The bin of a value.
    pub(super) fn bin(&self, x: f64) -> usize {
        self.edges.partition_point(|edge| *edge < x)
    }

    /// Whether a value is outside all training values, with the unit that it may be in instead.
    fn unusual(&self, value: f64, unit: Option<&str>) -> Option<Unusual> {
        let seen = self.range?;
        let within = |x: f64| (seen[0]..=seen[1]).contains(&x);
        if value.is_nan() || within(value) {
            return None;
        }
        // Where nobody says the unit, ages are in either.
        let is_age = || self.column.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("age"));
        let (days, years) = match unit {
            Some(unit) => (unit == "days", unit == "years"),
            None => (is_age(), is_age()),
        };
        let meant = match () {
            () if days && within(DAYS * value) => Some(("years", DAYS * value)),
            () if years && within(value / DAYS) => Some(("days", value / DAYS)),
            () => None,
        };
        Some(Unusual {
            column: self.column.clone(),
            value,
            unit: unit.map(str::to_owned),
            seen,
            plausible: self.plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(&value)),
            meant: meant.map(|(unit, value)| (unit.to_owned(), value)),
        })
    }
}

/// A value outside all training values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unusual {
    /// The column.
    pub column: String,
    /// What was given.
    pub value: f64,
    /// The unit of the column, where the spec says it.
    pub unit: Option<String>,
    /// The least and the largest training value.
    pub seen: [f64; 2],
    /// Whether it can be right; one that cannot counts as not recorded.
    pub plausible: bool,
    /// A unit in which the value would be usual, and what it is in that of the column.
    pub meant: Option<(String, f64)>,
}

impl Unusual {
    /// What to tell somebody who has typed the value.
    pub fn message(&self) -> String {
        let Self { column, value, unit, seen: [lo, hi], plausible, meant } = self;
        let unit = unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        let [lo, hi] = [lo, hi].map(|x| rounded(*x));
        let counts = if *plausible { "" } else { "; it is not plausible, and counts as not recorded" };
        let meant = meant
            .as_ref()
            .map_or(String::new(), |(other, x)| format!("; {value} {other} would be {}{unit}", rounded(*x)));
        format!("{column} = {value}{unit} is outside what was learned from, {lo} to {hi}{unit}{counts}{meant}")
    }
}

/// Four significant digits, or all of a whole number.
fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() || x.fract() == 0.0 {
        return x;
    }
    let scale = 10f64.powi(3 - x.abs().log10().floor() as i32);
    (x * scale).round() / scale
}

/// Rows as states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowReference {
    /// Stays.
    pub stays: usize,
    /// Steps.
    pub steps: u64,
    /// Mean distance of a point from the centroid of its state.
    pub distance: f64,
    /// Distance beyond which a hundredth of the points is.
    pub far: f64,
    /// Share of the steps in states that are rare in training.
    pub rare: f64,
    /// Share of the steps whose action the model does not admit.
    pub inadmissible: f64,
    /// Share of the stays with a known end that ended badly.
    pub bad_ends: Option<f64>,
}

/// What people who come later are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Fields, measurements and doses in the training stays.
    pub columns: Vec<ColumnReference>,
    /// Training steps in each state.
    pub steps_of_states: Vec<u64>,
    /// Rows of training stays, on which the states were fitted.
    pub train: RowReference,
    /// Rows of validation stays, on which they were not; nothing where there are none.
    pub validation: Option<RowReference>,
}

impl Reference {
    pub(crate) fn fit(
        table: &Table,
        spec: &Spec,
        encoder: &Encoder,
        model: &Cmdp,
        stays: &[Stay],
        train: &[RecordedStay],
        validation: &[RecordedStay],
    ) -> Result<Self> {
        let of_column = |&(column, role): &(&str, Role)| {
            let plausible = plausible(spec, column, role);
            Ok(ColumnReference::of(column, role, plausible, cells(table, stays, column, role)?))
        };
        let roles: Vec<(&str, Role)> = roles(spec).collect();
        let columns = roles.par_iter().map(of_column).collect::<Result<_>>()?;
        let mut steps_of_states = vec![0; encoder.centroids.n_clusters()];
        for stay in train {
            let visited = &stay.trajectory.states[..stay.trajectory.actions.len()];
            visited.iter().for_each(|state| steps_of_states[state.index()] += 1);
        }
        let rows = |stays: &[RecordedStay]| RowReference::of(encoder, model, &steps_of_states, stays, None);
        let (train, validation) = (rows(train), (!validation.is_empty()).then(|| rows(validation)));
        Ok(Self { columns, steps_of_states, train, validation })
    }

    /// Refuses what a file may hold and no fit gives.
    pub fn check(&self, encoder: &Encoder) -> Result<()> {
        check_length("training steps of states", encoder.centroids.n_clusters(), self.steps_of_states.len())?;
        self.columns.iter().try_for_each(|own| check_length("shares of bins", own.edges.len() + 1, own.shares.len()))
    }

    /// Rows that nothing was fitted on, where there are any.
    pub fn home(&self) -> &RowReference {
        self.validation.as_ref().unwrap_or(&self.train)
    }

    /// Values outside all training values, among those of columns in one role.
    pub fn unusual<'a>(
        &self,
        spec: &Spec,
        role: Role,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Vec<Unusual> {
        let of = |(name, value): (&str, f64)| {
            let own = self.columns.iter().find(|own| own.role == role && own.column == name)?;
            own.unusual(value, spec.unit_of(name))
        };
        values.into_iter().filter_map(of).collect()
    }
}

impl RowReference {
    /// Of some stays. Points are far beyond the distance `far`, or by default beyond nearly all of their own.
    pub(super) fn of(
        encoder: &Encoder,
        model: &Cmdp,
        steps_of_states: &[u64],
        stays: &[RecordedStay],
        far: Option<f64>,
    ) -> Self {
        let mut distances = distances(encoder, stays);
        let distance = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
        let far = far.unwrap_or_else(|| {
            distances.sort_by(f64::total_cmp);
            let at = (FAR * distances.len() as f64) as usize;
            distances.get(at).or(distances.last()).copied().unwrap_or_default()
        });
        let (mut steps, mut rare, mut inadmissible) = (0_u64, 0_u64, 0_u64);
        for stay in stays {
            for (state, action) in stay.trajectory.states.iter().zip(&stay.trajectory.actions) {
                steps += 1;
                rare += u64::from(steps_of_states.get(state.index()).is_none_or(|n| *n < RARE));
                inadmissible += u64::from(model.pairs().find(state.index(), action.index()).is_none());
            }
        }
        let ends: Vec<bool> = stays.iter().filter_map(|stay| stay.bad_end).collect();
        let bad = ends.iter().filter(|bad| **bad).count() as f64;
        let share = |n: u64| n as f64 / steps.max(1) as f64;
        Self {
            stays: stays.len(),
            steps,
            distance,
            far,
            rare: share(rare),
            inadmissible: share(inadmissible),
            bad_ends: (!ends.is_empty()).then(|| bad / ends.len() as f64),
        }
    }
}

/// The distance of every point from the centroid of its state.
pub(super) fn distances(encoder: &Encoder, stays: &[RecordedStay]) -> Vec<f64> {
    let centroids: Vec<&[f64]> = encoder.centroids.rows().collect();
    let width = encoder.measurements.len();
    let of_stay = |stay: &RecordedStay| {
        let points = stay.points.chunks_exact(width).zip(&stay.trajectory.states);
        let distance = |(point, state): (&[f32], &coirl::model::StateId)| {
            let centroid = centroids.get(state.index()).copied().unwrap_or_default();
            let squared = point.iter().zip(centroid).map(|(x, c)| (f64::from(*x) - c).powi(2));
            squared.sum::<f64>().sqrt()
        };
        points.map(distance).collect::<Vec<_>>()
    };
    stays.iter().flat_map(of_stay).collect()
}

/// The columns that are compared, by what they are used for.
pub(super) fn roles(spec: &Spec) -> impl Iterator<Item = (&str, Role)> {
    let fields = spec.context.columns().map(|name| (name, Role::Field));
    let measurements = spec.state.measurements.iter().chain(&spec.state.column);
    let actions = spec.action.doses.iter().chain(&spec.action.column);
    fields
        .chain(measurements.map(|name| (name.as_str(), Role::Measurement)))
        .chain(actions.map(|name| (name.as_str(), Role::Action)))
}

/// The range outside which a value of a column cannot be right.
fn plausible(spec: &Spec, column: &str, role: Role) -> Option<[f64; 2]> {
    spec.cohort.plausible.get(column).copied().filter(|_| role != Role::Action)
}

/// The cells of a column in some stays, as many as its role has.
pub(super) fn cells<'a>(
    table: &'a Table,
    stays: &'a [Stay],
    column: &str,
    role: Role,
) -> Result<impl Iterator<Item = f64> + 'a> {
    let column = table.column(column)?;
    let most = if role == Role::Field { 1 } else { usize::MAX };
    Ok(stays.iter().flat_map(move |stay| stay.rows.iter().take(most)).map(|&row| f64::from(column[row as usize])))
}

#[cfg(test)]
impl ColumnReference {
    /// Of these values of a measurement.
    pub(super) fn for_test(values: &[f64]) -> Self {
        Self::of("x", Role::Measurement, None, values.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_another_unit_is_told_with_the_unit() {
        let ages: Vec<f64> = (18..90).map(|years| DAYS * f64::from(years)).collect();
        let own = ColumnReference::for_test(&ages);
        assert_eq!(own.unusual(25_000.0, None), None);
        let found = own.unusual(70.0, Some("days"));
        assert_eq!(found.as_ref().and_then(|found| found.meant.clone()), Some(("years".to_owned(), DAYS * 70.0)));
        let said = found.map(|found| found.message()).unwrap_or_default();
        assert!(said.contains("x = 70 days") && said.contains("6575 to 32510 days"), "{said}");
        assert!(said.contains("70 years would be 25570 days"), "{said}");
        assert_eq!(own.unusual(-5.0, Some("days")).and_then(|found| found.meant), None);
        // A column of which nobody knows that it is a time.
        assert!(own.unusual(70.0, None).is_some_and(|found| found.meant.is_none()));
        let age = ColumnReference { column: "o:age".into(), ..own.clone() };
        assert!(age.unusual(70.0, None).is_some_and(|found| found.meant.is_some()));
        assert!(own.unusual(f64::NAN, None).is_none());
    }

    #[test]
    fn bins_hold_a_tenth_each_where_values_differ() {
        let own = ColumnReference::for_test(&(0..100).map(f64::from).collect::<Vec<_>>());
        assert_eq!(own.edges.len(), 9);
        assert!(own.shares.iter().all(|share| (share - 0.1).abs() < 1e-12));
        let flag = ColumnReference::for_test(&[0.0, 0.0, 0.0, 1.0]);
        assert_eq!((flag.edges, flag.shares), (vec![0.0], vec![0.75, 0.25]));
        let same = ColumnReference::for_test(&[2.0; 5]);
        assert_eq!((same.edges.len(), same.shares), (0, vec![1.0]));
    }
}
