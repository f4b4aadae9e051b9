//! Recorded stays: what was decided in which state, and what came of it.

use crate::patients::dense;
use crate::recorded_steps::check_actions;
use coirl::check::{check_finite, check_length, check_room};
use coirl::{Error, Result};
use std::ops::Range;

/// One stay. Its last step ends it: what would have come later counts as nothing, also where a table only stops.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Episode {
    /// Whose stay it is; a patient may have several.
    pub patient: u64,
    /// State before each decision.
    pub states: Vec<u32>,
    /// Decisions.
    pub actions: Vec<u32>,
    /// Reward that followed each; usually 0, and the outcome at the end.
    pub rewards: Vec<f64>,
}

/// Stays of patients, checked. Steps are numbered through, episode after episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    n_states: usize,
    n_actions: usize,
    discount: f64,
    starts: Vec<usize>,
    patients: Vec<usize>,
    n_patients: usize,
    states: Vec<u32>,
    actions: Vec<u32>,
    rewards: Vec<f64>,
    covariates: Option<(usize, Vec<f32>)>,
}

impl Record {
    /// Refuses a record without episodes, episodes without steps or with lists of different lengths, states and actions that do not
    /// exist, rewards that are not finite and discounts outside [0, 1].
    pub fn new(n_states: usize, n_actions: usize, discount: f64, episodes: Vec<Episode>) -> Result<Self> {
        if !(0.0..=1.0).contains(&discount) {
            return Err(Error::InvalidDiscount { value: discount });
        }
        check_room("states × actions", &[n_states, n_actions])?;
        if episodes.is_empty() {
            return Err(Error::shape("record", "at least one episode", 0));
        }
        let numbers: Vec<u64> = episodes.iter().map(|episode| episode.patient).collect();
        let (patients, n_patients) = dense(&numbers);
        let (mut states, mut actions, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
        let mut starts = vec![0];
        for episode in episodes {
            let length = episode.states.len();
            if length == 0 {
                return Err(Error::shape("episode", "at least one step", 0));
            }
            check_length("actions of an episode", length, episode.actions.len())?;
            check_length("rewards of an episode", length, episode.rewards.len())?;
            states.extend(episode.states);
            actions.extend(episode.actions);
            rewards.extend(episode.rewards);
            starts.push(states.len());
        }
        // Steps, pairs and classes of steps are numbered in 32 bits.
        if states.len() >= u32::MAX as usize {
            return Err(Error::TooLarge { what: "steps", count: states.len(), limit: u32::MAX as usize - 1 });
        }
        if let Some(step) = states.iter().position(|&state| state as usize >= n_states) {
            return Err(Error::StateOutOfRange { number: step as u64, state: states[step] as usize, n_states });
        }
        check_actions(n_actions, &actions)?;
        check_finite("rewards", &rewards)?;
        check_sums(&rewards)?;
        Ok(Self {
            n_states,
            n_actions,
            discount,
            starts,
            patients,
            n_patients,
            states,
            actions,
            rewards,
            covariates: None,
        })
    }

    /// Adds what is known of the patient before each decision, row-major [step, covariate], to find neighbours by.
    pub fn with_covariates(mut self, width: usize, rows: Vec<f32>) -> Result<Self> {
        if width == 0 {
            return Err(Error::shape("covariates", "at least one per step", 0));
        }
        check_length("covariates [step, covariate]", self.n_steps() * width, rows.len())?;
        if let Some(index) = rows.iter().position(|x| !x.is_finite()) {
            return Err(Error::NotFinite { what: "covariates", index, value: f64::from(rows[index]) });
        }
        self.covariates = Some((width, rows));
        Ok(self)
    }

    /// States that there may be.
    pub fn n_states(&self) -> usize {
        self.n_states
    }

    /// Actions that there may be.
    pub fn n_actions(&self) -> usize {
        self.n_actions
    }

    /// γ.
    pub fn discount(&self) -> f64 {
        self.discount
    }

    /// Patients.
    pub fn n_patients(&self) -> usize {
        self.n_patients
    }

    /// Episodes.
    pub fn n_episodes(&self) -> usize {
        self.patients.len()
    }

    /// Steps of all episodes.
    pub fn n_steps(&self) -> usize {
        self.states.len()
    }

    /// The steps of an episode.
    pub fn steps(&self, episode: usize) -> Range<usize> {
        self.starts[episode]..self.starts[episode + 1]
    }

    /// State before each step's decision.
    pub fn states(&self) -> &[u32] {
        &self.states
    }

    /// Decision of each step.
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// Reward after each step.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// The patient of an episode, numbered from 0 in the order of the patients' own numbers.
    pub(super) fn patient(&self, episode: usize) -> usize {
        self.patients[episode]
    }

    /// The patient of every step.
    pub(super) fn patient_of_steps(&self) -> Vec<usize> {
        (0..self.n_episodes()).flat_map(|i| std::iter::repeat_n(self.patients[i], self.steps(i).len())).collect()
    }

    /// Width and rows of the covariates.
    pub(super) fn covariates(&self) -> Option<(usize, &[f32])> {
        self.covariates.as_ref().map(|(width, rows)| (*width, rows.as_slice()))
    }

    /// Longest episode.
    pub(super) fn longest(&self) -> usize {
        (0..self.n_episodes()).map(|i| self.steps(i).len()).max().unwrap_or(0)
    }

    /// Σ γᵗ r of an episode.
    pub(super) fn discounted_return(&self, episode: usize) -> f64 {
        self.rewards[self.steps(episode)].iter().rev().fold(0.0, |later, r| r + self.discount * later)
    }

    /// How often each pair was seen, row-major [state, action].
    pub(super) fn pair_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.n_states * self.n_actions];
        for (&state, &action) in self.states.iter().zip(&self.actions) {
            counts[state as usize * self.n_actions + action as usize] += 1;
        }
        counts
    }
}

