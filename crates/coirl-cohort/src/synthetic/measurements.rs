//! The measurements that a simulator state emits, with the scale that takes a centroid's z-score to units.
//!
//! Means and standard deviations are those of the MIMIC-III Clinical Database Demo 1.4 (ODbL 1.0), but for:
//! - columns whose logarithm was standardised: the mean of ln(x + 0.1) is the logarithm of the median, the standard deviation the distance of
//!   the 1st and 99th percentiles over that of a normal law's, 4.652. `input_total`, `output_total` and `output_4hourly` are zero too often for
//!   that: the least centroid is nothing at all, the largest 25 litres, 19 litres and half a litre.
//! - `FiO2_1`: the least centroid is room air, 0.21.
//! - `SOFA`: the line through the centroids' scores that ICU-Sepsis publishes.
//! - `GCS`: as for the simulator's patients.

use super::columns::at;
use coirl::domains::sepsis::COMA_SCALE;

/// From a z-score to a unit.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// x = mean + spread·z.
    Plain { mean: f64, spread: f64 },
    /// ln(x + 0.1) = mean + spread·z.
    Logarithm { mean: f64, spread: f64 },
}

/// What was added before logarithms were taken.
const SHIFT: f64 = 0.1;

/// A column that states emit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    /// Its name in the table and among the centroids.
    pub(super) name: &'static str,
    /// Its place in the table.
    pub(super) column: usize,
    scale: Scale,
    /// Values beyond are clipped.
    lowest: f64,
    highest: f64,
    /// Scores are whole numbers.
    whole: bool,
}

impl Measurement {
    /// A z-score in units, within what a body or an instrument can show.
    pub(super) fn in_units(&self, z: f64) -> f64 {
        let x = match self.scale {
            Scale::Plain { mean, spread } => mean + spread * z,
            Scale::Logarithm { mean, spread } => (mean + spread * z).exp() - SHIFT,
        };
        let x = if self.whole { x.round() } else { x };
        x.clamp(self.lowest, self.highest)
    }

    /// The z-score of a value in units.
    pub(super) fn z_score(&self, x: f64) -> f64 {
        match self.scale {
            Scale::Plain { mean, spread } => (x - mean) / spread,
            Scale::Logarithm { mean, spread } => ((x + SHIFT).ln() - mean) / spread,
        }
    }

    const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }
}

const fn plain(name: &'static str, mean: f64, spread: f64, lowest: f64, highest: f64) -> Measurement {
    Measurement { name, column: at(name), scale: Scale::Plain { mean, spread }, lowest, highest, whole: false }
}

const fn logarithm(name: &'static str, mean: f64, spread: f64, lowest: f64, highest: f64) -> Measurement {
    Measurement { name, column: at(name), scale: Scale::Logarithm { mean, spread }, lowest, highest, whole: false }
}

/// All of them, in the order of the centroids.
pub(super) const MEASUREMENTS: [Measurement; 40] = [
    plain("GCS", COMA_SCALE.0, COMA_SCALE.1, 3.0, 15.0).whole(),
    plain("HR", 86.59, 16.95, 20.0, 220.0),
    plain("SysBP", 119.29, 21.55, 40.0, 280.0),
    plain("MeanBP", 77.06, 13.33, 25.0, 200.0),
    plain("DiaBP", 54.59, 8.654, 15.0, 160.0),
    plain("RR", 20.09, 5.786, 4.0, 60.0),
    plain("Temp_C", 36.66, 0.7882, 30.0, 42.0),
    plain("FiO2_1", 0.4628, 0.2034, 0.21, 1.0),
    plain("Potassium", 4.051, 0.6321, 1.5, 10.0),
    plain("Sodium", 139.62, 5.390, 100.0, 180.0),
    plain("Chloride", 105.48, 7.586, 70.0, 150.0),
    plain("Glucose", 146.64, 59.27, 20.0, 1000.0),
    plain("Magnesium", 2.075, 0.4141, 0.5, 8.0),
    plain("Calcium", 8.268, 0.7011, 4.0, 18.0),
    plain("Hb", 9.985, 1.464, 3.0, 20.0),
    plain("WBC_count", 11.79, 7.516, 0.1, 200.0),
    plain("Platelets_count", 201.74, 94.74, 5.0, 1500.0),
    plain("PTT", 39.73, 20.32, 15.0, 200.0),
    plain("PT", 17.66, 6.566, 8.0, 150.0),
    plain("Arterial_pH", 7.385, 0.06908, 6.7, 7.8),
    plain("paO2", 116.39, 53.86, 25.0, 600.0),
    plain("paCO2", 42.63, 12.37, 10.0, 150.0),
    plain("Arterial_BE", 0.1599, 4.390, -30.0, 30.0),
    plain("HCO3", 24.69, 5.424, 3.0, 60.0),
    plain("Arterial_lactate", 2.071, 2.237, 0.2, 30.0),
    plain("SOFA", 6.346, 3.453, 0.0, 24.0).whole(),
    plain("SIRS", 1.529, 0.9906, 0.0, 4.0).whole(),
    plain("Shock_Index", 0.7486, 0.1990, 0.1, 3.0),
    plain("PaO2_FiO2", 380.54, 197.29, 20.0, 2500.0),
    plain("cumulated_balance", 867.6, 4885.0, -100_000.0, 100_000.0),
    logarithm("SpO2", 4.578, 0.03595, 30.0, 100.0),
    logarithm("BUN", 3.182, 0.7655, 1.0, 250.0),
    logarithm("Creatinine", 0.0953, 0.5937, 0.1, 25.0),
    logarithm("SGOT", 3.953, 1.449, 3.0, 25_000.0),
    logarithm("SGPT", 3.300, 1.766, 1.0, 25_000.0),
    logarithm("Total_bili", -0.2231, 0.9863, 0.1, 60.0),
    logarithm("INR", 0.4055, 0.3289, 0.8, 20.0),
    logarithm("input_total", 6.429, 2.668, 0.0, 100_000.0),
    logarithm("output_total", 5.470, 3.039, 0.0, 100_000.0),
    logarithm("output_4hourly", 3.666, 3.202, 0.0, 5000.0),
];

/// Mean and standard deviation of what the simulator does not know, drawn without regard to the state.
pub(super) const IONISED_CALCIUM: (f64, f64) = (1.124, 0.0615);
pub(super) const ALBUMIN: (f64, f64) = (2.964, 0.497);
