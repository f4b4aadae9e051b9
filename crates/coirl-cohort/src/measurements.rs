//! From the measurements of a row to a point: late, filled in, transformed, standardised and weighted, all as fitted on training rows.
//!
//! Where the state includes the action of the step before, its levels follow as further coordinates. Where states are given by a column
//! there is one coordinate, the number of the state.

use super::doses::DoseLevels;
use super::encoder::{Actions, MOST_ACTIONS};
use super::spec::{Impute, Spec, Transform};
use super::stays::Stay;
use super::table::Table;
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// What ln(x + …) adds, so that zero has a logarithm.
const LOG_SHIFT: f64 = 0.1;
/// Numbered actions of which the one before can be part of the state: each is a coordinate.
const MOST_PREVIOUS: usize = 100;
/// States that a column may number. A number in a table is easily something else.
const MOST_NUMBERED: usize = MOST_ACTIONS;

/// What a coordinate of a point is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The number in the column.
    #[default]
    Value,
    /// The number of the state, below this.
    State(usize),
    /// The level of the dose in the row before; 0 in the first row.
    PreviousLevel(DoseLevels),
    /// Whether the action of the row before has this number.
    PreviousAction(u32),
    /// Whether there is no row before.
    FirstStep,
}

impl Reading {
    fn is_value(&self) -> bool {
        *self == Reading::Value
    }
}

