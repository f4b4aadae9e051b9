//! From rows of the table to the numbers of the model: states, actions and contexts. Everything in it was fitted on training stays; it is
//! all that is needed to bring a new patient into the model.

use super::contexts::ContextScaling;
use super::doses::DoseLevels;
use super::measurements::Measurements;
use super::stays::Stay;
use super::table::Table;
use coirl::check::check_length;
use coirl::clustering::{Centroids, Points};
use coirl::model::{ActionId, StateId};
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};

/// Actions of a cohort. A number in a table is easily something else, such as a dose.
pub(super) const MOST_ACTIONS: usize = 1 << 16;

/// How actions are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actions {
    /// Levels of doses: the number of an action has the level of the first dose as its first digit.
    Doses(Vec<DoseLevels>),
    /// Numbers in a column.
    Numbered {
        /// The column.
        column: String,
        /// How many there are.
        number: usize,
    },
}

impl Actions {
    /// Number of actions.
    pub fn len(&self) -> usize {
        match self {
            Actions::Doses(doses) => doses.iter().map(DoseLevels::n_levels).fold(1, usize::saturating_mul),
            Actions::Numbered { number, .. } => *number,
        }
    }

    /// Refuses none, and more than a list of them can be held for every state.
    pub(super) fn check(&self) -> Result<()> {
        match self.len() {
            0 => Err(Error::shape("actions", "at least 1", 0)),
            count if count > MOST_ACTIONS => Err(Error::TooLarge { what: "actions", count, limit: MOST_ACTIONS }),
            _ => Ok(()),
        }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Levels of every dose; one list of all actions where they are numbered.
    pub fn levels(&self) -> Vec<usize> {
        match self {
            Actions::Doses(doses) => doses.iter().map(DoseLevels::n_levels).collect(),
            Actions::Numbered { number, .. } => vec![*number],
        }
    }

    /// The level of every dose in an action.
    pub fn levels_of(&self, action: ActionId) -> Vec<usize> {
        let mut rest = action.index();
        let mut digits: Vec<usize> = Vec::new();
        for levels in self.levels().into_iter().rev() {
            digits.push(rest % levels);
            rest /= levels;
        }
        digits.reverse();
        digits
    }

    /// Names of the actions.
    pub fn names(&self) -> Vec<String> {
        let name = |action: usize| match self {
            Actions::Doses(doses) => {
                let levels = self.levels_of(ActionId(action as u32));
                let parts = doses.iter().zip(levels).map(|(dose, level)| format!("{} {level}", dose.column));
                parts.collect::<Vec<_>>().join(" ")
            }
            Actions::Numbered { column, .. } => format!("{column} {action}"),
        };
        (0..self.len()).map(name).collect()
    }

    /// The action of these levels.
    pub fn of_levels(&self, levels: &[usize]) -> ActionId {
        let number = self.levels().iter().zip(levels).fold(0, |number, (n, level)| number * n + level.min(&(n - 1)));
        ActionId(number as u32)
    }

    /// The action taken in a row.
    pub(super) fn of_row(&self, table: &Table, row: usize) -> Result<ActionId> {
        match self {
            Actions::Doses(doses) => {
                let level = |dose: &DoseLevels| Ok(dose.level(f64::from(table.column(&dose.column)?[row])));
                Ok(self.of_levels(&doses.iter().map(level).collect::<Result<Vec<_>>>()?))
            }
            Actions::Numbered { column, number } => {
                let x = table.column(column)?[row];
                if x >= 0.0 && x.fract() == 0.0 && (x as usize) < *number {
                    return Ok(ActionId(x as u32));
                }
                let reason = format!("{x}; expected the number of an action, 0 to {}", number - 1);
                Err(Error::Cell { row: row as u64 + 1, column: column.clone(), reason })
            }
        }
    }
}

/// From rows to states, actions and contexts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// From measurements to points.
    pub measurements: Measurements,
    /// From points to states.
    #[serde(with = "centroid_rows")]
    pub centroids: Centroids,
    /// From doses to actions.
    pub actions: Actions,
    /// From fields to contexts.
    pub contexts: ContextScaling,
}

impl Encoder {
    /// The state of a row on its own, by the names of its columns; NaN where nothing was measured.
    pub fn state(&self, value: impl Fn(&str) -> f64) -> Result<StateId> {
        let (state, _) = self.centroids.nearest(&self.measurements.point(value, None))?;
        Ok(StateId(state as u32))
    }

    /// The states of points.
    pub(super) fn states(&self, points: Vec<f32>) -> Result<Vec<StateId>> {
        if points.is_empty() {
            return Ok(Vec::new());
        }
        let states = self.centroids.assign(&Points::new(points, self.measurements.len())?)?;
        Ok(states.into_iter().map(StateId).collect())
    }

    /// Refuses what a file may hold and no fit gives.
    pub fn check(&self) -> Result<()> {
        check_length("measurements", self.centroids.width(), self.measurements.len())?;
        if let Some(number) = self.measurements.numbered_states() {
            check_length("numbered states", number, self.centroids.n_clusters())?;
        }
        self.actions.check()
    }

    /// The points of all rows of these stays, one after the other, and how many cells were filled in.
    pub(super) fn points(measurements: &Measurements, table: &Table, stays: &[Stay]) -> Result<(Vec<f32>, u64)> {
        let mut points = Vec::new();
        let mut filled = 0;
        for stay in stays {
            let (own, missing) = measurements.points_of(table, stay)?;
            points.extend(own);
            filled += missing;
        }
        Ok((points, filled))
    }
}

/// Centroids in a file: rows of one width.
mod centroid_rows {
    use super::Centroids;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rows {
        width: usize,
        values: Vec<f64>,
    }

    pub(super) fn serialize<S: Serializer>(centroids: &Centroids, serializer: S) -> Result<S::Ok, S::Error> {
        Rows { width: centroids.width(), values: centroids.values().to_vec() }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Centroids, D::Error> {
        let rows = Rows::deserialize(deserializer)?;
        Centroids::new(rows.values, rows.width).map_err(de::Error::custom)
    }
}
