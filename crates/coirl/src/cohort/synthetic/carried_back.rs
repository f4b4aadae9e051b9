//! What a policy of fitted states is worth in the simulator.
//!
//! Whoever fits states to the table acts on what is seen: in simulator state s with π(a | s) = Σ_k P(k | s) π(a | k), where P(k | s) is the
//! [`Assignment`]. Rows do not depend on the past given the state, so this is a policy of the simulator, and its value is exact but for
//! the draws behind P(k | s). One linear system for the value and two for the chances, per patient and policy.

use super::assignment::Assignment;
use super::truth::Truth;
use crate::domains::Patient;
use crate::domains::sepsis::{N_ACTIONS, N_CLUSTERS};
use crate::error::{Error, Result, check_length};
use crate::model::{ActionId, StateId};
use crate::plan::Policy;
use rayon::prelude::*;
use std::sync::Arc;

/// Patients whose policies are held at a time.
const WAVE: usize = 256;
/// How far the probabilities of a fitted policy may be from adding up to one.
const TOLERANCE: f64 = 1e-9;

/// What to do in every fitted state, in the simulator's 25 actions `5·fluid + vaso`.
#[derive(Debug, Clone, PartialEq)]
pub enum FittedPolicy {
    /// One action per fitted state.
    Actions(Vec<ActionId>),
    /// 25 probabilities per fitted state, row-major.
    Probabilities(Vec<f64>),
}

impl FittedPolicy {
    /// Refuses what is no policy for so many fitted states.
    fn check(&self, n_fitted: usize) -> Result<()> {
        let short = |found: usize| Error::shape("fitted policy (states)", format!("at least {n_fitted}"), found);
        match self {
            FittedPolicy::Actions(actions) if actions.len() < n_fitted => Err(short(actions.len())),
            FittedPolicy::Actions(actions) => match actions.iter().position(|action| action.index() >= N_ACTIONS) {
                Some(state) => Err(Error::ActionNotAdmissible { state, action: i64::from(actions[state].0) }),
                None => Ok(()),
            },
            FittedPolicy::Probabilities(shares) if shares.len() / N_ACTIONS < n_fitted => {
                Err(short(shares.len() / N_ACTIONS))
            }
            FittedPolicy::Probabilities(shares) => {
                for (state, row) in shares.chunks(N_ACTIONS).enumerate() {
                    let sum: f64 = row.iter().sum();
                    if !((sum - 1.0).abs() <= TOLERANCE) || row.iter().any(|p| !(*p >= 0.0)) {
                        return Err(Error::PolicyNotStochastic { state, sum });
                    }
                }
                Ok(())
            }
        }
    }

    /// Σ_k P(k) π(a | k).
    fn mixed(&self, shares: &[(usize, f64)]) -> [f64; N_ACTIONS] {
        let mut actions = [0.0; N_ACTIONS];
        for &(k, share) in shares {
            match self {
                FittedPolicy::Actions(of_state) => actions[of_state[k].index()] += share,
                FittedPolicy::Probabilities(of_state) => {
                    let row = &of_state[k * N_ACTIONS..(k + 1) * N_ACTIONS];
                    actions.iter_mut().zip(row).for_each(|(sum, p)| *sum += share * p);
                }
            }
        }
        actions
    }
}

/// What patients can expect, on average.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Worth {
    /// Discounted value under the true rewards.
    pub value: f64,
    /// Probability to survive, at discount one.
    pub survival: f64,
    /// Probability that an inadmissible action, whose consequences nobody knows, is ever taken.
    pub unknown: f64,
}

impl Worth {
    fn mean(all: impl ExactSizeIterator<Item = Self>) -> Self {
        let n = all.len() as f64;
        let sum = all.fold(Self::default(), |sum, worth| Self {
            value: sum.value + worth.value,
            survival: sum.survival + worth.survival,
            unknown: sum.unknown + worth.unknown,
        });
        Self { value: sum.value / n, survival: sum.survival / n, unknown: sum.unknown / n }
    }
}

