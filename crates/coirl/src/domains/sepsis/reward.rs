//! What states look like and what an expert wants of them.
//!
//! Features are the measurements of a cluster, clipped to three standard deviations and divided by three, turned so that higher is
//! healthier, and the outcome: −½ for death, ½ for survival. The *unknown* state has −1 in every feature.

use super::data::{DEATH, Data, N_STATES, SURVIVAL, UNKNOWN};
use super::patients::CONTEXTS;
use crate::error::Result;
use crate::mapping::LinearMapping;

/// Measurements with the sign that makes higher healthier.
const MEASUREMENTS: [(&str, f64); 41] = [
    ("max_dose_vaso", -1.0),
    ("HR", -1.0),
    ("SysBP", 1.0),
    ("MeanBP", 1.0),
    ("DiaBP", 1.0),
    ("RR", -1.0),
    ("Temp_C", 1.0),
    ("FiO2_1", -1.0),
    ("Potassium", -1.0),
    ("Sodium", -1.0),
    ("Chloride", -1.0),
    ("Glucose", -1.0),
    ("Magnesium", -1.0),
    ("Calcium", 1.0),
    ("Hb", 1.0),
    ("WBC_count", -1.0),
    ("Platelets_count", 1.0),
    ("PTT", -1.0),
    ("PT", -1.0),
    ("Arterial_pH", 1.0),
    ("paO2", 1.0),
    ("paCO2", -1.0),
    ("Arterial_BE", 1.0),
    ("HCO3", 1.0),
    ("Arterial_lactate", -1.0),
    ("SOFA", -1.0),
    ("SIRS", -1.0),
    ("Shock_Index", -1.0),
    ("PaO2_FiO2", 1.0),
    ("cumulated_balance", -1.0),
    ("SpO2", 1.0),
    ("BUN", -1.0),
    ("Creatinine", -1.0),
    ("SGOT", -1.0),
    ("SGPT", -1.0),
    ("Total_bili", -1.0),
    ("INR", -1.0),
    ("input_total", -1.0),
    ("input_4hourly", -1.0),
    ("output_total", 1.0),
    ("output_4hourly", 1.0),
];
pub(super) const N_FEATURES: usize = MEASUREMENTS.len() + 1;
const OUTCOME: &str = "outcome";

/// Standard deviations beyond which a measurement is clipped.
const CLIP: f64 = 3.0;

/// W* by context field, in ninths: what an expert minds more the larger the field is.
const TRUTH: [&[(&str, i32)]; 7] = [
    &[("Hb", 8), ("Platelets_count", 4), ("SOFA", 3), ("input_4hourly", -6), (OUTCOME, 3)],
    &[
        ("max_dose_vaso", -6),
        ("MeanBP", 9),
        ("Shock_Index", 5),
        ("cumulated_balance", 4),
        ("input_4hourly", 9),
        (OUTCOME, 3),
    ],
    &[("cumulated_balance", 9), ("BUN", 4), ("Creatinine", 5), ("input_4hourly", 9), (OUTCOME, 3)],
    &[("WBC_count", 4), ("Arterial_lactate", 8), ("SOFA", 7), ("input_total", -5), ("input_4hourly", -9), (OUTCOME, 3)],
    &[
        ("Glucose", 6),
        ("cumulated_balance", -6),
        ("input_4hourly", -9),
        ("output_total", 4),
        ("output_4hourly", 9),
        (OUTCOME, 3),
    ],
    &[("max_dose_vaso", 9), ("HR", 5), ("RR", 4), (OUTCOME, 3)],
    &[
        ("max_dose_vaso", -5),
        ("FiO2_1", 9),
        ("paCO2", 3),
        ("PaO2_FiO2", 7),
        ("cumulated_balance", 9),
        ("SpO2", 3),
        ("input_4hourly", 9),
        (OUTCOME, 3),
    ],
];

/// Names of the features.
pub(super) fn names() -> Vec<String> {
    MEASUREMENTS.iter().map(|entry| entry.0).chain([OUTCOME]).map(str::to_owned).collect()
}

/// φ, row-major by state.
pub(super) fn features(data: &Data) -> Result<Vec<f64>> {
    let mut features = vec![0.0; N_STATES * N_FEATURES];
    for (j, (name, sign)) in MEASUREMENTS.iter().enumerate() {
        let mut column = data.column(name)?;
        match *name {
            // The published column is twice its z-score.
            "input_4hourly" => column.iter_mut().for_each(|x| *x /= 2.0),
            // The published column is the dose less one half; few get any, and some a great deal.
            "max_dose_vaso" => {
                column.iter_mut().for_each(|x| *x = ((*x + 0.5).max(0.0) + 0.1).ln());
                standardise(&mut column);
            }
            _ => {}
        }
        for (s, x) in column.iter().enumerate() {
            features[s * N_FEATURES + j] = sign * x.clamp(-CLIP, CLIP) / CLIP;
        }
    }
    features[DEATH * N_FEATURES + MEASUREMENTS.len()] = -0.5;
    features[SURVIVAL * N_FEATURES + MEASUREMENTS.len()] = 0.5;
    features[UNKNOWN * N_FEATURES..].fill(-1.0);
    Ok(features)
}

/// Mean zero and variance one over the clusters.
pub(super) fn standardise(column: &mut [f64]) {
    let n = column.len() as f64;
    let mean = column.iter().sum::<f64>() / n;
    let size = (column.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
    column.iter_mut().for_each(|x| *x = (*x - mean) / size);
}

/// W*, 7 × 42.
pub(super) fn truth() -> LinearMapping {
    let names = names();
    let mut values = vec![0.0; CONTEXTS.len() * N_FEATURES];
    for (row, entries) in values.chunks_exact_mut(N_FEATURES).zip(TRUTH) {
        for (w, name) in row.iter_mut().zip(&names) {
            let ninths = entries.iter().find(|entry| entry.0 == name).map_or(0, |entry| entry.1);
            *w = f64::from(ninths) / 9.0;
        }
    }
    LinearMapping::from_checked(N_FEATURES, values)
}
