//! What a policy of fitted states is worth in the simulator.
//!
//! Whoever fits states to the table acts on what is seen: in simulator state s with π(a | s) = Σ_k P(k | s) π(a | k), where P(k | s) is the
//! [`Assignment`]. Rows do not depend on the past given the state, so this is a policy of the simulator, and its value is exact but for
//! the draws behind P(k | s). Three linear systems per patient.

use super::assignment::Assignment;
use super::test_patients::{TestPatients, Yardsticks};
use super::worth::Worth;
use coirl::check::check_length;
use coirl::domains::Patient;
use coirl::domains::sepsis::{N_ACTIONS, N_CLUSTERS};
use coirl::model::{ActionId, StateId};
use coirl::plan::Policy;
use coirl::{Error, Result};
use rayon::prelude::*;

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
    pub(super) fn check(&self, n_fitted: usize) -> Result<()> {
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
    pub(super) fn mixed(&self, shares: &[(usize, f64)]) -> [f64; N_ACTIONS] {
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

/// A policy carried back to the simulator, beside what it can be compared with. Means over the patients.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CarriedBack {
    /// The policy.
    pub policy: Worth,
    /// The others.
    pub yardsticks: Yardsticks,
}

impl CarriedBack {
    /// (V − V_random) / (V* − V_random) of the policy.
    pub fn relative_value(&self) -> f64 {
        self.yardsticks.relative(self.policy)
    }
}

impl TestPatients<'_> {
    /// Carries a policy of fitted states back. `policy` gives it for the patient of this place in the list.
    pub fn carried_back(
        &self,
        assignment: &Assignment,
        policy: impl Fn(usize) -> Result<FittedPolicy> + Sync,
    ) -> Result<CarriedBack> {
        check_length("patients of the assignment", self.patients().len(), assignment.n_patients())?;
        let worth = |(i, patient): (usize, &Patient)| -> Result<Worth> {
            let fitted = policy(i)?;
            fitted.check(assignment.n_fitted())?;
            let first = fitted.mixed(assignment.of_admission(i));
            self.truth().worth(patient, self.wishes_of(i), &self.carried(&fitted, assignment), &first)
        };
        let worths: Vec<Worth> = self.patients().par_iter().enumerate().map(worth).collect::<Result<_>>()?;
        Ok(CarriedBack { policy: Worth::mean(worths.into_iter()), yardsticks: self.yardsticks() })
    }

    /// π(a | s) in every pair of the simulator; where nobody acts any more, any action.
    fn carried(&self, fitted: &FittedPolicy, assignment: &Assignment) -> Policy {
        let mut shares = vec![0.0; self.truth().simulator().pairs().len()];
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