/// One measurement with everything that was fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The column.
    pub column: String,
    /// What is read from it.
    #[serde(default, skip_serializing_if = "Reading::is_value")]
    pub reading: Reading,
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
    /// A coordinate that is not measured: nothing is filled in, and it is zero-centred with this spread.
    fn of(column: &str, reading: Reading, spread: f64, weight: f64) -> Self {
        Self {
            column: column.into(),
            reading,
            lag: 0,
            plausible: None,
            impute: Impute::Zero,
            fill: 0.0,
            transform: Transform::None,
            clip: None,
            mean: 0.0,
            spread,
            weight,
        }
    }

    /// What the coordinate is called: as its column, where it is what was measured.
    pub fn name(&self) -> String {
        let column = &self.column;
        match &self.reading {
            Reading::Value | Reading::State(_) => column.clone(),
            Reading::PreviousLevel(_) => format!("previous level of {column}"),
            Reading::PreviousAction(action) => format!("previous {column} {action}"),
            Reading::FirstStep => "first step".into(),
        }
    }

    /// Whether it is measured in the unit of its column, rather than a number of a state or something of the row before.
    pub fn is_measured(&self) -> bool {
        self.reading.is_value()
    }

    /// Whether it is about the action of the step before.
    pub fn is_before(&self) -> bool {
        !matches!(self.reading, Reading::Value | Reading::State(_))
    }

    /// Whether a value was measured and can be right.
    pub(crate) fn accepts(&self, x: f64) -> bool {
        self.plausible(x).is_some()
    }

    /// The number behind a coordinate that is not measured, from its column in the row and in the row before.
    fn derived(&self, here: f64, before: Option<f64>) -> f64 {
        let is = |it: bool| f64::from(u8::from(it));
        match &self.reading {
            Reading::Value | Reading::State(_) => here,
            Reading::PreviousLevel(levels) => before.map_or(0.0, |dose| levels.level(dose) as f64),
            Reading::PreviousAction(action) => is(before == Some(f64::from(*action))),
            Reading::FirstStep => is(before.is_none()),
        }
    }

    /// The number of the state in a row, of so many.
    fn state_in(&self, x: f32, row: usize, number: usize) -> Result<f64> {
        if x >= 0.0 && x.fract() == 0.0 && (x as usize) < number {
            return Ok(f64::from(x));
        }
        let reason = format!("{x}; expected the number of a state, 0 to {}", number - 1);
        Err(Error::Cell { row: row as u64 + 1, column: self.column.clone(), reason })
    }

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

    /// The weighted coordinate of a value.
    fn coordinate(&self, x: f64) -> f32 {
        (self.weight * self.standardised(x)) as f32
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
    pub(super) fn fit(table: &Table, spec: &Spec, actions: &Actions, train: &[Stay]) -> Result<Self> {
        if let Some(column) = &spec.state.column {
            return Self::numbered(table, column, spec.state.number, train);
        }
        let fit = |name: &String| {
            let (own, column) = (spec.column(name), table.column(name)?);
            let mut measurement = Measurement {
                column: name.clone(),
                reading: Reading::Value,
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
            seen.sort_unstable_by(f64::total_cmp);
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
        let mut all: Vec<Measurement> = spec.state.measurements.iter().map(fit).collect::<Result<_>>()?;
        if spec.action.previous {
            let size = all.iter().map(|measurement| measurement.weight.powi(2)).sum::<f64>().sqrt();
            all.extend(previous(actions, spec.action.previous_weight * size)?);
        }
        Ok(Self(all))
    }

    /// The number of the state, from a column. Numbers are standardised as if all were equally frequent.
    fn numbered(table: &Table, column: &str, number: Option<usize>, train: &[Stay]) -> Result<Self> {
        let cells = table.column(column)?;
        let rows = || train.iter().flat_map(|stay| &stay.rows).map(|&row| row as usize);
        let largest = rows().map(|row| cells[row]).fold(0.0, f32::max);
        if number.is_none()
            && largest >= MOST_NUMBERED as f32
            && let Some(row) = rows().find(|&row| cells[row] == largest)
        {
            let reason = format!("{largest}; expected the number of a state, below {MOST_NUMBERED}");
            return Err(Error::Cell { row: row as u64 + 1, column: column.into(), reason });
        }
        let number = number.unwrap_or(largest as usize + 1);
        let n = number as f64;
        let spread = if number > 1 { ((n * n - 1.0) / 12.0).sqrt() } else { 1.0 };
        let state = Measurement::of(column, Reading::State(number), spread, 1.0);
        Ok(Self(vec![Measurement { mean: (n - 1.0) / 2.0, ..state }]))
    }

    /// Whether a point depends on the action of the step before.
    pub fn know_the_action_before(&self) -> bool {
        self.0.iter().any(Measurement::is_before)
    }

    /// The number of states, where a column gives them.
    pub fn numbered_states(&self) -> Option<usize> {
        match self.0.first()?.reading {
            Reading::State(number) => Some(number),
            _ => None,
        }
    }

    /// The point of every numbered state; nothing where states are not numbered by a column.
    pub(super) fn of_numbered_states(&self) -> Option<Vec<f64>> {
        let number = self.numbered_states()?;
        let own = self.0.first()?;
        Some((0..number).map(|state| own.weight * own.standardised(state as f64)).collect())
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
            if !measurement.is_measured() {
                for t in 0..n {
                    let row = stay.rows[t] as usize;
                    let here = match measurement.reading {
                        Reading::State(number) => measurement.state_in(column[row], row, number)?,
                        _ => f64::from(column[row]),
                    };
                    let before = t.checked_sub(1).map(|before| f64::from(column[stay.rows[before] as usize]));
                    points[t * width + j] = measurement.coordinate(measurement.derived(here, before));
                }
                continue;
            }
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
                points[t * width + j] = measurement.coordinate(x);
            }
        }
        Ok((points, filled))
    }

    /// The point of a row on its own, by the names of its columns; `before` is the row before, where there is one, and nothing else of the
    /// past is known.
    pub fn point(&self, value: impl Fn(&str) -> f64, before: Option<&dyn Fn(&str) -> f64>) -> Vec<f32> {
        let coordinate = |measurement: &Measurement| {
            let earlier = before.map(|before| before(&measurement.column));
            if !measurement.is_measured() {
                return measurement.coordinate(measurement.derived(value(&measurement.column), earlier));
            }
            let measured = match measurement.lag {
                0 => measurement.plausible(value(&measurement.column)),
                1 => earlier.and_then(|x| measurement.plausible(x)),
                _ => None,
            };
            measurement.coordinate(measured.unwrap_or_else(|| measurement.filled(None)))
        };
        self.0.iter().map(coordinate).collect()
    }
}

/// What the action of the step before adds to a point. Between none and the highest level of a dose, and between two numbered actions, lies
/// the distance `weight`; a first step is half as far from one after nothing was given.
fn previous(actions: &Actions, weight: f64) -> Result<Vec<Measurement>> {
    let mut all: Vec<Measurement> = match actions {
        Actions::Doses(doses) => {
            let level = |dose: &DoseLevels| {
                let most = (dose.n_levels() - 1) as f64;
                Measurement::of(&dose.column, Reading::PreviousLevel(dose.clone()), most, weight)
            };
            doses.iter().map(level).collect()
        }
        Actions::Numbered { column, number } if *number <= MOST_PREVIOUS => {
            // Two indicators differ between two actions.
            let own = |action| Measurement::of(column, Reading::PreviousAction(action), 1.0, weight / f64::sqrt(2.0));
            (0..*number as u32).map(own).collect()
        }
        Actions::Numbered { number, .. } => {
            let reason = format!("true with {number} numbered actions; expected {MOST_PREVIOUS} at most");
            return Err(Error::Spec { place: "action.previous".into(), reason });
        }
    };
    if let Some(column) = all.first().map(|first| first.column.clone()) {
        all.push(Measurement::of(&column, Reading::FirstStep, 1.0, weight / 2.0));
    }
    Ok(all)
}
