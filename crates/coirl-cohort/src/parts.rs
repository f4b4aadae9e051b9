//! What the parts of a split are like, and what of a part no agent can match.

use super::contexts::ContextScaling;
use super::recorded::RecordedStay;
use coirl::model::Cmdp;
use serde::Serialize;
use std::collections::BTreeSet;

/// Sizes, outcome and context of some stays.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartSummary {
    /// Stays.
    pub stays: usize,
    /// Different patients; stays where the table names none.
    pub patients: usize,
    /// Steps.
    pub steps: usize,
    /// Share of the stays that ended badly, of those whose end is known.
    pub bad_ends: Option<f64>,
    /// Mean of each field of the context over the stays in which it is known, in the units of the table.
    pub fields: Vec<Option<f64>>,
}

impl PartSummary {
    /// Of these stays.
    pub fn of(stays: &[RecordedStay], contexts: &ContextScaling) -> Self {
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let field = |j: usize| {
            let known = |stay: &RecordedStay| stay.fields.get(j).copied().filter(|x| contexts.fields[j].knows(*x));
            mean(stays.iter().filter_map(known).collect())
        };
        Self {
            stays: stays.len(),
            patients: stays.iter().map(|stay| stay.patient.as_str()).collect::<BTreeSet<_>>().len(),
            steps: stays.iter().map(|stay| stay.trajectory.actions.len()).sum(),
            bad_ends: mean(stays.iter().filter_map(|stay| stay.bad_end).map(|bad| f64::from(u8::from(bad))).collect()),
            fields: (0..contexts.fields.len()).map(field).collect(),
        }
    }
}

/// Share of the steps whose action the model knows in their state: no agent that keeps to known actions can match more.
pub fn admitted_share(model: &Cmdp, stays: &[RecordedStay]) -> f64 {
    let (mut admitted, mut steps) = (0_usize, 0_usize);
    for (state, action) in stays.iter().flat_map(|stay| stay.trajectory.states.iter().zip(&stay.trajectory.actions)) {
        steps += 1;
        let pair = model.pairs().find(state.index(), action.index());
        admitted += usize::from(pair.is_some_and(|pair| model.is_known(pair)));
    }
    admitted as f64 / steps.max(1) as f64
}
