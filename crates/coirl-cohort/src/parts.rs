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

impl PartSummary {
    /// The same without outcome and fields where these would be those of fewer than `smallest` patients.
    #[must_use]
    pub fn withholding(self, smallest: usize) -> Self {
        if self.patients >= smallest {
            return self;
        }
        Self { bad_ends: None, fields: vec![None; self.fields.len()], ..self }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::contexts::ContextField;
    use crate::spec::ContextScale;
    use coirl::demos::Trajectory;
    use coirl::model::ContextSpace;

    #[test]
    fn means_are_of_what_is_known_and_few_patients_are_not_told_of() {
        let stay = |patient: &str, age: f64, bad_end: Option<bool>| RecordedStay {
            stay: patient.into(),
            patient: patient.into(),
            fields: vec![age],
            context: ContextSpace::Any.context(vec![1.0]).unwrap(),
            trajectory: Trajectory { states: Vec::new(), actions: Vec::new() },
            bad_end,
            points: Vec::new(),
        };
        let field = ContextField { column: "age".into(), range: [0.0, 1.0], fill: 0.5, plausible: Some([18.0, 100.0]) };
        let contexts = ContextScaling { fields: vec![field], scale: ContextScale::Standardise };
        let stays = [
            stay("a", 40.0, Some(true)),
            stay("a", f64::NAN, None),
            stay("b", 60.0, Some(false)),
            stay("c", 400.0, None),
        ];
        let found = PartSummary::of(&stays, &contexts);
        assert_eq!(
            (found.stays, found.patients, found.bad_ends, found.fields.clone()),
            (4, 3, Some(0.5), vec![Some(50.0)])
        );
        assert_eq!(found.clone().withholding(3), found);
        let withheld = found.withholding(4);
        assert_eq!((withheld.patients, withheld.bad_ends, withheld.fields), (3, None, vec![None]));
    }
}
