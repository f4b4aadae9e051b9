//! Fitted Q evaluation, tabular: the value of the policy in the Markov decision process that the record shows,
//!
//! ```text
//! Q(s, a) ← mean over recorded steps with (s, a) of [r + γ Σ_a' π(a' | next step) Q(s', a')],        V = mean over episodes of V(s₀).
//! ```
//!
//! Cross-fitted: patients are dealt into folds, and a step is valued by a Q that its patient had no part in. A pair that nobody in
//! the other folds was seen in has the mean value of its state's recorded actions, and a state never seen there the mean over all
//! steps: as good as what was done, not worse. Needs no behaviour policy; is as right as the states are Markov, and an extrapolation where the policy
//! leaves what was done. Sweeps (Gauss–Seidel, state after state) go on until no value moves by more than the tolerance, or to a cap; they begin at
//! the record's mean return, which at discount 1 is kept where the policy goes round in circles in the record without a way out. Cost: distinct transitions per sweep and fold.

use super::empirical_model::{EmpiricalModel, Seen};
use super::{Record, StepPolicy};
use crate::patients::folds;
use coirl::{Error, Result};

/// Settings of fitted Q evaluation.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FittedQSettings {
    /// Folds of patients; with 1 every patient has a part in the values it is given.
    pub folds: usize,
    /// Sweeps at most.
    pub max_iterations: usize,
    /// Largest change of a value in the last sweep, as a share of the largest reward.
    pub tolerance: f64,
    /// Whether every resample of patients has fits of its own. Otherwise only the starts and weights are resampled, which leaves out
    /// what the fit itself owes to chance: intervals are then too narrow, often by far.
    pub refit: bool,
}

impl Default for FittedQSettings {
    fn default() -> Self {
        Self { folds: 5, max_iterations: 10_000, tolerance: 1e-6, refit: true }
    }
}

impl FittedQSettings {
    pub(super) fn check(&self, record: &Record) -> Result<()> {
        coirl::check::check_positive("tolerance", self.tolerance)?;
        if self.max_iterations == 0 {
            let reason = "expected at least 1";
            return Err(Error::InvalidSetting { name: "max_iterations", value: "0".into(), reason });
        }
        if self.folds == 0 {
            let reason = "expected from 1 to the number of patients";
            return Err(Error::InvalidSetting { name: "folds", value: "0".into(), reason });
        }
        if self.folds > 1 && self.folds > record.n_patients() {
            return Err(Error::TooFewPatients { patients: record.n_patients(), folds: self.folds });
        }
        Ok(())
    }
}

/// Q(s_t, a_t) and V(s_t) at every step.
#[derive(Debug, Clone)]
pub(super) struct StepValues {
    pub(super) of_action: Vec<f64>,
    pub(super) of_state: Vec<f64>,
}

impl StepValues {
    /// Mean over episodes of V(s₀), where patient p counts `times[p]` times.
    pub(super) fn at_start(&self, record: &Record, times: &[f64]) -> f64 {
        let (mut sum, mut episodes) = (0.0, 0.0);
        for episode in 0..record.n_episodes() {
            let weight = times[record.patient(episode)];
            sum += weight * self.of_state[record.steps(episode).start];
            episodes += weight;
        }
        sum / episodes
    }
}

/// How the sweeps ended.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Sweeps {
    /// Sweeps of the fold that took most.
    pub iterations: usize,
    /// Largest change of a value in the last sweep, of any fold.
    pub residual: f64,
    /// Whether every fold came below the tolerance.
    pub converged: bool,
}

/// Values of every fold.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    q: Vec<Vec<f64>>,
    pub(super) sweeps: Sweeps,
}

/// What is to be evaluated.
#[derive(Debug)]
pub(super) struct FittedQ<'a> {
    record: &'a Record,
    model: EmpiricalModel,
    folds: Vec<usize>,
    settings: &'a FittedQSettings,
    /// Where sweeps begin.
    mean_return: f64,
    /// Largest change that is none.
    tolerance: f64,
}

impl<'a> FittedQ<'a> {
    pub(super) fn new(record: &'a Record, policy: &StepPolicy, settings: &'a FittedQSettings, seed: u64) -> Self {
        let largest = record.rewards().iter().fold(0.0_f64, |most, r| most.max(r.abs()));
        let returns: f64 = (0..record.n_episodes()).map(|episode| record.discounted_return(episode)).sum();
        Self {
            record,
            mean_return: returns / record.n_episodes() as f64,
            model: EmpiricalModel::new(record, policy),
            folds: folds(record.n_patients(), settings.folds, seed),
            settings,
            tolerance: settings.tolerance * largest,
        }
    }

