//! How a stay ended, as the table records it.
//!
//! The simulator says who dies. Where and when they do is drawn with the shares of the MIMIC-III demo: of those dead after 90 days, 52 % died
//! within 48 hours of leaving intensive care, 12 % later in hospital, the others after discharge. Nothing is learned from these columns
//! that `mortality_90d` does not say.

use super::columns::{DELAY_HOURS, DIED_IN_HOSPITAL, DIED_WITHIN_48H, DIED_WITHIN_90D, Row};
use rand::RngExt;

/// Of those who die: share within 48 hours, and in hospital at all.
const WITHIN_48H: f64 = 0.52;
const IN_HOSPITAL: f64 = 0.64;
/// Mean hours from intensive care to discharge, and the hours within which an early death falls.
const MEAN_HOURS: f64 = 150.0;
const EARLY_HOURS: f64 = 48.0;

/// What the four outcome columns say, in all rows of a stay.
pub(super) struct Outcome {
    within_48h: bool,
    in_hospital: bool,
    within_90d: bool,
    delay_hours: f64,
}

impl Outcome {
    /// `unrecorded_hours` of intensive care followed the last row.
    pub(super) fn draw(died: bool, unrecorded_hours: f64, rng: &mut impl RngExt) -> Self {
        let (place, time): (f64, f64) = (rng.random(), rng.random());
        let within_48h = died && place < WITHIN_48H;
        let in_hospital = died && place < IN_HOSPITAL;
        let exponential = -MEAN_HOURS * (1.0 - time).ln();
        let after = match (within_48h, in_hospital) {
            (true, _) => EARLY_HOURS * time,
            (false, true) => EARLY_HOURS + exponential,
            (false, false) => exponential,
        };
        Self { within_48h, in_hospital, within_90d: died, delay_hours: unrecorded_hours + after }
    }

    pub(super) fn write(&self, row: &mut Row) {
        let flag = |x: bool| f64::from(u8::from(x));
        row[DIED_WITHIN_48H] = flag(self.within_48h);
        row[DIED_IN_HOSPITAL] = flag(self.in_hospital);
        row[DIED_WITHIN_90D] = flag(self.within_90d);
        row[DELAY_HOURS] = self.delay_hours;
    }
}
