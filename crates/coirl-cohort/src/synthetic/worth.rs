//! What policies are worth in the simulator.
//!
//! A policy is worth V = E[Σ γᵗ f*(c)·φ(s_t)] from the patient's own start; an inadmissible action leads to *unknown*. Beside it stand the
//! probability to survive, at discount one, and that of ever taking an inadmissible action. All three are exact: one linear system each,
//! or for a policy that everybody gets, one for each feature, whatever the number of patients.

use super::truth::Truth;
use coirl::Result;
use coirl::domains::Patient;
use coirl::domains::sepsis::{N_ACTIONS, N_CLUSTERS, SURVIVAL};
use coirl::plan::{Policy, evaluate};

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
    /// The mean, summed in order.
    pub(super) fn mean(all: impl ExactSizeIterator<Item = Self>) -> Self {
        let n = all.len() as f64;
        let sum = all.fold(Self::default(), |sum, worth| Self {
            value: sum.value + worth.value,
            survival: sum.survival + worth.survival,
            unknown: sum.unknown + worth.unknown,
        });
        Self { value: sum.value / n, survival: sum.survival / n, unknown: sum.unknown / n }
    }
}

/// Events that are counted until the end of a stay: survival, and an inadmissible action.
const N_EVENTS: usize = 2;

/// A policy with the same for everybody: feature expectations and chances from every state.
pub(super) struct Outlook {
    successor_features: Vec<f64>,
    chances: Vec<f64>,
}

impl Outlook {
    /// What a patient can expect.
    pub(super) fn of(&self, patient: &Patient, wishes: &[f64]) -> Worth {
        let (start, k) = (patient.start.index(), wishes.len());
        let features = &self.successor_features[start * k..(start + 1) * k];
        Worth {
            value: features.iter().zip(wishes).map(|(mu, w)| mu * w).sum(),
            survival: self.chances[N_EVENTS * start],
            unknown: self.chances[N_EVENTS * start + 1],
        }
    }
}

impl Truth {
    /// What everybody can expect of a policy.
    pub(super) fn outlook(&self, policy: &Policy) -> Result<Outlook> {
        let successor_features = evaluate::successor_features(&self.simulator().shared_mdp()?, policy)?;
        Ok(Outlook { successor_features, chances: self.chances(policy)? })
    }

    /// What a patient can expect of a policy: first one of the actions with the probabilities `first`, then what the policy does.
    pub(super) fn worth(&self, patient: &Patient, wishes: &[f64], policy: &Policy, first: &[f64]) -> Result<Worth> {
        let start = patient.start.index();
        let opening = || self.simulator().pairs().of_state(start).zip(first).filter(|(_, share)| **share != 0.0);
        let mdp = self.simulator().shared_mdp()?;
        let reward = mdp.reward(wishes)?;
        let values = evaluate::values(&mdp, &reward, policy)?;
        let gamma = mdp.criterion().discount();
        let q = |pair: usize| reward.at(start, pair) + gamma * mdp.kernel().expect(pair, &values);
        let value = opening().map(|(pair, share)| share * q(pair)).sum();

        let chances = self.chances(policy)?;
        let mdp = self.survival().shared_mdp()?;
        let mut events = [0.0; N_EVENTS];
        for (pair, share) in opening() {
            let now = self.events(start, pair);
            for (j, sum) in events.iter_mut().enumerate() {
                let later = mdp.kernel().successors(pair).map(|(next, p)| p * chances[N_EVENTS * next + j]);
                *sum += share * (now[j] + later.sum::<f64>());
            }
        }
        Ok(Worth { value, survival: events[0], unknown: events[1] })
    }

    /// The same for a policy that begins as it goes on: a probability per pair.
    pub(super) fn worth_of(&self, patient: &Patient, wishes: &[f64], shares: Vec<f64>) -> Result<Worth> {
        let start = patient.start.index() * N_ACTIONS;
        let first = shares[start..start + N_ACTIONS].to_vec();
        self.worth(patient, wishes, &Policy::stochastic(self.simulator().pairs(), shares)?, &first)
    }

    /// The probability of each event from every state, row-major.
    fn chances(&self, policy: &Policy) -> Result<Vec<f64>> {
        evaluate::discounted_sums(&self.survival().shared_mdp()?, policy, N_EVENTS, |s, pair, share, sum| {
            sum.iter_mut().zip(self.events(s, pair)).for_each(|(sum, x)| *sum += share * x);
        })
    }

    /// Which events a pair is.
    fn events(&self, state: usize, pair: usize) -> [f64; N_EVENTS] {
        let inadmissible = state < N_CLUSTERS && !self.simulator().is_known(pair);
        [state == SURVIVAL, inadmissible].map(|happens| f64::from(u8::from(happens)))
    }
}
