//! Rare events, such as a replacement or the first dose of a drug: whether an agent gives them a higher probability where they happened, and at which step.
//!
//! ```text
//! AUC     probability that a step with the event has a higher probability of the agent than one without, ties counting half
//! hazard  by steps since the clock began: share of the steps at risk with the event, and the mean probability of the agent
//! ```
//!
//! Agents that never do first what is rare match most steps and say nothing of it; the AUC does not care how rare it is. Intervals are over resampled
//! patients. Cost: a sort of the steps, and steps per resample.

use crate::patients::dense;
use coirl::resampling::{Estimate, Resampling};
use serde::Serialize;
use std::collections::BTreeSet;

/// Intervals of steps, at most.
const MOST_BINS: usize = 8;

/// A step at which an event can happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtRisk {
    /// Whose step it is.
    pub patient: u64,
    /// Steps since the clock began.
    pub clock: usize,
    /// Whether the event happened.
    pub happened: bool,
    /// The agent's probability of it.
    pub probability: f64,
}

/// Some steps since the clock began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HazardBin {
    /// The first and the last.
    pub steps: [usize; 2],
    /// Patients at risk.
    pub patients: usize,
    /// Share of the steps at risk with the event.
    pub recorded: f64,
    /// The agent's mean probability of it.
    pub foreseen: f64,
}

/// How an event is foreseen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Foreseen {
    /// What happens.
    pub event: String,
    /// Patients to whom it happened.
    pub patients: usize,
    /// Share of the steps at risk with it.
    pub share: f64,
    /// Probability that a step with it has a higher probability than one without.
    pub auc: Estimate,
    /// By steps since the clock began, those of too few patients left out.
    pub hazard: Vec<HazardBin>,
}

/// How an event is foreseen; nothing where it happened to fewer than `smallest` patients or at every step.
pub fn foreseen(event: String, steps: &[AtRisk], smallest: usize, resampling: &Resampling) -> Option<Foreseen> {
    let with: BTreeSet<u64> = steps.iter().filter(|step| step.happened).map(|step| step.patient).collect();
    if with.is_empty() || with.len() < smallest || steps.iter().all(|step| step.happened) {
        return None;
    }
    let (place, n) = dense(&steps.iter().map(|step| step.patient).collect::<Vec<_>>());
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by(|&a, &b| steps[a].probability.total_cmp(&steps[b].probability));
    let auc = |times: &[f64]| {
        let (mut below, mut positive, mut sum) = (0.0, 0.0, 0.0);
        for equals in order.chunk_by(|&a, &b| steps[a].probability == steps[b].probability) {
            let (mut with, mut without) = (0.0, 0.0);
            for &i in equals {
                *(if steps[i].happened { &mut with } else { &mut without }) += times[place[i]];
            }
            sum += with * (below + 0.5 * without);
            below += without;
            positive += with;
        }
        [sum / (below * positive)]
    };
    let [auc] = resampling.estimates(n, auc);
    let happened = steps.iter().filter(|step| step.happened).count();
    Some(Foreseen {
        event,
        patients: with.len(),
        share: happened as f64 / steps.len() as f64,
        auc,
        hazard: hazard(steps, smallest),
    })
}

/// Bins of about as many steps each; a clock is in one of them only.
fn hazard(steps: &[AtRisk], smallest: usize) -> Vec<HazardBin> {
    let mut order: Vec<&AtRisk> = steps.iter().collect();
    order.sort_by_key(|step| step.clock);
    let wanted = steps.len().div_ceil(MOST_BINS);
    let mut bins: Vec<Vec<&AtRisk>> = Vec::new();
    for alike in order.chunk_by(|a, b| a.clock == b.clock) {
        match bins.last_mut() {
            Some(bin) if bin.len() < wanted => bin.extend(alike),
            _ => bins.push(alike.to_vec()),
        }
    }
    let bin = |own: Vec<&AtRisk>| {
        let n = own.len() as f64;
        HazardBin {
            steps: [own[0].clock, own[own.len() - 1].clock],
            patients: own.iter().map(|step| step.patient).collect::<BTreeSet<_>>().len(),
            recorded: own.iter().filter(|step| step.happened).count() as f64 / n,
            foreseen: own.iter().map(|step| step.probability).sum::<f64>() / n,
        }
    };
    bins.into_iter().map(bin).filter(|bin| bin.patients >= smallest).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    fn step(patient: u64, clock: usize, happened: bool, probability: f64) -> AtRisk {
        AtRisk { patient, clock, happened, probability }
    }

    #[test]
    fn pairs_of_steps_are_counted_and_ties_are_half() {
        // Of the six pairs of a step with and one without, three are in order and one is a tie.
        let steps = [
            step(1, 0, true, 0.5),
            step(1, 1, false, 0.5),
            step(2, 0, true, 0.3),
            step(2, 1, false, 0.1),
            step(3, 0, false, 0.9),
        ];
        let settings = Resampling { resamples: 20, ..Resampling::default() };
        let found = foreseen("e".into(), &steps, 2, &settings).unwrap();
        assert!((found.auc.value - 2.5 / 6.0).abs() < 1e-12, "{}", found.auc.value);
        assert_eq!((found.patients, found.share), (2, 0.4));
        assert_eq!(found.hazard.len(), 2);
        assert_eq!((found.hazard[0].steps, found.hazard[0].patients), ([0, 0], 3));
        assert!((found.hazard[0].recorded - 2.0 / 3.0).abs() < 1e-12);
        assert!((found.hazard[0].foreseen - 1.7 / 3.0).abs() < 1e-12);
        // Too few to tell of.
        assert_eq!(foreseen("e".into(), &steps, 3, &settings), None);
        assert!(foreseen("e".into(), &steps[..1], 0, &settings).is_none());
        assert_eq!(hazard(&steps, 3).len(), 1);
    }
}
