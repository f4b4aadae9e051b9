//! The accuracy of the paper's published code: of each patient the different states visited, each with the last action taken there, and the share of
//! them in which the agent takes that action; then the mean over patients. A state that is visited often counts as much as one visited once, and only
//! what was done there last.

use crate::patients::dense;
use coirl::Result;
use coirl::check::check_length;
use coirl::resampling::{Estimate, Resampling};
use std::collections::HashMap;

/// Accuracy by visited state. One entry per step of all patients, those of a patient in the order of time.
pub fn visited_state_accuracy(
    patients: &[u64],
    states: &[u32],
    recorded: &[u32],
    predicted: &[u32],
    resampling: &Resampling,
) -> Result<Estimate> {
    resampling.check()?;
    for (what, found) in
        [("states", states.len()), ("recorded actions", recorded.len()), ("predicted actions", predicted.len())]
    {
        check_length(what, patients.len(), found)?;
    }
    let (numbers, n_patients) = dense(patients);
    let mut last: HashMap<(usize, u32), bool> = HashMap::new();
    for (i, &patient) in numbers.iter().enumerate() {
        last.insert((patient, states[i]), recorded[i] == predicted[i]);
    }
    let mut of_patient = vec![(0.0, 0.0); n_patients];
    for ((patient, _), same) in last {
        of_patient[patient].0 += f64::from(u8::from(same));
        of_patient[patient].1 += 1.0;
    }
    let [estimate] = resampling.estimates(n_patients, |times| {
        let shares = || of_patient.iter().zip(times).map(|((same, n), times)| (times * same / n, *times));
        [shares().map(|share| share.0).sum::<f64>() / shares().map(|share| share.1).sum::<f64>()]
    });
    Ok(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_action_in_a_state_counts_and_patients_count_alike() {
        // Patient 1: state 5 first right, then wrong; state 6 right: a half. Patient 2: one state, right.
        let patients = [1, 1, 1, 2];
        let accuracy = visited_state_accuracy(
            &patients,
            &[5, 6, 5, 5],
            &[0, 1, 2, 3],
            &[0, 1, 0, 3],
            &Resampling { resamples: 10, ..Resampling::default() },
        );
        assert_eq!(accuracy.map(|estimate| estimate.value).ok(), Some(0.75));
    }
}
