//! The columns of the table: the schema of the AI Clinician's cohort (Komorowski et al. 2018), in its order.

/// Number of columns.
pub const N_COLUMNS: usize = 59;

/// A row of the table; NaN where a cell is empty.
pub type Row = [f64; N_COLUMNS];

/// Their names.
pub(super) const COLUMNS: [&str; N_COLUMNS] = [
    "bloc",
    "icustayid",
    "charttime",
    "gender",
    "age",
    "elixhauser",
    "re_admission",
    "died_in_hosp",
    "died_within_48h_of_out_time",
    "mortality_90d",
    "delay_end_of_record_and_discharge_or_death",
    "Weight_kg",
    "GCS",
    "HR",
    "SysBP",
    "MeanBP",
    "DiaBP",
    "RR",
    "SpO2",
    "Temp_C",
    "FiO2_1",
    "Potassium",
    "Sodium",
    "Chloride",
    "Glucose",
    "BUN",
    "Creatinine",
    "Magnesium",
    "Calcium",
    "Ionised_Ca",
    "CO2_mEqL",
    "SGOT",
    "SGPT",
    "Total_bili",
    "Albumin",
    "Hb",
    "WBC_count",
    "Platelets_count",
    "PTT",
    "PT",
    "INR",
    "Arterial_pH",
    "paO2",
    "paCO2",
    "Arterial_BE",
    "Arterial_lactate",
    "HCO3",
    "mechvent",
    "Shock_Index",
    "PaO2_FiO2",
    "median_dose_vaso",
    "max_dose_vaso",
    "input_total",
    "input_4hourly",
    "output_total",
    "output_4hourly",
    "cumulated_balance",
    "SOFA",
    "SIRS",
];

pub(super) const BLOC: usize = at("bloc");
pub(super) const STAY: usize = at("icustayid");
pub(super) const TIME: usize = at("charttime");
pub(super) const GENDER: usize = at("gender");
pub(super) const AGE_DAYS: usize = at("age");
pub(super) const ELIXHAUSER: usize = at("elixhauser");
pub(super) const READMISSION: usize = at("re_admission");
pub(super) const DIED_IN_HOSPITAL: usize = at("died_in_hosp");
pub(super) const DIED_WITHIN_48H: usize = at("died_within_48h_of_out_time");
pub(super) const DIED_WITHIN_90D: usize = at("mortality_90d");
pub(super) const DELAY_HOURS: usize = at("delay_end_of_record_and_discharge_or_death");
pub(super) const WEIGHT_KG: usize = at("Weight_kg");
pub(super) const COMA_SCALE: usize = at("GCS");
pub(super) const VENTILATED: usize = at("mechvent");
pub(super) const IONISED_CALCIUM: usize = at("Ionised_Ca");
pub(super) const TOTAL_CARBON_DIOXIDE: usize = at("CO2_mEqL");
pub(super) const ALBUMIN: usize = at("Albumin");
pub(super) const CARBON_DIOXIDE_PRESSURE: usize = at("paCO2");
pub(super) const BICARBONATE: usize = at("HCO3");
pub(super) const MEDIAN_VASOPRESSOR: usize = at("median_dose_vaso");
pub(super) const MOST_VASOPRESSOR: usize = at("max_dose_vaso");
pub(super) const FLUIDS: usize = at("input_4hourly");

/// The place of a column. Evaluated while compiling: a name that is not there does not compile.
pub(super) const fn at(name: &str) -> usize {
    let mut column = 0;
    while !same(COLUMNS[column].as_bytes(), name.as_bytes()) {
        column += 1;
    }
    column
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
