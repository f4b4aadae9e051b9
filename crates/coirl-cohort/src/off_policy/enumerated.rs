//! Two decisions in a row, every possible stay as often as its probability says: on this record an expectation is a mean.

use super::fitted_q::StepValues;
use super::ratios::Ratios;
use super::{Episode, Record, StepPolicy};

/// Quarters with which action 1 is taken in each state.
const BEHAVIOUR: [usize; 3] = [1, 2, 3];
const SCORED: [f64; 3] = [0.6, 0.1, 1.0];
const REWARD: [[f64; 2]; 3] = [[0.5, -1.0], [2.0, 0.25], [-0.5, 3.0]];
/// Quarters of going on to state 1, to state 2, and of the end, after each action in state 0.
const NEXT: [[usize; 3]; 2] = [[1, 3, 0], [2, 1, 1]];
const DISCOUNT: f64 = 0.9;

pub(super) struct Enumerated {
    pub(super) record: Record,
    pub(super) ratios: Ratios,
    scored: StepPolicy,
}

impl Enumerated {
    pub(super) fn new() -> coirl::Result<Self> {
        let mut stays: Vec<Episode> = Vec::new();
        let mut add = |times: usize, path: &[(usize, usize)]| {
            for _ in 0..times {
                stays.push(Episode {
                    patient: stays.len() as u64,
                    states: path.iter().map(|step| step.0 as u32).collect(),
                    actions: path.iter().map(|step| step.1 as u32).collect(),
                    rewards: path.iter().map(|&(state, action)| REWARD[state][action]).collect(),
                });
            }
        };
        let quarters = |state: usize, action: usize| if action == 1 { BEHAVIOUR[state] } else { 4 - BEHAVIOUR[state] };
        for first in 0..2 {
            let [to_one, to_two, end] = NEXT[first];
            add(4 * quarters(0, first) * end, &[(0, first)]);
            for (state, share) in [(1, to_one), (2, to_two)] {
                for second in 0..2 {
                    add(quarters(0, first) * share * quarters(state, second), &[(0, first), (state, second)]);
                }
            }
        }
        let record = Record::new(3, 2, DISCOUNT, stays)?;
        let by_state = |shares: [f64; 3]| {
            let rows: Vec<f64> = shares.iter().flat_map(|p| [1.0 - p, *p]).collect();
            StepPolicy::by_state(&record, &rows)
        };
        let (behaviour, scored) = (by_state(BEHAVIOUR.map(|quarters| quarters as f64 / 4.0))?, by_state(SCORED)?);
        let ratios = Ratios::new(&record, &behaviour, &scored, None)?;
        Ok(Self { record, ratios, scored })
    }

    /// The value of the scored policy, in closed form.
    pub(super) fn truth() -> f64 {
        let mean = |state: usize, of: [f64; 2]| (1.0 - SCORED[state]) * of[0] + SCORED[state] * of[1];
        let later = |action: usize| {
            let [to_one, to_two, _] = NEXT[action].map(|quarters| quarters as f64 / 4.0);
            to_one * mean(1, REWARD[1]) + to_two * mean(2, REWARD[2])
        };
        mean(0, [REWARD[0][0] + DISCOUNT * later(0), REWARD[0][1] + DISCOUNT * later(1)])
    }

    /// Values of the scored policy by a Q that is nobody's.
    pub(super) fn wrong_values(&self) -> StepValues {
        let q = |step: usize, action: usize| {
            [1.0, -4.0, 0.3, 7.0, 2.5, -1.5][2 * self.record.states()[step] as usize + action]
        };
        let steps = 0..self.record.n_steps();
        let of_state =
            |step: usize| self.scored.row(step).iter().enumerate().map(|(a, share)| share * q(step, a)).sum();
        StepValues {
            of_action: steps.clone().map(|step| q(step, self.record.actions()[step] as usize)).collect(),
            of_state: steps.map(of_state).collect(),
        }
    }
}
