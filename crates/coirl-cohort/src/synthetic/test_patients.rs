//! Patients to judge policies by: what the clinicians achieve for them, and what is achieved without learning anything. Computed once.

use super::truth::Truth;
use super::worth::Worth;
use coirl::domains::Patient;
use coirl::plan::Policy;
use coirl::{Error, Result};
use rayon::prelude::*;
use std::sync::Arc;

/// Patients whose policies are held at a time.
const WAVE: usize = 256;

/// What a policy can be compared with. Means over the patients.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Yardsticks {
    /// The clinicians without lapses: optimal among the admissible actions.
    pub optimal: Worth,
    /// The clinicians as they are, with lapses: those who wrote the table.
    pub clinicians: Worth,
    /// Any admissible action.
    pub random: Worth,
    /// One policy for everybody, optimal for the mean of the true rewards: below it, telling patients apart does harm.
    pub one_policy: Worth,
}

impl Yardsticks {
    /// (V − V_random) / (V* − V_random): 1 for the clinicians without lapses, 0 for any admissible action.
    pub fn relative(&self, worth: Worth) -> f64 {
        (worth.value - self.random.value) / (self.optimal.value - self.random.value)
    }
}

/// Patients with what treatment can achieve for them.
pub struct TestPatients<'t> {
    truth: &'t Truth,
    patients: Vec<Patient>,
    wishes: Vec<f64>,
    yardsticks: Yardsticks,
}

impl<'t> TestPatients<'t> {
    pub(super) fn new(truth: &'t Truth, patients: Vec<Patient>) -> Result<Self> {
        if patients.is_empty() {
            return Err(Error::shape("patients", "at least 1", 0));
        }
        let practice = truth.practice();
        let k = truth.simulator().n_features();
        let wishes = practice.wishes(&patients)?;
        let treated = |(patient, (wishes, plan)): (&Patient, (&[f64], &Arc<Policy>))| -> Result<[Worth; 2]> {
            let worth = |lapses: f64| truth.worth_of(patient, wishes, practice.shares(plan, lapses)?);
            Ok([worth(0.0)?, worth(practice.lapses())?])
        };
        let mut worths = Vec::with_capacity(patients.len());
        for (patients, wishes) in patients.chunks(WAVE).zip(wishes.chunks(WAVE * k)) {
            let plans = practice.plans(wishes)?;
            let wave = patients.par_iter().zip(wishes.par_chunks_exact(k).zip(&plans));
            worths.extend(wave.map(treated).collect::<Result<Vec<_>>>()?);
        }

        let mut mean = vec![0.0; k];
        wishes.chunks_exact(k).for_each(|row| mean.iter_mut().zip(row).for_each(|(sum, w)| *sum += w));
        mean.iter_mut().for_each(|sum| *sum /= patients.len() as f64);
        let one =
            practice.plans(&mean)?.into_iter().map(|plan| practice.shares(&plan, 0.0)).collect::<Result<Vec<_>>>()?;
        let one = Policy::stochastic(truth.simulator().pairs(), one.concat())?;
        let for_everybody = |policy: &Policy| -> Result<Worth> {
            let outlook = truth.outlook(policy)?;
            let of_patients = patients.iter().zip(wishes.chunks_exact(k));
            Ok(Worth::mean(of_patients.map(|(patient, wishes)| outlook.of(patient, wishes))))
        };
        let yardsticks = Yardsticks {
            optimal: Worth::mean(worths.iter().map(|worth| worth[0])),
            clinicians: Worth::mean(worths.iter().map(|worth| worth[1])),
            random: for_everybody(&truth.simulator().random_policy())?,
            one_policy: for_everybody(&one)?,
        };
        Ok(Self { truth, patients, wishes, yardsticks })
    }

    /// The patients.
    pub fn patients(&self) -> &[Patient] {
        &self.patients
    }

    /// What a policy can be compared with.
    pub fn yardsticks(&self) -> Yardsticks {
        self.yardsticks
    }

    pub(super) fn truth(&self) -> &'t Truth {
        self.truth
    }

    /// What clinicians want for the patient of this place.
    pub(super) fn wishes_of(&self, patient: usize) -> &[f64] {
        let k = self.truth.simulator().n_features();
        &self.wishes[patient * k..(patient + 1) * k]
    }
}