/// A policy carried back to the simulator, beside what it can be compared with. Means over the patients.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CarriedBack {
    /// The policy.
    pub policy: Worth,
    /// The clinicians without lapses: optimal among the admissible actions.
    pub optimal: Worth,
    /// The clinicians as they are, with lapses: those who wrote the table.
    pub clinicians: Worth,
    /// Any admissible action.
    pub random: Worth,
    /// One policy for everybody, optimal for the mean of the true rewards: below it, telling patients apart does harm.
    pub one_policy: Worth,
}

impl CarriedBack {
    /// (V − V_random) / (V* − V_random): 1 for the clinicians without lapses, 0 for any admissible action.
    pub fn relative(&self, worth: Worth) -> f64 {
        (worth.value - self.random.value) / (self.optimal.value - self.random.value)
    }

    /// The same of the policy.
    pub fn relative_value(&self) -> f64 {
        self.relative(self.policy)
    }
}

impl Truth {
    /// Carries a policy of fitted states back. `policy` gives it for the patient of this place in the list, the list that the assignment was made for.
    pub fn carried_back(
        &self,
        patients: &[Patient],
        assignment: &Assignment,
        policy: impl Fn(usize) -> Result<FittedPolicy> + Sync,
    ) -> Result<CarriedBack> {
        if patients.is_empty() {
            return Err(Error::shape("patients", "at least 1", 0));
        }
        check_length("patients of the assignment", patients.len(), assignment.n_patients())?;
        let practice = self.practice();
        let k = self.simulator().n_features();
        let wishes = practice.wishes(patients)?;
        let mut mean = vec![0.0; k];
        wishes.chunks_exact(k).for_each(|row| mean.iter_mut().zip(row).for_each(|(sum, w)| *sum += w));
        mean.iter_mut().for_each(|sum| *sum /= patients.len() as f64);
        let one = match practice.plans(&mean)?.first() {
            Some(plan) => practice.shares(plan, 0.0)?,
            None => return Err(Error::shape("plans of the mean reward", 1, 0)),
        };
        let Policy::Stochastic(random) = self.simulator().random_policy() else {
            return Err(Error::shape("random policy", "a probability per pair", "another policy"));
        };
        let compared = |i: usize, plan: &Arc<Policy>| -> Result<[Worth; 5]> {
            let (patient, wishes) = (&patients[i], &wishes[i * k..(i + 1) * k]);
            let fitted = policy(i)?;
            fitted.check(assignment.n_fitted())?;
            let (carried, first) = (self.carried(&fitted, assignment), fitted.mixed(assignment.of_admission(i)));
            Ok([
                self.worth(patient, wishes, &carried, &first)?,
                self.worth_of(patient, wishes, practice.shares(plan, 0.0)?)?,
                self.worth_of(patient, wishes, practice.shares(plan, practice.lapses())?)?,
                self.worth_of(patient, wishes, random.clone())?,
                self.worth_of(patient, wishes, one.clone())?,
            ])
        };
        let mut worths = Vec::with_capacity(patients.len());
        for first in (0..patients.len()).step_by(WAVE) {
            let last = patients.len().min(first + WAVE);
            let plans = practice.plans(&wishes[first * k..last * k])?;
            let wave = plans.par_iter().enumerate().map(|(i, plan)| compared(first + i, plan));
            worths.extend(wave.collect::<Result<Vec<_>>>()?);
        }
        let mean = |j: usize| Worth::mean(worths.iter().map(|of_patient| of_patient[j]));
        Ok(CarriedBack { policy: mean(0), optimal: mean(1), clinicians: mean(2), random: mean(3), one_policy: mean(4) })
    }

    /// π(a | s) in every pair of the simulator; where nobody acts any more, any action.
    fn carried(&self, fitted: &FittedPolicy, assignment: &Assignment) -> Policy {
        let mut shares = vec![0.0; self.simulator().pairs().len()];
        for (s, row) in shares.chunks_exact_mut(N_ACTIONS).enumerate() {
            if s < N_CLUSTERS {
                row.copy_from_slice(&fitted.mixed(assignment.of_state(StateId(s as u32))));
            } else {
                row[0] = 1.0;
            }
        }
        Policy::Stochastic(shares)
    }
}