    /// Fits every fold's values on the other folds, where patient p counts `times[p]` times, from those of another fit or from
    /// the mean return.
    pub(super) fn fit(&self, times: &[f64], from: Option<&Fit>) -> Fit {
        let parts = self.model.seen(self.record, &self.folds, self.settings.folds, times);
        let all = self.model.seen(self.record, &vec![0; self.folds.len()], 1, times);
        let mut sweeps = Sweeps { iterations: 0, residual: 0.0, converged: true };
        let mut q = Vec::with_capacity(parts.len());
        for (fold, part) in parts.iter().enumerate() {
            let mut values =
                from.map_or_else(|| vec![self.mean_return; self.model.n_values()], |fit| fit.q[fold].clone());
            let train = if parts.len() == 1 { part.clone() } else { all[0].without(part) };
            let mut class_values = self.model.class_values(&values);
            let (mut iterations, mut residual) = (0, f64::INFINITY);
            while iterations < self.settings.max_iterations && residual > self.tolerance {
                residual = self.sweep(&train, &mut values, &mut class_values);
                iterations += 1;
            }
            sweeps.iterations = sweeps.iterations.max(iterations);
            sweeps.residual = sweeps.residual.max(residual);
            sweeps.converged &= residual <= self.tolerance;
            q.push(values);
        }
        Fit { q, sweeps }
    }

    /// Q of every pair, state after state from the newest V; the largest change, not a number where nothing at all was seen.
    fn sweep(&self, seen: &Seen, q: &mut [f64], class_values: &mut [f64]) -> f64 {
        let model = &self.model;
        let (n_pairs, last) = (model.n_pairs(), q.len() - 1);
        let (mut change, mut all_sum, mut all_times) = (0.0_f64, 0.0, 0.0);
        let mut move_to = |place: &mut f64, value: f64| {
            // `max` would lose what is not a number.
            let step = (value - *place).abs();
            change = if step > change || step.is_nan() { step } else { change };
            *place = value;
        };
        for (state, ends) in model.states.windows(2).enumerate() {
            let pairs = ends[0]..ends[1];
            let (mut sum, mut times) = (0.0, 0.0);
            for pair in pairs.clone().filter(|&pair| seen.pairs[pair] > 0.0) {
                let transitions = model.transitions[pair]..model.transitions[pair + 1];
                let later: f64 =
                    transitions.map(|at| seen.transitions[at] * class_values[model.next_class[at] as usize]).sum();
                let target = seen.rewards[pair] + self.record.discount() * later;
                move_to(&mut q[pair], target / seen.pairs[pair]);
                sum += target;
                times += seen.pairs[pair];
            }
            (all_sum, all_times) = (all_sum + sum, all_times + times);
            let mean = if times > 0.0 { sum / times } else { q[last] };
            pairs.filter(|&pair| !(seen.pairs[pair] > 0.0)).for_each(|pair| move_to(&mut q[pair], mean));
            move_to(&mut q[n_pairs + state], mean);
            model.refresh(q, state, class_values);
        }
        move_to(&mut q[last], all_sum / all_times);
        change
    }

    /// The values at the steps, each by the fit that its patient had no part in.
    pub(super) fn step_values(&self, fit: &Fit) -> StepValues {
        let class_values: Vec<Vec<f64>> = fit.q.iter().map(|q| self.model.class_values(q)).collect();
        let n_steps = self.record.n_steps();
        let mut values = StepValues { of_action: vec![0.0; n_steps], of_state: vec![0.0; n_steps] };
        for episode in 0..self.record.n_episodes() {
            let fold = self.folds[self.record.patient(episode)];
            for step in self.record.steps(episode) {
                values.of_action[step] = fit.q[fold][self.model.pair_of_step[step] as usize];
                values.of_state[step] = self.model.at_step(&class_values[fold], step);
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::super::Episode;
    use super::*;

    #[test]
    fn a_patient_has_no_part_in_its_own_values() -> Result<()> {
        let record = |reward: f64| {
            let stay = |patient: u64| {
                let last = if patient == 3 { reward } else { patient as f64 };
                let action = (patient % 2) as u32;
                Episode { patient, states: vec![0, 1], actions: vec![action, 1 - action], rewards: vec![0.0, last] }
            };
            Record::new(2, 2, 1.0, (0..8).map(stay).collect())
        };
        let (one, other) = (record(0.0)?, record(100.0)?);
        let settings = FittedQSettings { folds: 4, ..FittedQSettings::default() };
        let values = |record: &Record| {
            let fitted_q = FittedQ::new(record, &StepPolicy::uniform(record), &settings, 1);
            fitted_q.step_values(&fitted_q.fit(&vec![1.0; record.n_patients()], None))
        };
        let (one, other) = (values(&one), values(&other));
        // Its own steps are 6 and 7.
        for step in [6, 7] {
            assert!((one.of_state[step] - other.of_state[step]).abs() < 1e-3);
            assert!((one.of_action[step] - other.of_action[step]).abs() < 1e-3);
        }
        assert!((0..16).filter(|&step| (one.of_state[step] - other.of_state[step]).abs() > 1.0).count() >= 12);
        Ok(())
    }
}
