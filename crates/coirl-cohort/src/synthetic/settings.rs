//! Settings of a synthetic cohort.

use super::columns::{COLUMNS, N_COLUMNS};
use super::stay::{FIRST_ID, MOST_STAYS};
use coirl::domains::{Patient, Sepsis};
use coirl::{Error, Result};

/// What clinicians want of treatment, by the patient's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clinician {
    /// f*(c) = cᵀW*: [`Sepsis::linear_mapping`].
    #[default]
    Linear,
    /// One of two rewards, by age: [`Sepsis::threshold_mapping`].
    Threshold,
}

/// A synthetic cohort: how many stays, who treats them, how they are seen.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Synthetic {
    /// Number of stays.
    pub stays: usize,
    /// Seed of patients, courses and measurements. The first stays do not depend on how many there are.
    pub seed: u64,
    /// What clinicians want.
    pub clinician: Clinician,
    /// Standard deviation of measurements around the centroid of their state, in z-scores.
    pub noise: f64,
    /// Share of actions that are drawn from what clinicians do on average, instead of being optimal.
    pub lapses: f64,
    /// Share of measurements left empty.
    pub missing: f64,
    /// γ that clinicians plan with.
    pub discount: f64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            stays: 1000,
            seed: 0,
            clinician: Clinician::Linear,
            noise: 0.1,
            lapses: 0.05,
            missing: 0.0,
            discount: 0.9,
        }
    }
}

impl Synthetic {
    /// The columns of the table, in order.
    pub fn columns() -> &'static [&'static str; N_COLUMNS] {
        &COLUMNS
    }

    /// The patients of stays by their `icustayid`, as read back from a table.
    pub fn patients(&self, ids: &[u64]) -> Result<Vec<Patient>> {
        self.check()?;
        let number = |id: &u64| match id.checked_sub(FIRST_ID) {
            Some(number) if number < self.stays as u64 => Ok(number),
            _ => Err(Error::InvalidSetting {
                name: "icustayid",
                value: id.to_string(),
                reason: "expected a stay of this cohort: 200001 and upwards, one for each of its stays",
            }),
        };
        let numbers: Vec<u64> = ids.iter().map(number).collect::<Result<_>>()?;
        Sepsis::patients_numbered(&numbers, self.seed)
    }

    pub(super) fn check(&self) -> Result<()> {
        let refused = |name, value: String, reason| Err(Error::InvalidSetting { name, value, reason });
        if !(1..=MOST_STAYS).contains(&self.stays) {
            return refused("stays", self.stays.to_string(), "expected a number from 1 to 100 million");
        }
        if !(0.0..f64::INFINITY).contains(&self.noise) {
            return refused(
                "noise",
                self.noise.to_string(),
                "expected a finite number of standard deviations from 0 on",
            );
        }
        if !(0.0..=1.0).contains(&self.lapses) {
            return refused("lapses", self.lapses.to_string(), "expected a share from 0 to 1");
        }
        if !(0.0..1.0).contains(&self.missing) {
            return refused("missing", self.missing.to_string(), "expected a share from 0 to below 1");
        }
        if !(0.0..1.0).contains(&self.discount) {
            return refused("discount", self.discount.to_string(), "expected a number from 0 to below 1");
        }
        Ok(())
    }
}
