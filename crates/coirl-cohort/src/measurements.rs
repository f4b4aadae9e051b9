//! From the measurements of a row to a point: late, filled in, transformed, standardised and weighted, all as fitted on training rows.

use super::spec::{Impute, Spec, Transform};
use super::stays::Stay;
use super::table::Table;
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// What ln(x + …) adds, so that zero has a logarithm.
const LOG_SHIFT: f64 = 0.1;

/// One measurement with everything that was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The column.
    pub column: String,
    /// Steps by which it is late.
    pub lag: usize,
    /// Values outside count as not measured.
    pub plausible: Option<[f64; 2]>,
    /// What replaces cells that were not measured.
    pub impute: Impute,
    /// The training value that replaces them where nothing else does.
    pub fill: f64,
    /// What is done before standardising.
    pub transform: Transform,
    /// Range that values are brought into.
    pub clip: Option<[f64; 2]>,
    /// Training mean after the transform; zero where it is not standardised.
    pub mean: f64,
    /// Training standard deviation after the transform; one where it is not standardised or constant.
    pub spread: f64,
    /// How much it counts in distances.
    pub weight: f64,
}

impl Measurement {
    fn plausible(&self, x: f64) -> Option<f64> {
        let kept = !x.is_nan() && self.plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(&x));
        kept.then_some(x)
    }

    fn transformed(&self, x: f64) -> f64 {
        let x = self.clip.map_or(x, |[lo, hi]| x.clamp(lo, hi));
        match self.transform {
            Transform::None => x,
            Transform::Log => (x.max(0.0) + LOG_SHIFT).ln(),
        }
    }

    /// The coordinate of a value, before it is weighted.
    fn standardised(&self, x: f64) -> f64 {
        (self.transformed(x) - self.mean) / self.spread
    }

    /// The value of a weighted coordinate, in the unit of the column; the training mean where the measurement has no weight.
    pub fn in_unit(&self, coordinate: f64) -> f64 {
        let standardised = if self.weight > 0.0 { coordinate / self.weight } else { 0.0 };
        let transformed = self.mean + self.spread * standardised;
        match self.transform {
            Transform::None => transformed,
            Transform::Log => transformed.exp() - LOG_SHIFT,
        }
    }

    /// What takes the place of a value that was not measured. `last` is the last one that was.
    fn filled(&self, last: Option<f64>) -> f64 {
        match self.impute {
            Impute::CarryForward => last.unwrap_or(self.fill),
            Impute::Median | Impute::Mean | Impute::Refuse => self.fill,
            Impute::Zero => 0.0,
        }
    }
}

/// All measurements of a cohort.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurements(Vec<Measurement>);

impl Measurements {
    /// Fits fill values, means and spreads on the training stays.
    pub(super) fn fit(table: &Table, spec: &Spec, train: &[Stay]) -> Result<Self> {
        let fit = |name: &String| {
            let (own, column) = (spec.column(name), table.column(name)?);
            let mut measurement = Measurement {
                column: name.clone(),
                lag: own.lag,
                plausible: spec.cohort.plausible.get(name).copied(),
                impute: own.impute.unwrap_or(spec.state.impute),
                fill: 0.0,
                transform: own.transform,
                clip: own.clip,
                mean: 0.0,
                spread: 1.0,
                weight: own.weight,
            };
            let rows = || train.iter().flat_map(|stay| &stay.rows).map(|&row| row as usize);
            let mut seen: Vec<f64> = rows().filter_map(|row| measurement.plausible(f64::from(column[row]))).collect();
            seen.sort_by(f64::total_cmp);
            measurement.fill = match measurement.impute {
                Impute::Mean => seen.iter().sum::<f64>() / seen.len().max(1) as f64,
                _ => seen.get(seen.len() / 2).copied().unwrap_or(0.0),
            };
            if own.standardise {
                // Of what was measured, in the order of values: the sum does not depend on the order of the table.
                let n = seen.len().max(1) as f64;
                let mean = seen.iter().map(|&x| measurement.transformed(x)).sum::<f64>() / n;
                let variance = seen.iter().map(|&x| (measurement.transformed(x) - mean).powi(2)).sum::<f64>() / n;
                measurement.mean = mean;
                measurement.spread = if variance > 0.0 { variance.sqrt() } else { 1.0 };
            }
            Ok(measurement)
        };
        Ok(Self(spec.state.measurements.iter().map(fit).collect::<Result<_>>()?))
    }

    /// One by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Measurement> {
        self.0.iter()
    }

    /// Length of a point.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The points of a stay, row by row, weighted as distances need them. Also how many cells were filled in.
    pub(super) fn points_of(&self, table: &Table, stay: &Stay) -> Result<(Vec<f32>, u64)> {
        let (width, n) = (self.len(), stay.rows.len());
        let mut points = vec![0.0; width * n];
        let mut filled = 0;
        for (j, measurement) in self.0.iter().enumerate() {
            let column = table.column(&measurement.column)?;
            let mut last = None;
            for t in 0..n {
                let row = t.checked_sub(measurement.lag).map(|before| stay.rows[before] as usize);
                let measured = row.and_then(|row| measurement.plausible(f64::from(column[row])));
                if let (None, Some(row), Impute::Refuse) = (measured, row, measurement.impute) {
                    let reason = format!("{}; expected a plausible number, for nothing is filled in here", column[row]);
                    return Err(Error::Cell { row: row as u64 + 1, column: measurement.column.clone(), reason });
                }
                filled += u64::from(measured.is_none() && row.is_some());
                let x = measured.unwrap_or_else(|| measurement.filled(last));
                last = measured.or(last);
                points[t * width + j] = (measurement.weight * measurement.standardised(x)) as f32;
            }
        }
        Ok((points, filled))
    }

    /// The point of a row on its own: nothing before it is known.
    pub fn point(&self, value: impl Fn(&str) -> f64) -> Vec<f32> {
        let coordinate = |measurement: &Measurement| {
            let measured = if measurement.lag == 0 { measurement.plausible(value(&measurement.column)) } else { None };
            let x = measured.unwrap_or_else(|| measurement.filled(None));
            (measurement.weight * measurement.standardised(x)) as f32
        };
        self.0.iter().map(coordinate).collect()
    }
}
