//! What the cohort was made with: the simulator, its patients' true rewards, and what policies are worth there.
//!
//! A policy is worth V = E[Σ γᵗ f*(c)·φ(s_t)] from the patient's own start, exactly, by a linear system; an inadmissible action leads to
//! *unknown*. Beside it stands the probability to survive, at discount one, and that of ever taking an inadmissible action.

use super::carried_back::Worth;
use super::columns::Row;
use super::emission::Emission;
use super::practice::Practice;
use super::settings::Synthetic;
use crate::domains::sepsis::{N_ACTIONS, N_CLUSTERS, SURVIVAL};
use crate::domains::{Patient, Sepsis};
use crate::error::Result;
use crate::mapping::RewardMapping;
use crate::model::{Cmdp, StateId};
use crate::plan::{Policy, evaluate};

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

    pub(super) fn emission(&self) -> &Emission {
        &self.emission
    }

    pub(super) fn practice(&self) -> &Practice {
        &self.practice
    }

    /// What a patient can expect of a policy: first one of the actions with the probabilities `first`, then what the policy does.
    pub(super) fn worth(&self, patient: &Patient, wishes: &[f64], policy: &Policy, first: &[f64]) -> Result<Worth> {
        let start = patient.start.index();
        let pairs = self.simulator.pairs();
        let opening = || pairs.of_state(start).zip(first).filter(|(_, share)| **share != 0.0);
        let mdp = self.simulator.shared_mdp()?;
        let reward = mdp.reward(wishes)?;
        let values = evaluate::values(&mdp, &reward, policy)?;
        let gamma = mdp.criterion().discount();
        let value = opening()
            .map(|(pair, share)| share * (reward.at(start, pair) + gamma * mdp.kernel().expect(pair, &values)))
            .sum();

        let mdp = self.survival.shared_mdp()?;
        let event = |s: usize, pair: usize| {
            [f64::from(u8::from(s == SURVIVAL)), f64::from(u8::from(s < N_CLUSTERS && !self.simulator.is_known(pair)))]
        };
        let sums = evaluate::discounted_sums(&mdp, policy, 2, |s, pair, share, sum| {
            sum.iter_mut().zip(event(s, pair)).for_each(|(sum, x)| *sum += share * x);
        })?;
        let mut chances = [0.0; 2];
        for (pair, share) in opening() {
            let own = event(start, pair);
            for j in 0..2 {
                let later: f64 = mdp.kernel().successors(pair).map(|(next, p)| p * sums[2 * next + j]).sum();
                chances[j] += share * (own[j] + later);
            }
        }
        Ok(Worth { value, survival: chances[0], unknown: chances[1] })
    }

    /// The same for a policy that begins as it goes on: a probability per pair.
    pub(super) fn worth_of(&self, patient: &Patient, wishes: &[f64], shares: Vec<f64>) -> Result<Worth> {
        let start = patient.start.index() * N_ACTIONS;
        let first = shares[start..start + N_ACTIONS].to_vec();
        self.worth(patient, wishes, &Policy::stochastic(self.simulator.pairs(), shares)?, &first)
    }
}
