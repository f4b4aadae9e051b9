//! How much likelier the scored policy makes a recorded stay than the one that was followed:
//!
//! ```text
//! ρ_t = Π_{u ≤ t} π(a_u | u) / b(a_u | u),        effective sample size (Σ ρ)² / Σ ρ² over episodes, ρ at their ends.
//! ```
//!
//! With the true b, E[ρ_t] = 1. A stay that has ended keeps its last ratio, as if it stayed where nothing is decided any more. Weights
//! may be capped, which biases every estimator that uses them; how many were is reported. Cost: one product per step.

use super::{Record, StepPolicy};
use coirl::{Error, Result};

/// A ratio above this is taken for this: its square is still a number.
const LARGEST: f64 = 1e150;

/// ρ_t at every step.
#[derive(Debug, Clone)]
pub(super) struct Ratios {
    cumulative: Vec<f64>,
    /// Episodes with a ratio that was cut.
    pub(super) capped: usize,
}

impl Ratios {
    /// Ratios of the policy to the behaviour, none above the cap.
    pub(super) fn new(record: &Record, behaviour: &StepPolicy, policy: &StepPolicy, cap: Option<f64>) -> Result<Self> {
        let cap = cap.unwrap_or(LARGEST).min(LARGEST);
        let mut cumulative = Vec::with_capacity(record.n_steps());
        let mut capped = 0;
        for episode in 0..record.n_episodes() {
            let (mut ratio, mut cut) = (1.0_f64, false);
            for step in record.steps(episode) {
                let followed = behaviour.recorded(record, step);
                if !(followed > 0.0) {
                    let action = record.actions()[step] as usize;
                    return Err(Error::RecordedActionImpossible { step, action });
                }
                ratio = (ratio * policy.recorded(record, step) / followed).min(LARGEST);
                cut |= ratio > cap;
                cumulative.push(ratio.min(cap));
            }
            capped += usize::from(cut);
        }
        Ok(Self { cumulative, capped })
    }

    /// ρ_t.
    pub(super) fn at(&self, step: usize) -> f64 {
        self.cumulative[step]
    }

    /// ρ at the end of an episode.
    pub(super) fn of_episode(&self, record: &Record, episode: usize) -> f64 {
        self.cumulative[record.steps(episode).end - 1]
    }

    /// (Σ ρ)² / Σ ρ², from 1 to the number of episodes; 0 where the policy excludes every stay.
    pub(super) fn effective_sample_size(&self, record: &Record) -> f64 {
        let ratios = || (0..record.n_episodes()).map(|episode| self.of_episode(record, episode));
        let largest = ratios().fold(0.0, f64::max);
        if largest == 0.0 {
            return 0.0;
        }
        let (sum, squares) =
            ratios().map(|r| r / largest).fold((0.0, 0.0), |(sum, squares), r| (sum + r, squares + r * r));
        sum * sum / squares
    }

    /// Σ ρ / n.
    pub(super) fn mean(&self, record: &Record) -> f64 {
        let sum: f64 = (0..record.n_episodes()).map(|episode| self.of_episode(record, episode)).sum();
        sum / record.n_episodes() as f64
    }

    /// Σ over episodes of times × ρ_t, for every time up to the longest episode, ended ones included.
    pub(super) fn totals(&self, record: &Record, times: &[f64]) -> Vec<f64> {
        let mut totals = vec![0.0; record.longest()];
        let mut ended = vec![0.0; totals.len() + 1];
        for episode in 0..record.n_episodes() {
            let weight = times[record.patient(episode)];
            let steps = record.steps(episode);
            ended[steps.len()] += weight * self.of_episode(record, episode);
            steps.enumerate().for_each(|(t, step)| totals[t] += weight * self.cumulative[step]);
        }
        let mut finished = 0.0;
        for (total, ended) in totals.iter_mut().zip(&ended) {
            finished += ended;
            *total += finished;
        }
        totals
    }
}
