//! What clinicians would do, estimated from what they did, so that no step is predicted from its own patient.
//!
//! The actions taken in comparable situations by other patients, n_a of n, are drawn towards the other patients' overall shares m:
//!
//! ```text
//! b(a | step) = (n_a + α m_a) / (n + α),        m_a = (N_a + ½) / (N + ½ A).
//! ```
//!
//! Comparable is the same state ([`Comparable::State`]) or the nearest covariates ([`Comparable::Neighbours`]). α is given, or the one of a grid under
//! which the recorded actions are likeliest, each predicted from the others' stays. Every action keeps a probability above zero.

use super::calibration::Calibration;
use super::neighbours::neighbour_counts;
use super::state_counts::state_counts;
use super::{Record, StepPolicy};
use crate::error::{Error, Result};
use rayon::prelude::*;

/// Strengths that are tried.
const STRENGTHS: [f64; 10] = [0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 100.0, 300.0];

/// Which situations of other patients a step is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Comparable {
    /// Those in the same state.
    State,
    /// Those with the nearest covariates, each covariate scaled to deviation one.
    Neighbours {
        /// How many.
        k: usize,
    },
}

/// Settings of the estimate.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BehaviourSettings {
    /// What a step is compared with.
    pub comparable: Comparable,
    /// α; none for the likeliest of a grid from 0.1 to 300.
    pub strength: Option<f64>,
}

impl Default for BehaviourSettings {
    fn default() -> Self {
        Self { comparable: Comparable::State, strength: None }
    }
}

/// A behaviour policy at the steps of a record, with how far it can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    policy: StepPolicy,
    strength: Option<f64>,
    calibration: Calibration,
}

impl Behaviour {
    /// Estimates it from the record.
    pub fn estimate(record: &Record, settings: &BehaviourSettings) -> Result<Self> {
        if let Some(strength) = settings.strength {
            crate::error::check_positive("strength", strength)?;
        }
        if record.n_patients() < 2 {
            return Err(Error::shape(
                "record",
                "at least two patients, to predict one from the others",
                record.n_patients(),
            ));
        }
        let counts = match settings.comparable {
            Comparable::State => state_counts(record),
            Comparable::Neighbours { k } => neighbour_counts(record, k)?,
        };
        let overall = overall_shares(record);
        let strength = settings.strength.unwrap_or_else(|| likeliest_strength(record, &counts, &overall));
        let (n, patients) = (record.n_actions(), record.patient_of_steps());
        let weight =
            |step: usize, action: usize| counts[step * n + action] + strength * overall[patients[step] * n + action];
        let policy = StepPolicy::by_weights(record, weight);
        let calibration = Calibration::of(record, &policy, &overall);
        Ok(Self { policy, strength: Some(strength), calibration })
    }

    /// One that is known, such as a simulator's. Every recorded action must have a probability above zero.
    pub fn known(record: &Record, policy: StepPolicy) -> Result<Self> {
        policy.check(record)?;
        if let Some(step) = (0..record.n_steps()).find(|&step| !(policy.recorded(record, step) > 0.0)) {
            return Err(Error::RecordedActionImpossible { step, action: record.actions()[step] as usize });
        }
        let calibration = Calibration::of(record, &policy, &overall_shares(record));
        Ok(Self { policy, strength: None, calibration })
    }

    /// Its probabilities.
    pub fn policy(&self) -> &StepPolicy {
        &self.policy
    }

    /// α that was used; nothing for a known policy.
    pub fn strength(&self) -> Option<f64> {
        self.strength
    }

    /// How well its probabilities foresee the recorded actions.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}

/// The other patients' shares of actions, row-major [patient, action].
fn overall_shares(record: &Record) -> Vec<f64> {
    let n = record.n_actions();
    let mut own = vec![0.0; record.n_patients() * n];
    let mut all = vec![0.0; n];
    for (patient, &action) in record.patient_of_steps().into_iter().zip(record.actions()) {
        own[patient * n + action as usize] += 1.0;
        all[action as usize] += 1.0;
    }
    for row in own.chunks_exact_mut(n) {
        let steps: f64 = record.n_steps() as f64 - row.iter().sum::<f64>();
        row.iter_mut().zip(&all).for_each(|(own, all)| *own = (all - *own + 0.5) / (steps + 0.5 * n as f64));
    }
    own
}

fn likeliest_strength(record: &Record, counts: &[f64], overall: &[f64]) -> f64 {
    let (n, patients) = (record.n_actions(), record.patient_of_steps());
    let totals: Vec<f64> = counts.chunks_exact(n).map(|row| row.iter().sum()).collect();
    let log_likelihood = |&strength: &f64| -> f64 {
        let of_step = |(step, &action): (usize, &u32)| {
            let taken = counts[step * n + action as usize];
            let share = overall[patients[step] * n + action as usize];
            ((taken + strength * share) / (totals[step] + strength)).ln()
        };
        record.actions().iter().enumerate().map(of_step).sum()
    };
    let scores: Vec<f64> = STRENGTHS.par_iter().map(log_likelihood).collect();
    let best = (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
    STRENGTHS[best]
}
