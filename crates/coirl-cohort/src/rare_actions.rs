//! Which events of recorded stays are rare enough to be looked at on their own: numbered actions that are seldom taken, and the first dose of a
//! drug in a stay.

use super::encoder::Actions;
use crate::agreement::AtRisk;
use coirl::model::ActionId;

/// Share of the steps below which an action is rare.
const RARE: f64 = 0.1;
/// Numbered actions that are looked at, the most frequent of the rare.
const MOST_EVENTS: usize = 6;

/// One step after the other, stay by stay.
pub(super) struct Steps<'a> {
    pub(super) patients: &'a [u64],
    /// Number of steps of each stay.
    pub(super) lengths: &'a [usize],
    pub(super) taken: &'a [u32],
    /// Probability of each action, row-major [step, action].
    pub(super) probabilities: &'a [f64],
    pub(super) n_actions: usize,
}

/// Every rare event with the steps at which it can happen. `shares` are those of all actions in training stays.
pub(super) fn rare_events(actions: &Actions, shares: &[f64], steps: &Steps<'_>) -> Vec<(String, Vec<AtRisk>)> {
    match actions {
        Actions::Numbered { .. } => {
            let mut rare: Vec<usize> = (0..shares.len()).filter(|&action| shares[action] < RARE).collect();
            rare.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
            rare.truncate(MOST_EVENTS);
            let names = actions.names();
            rare.into_iter().map(|action| (names[action].clone(), steps.at_risk(|own| own == action, false))).collect()
        }
        Actions::Doses(doses) => {
            let onset = |d: usize| {
                let given = |action: usize| actions.levels_of(ActionId(action as u32))[d] > 0;
                (format!("the first {} of a stay", doses[d].column), steps.at_risk(given, true))
            };
            let rare = |own: &(String, Vec<AtRisk>)| {
                let happened = own.1.iter().filter(|step| step.happened).count();
                (happened as f64) < RARE * own.1.len() as f64
            };
            (0..doses.len()).map(onset).filter(rare).collect()
        }
    }
}

impl Steps<'_> {
    /// The steps at which one of some actions can be taken: all, the clock starting again after it, or those until it is taken for the first time.
    fn at_risk(&self, is_one: impl Fn(usize) -> bool, only_first: bool) -> Vec<AtRisk> {
        let wanted: Vec<bool> = (0..self.n_actions).map(is_one).collect();
        let mut all = Vec::new();
        let mut at = 0;
        for &length in self.lengths {
            let (mut clock, mut over) = (0, false);
            for step in at..at + length {
                let happened = wanted[self.taken[step] as usize];
                let row = &self.probabilities[step * self.n_actions..(step + 1) * self.n_actions];
                let probability = row.iter().zip(&wanted).filter(|(_, wanted)| **wanted).map(|(p, _)| p).sum();
                if !over {
                    all.push(AtRisk { patient: self.patients[step], clock, happened, probability });
                }
                over |= happened && only_first;
                clock = if happened { 0 } else { clock + 1 };
            }
            at += length;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_start_again_and_first_doses_happen_once() {
        let steps = Steps {
            patients: &[1, 1, 1, 1, 2],
            lengths: &[4, 1],
            taken: &[0, 1, 0, 1, 0],
            probabilities: &[0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 1.0, 0.0],
            n_actions: 2,
        };
        let told = |own: Vec<AtRisk>| own.iter().map(|step| (step.clock, step.happened)).collect::<Vec<_>>();
        let again = steps.at_risk(|action| action == 1, false);
        assert_eq!(again.iter().map(|step| step.probability).collect::<Vec<_>>(), [0.1, 0.2, 0.3, 0.4, 0.0]);
        assert_eq!(told(again), [(0, false), (1, true), (0, false), (1, true), (0, false)]);
        assert_eq!(told(steps.at_risk(|action| action == 1, true)), [(0, false), (1, true), (0, false)]);
        let numbered = Actions::Numbered { column: "a".into(), number: 2 };
        assert!(rare_events(&numbered, &[0.6, 0.4], &steps).is_empty());
        assert_eq!(rare_events(&numbered, &[0.95, 0.05], &steps)[0].0, "a 1");
    }
}
