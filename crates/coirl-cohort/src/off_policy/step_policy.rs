//! A policy where it matters: its action probabilities at the steps of a record. It may depend on anything known by then, such as a
//! patient's context, because nothing else is ever asked of it.

use super::Record;
use crate::recorded_steps::{check_actions, check_probabilities};
use coirl::check::check_length;
use coirl::model::Pairs;
use coirl::plan::Policy;
use coirl::plan::evaluate::stage_distributions;
use coirl::{Error, Result};

/// Probabilities, row-major [step, action].
#[derive(Debug, Clone, PartialEq)]
pub struct StepPolicy {
    n_actions: usize,
    probabilities: Vec<f64>,
}

impl StepPolicy {
    /// A distribution at every step of the record, row-major [step, action].
    pub fn new(record: &Record, probabilities: Vec<f64>) -> Result<Self> {
        check_probabilities(record.n_steps(), record.n_actions(), &probabilities)?;
        Ok(Self { n_actions: record.n_actions(), probabilities })
    }

    /// One action at every step.
    pub fn deterministic(record: &Record, actions: &[u32]) -> Result<Self> {
        check_length("actions of the policy", record.n_steps(), actions.len())?;
        check_actions(record.n_actions(), actions)?;
        Ok(Self::by_weights(record, |step, action| f64::from(u8::from(actions[step] as usize == action))))
    }

    /// The same action at every step: no treatment, for example.
    pub fn always(record: &Record, action: u32) -> Result<Self> {
        Self::deterministic(record, &vec![action; record.n_steps()])
    }

    /// A distribution per state, row-major [state, action].
    pub fn by_state(record: &Record, probabilities: &[f64]) -> Result<Self> {
        let (n_states, n) = (record.n_states(), record.n_actions());
        check_length("action probabilities [state, action]", n_states * n, probabilities.len())?;
        let row = |state: &u32| &probabilities[*state as usize * n..(*state as usize + 1) * n];
        Self::new(record, record.states().iter().flat_map(row).copied().collect())
    }

    /// What a policy does in each episode, on the pairs of the model it was planned for.
    pub fn following<'p>(record: &Record, pairs: &Pairs, of_episode: impl Fn(usize) -> &'p Policy) -> Result<Self> {
        check_length("states of the record (those of the model)", pairs.n_states(), record.n_states())?;
        check_length("actions of the record (those of the model)", pairs.n_actions(), record.n_actions())?;
        let n = record.n_actions();
        let mut probabilities = vec![0.0; record.n_steps() * n];
        for episode in 0..record.n_episodes() {
            let policy = of_episode(episode);
            let n_stages = policy.n_stages().unwrap_or(1);
            let steps = record.steps(episode);
            if policy.n_stages().is_some() && steps.len() > n_stages {
                return Err(Error::shape("policy (stages)", format!("at least {}", steps.len()), n_stages));
            }
            let stages = stage_distributions(pairs, policy, n_stages)?;
            for (t, step) in steps.enumerate() {
                let state = record.states()[step] as usize;
                for pair in pairs.of_state(state) {
                    let share = stages[t.min(n_stages - 1)].share(state, pair);
                    probabilities[step * n + pairs.action(pair).index()] = share;
                }
            }
        }
        Self::new(record, probabilities)
    }

    /// Every action alike.
    pub fn uniform(record: &Record) -> Self {
        Self::by_weights(record, |_, _| 1.0)
    }

    /// Every action alike that anybody took in the state.
    pub fn uniform_over_seen(record: &Record) -> Self {
        let (counts, n) = (record.pair_counts(), record.n_actions());
        Self::by_weights(record, |step, action| {
            f64::from(u8::from(counts[record.states()[step] as usize * n + action] > 0))
        })
    }

    /// (1 − ε) of this and ε of another: towards the behaviour policy or the uniform one, so that importance weights of a
    /// deterministic policy are not all zero. What is scored then is the softened policy.
    pub fn softened(&self, epsilon: f64, towards: &Self) -> Result<Self> {
        if !(0.0..=1.0).contains(&epsilon) {
            let reason = "expected a share from 0 to 1";
            return Err(Error::InvalidSetting { name: "epsilon", value: epsilon.to_string(), reason });
        }
        check_length("policy to soften towards [step, action]", self.probabilities.len(), towards.probabilities.len())?;
        let mix = |(own, other): (&f64, &f64)| (1.0 - epsilon) * own + epsilon * other;
        let probabilities = self.probabilities.iter().zip(&towards.probabilities).map(mix).collect();
        Ok(Self { n_actions: self.n_actions, probabilities })
    }

    /// Probabilities of the actions at a step.
    pub fn row(&self, step: usize) -> &[f64] {
        &self.probabilities[step * self.n_actions..(step + 1) * self.n_actions]
    }

    /// All of them, row-major [step, action].
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Probability of what was done at a step.
    pub(super) fn recorded(&self, record: &Record, step: usize) -> f64 {
        self.row(step)[record.actions()[step] as usize]
    }

    /// Refuses a policy made for another record.
    pub(super) fn check(&self, record: &Record) -> Result<()> {
        check_length("policy [step, action]", record.n_steps() * record.n_actions(), self.probabilities.len())
    }

    /// Rows in proportion to weights whose sum is above zero at every step.
    pub(super) fn by_weights(record: &Record, weight: impl Fn(usize, usize) -> f64) -> Self {
        let n_actions = record.n_actions();
        let mut probabilities = Vec::with_capacity(record.n_steps() * n_actions);
        for step in 0..record.n_steps() {
            let start = probabilities.len();
            probabilities.extend((0..n_actions).map(|action| weight(step, action)));
            let total: f64 = probabilities[start..].iter().sum();
            probabilities[start..].iter_mut().for_each(|p| *p /= total);
        }
        Self { n_actions, probabilities }
    }
}
