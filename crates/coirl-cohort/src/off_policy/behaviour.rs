//! What clinicians would do, estimated from what they did, cross-fitted: patients are dealt into folds, and a step is predicted from the
//! other folds.
//!
//! The actions taken there in comparable situations, n_a of n, are drawn towards the overall shares m of the other folds:
//!
//! ```text
//! b(a | step) = (n_a + α m_a) / (n + α),        m_a = (N_a + ½) / (N + ½ A).
//! ```
//!
//! Comparable is the same state ([`Comparable::State`]) or the nearest covariates ([`Comparable::Neighbours`]). α is given, or the one of a grid under
//! which the recorded actions are likeliest, each predicted from the other folds. Every action keeps a probability above zero. Folds
//! instead of leaving out one patient at a time: there the predictions of a state would differ by the very action that was taken, which
//! sorts taken and other actions into different bins of the calibration table.

use super::calibration::Calibration;
use super::neighbours::neighbour_counts;
use super::state_counts::state_counts;
use super::{Record, StepPolicy};
use crate::patients::folds;
use coirl::check::LEAST_STRENGTH;
use coirl::{Error, Result};
use rayon::prelude::*;

/// Strengths that are tried.
const STRENGTHS: [f64; 10] = [0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 100.0, 300.0];

/// Which situations of the other folds' patients a step is compared with.
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
    /// Folds of patients, at least 2; as many as there are patients where there are fewer.
    pub folds: usize,
    /// Seed that deals the folds.
    pub seed: u64,
}

impl Default for BehaviourSettings {
    fn default() -> Self {
        Self { comparable: Comparable::State, strength: None, folds: 10, seed: 0 }
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
            coirl::check::check_positive("strength", strength)?;
            if strength < LEAST_STRENGTH {
                let reason = "expected at least 1e-200: less would vanish between zero and the smallest number";
                return Err(Error::InvalidSetting { name: "strength", value: strength.to_string(), reason });
            }
        }
        if settings.folds < 2 {
            let reason = "expected at least 2, to predict each from the others";
            return Err(Error::InvalidSetting { name: "folds", value: settings.folds.to_string(), reason });
        }
        if record.n_patients() < 2 {
            return Err(Error::shape(
                "patients of the record",
                "at least 2, to predict one from the others",
                record.n_patients(),
            ));
        }
        let fold_of_steps = Self::fold_of_steps(record, settings);
        let counts = match settings.comparable {
            Comparable::State => state_counts(record, &fold_of_steps),
            Comparable::Neighbours { k } => neighbour_counts(record, &fold_of_steps, k)?,
        };
        let overall = overall_shares(record, &fold_of_steps);
        let strength = settings.strength.unwrap_or_else(|| likeliest_strength(record, &counts, &overall));
        let n = record.n_actions();
        let weight = |step: usize, action: usize| counts[step * n + action] + strength * overall[step * n + action];
        let policy = StepPolicy::by_weights(record, weight);
        let calibration = Calibration::of(record, &policy, &overall);
        Ok(Self { policy, strength: Some(strength), calibration })
    }

    fn fold_of_steps(record: &Record, settings: &BehaviourSettings) -> Vec<usize> {
        let fold = folds(record.n_patients(), settings.folds.min(record.n_patients()), settings.seed);
        record.patient_of_steps().into_iter().map(|patient| fold[patient]).collect()
    }

    /// One that is known, such as a simulator's. Every recorded action must have a probability above zero.
    pub fn known(record: &Record, policy: StepPolicy) -> Result<Self> {
        policy.check(record)?;
        if let Some(step) = (0..record.n_steps()).find(|&step| !(policy.recorded(record, step) > 0.0)) {
            return Err(Error::RecordedActionImpossible { step, action: record.actions()[step] as usize });
        }
        let fold_of_steps = Self::fold_of_steps(record, &BehaviourSettings::default());
        let calibration = Calibration::of(record, &policy, &overall_shares(record, &fold_of_steps));
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

/// The other folds' shares of actions, row-major [step, action].
fn overall_shares(record: &Record, fold_of_steps: &[usize]) -> Vec<f64> {
    let n = record.n_actions();
    let n_folds = fold_of_steps.iter().max().map_or(0, |last| last + 1);
    let mut rows = vec![0.0; n_folds * n];
    let mut all = vec![0.0; n];
    for (fold, &action) in fold_of_steps.iter().zip(record.actions()) {
        rows[fold * n + action as usize] += 1.0;
        all[action as usize] += 1.0;
    }
    for row in rows.chunks_exact_mut(n) {
        let steps: f64 = record.n_steps() as f64 - row.iter().sum::<f64>();
        row.iter_mut().zip(&all).for_each(|(own, all)| *own = (all - *own + 0.5) / (steps + 0.5 * n as f64));
    }
    fold_of_steps.iter().flat_map(|fold| &rows[fold * n..(fold + 1) * n]).copied().collect()
}

fn likeliest_strength(record: &Record, counts: &[f64], overall: &[f64]) -> f64 {
    let n = record.n_actions();
    let totals: Vec<f64> = counts.chunks_exact(n).map(|row| row.iter().sum()).collect();
    let log_likelihood = |&strength: &f64| -> f64 {
        let of_step = |(step, &action): (usize, &u32)| {
            let taken = counts[step * n + action as usize];
            ((taken + strength * overall[step * n + action as usize]) / (totals[step] + strength)).ln()
        };
        record.actions().iter().enumerate().map(of_step).sum()
    };
    let scores: Vec<f64> = STRENGTHS.par_iter().map(log_likelihood).collect();
    let best = (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
    STRENGTHS[best]
}
