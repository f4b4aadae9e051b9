//! A stay: what the table says, and what the simulator knows.

use super::columns::{BLOC, Row, STAY, TIME};
use super::doses;
use super::emission::{Bloc, Emission, Streams};
use super::outcome::Outcome;
use super::practice::Practice;
use coirl::Result;
use coirl::domains::Patient;
use coirl::domains::sepsis::DEATH;
use coirl::model::{ActionId, StateId};
use coirl::plan::Policy;
use coirl::random::stream;
use rand::RngExt;

/// The identifier of the first stay.
pub(super) const FIRST_ID: u64 = 200_001;
/// Identifiers stay exact in any table.
pub(super) const MOST_STAYS: usize = 100_000_000;
/// Rows of a stay at most.
const MOST_ROWS: usize = 20;
/// Hours of a bloc.
const HOURS: f64 = 4.0;
/// Admissions fall into a hundred years that nobody lived in, as those of the source: 2100-01-01, in seconds, and hours.
const FIRST_ADMISSION: f64 = 4_102_444_800.0;
const ADMISSION_HOURS: f64 = 876_600.0;

/// One stay with its truth.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticStay {
    /// `icustayid`: 200001 for the first stay, and so on.
    pub id: u64,
    /// Who was treated.
    pub patient: Patient,
    /// The simulator's states until the stay ended, that of the end included; the first ones are those of the rows.
    pub states: Vec<StateId>,
    /// The actions taken in them, `5·fluid + vaso`: one less.
    pub actions: Vec<ActionId>,
    /// Which of the actions were lapses.
    pub lapsed: Vec<bool>,
    /// Whether the patient died within 90 days.
    pub died: bool,
    /// The table: a row for each of the first 20 blocs of four hours at most; NaN where a cell is empty.
    pub rows: Vec<Row>,
}

impl SyntheticStay {
    /// The stay of this number.
    pub(super) fn draw(
        number: u64,
        seed: u64,
        patient: Patient,
        practice: &Practice,
        policy: &Policy,
        emission: &Emission,
    ) -> Result<Self> {
        let course = practice.course(patient.start, policy, &mut stream(seed, "synthetic course", number))?;
        let died = course.states.last().is_some_and(|state| state.index() == DEATH);
        let blocs = course.actions.len();
        let mut record = stream(seed, "synthetic record", number);
        let admission = FIRST_ADMISSION + 3600.0 * (ADMISSION_HOURS * record.random::<f64>()).floor();
        let outcome = Outcome::draw(died, HOURS * blocs.saturating_sub(MOST_ROWS) as f64, &mut record);
        let mut streams = Streams::new(seed, "stay", number);
        let id = FIRST_ID + number;
        let write = |(t, (&state, &action)): (usize, (&StateId, &ActionId))| {
            let bloc = if t == 0 { Bloc::First } else { Bloc::Later };
            let mut row = emission.row(&patient, state, bloc, &mut streams);
            row[BLOC] = (t + 1) as f64;
            row[STAY] = id as f64;
            row[TIME] = admission + 3600.0 * HOURS * t as f64;
            doses::write(&mut row, action);
            outcome.write(&mut row);
            row
        };
        let rows = course.states.iter().zip(&course.actions).take(MOST_ROWS).enumerate().map(write).collect();
        Ok(Self { id, patient, states: course.states, actions: course.actions, lapsed: course.lapsed, died, rows })
    }
}
