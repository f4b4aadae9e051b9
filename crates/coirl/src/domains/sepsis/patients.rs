//! Patients: where an episode starts and the context that goes with it, drawn together.
//!
//! The start cluster comes from the published start distribution. Binary fields are drawn with the cluster's share; age, weight and the
//! Glasgow coma scale are the cluster's mean and the spread within a cluster, correlated as in sepsis cohorts; women weigh less, and
//! ventilated patients score lower; the Elixhauser score is negative binomial and grows with age. The fields, scaled to [0, 1]
//! and raised by 0.1 so that none is without a voice, are divided by their sum: a point on the simplex. Units are calibrated on
//! open data (eICU and MIMIC-III demonstration sets); no patient's record is used.

use super::data::{Data, N_CLUSTERS};
use crate::error::Result;
use crate::model::{Context, ContextSpace, StateId};
use crate::random::{outcome, stream};
use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};
use std::ops::RangeInclusive;

/// The fields of a context.
pub const CONTEXTS: [&str; 7] = ["gender", "age", "elixhauser", "re_admission", "Weight_kg", "GCS", "mechvent"];

/// Range of each field; values beyond are clipped.
const BOUNDS: [RangeInclusive<f64>; 7] =
    [0.0..=1.0, 18.0..=91.4, 0.0..=14.0, 0.0..=1.0, 35.0..=160.0, 3.0..=15.0, 0.0..=1.0];
/// What every scaled field is raised by.
const VOICE: f64 = 0.1;

/// Mean and standard deviation of a published z-score in its own unit.
const AGE_YEARS: (f64, f64) = (66.5, 15.0);
const WEIGHT_KG: (f64, f64) = (80.8, 25.6);
/// Mean and standard deviation of the Glasgow coma scale.
pub const COMA_SCALE: (f64, f64) = (13.0, 3.0);
/// Variance within a cluster, in squared standard deviations.
const WITHIN: [f64; 3] = [0.617, 0.681, 0.491];
/// Correlation within a cluster of age with weight and with the coma scale.
const AGE_WEIGHT: f64 = -0.20;
const AGE_COMA: f64 = -0.05;
/// Standard deviations by which women weigh less, and ventilated patients score lower.
const FEMALE_WEIGHT: f64 = -0.45;
const VENTILATED_COMA: f64 = -0.4;
/// Mean Elixhauser score, shape of its spread, and growth of its logarithm with the z-score of age: together a standard deviation of
/// 2.2 and a correlation of about a quarter.
const ELIXHAUSER_MEAN: f64 = 4.2;
const ELIXHAUSER_SHAPE: f64 = 62.0;
const ELIXHAUSER_BY_AGE: f64 = 0.13;

/// Somebody who is admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Patient {
    /// The fields in their own units: gender (1 is female), age in years, Elixhauser score, re-admission, weight in kg, coma
    /// scale, mechanical ventilation.
    pub fields: [f64; 7],
    /// The fields as a point on the simplex.
    pub context: Context,
    /// The cluster in which the stay begins.
    pub start: StateId,
}

/// Columns of the centroids that patients are drawn from.
pub(super) struct Population<'a> {
    start: &'a [f64],
    gender: Vec<f64>,
    ventilated: Vec<f64>,
    readmitted: Vec<f64>,
    age: Vec<f64>,
    weight: Vec<f64>,
    coma: Vec<f64>,
}

impl<'a> Population<'a> {
    pub(super) fn new(data: &'a Data) -> Result<Self> {
        // Published as the share less a half; re-admission as the share and a tenth.
        let share = |name: &str, shift: f64| -> Result<Vec<f64>> {
            Ok(data.column(name)?.iter().map(|x| (x + shift).clamp(0.0, 1.0)).collect())
        };
        Ok(Self {
            start: &data.start,
            gender: share("gender", 0.5)?,
            ventilated: share("mechvent", 0.5)?,
            readmitted: share("re_admission", -0.1)?,
            age: data.column("age")?,
            weight: data.column("Weight_kg")?,
            coma: data.column("GCS")?,
        })
    }

    /// The patient of this number.
    pub(super) fn draw(&self, seed: u64, number: u64) -> Result<Patient> {
        let mut rng = stream(seed, "patient", number);
        let s = outcome(self.start.iter().copied().enumerate(), rng.random()).min(N_CLUSTERS - 1);
        let mut flag = |share: f64| f64::from(u8::from(rng.random::<f64>() < share));
        let (gender, readmitted, ventilated) =
            (flag(self.gender[s]), flag(self.readmitted[s]), flag(self.ventilated[s]));
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (own, weight, coma) = (normal(), normal(), normal());
        let correlated = |other: f64, rho: f64| rho * own + (1.0 - rho * rho).sqrt() * other;
        let age = self.age[s] + WITHIN[0].sqrt() * own;
        let weight = self.weight[s]
            + WITHIN[1].sqrt() * correlated(weight, AGE_WEIGHT)
            + FEMALE_WEIGHT * (gender - self.gender[s]);
        let coma = self.coma[s]
            + WITHIN[2].sqrt() * correlated(coma, AGE_COMA)
            + VENTILATED_COMA * (ventilated - self.ventilated[s]);
        let in_unit = |z: f64, (mean, spread): (f64, f64)| mean + spread * z;
        let burden = ELIXHAUSER_MEAN * (ELIXHAUSER_BY_AGE * age).exp();
        let frailty = Gamma::new(ELIXHAUSER_SHAPE, 1.0 / ELIXHAUSER_SHAPE).map_or(1.0, |gamma| gamma.sample(&mut rng));
        let elixhauser = Poisson::new(burden * frailty).map_or(burden, |poisson| poisson.sample(&mut rng));
        let mut fields = [
            gender,
            in_unit(age, AGE_YEARS),
            elixhauser,
            readmitted,
            in_unit(weight, WEIGHT_KG),
            in_unit(coma, COMA_SCALE).round(),
            ventilated,
        ];
        fields.iter_mut().zip(&BOUNDS).for_each(|(x, range)| *x = x.clamp(*range.start(), *range.end()));
        Ok(Patient { context: context(&fields)?, fields, start: StateId(s as u32) })
    }
}

/// The fields of a patient as a context.
pub(super) fn context(fields: &[f64; 7]) -> Result<Context> {
    let scaled =
        fields.iter().zip(&BOUNDS).map(|(x, range)| (x - range.start()) / (range.end() - range.start()) + VOICE);
    let scaled: Vec<f64> = scaled.collect();
    let sum: f64 = scaled.iter().sum();
    space().context(scaled.iter().map(|x| x / sum).collect::<Vec<_>>())
}

/// Where contexts live.
pub(super) fn space() -> ContextSpace {
    ContextSpace::Simplex { dimension: CONTEXTS.len() }
}
