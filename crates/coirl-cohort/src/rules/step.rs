//! Steps of stays with what rules know of them.

use crate::recorded::RecordedStay;
use coirl::{Error, Result};

/// What was done before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// It is the first of its stay.
    Nothing,
    /// This action.
    Action(u32),
}

/// A step of a stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) state: usize,
    pub(super) before: Before,
    pub(super) action: u32,
    /// Its measurements; none where they were not kept.
    pub(super) point: &'a [f32],
    pub(super) context: &'a [f64],
}

/// The steps of every stay that has any. Refuses states and actions that do not exist.
pub(super) fn steps_of(stays: &[RecordedStay], n_states: usize, n_actions: usize) -> Result<Vec<Vec<Step<'_>>>> {
    let mut number = 0;
    let mut all = Vec::with_capacity(stays.len());
    for stay in stays {
        let actions = &stay.trajectory.actions;
        if actions.is_empty() {
            continue;
        }
        let width = stay.points.len() / actions.len();
        let mut steps = Vec::with_capacity(actions.len());
        for (t, action) in actions.iter().enumerate() {
            let state = stay.trajectory.states[t].index();
            if state >= n_states {
                return Err(Error::StateOutOfRange { number: number as u64, state, n_states });
            }
            if action.index() >= n_actions {
                return Err(Error::ActionOutOfRange { step: number, action: action.index(), n_actions });
            }
            let before = t.checked_sub(1).map_or(Before::Nothing, |t| Before::Action(actions[t].0));
            let point = &stay.points[t * width..(t + 1) * width];
            steps.push(Step { state, before, action: action.0, point, context: stay.context.values() });
            number += 1;
        }
        all.push(steps);
    }
    Ok(all)
}
