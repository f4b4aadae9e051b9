//! What the cohort was made with: the simulator, its patients' true rewards and how states are seen.

use super::columns::Row;
use super::emission::Emission;
use super::practice::Practice;
use super::settings::Synthetic;
use super::test_patients::TestPatients;
use coirl::Result;
use coirl::domains::{Patient, Sepsis};
use coirl::mapping::RewardMapping;
use coirl::model::{Cmdp, StateId};

/// The truth behind a synthetic cohort.
pub struct Truth {
    practice: Practice,
    emission: Emission,
    simulator: Cmdp,
    survival: Cmdp,
}

impl Truth {
    /// The truth behind the cohort of these settings.
    pub fn of(settings: &Synthetic) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            practice: Practice::new(settings)?,
            emission: Emission::new(settings)?,
            simulator: Sepsis { discount: settings.discount, ..Sepsis::default() }.build()?,
            survival: Sepsis::survival()?,
        })
    }

    /// The simulator, in which inadmissible actions lead to *unknown*.
    pub fn simulator(&self) -> &Cmdp {
        &self.simulator
    }

    /// f*: what the clinicians want.
    pub fn mapping(&self) -> &dyn RewardMapping {
        self.practice.mapping()
    }

    /// The simulator state whose centroid is nearest to a row's measurements: as well as anybody can tell who knows the centroids.
    pub fn nearest_state(&self, row: &Row) -> StateId {
        self.emission.nearest(row)
    }

    /// Patients to judge policies by, with what the clinicians and others achieve for them.
    pub fn test_patients(&self, patients: Vec<Patient>) -> Result<TestPatients<'_>> {
        TestPatients::new(self, patients)
    }

    pub(super) fn survival(&self) -> &Cmdp {
        &self.survival
    }

    pub(super) fn emission(&self) -> &Emission {
        &self.emission
    }

    pub(super) fn practice(&self) -> &Practice {
        &self.practice
    }
}
