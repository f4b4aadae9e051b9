//! From a simulator state to a row of measurements, and back to the nearest state.
//!
//! A row depends on its state and on the patient's fields, on nothing else. Measurements are the centroid's z-scores with normal noise, in units,
//! clipped, and rounded where they are scores. Rounding costs little of a state's identity: 0.10 (GCS), 0.08 (SOFA) and 0.29 (SIRS) standard
//! deviations in three columns of forty. Ventilation is drawn with the cluster's share. `Shock_Index` and `PaO2_FiO2` have centroid columns of their
//! own, a mean of ratios not being the ratio of means. `CO2_mEqL` follows from bicarbonate and the pressure of carbon dioxide;
//! `Ionised_Ca` and `Albumin` are drawn around the same mean in every state and say nothing. The first row has the patient's own coma
//! scale and ventilation.

use super::columns::{
    AGE_DAYS, ALBUMIN, BICARBONATE, CARBON_DIOXIDE_PRESSURE, COMA_SCALE, ELIXHAUSER, GENDER, IONISED_CALCIUM,
    N_COLUMNS, READMISSION, Row, TOTAL_CARBON_DIOXIDE, VENTILATED, WEIGHT_KG,
};
use super::measurements::{self, MEASUREMENTS};
use super::settings::Synthetic;
use coirl::Result;
use coirl::domains::sepsis::N_CLUSTERS;
use coirl::domains::{Patient, Sepsis};
use coirl::model::StateId;
use coirl::random::stream;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const N_MEASUREMENTS: usize = MEASUREMENTS.len();
/// Days of a year, as the ages of the source are counted.
const DAYS: f64 = 365.25;
/// Dissolved carbon dioxide, in mEq/L per mmHg.
const DISSOLVED: f64 = 0.03;

/// Which row of a stay is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bloc {
    /// The row of admission, in which the context is read.
    First,
    /// Any other.
    Later,
}

/// The random numbers of a sequence of rows. What is left empty has a stream of its own, so that the values of the other cells do not
/// depend on how much is missing.
pub(super) struct Streams {
    values: ChaCha8Rng,
    gaps: ChaCha8Rng,
}

impl Streams {
    pub(super) fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let named = |what: &str| stream(seed, &format!("synthetic {purpose} {what}"), number);
        Self { values: named("values"), gaps: named("gaps") }
    }
}

/// How states are seen.
pub(super) struct Emission {
    /// z-scores by cluster.
    centroids: Vec<[f64; N_MEASUREMENTS]>,
    /// Share of ventilated patients by cluster.
    ventilated: Vec<f64>,
    noise: f64,
    missing: f64,
}

impl Emission {
    pub(super) fn new(settings: &Synthetic) -> Result<Self> {
        let mut centroids = vec![[0.0; N_MEASUREMENTS]; N_CLUSTERS];
        for (j, measurement) in MEASUREMENTS.iter().enumerate() {
            let column = Sepsis::centroid_column(measurement.name)?;
            centroids.iter_mut().zip(column).for_each(|(centroid, z)| centroid[j] = z);
        }
        // Published as the share less a half.
        let ventilated = Sepsis::centroid_column("mechvent")?.iter().map(|x| (x + 0.5).clamp(0.0, 1.0)).collect();
        Ok(Self { centroids, ventilated, noise: settings.noise, missing: settings.missing })
    }

    /// A row of this state and patient: fields and measurements. Identifiers, doses and outcomes are left empty.
    pub(super) fn row(&self, patient: &Patient, state: StateId, bloc: Bloc, streams: &mut Streams) -> Row {
        let mut row = [f64::NAN; N_COLUMNS];
        let mut normal = || -> f64 { StandardNormal.sample(&mut streams.values) };
        for (measurement, z) in MEASUREMENTS.iter().zip(&self.centroids[state.index()]) {
            row[measurement.column] = measurement.in_units(z + self.noise * normal());
        }
        for (column, (mean, spread)) in
            [(IONISED_CALCIUM, measurements::IONISED_CALCIUM), (ALBUMIN, measurements::ALBUMIN)]
        {
            row[column] = mean + spread * normal();
        }
        row[TOTAL_CARBON_DIOXIDE] = row[BICARBONATE] + DISSOLVED * row[CARBON_DIOXIDE_PRESSURE];
        let ventilated = streams.values.random::<f64>() < self.ventilated[state.index()];
        row[VENTILATED] = f64::from(u8::from(ventilated));
        self.leave_gaps(&mut row, &mut streams.gaps);
        let [gender, age, elixhauser, readmission, weight, coma_scale, ventilation] = patient.fields;
        row[GENDER] = gender;
        row[AGE_DAYS] = age * DAYS;
        row[ELIXHAUSER] = elixhauser;
        row[READMISSION] = readmission;
        row[WEIGHT_KG] = weight;
        if bloc == Bloc::First {
            row[COMA_SCALE] = coma_scale;
            row[VENTILATED] = ventilation;
        }
        row
    }

    /// Empties measurements at random; fields of the context are always known.
    fn leave_gaps(&self, row: &mut Row, gaps: &mut ChaCha8Rng) {
        let measured = MEASUREMENTS.iter().map(|measurement| measurement.column).filter(|column| *column != COMA_SCALE);
        for column in measured.chain([IONISED_CALCIUM, TOTAL_CARBON_DIOXIDE, ALBUMIN]) {
            if gaps.random::<f64>() < self.missing {
                row[column] = f64::NAN;
            }
        }
    }

    /// The state whose centroid is nearest in z-scores, over the measurements that are there. The coma scale is left out: in the first row
    /// it is the patient's own.
    pub(super) fn nearest(&self, row: &Row) -> StateId {
        let seen: Vec<(usize, f64)> = MEASUREMENTS
            .iter()
            .enumerate()
            .filter(|(_, measurement)| measurement.column != COMA_SCALE && !row[measurement.column].is_nan())
            .map(|(j, measurement)| (j, measurement.z_score(row[measurement.column])))
            .collect();
        let distance = |s: usize| seen.iter().map(|&(j, z)| (z - self.centroids[s][j]).powi(2)).sum::<f64>();
        let distances = (0..N_CLUSTERS).map(|s| (s, distance(s)));
        StateId(distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |nearest| nearest.0) as u32)
    }
}
