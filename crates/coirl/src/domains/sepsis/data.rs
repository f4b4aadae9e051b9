//! The shipped part of ICU-Sepsis: the admissible rows of its kernel, its start distribution, the clinicians' policy and the
//! cluster centroids. `cargo xtask sepsis-data` makes the file again from the published package and compares.

use crate::error::{Error, Result};
use safetensors::{Dtype, SafeTensors};
use std::sync::OnceLock;

const FILE: &[u8] = include_bytes!("../../../data/sepsis/icu-sepsis-2.0.1.safetensors");
const NAME: &str = "icu-sepsis-2.0.1.safetensors";

/// States in which somebody acts.
pub const N_CLUSTERS: usize = 713;
/// The state of those who died.
pub const DEATH: usize = 713;
/// The state of those who left alive.
pub const SURVIVAL: usize = 714;
/// Where inadmissible actions lead in the simulator; the end of an episode in ICU-Sepsis itself.
pub(super) const UNKNOWN: usize = 715;
pub(super) const N_STATES: usize = 716;
/// Actions: five levels of fluids times five of vasopressors.
pub const N_ACTIONS: usize = 25;

/// The columns of a centroid, in the order of the file.
pub(super) const COLUMNS: [&str; 47] = [
    "gender",
    "mechvent",
    "max_dose_vaso",
    "re_admission",
    "age",
    "Weight_kg",
    "GCS",
    "HR",
    "SysBP",
    "MeanBP",
    "DiaBP",
    "RR",
    "Temp_C",
    "FiO2_1",
    "Potassium",
    "Sodium",
    "Chloride",
    "Glucose",
    "Magnesium",
    "Calcium",
    "Hb",
    "WBC_count",
    "Platelets_count",
    "PTT",
    "PT",
    "Arterial_pH",
    "paO2",
    "paCO2",
    "Arterial_BE",
    "HCO3",
    "Arterial_lactate",
    "SOFA",
    "SIRS",
    "Shock_Index",
    "PaO2_FiO2",
    "cumulated_balance",
    "SpO2",
    "BUN",
    "Creatinine",
    "SGOT",
    "SGPT",
    "Total_bili",
    "INR",
    "input_total",
    "input_4hourly",
    "output_total",
    "output_4hourly",
];

/// What the file holds.
pub(super) struct Data {
    /// Whether an action is admissible, `[cluster, action]`.
    pub(super) admissible: Vec<bool>,
    /// Rows of the admissible pairs, in order.
    row_start: Vec<usize>,
    next: Vec<u16>,
    probability: Vec<f64>,
    /// Where episodes start, by cluster.
    pub(super) start: Vec<f64>,
    /// What clinicians do, `[cluster, action]`; partly inadmissible.
    pub(super) clinicians: Vec<f64>,
    centroids: Vec<f64>,
}

impl Data {
    /// The shipped data, read once.
    pub(super) fn shipped() -> Result<&'static Self> {
        static READ: OnceLock<std::result::Result<Data, String>> = OnceLock::new();
        let read = READ.get_or_init(|| Self::read(FILE));
        read.as_ref().map_err(|reason| Error::Format { path: NAME.into(), reason: reason.clone() })
    }

    fn read(bytes: &[u8]) -> std::result::Result<Self, String> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let tensor = |name: &str, kind: Dtype| {
            let view = file.tensor(name).map_err(|error| error.to_string())?;
            if view.dtype() == kind { Ok(view.data()) } else { Err(format!("{name} has another type of number")) }
        };
        let numbers = |name: &str, count: usize| {
            let values: Vec<f64> = little_endian(tensor(name, Dtype::F64)?).map(f64::from_le_bytes).collect();
            if values.len() == count { Ok(values) } else { Err(format!("{name} has {} numbers", values.len())) }
        };
        let next: Vec<u16> = little_endian(tensor("next", Dtype::U16)?).map(u16::from_le_bytes).collect();
        let row_start = little_endian(tensor("row_start", Dtype::U32)?).map(u32::from_le_bytes);
        let row_start: Vec<usize> = row_start.map(|x| x as usize).collect();
        let admissible: Vec<bool> = tensor("admissible", Dtype::U8)?.iter().map(|&x| x == 1).collect();
        let n_rows = admissible.iter().filter(|x| **x).count();
        let walks = row_start.is_sorted() && row_start.first() == Some(&0) && row_start.last() == Some(&next.len());
        if admissible.len() != N_CLUSTERS * N_ACTIONS || row_start.len() != n_rows + 1 || !walks {
            return Err("its rows do not fit its admissible pairs".into());
        }
        Ok(Self {
            probability: numbers("probability", next.len())?,
            start: numbers("start", N_CLUSTERS)?,
            clinicians: numbers("clinicians", N_CLUSTERS * N_ACTIONS)?,
            centroids: numbers("centroids", N_CLUSTERS * COLUMNS.len())?,
            admissible,
            row_start,
            next,
        })
    }

    /// The rows of the admissible pairs, in order of states and actions: successors with their probabilities.
    pub(super) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, f64)> + Clone + '_> + '_ {
        self.row_start.windows(2).map(|ends| {
            let entries = ends[0]..ends[1];
            let next = self.next[entries.clone()].iter().map(|&s| usize::from(s));
            next.zip(self.probability[entries].iter().copied())
        })
    }

    /// A column of the centroids, by cluster.
    pub(super) fn column(&self, name: &str) -> Result<Vec<f64>> {
        let at = COLUMNS.iter().position(|column| *column == name);
        let at = at.ok_or_else(|| Error::Format { path: NAME.into(), reason: format!("has no column {name}") })?;
        Ok(self.centroids.iter().skip(at).step_by(COLUMNS.len()).copied().collect())
    }
}

fn little_endian<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|chunk| {
        let mut word = [0; N];
        word.copy_from_slice(chunk);
        word
    })
}
