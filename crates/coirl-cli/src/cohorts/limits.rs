//! What limits a score: actions that no agent can take, few patients, and parameters beside the steps they were learned from.

use super::folder::CohortFile;
use super::units::in_unit;
use crate::numbers::count;
use crate::text::Tabular;
use coirl::agent::Agent;
use coirl_cohort::{PartSummary, Unsupported};
use serde::Serialize;

/// Patients to score on below which single scores mean little.
const FEW_PATIENTS: usize = 50;

/// What is known of the limits of a cohort.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Limits {
    /// Share of the test steps whose action the model admits; nothing where every action can be taken.
    pub(crate) admitted: Option<f64>,
    /// Stays to learn from that have no step that the model admits.
    pub(crate) left_out: usize,
    /// What the parts of the split are like: to learn from, to choose by, to score on.
    pub(crate) parts: [PartSummary; 3],
    /// Whether the table names patients, rather than stays alone.
    pub(crate) by_patient: bool,
}

impl Limits {
    pub(crate) fn new(file: &CohortFile, admitted: f64, left_out: usize, parts: [PartSummary; 3]) -> Self {
        let masked = file.spec.dynamics.unsupported == Unsupported::Masked;
        Self { admitted: masked.then_some(admitted), left_out, parts, by_patient: file.spec.table.patient.is_some() }
    }

    /// The limits without outcome and context of parts with fewer than `smallest` patients.
    pub(crate) fn withholding(self, smallest: usize) -> Self {
        Self { parts: self.parts.map(|part| part.withholding(smallest)), ..self }
    }

    /// The limits without what test stays did.
    pub(crate) fn before_scoring(self) -> Self {
        Self { admitted: None, ..self }
    }

    /// What resampling and counting go by.
    pub(crate) fn people(&self) -> &'static str {
        if self.by_patient { "patients" } else { "stays" }
    }

    /// The limits in words, those of these agents with them.
    pub(crate) fn in_words(&self, agents: &[(&str, &Agent)]) -> Vec<(&'static str, String)> {
        let [train, _, test] = &self.parts;
        let mut told = Vec::new();
        // What rounds to nothing limits nothing.
        if let Some(admitted) = self.admitted.filter(|share| *share < 0.9995) {
            told.push((
                "ceiling",
                format!(
                    "{:.1} % of the test steps take an action that the model does not admit in their state: no agent that keeps to known pairs can \
                     exceed {:.1} %",
                    100.0 * (1.0 - admitted),
                    100.0 * admitted
                ),
            ));
        }
        let people = self.people();
        if test.patients < FEW_PATIENTS {
            let n = count(test.patients);
            told.push((
                "few",
                format!(
                    "{n} {people} to score on, fewer than {FEW_PATIENTS}: another split can give quite other scores"
                ),
            ));
        }
        for (name, agent) in agents {
            told.extend(too_many_parameters(name, agent, train.steps, train.stays));
        }
        if self.left_out > 0 {
            told.push((
                "left out",
                format!(
                    "{} of {} stays to learn from take no action that the model admits: nothing is learned from them",
                    count(self.left_out),
                    count(train.stays)
                ),
            ));
        }
        told
    }
}

/// A warning where an agent has more parameters than there were steps to learn them from.
pub(crate) fn too_many_parameters(
    name: &str,
    agent: &Agent,
    steps: usize,
    stays: usize,
) -> Option<(&'static str, String)> {
    let parameters = n_parameters(agent).filter(|n| *n > steps)?;
    let [parameters, steps, stays] = [parameters, steps, stays].map(count);
    let says = format!(
        "{name} has {parameters} parameters, learned from {steps} steps of {stays} stays: it can know them by heart"
    );
    Some(("warning", says))
}

/// Numbers that were learned, where that can be counted.
fn n_parameters(agent: &Agent) -> Option<usize> {
    match agent {
        Agent::Neural(mapping) => Some(mapping.network().architecture().n_parameters()),
        Agent::Cloned(cloned) => Some(cloned.coefficients().len()),
        Agent::ClonedNetwork(cloned) => Some(cloned.network().architecture().n_parameters()),
        _ => agent.mapping().ok().map(|mapping| mapping.all_weights().len()),
    }
}

/// Sizes, outcome and context of the parts of the split.
pub(crate) fn by_part(file: &CohortFile, parts: &[PartSummary; 3]) -> Tabular {
    let row = |name: String, of: &dyn Fn(&PartSummary) -> String| -> Vec<String> {
        [name].into_iter().chain(parts.iter().map(of)).collect()
    };
    let share = |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share));
    let mut rows = vec![row("stays".into(), &|part| count(part.stays))];
    if file.spec.table.patient.is_some() {
        rows.push(row("patients".into(), &|part| count(part.patients)));
    }
    rows.push(row("steps".into(), &|part| count(part.steps)));
    if let Some(outcome) = &file.spec.outcome {
        rows.push(row(format!("{}, bad", outcome.column), &|part| share(part.bad_ends)));
    }
    for (j, field) in file.encoder.contexts.fields.iter().enumerate() {
        let of = |part: &PartSummary| part.fields.get(j).copied().flatten();
        let mean = |part: &PartSummary| of(part).map_or("–".into(), |x| in_unit(&file.spec, &field.column, x));
        rows.push(row(format!("{}, mean", field.column), &mean));
    }
    Tabular::new("Parts of the split", &["", "to learn from", "to choose by", "to score on"], rows)
}
