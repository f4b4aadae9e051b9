//! Sums per patient, from which every measure of agreement follows for any resample of patients.

use super::{Agreement, Decisions, dose_levels};
use crate::patients::dense;
use coirl::resampling::Resampling;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How often one action was recorded, predicted, and both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ActionTally {
    recorded: f64,
    predicted: f64,
    both: f64,
}

/// What one patient's steps come to.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) patient: u64,
    steps: f64,
    top_one: f64,
    top_three: f64,
    within_one: f64,
    log_loss: f64,
    floored: f64,
    actions: BTreeMap<u32, ActionTally>,
}

/// One tally per patient, in the order of their numbers.
pub(super) fn of_patients(decisions: &Decisions<'_>, floor: f64) -> Vec<Tally> {
    let ranked: Vec<Vec<usize>> =
        (0..decisions.patients.len()).into_par_iter().map(|step| decisions.first_three(step)).collect();
    let (place, n_patients) = dense(decisions.patients);
    let mut tallies = vec![Tally::default(); n_patients];
    for (step, ranked) in ranked.iter().enumerate() {
        let tally = &mut tallies[place[step]];
        let action = decisions.recorded[step];
        let (recorded, predicted) = (action as usize, ranked[0]);
        let count = |holds: bool| f64::from(u8::from(holds));
        let probability = decisions.probability(step);
        tally.patient = decisions.patients[step];
        tally.steps += 1.0;
        tally.top_one += count(predicted == recorded);
        tally.top_three += count(ranked.contains(&recorded));
        tally.within_one += count(dose_levels::within_one(decisions.levels, predicted, recorded));
        tally.log_loss -= probability.max(floor).ln();
        tally.floored += count(probability < floor);
        let of_recorded = tally.actions.entry(action).or_default();
        of_recorded.recorded += 1.0;
        of_recorded.both += count(predicted == recorded);
        tally.actions.entry(predicted as u32).or_default().predicted += 1.0;
    }
    tallies
}

/// Agreement over these patients, at least one.
pub(super) fn agreement(patients: &[&Tally], doses: bool, resampling: &Resampling) -> Agreement {
    let n_actions =
        patients.iter().filter_map(|tally| tally.actions.keys().last()).max().map_or(0, |&a| a as usize + 1);
    let of_actions = |times: &[f64]| {
        let mut sums = vec![ActionTally::default(); n_actions];
        for (tally, times) in patients.iter().zip(times) {
            for (&action, own) in &tally.actions {
                let sum = &mut sums[action as usize];
                sum.recorded += times * own.recorded;
                sum.predicted += times * own.predicted;
                sum.both += times * own.both;
            }
        }
        sums
    };
    let estimates = resampling.estimates(patients.len(), |times| {
        let sum =
            |of: fn(&Tally) -> f64| patients.iter().zip(times).map(|(tally, times)| times * of(tally)).sum::<f64>();
        let steps = sum(|tally| tally.steps);
        let actions = of_actions(times);
        [
            sum(|tally| tally.top_one) / steps,
            sum(|tally| tally.top_one / tally.steps) / times.iter().sum::<f64>(),
            sum(|tally| tally.top_three) / steps,
            sum(|tally| tally.within_one) / steps,
            macro_f1(&actions),
            sum(|tally| tally.log_loss) / steps,
        ]
    });
    let [top_one, top_one_by_patient, top_three, within_one, macro_f1, log_loss] = estimates;
    let steps: f64 = patients.iter().map(|tally| tally.steps).sum();
    Agreement {
        patients: patients.len(),
        steps: steps as usize,
        top_one,
        top_one_by_patient,
        top_three,
        within_one: doses.then_some(within_one),
        macro_f1,
        log_loss,
        floored: patients.iter().map(|tally| tally.floored).sum::<f64>() / steps,
    }
}

fn macro_f1(actions: &[ActionTally]) -> f64 {
    let (mut sum, mut occurring) = (0.0, 0.0);
    for action in actions.iter().filter(|action| action.recorded + action.predicted > 0.0) {
        sum += 2.0 * action.both / (action.recorded + action.predicted);
        occurring += 1.0;
    }
    sum / occurring
}
