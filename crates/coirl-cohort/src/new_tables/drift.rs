//! How far a new table is from the training stays.
//!
//! | | of a column |
//! |---|---|
//! | standardised difference | (mean there − mean in training) / standard deviation in training |
//! | population stability index | Σ (p − q) ln (p / q) over bins with the shares q in training and p there |
//! | outside | share of the values beyond the least and the largest in training |
//!
//! Small tables differ by chance: of a table with n stays, against m in training, an index of (bins − 1)(1/n + 1/m) is to be expected
//! though nothing has changed, and a difference of √(1/n + 1/m). A shift is called one where it is beyond twice that.

use super::reference::{ColumnReference, Reference, Role, RowReference, cells};
use crate::encoder::Encoder;
use crate::recorded::RecordedStay;
use crate::stays::Stay;
use crate::table::Table;
use coirl::Result;
use coirl::model::Cmdp;
use serde::Serialize;

/// Indices and standardised differences from which on a shift is some and large, beyond what chance explains.
const INDEX: [f64; 2] = [0.1, 0.25];
const DIFFERENCE: [f64; 2] = [0.25, 0.5];
/// Changes of the share of missing cells that are some and large.
const MISSING: [f64; 2] = [0.1, 0.3];
/// Added to every bin, so that an empty one has a logarithm.
const SMOOTHING: f64 = 0.5;

/// How far a column has shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shift {
    /// No more than by chance.
    None,
    /// Somewhat.
    Some,
    /// A lot.
    Large,
}

/// A number in training and in the new table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// In training.
    pub train: f64,
    /// In the new table.
    pub new: f64,
}

/// How far a column is from training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnDrift {
    /// The column.
    pub column: String,
    /// What it is used for.
    pub role: Role,
    /// Mean of the values.
    pub mean: Compared,
    /// Share of the cells without a value.
    pub missing: Compared,
    /// Difference of the means by the standard deviation in training; nothing where no value is known, or all were equal in training.
    pub standardised_difference: Option<f64>,
    /// Population stability index; nothing where no value is known.
    pub stability_index: Option<f64>,
    /// Index that is to be expected by chance.
    pub index_by_chance: f64,
    /// Share of the values outside the range in training.
    pub outside: f64,
    /// Share of the cells with a value that cannot be right; they count as missing.
    pub implausible: f64,
    /// What this amounts to.
    pub shift: Shift,
}

/// How far a new table is from training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Column by column: the furthest first.
    pub columns: Vec<ColumnDrift>,
    /// The new rows as states.
    pub rows: RowReference,
    /// Rows of the cohort that nothing was fitted on, where there are any, and of training stays otherwise.
    pub home: RowReference,
    /// Share of the new points that are further from their state than all but a hundredth of those at home.
    pub far: f64,
}

impl Drift {
    pub(super) fn of(
        reference: &Reference,
        encoder: &Encoder,
        model: &Cmdp,
        table: &Table,
        stays: &[Stay],
        recorded: &[RecordedStay],
    ) -> Result<Self> {
        let by_chance = 1.0 / stays.len().max(1) as f64 + 1.0 / reference.train.stays.max(1) as f64;
        let of_column =
            |own: &ColumnReference| Ok(column(own, cells(table, stays, &own.column, own.role)?.collect(), by_chance));
        let mut columns: Vec<ColumnDrift> = reference.columns.iter().map(of_column).collect::<Result<_>>()?;
        let size = |own: &ColumnDrift| own.stability_index.unwrap_or(f64::INFINITY);
        columns.sort_by(|a, b| b.shift.cmp(&a.shift).then(size(b).total_cmp(&size(a))));
        let home = reference.home().clone();
        let rows = RowReference::of(encoder, model, &reference.steps_of_states, recorded, Some(home.far));
        let distances = super::reference::distances(encoder, recorded);
        let far = distances.iter().filter(|distance| **distance > home.far).count() as f64;
        Ok(Self { columns, rows, far: far / distances.len().max(1) as f64, home })
    }
}