/// Refuses rewards whose sums overflow, with room for what estimators multiply them with.
fn check_sums(rewards: &[f64]) -> Result<()> {
    let larger =
        |most: (usize, f64), next: (usize, &f64)| if next.1.abs() > most.1.abs() { (next.0, *next.1) } else { most };
    let (step, value) = rewards.iter().enumerate().fold((0, 0.0), larger);
    let n_steps = rewards.len();
    if value.abs() > f64::MAX / 1e16 / n_steps as f64 {
        Err(Error::RewardsTooLarge { step, value, n_steps })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode() -> Episode {
        Episode { patient: 4, states: vec![0, 1], actions: vec![1, 0], rewards: vec![0.5, 2.0] }
    }

    #[test]
    fn returns_are_discounted_from_the_first_step() {
        let record = Record::new(2, 2, 0.5, vec![episode(), episode()]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(record.discounted_return(1), 1.5);
        assert_eq!((record.n_patients(), record.n_episodes(), record.steps(1)), (1, 2, 2..4));
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |discount, change: fn(&mut Episode)| {
            let mut episode = episode();
            change(&mut episode);
            Record::new(2, 2, discount, vec![episode]).is_err()
        };
        assert!(!refused(1.0, |_| {}));
        assert!(refused(1.1, |_| {}) && refused(f64::NAN, |_| {}));
        assert!(refused(1.0, |e| e.states[1] = 2) && refused(1.0, |e| e.actions[0] = 2));
        assert!(refused(1.0, |e| e.rewards[0] = f64::NAN) && refused(1.0, |e| e.rewards.truncate(1)));
        assert!(refused(1.0, |e| *e = Episode::default()));
        assert!(Record::new(2, 2, 1.0, Vec::new()).is_err());
        let record = || Record::new(2, 2, 1.0, vec![episode()]);
        assert!(record().and_then(|r| r.with_covariates(2, vec![0.0; 4])).is_ok());
        assert!(record().and_then(|r| r.with_covariates(2, vec![0.0; 3])).is_err());
        assert!(record().and_then(|r| r.with_covariates(1, vec![f32::NAN; 2])).is_err());
    }
}