fn column(own: &ColumnReference, cells: Vec<f64>, by_chance: f64) -> ColumnDrift {
    let plausible = |x: f64| own.plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(&x));
    let there: Vec<f64> = cells.iter().copied().filter(|x| !x.is_nan()).collect();
    let values: Vec<f64> = there.iter().copied().filter(|x| plausible(*x)).collect();
    let (all, n) = (cells.len().max(1) as f64, values.len().max(1) as f64);
    let known = !values.is_empty() && own.range.is_some();
    let mean = values.iter().sum::<f64>() / n;
    let [lo, hi] = own.range.unwrap_or_default();
    let standardised = (known && own.deviation > 0.0).then(|| (mean - own.mean) / own.deviation);
    let mut counts = vec![0.0; own.shares.len()];
    values.iter().for_each(|x| counts[own.bin(*x)] += 1.0);
    let bins = counts.len() as f64;
    let index = counts.iter().zip(&own.shares).map(|(count, share)| {
        let p = (count + SMOOTHING) / (n + SMOOTHING * bins);
        // Training has as many values as it has; its shares are smoothed alike, so that equal tables have index zero.
        let q = (share * n + SMOOTHING) / (n + SMOOTHING * bins);
        (p - q) * (p / q).ln()
    });
    let index = known.then(|| index.sum::<f64>());
    let missing = Compared { train: own.missing, new: 1.0 - values.len() as f64 / all };
    let index_by_chance = (bins - 1.0) * by_chance;
    let beyond = |limits: [f64; 2], x: f64, chance: f64| match () {
        () if x >= limits[1] + 2.0 * chance => Shift::Large,
        () if x >= limits[0] + 2.0 * chance => Shift::Some,
        () => Shift::None,
    };
    let shifts = [
        index.map_or(Shift::None, |x| beyond(INDEX, x, index_by_chance)),
        standardised.map_or(Shift::None, |x| beyond(DIFFERENCE, x.abs(), by_chance.sqrt())),
        beyond(MISSING, (missing.new - missing.train).abs(), 0.0),
        // A column that was the same for everybody, and is not any more.
        if known && own.deviation == 0.0 && values.iter().any(|x| *x != lo) { Shift::Large } else { Shift::None },
    ];
    ColumnDrift {
        column: own.column.clone(),
        role: own.role,
        mean: Compared { train: own.mean, new: if values.is_empty() { f64::NAN } else { mean } },
        missing,
        standardised_difference: standardised,
        stability_index: index,
        index_by_chance,
        outside: values.iter().filter(|x| known && !(lo..=hi).contains(*x)).count() as f64 / n,
        implausible: (there.len() - values.len()) as f64 / all,
        shift: shifts.into_iter().max().unwrap_or(Shift::None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::ColumnReference;
    use super::*;

    fn reference(values: &[f64]) -> ColumnReference {
        ColumnReference::for_test(values)
    }

    #[test]
    fn the_same_values_have_not_shifted_and_others_have() {
        let train: Vec<f64> = (0..1000).map(f64::from).collect();
        let own = reference(&train);
        let same = column(&own, train.clone(), 0.01);
        assert!(same.stability_index.is_some_and(|x| x.abs() < 1e-12) && same.standardised_difference == Some(0.0));
        assert_eq!((same.shift, same.outside, same.missing.new), (Shift::None, 0.0, 0.0));
        let moved = column(&own, train.iter().map(|x| x + 300.0).collect(), 0.01);
        assert_eq!((moved.shift, moved.outside), (Shift::Large, 0.3));
        assert!(moved.standardised_difference.is_some_and(|x| (x - 300.0 / own.deviation).abs() < 1e-9));
        // By hand: ten bins of a tenth; three are empty now and the last has four tenths.
        let (n, s) = (1000.0, 0.5);
        let q = (0.1 * n + s) / (n + 10.0 * s);
        let term = |count: f64| {
            let p = (count + s) / (n + 10.0 * s);
            (p - q) * (p / q).ln()
        };
        let by_hand = 3.0 * term(0.0) + 6.0 * term(100.0) + term(400.0);
        assert!(moved.stability_index.is_some_and(|x| (x - by_hand).abs() < 1e-12), "{moved:?} {by_hand}");
    }

    #[test]
    fn what_a_small_table_shows_by_chance_is_no_shift() {
        let train: Vec<f64> = (0..1000).map(f64::from).collect();
        let few: Vec<f64> = (0..12).map(|i| f64::from(i * i * 7)).collect();
        assert_eq!(column(&reference(&train), few.clone(), 1.0 / 12.0 + 0.01).shift, Shift::None);
        assert_ne!(column(&reference(&train), few, 0.001).shift, Shift::None);
    }

    #[test]
    fn nothing_recorded_and_a_constant_that_changes() {
        let own = reference(&[1.0, 1.0, 1.0]);
        assert_eq!(column(&own, vec![1.0; 5], 0.1).shift, Shift::None);
        assert_eq!(column(&own, vec![1.0, 2.0], 0.1).shift, Shift::Large);
        let none = column(&own, vec![f64::NAN; 4], 0.1);
        assert_eq!((none.stability_index, none.shift, none.missing.new), (None, Shift::Large, 1.0));
    }
}
