//! New people in a cohort, in words: how far a table is from training, and what is known of one person.

use super::NOT_FOR_CLINICAL_USE;
use super::folder::CohortFile;
use super::report::{TOO_FEW, flow_of, write_scores};
use super::scoring::Scores;
use super::units::action_in_words;
use crate::failure::Failure;
use crate::numbers::{count, short, three_digits};
use crate::text::{self, Tabular};
use coirl::agent::{Agent, Predictions};
use coirl::model::Cmdp;
use coirl_cohort::{
    Applied, ColumnDrift, Drift, Finding, Flow, Recognised, RecordedStay, Role, Severity, Shift, Spec, TrainStays,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// Columns that have not shifted, and actions, that are shown.
const SHOWN: usize = 5;

/// A new table in the cohort.
pub(crate) struct Applying<'a> {
    path: &'a Path,
    file: &'a CohortFile,
    flow: &'a Flow,
    drift: &'a Drift,
    /// Stays of the new table.
    n_stays: usize,
    /// Those of them, by the ids, that something was learned from.
    pub(crate) known: usize,
    /// Whether the table says how stays ended.
    pub(crate) with_outcome: bool,
}

impl<'a> Applying<'a> {
    /// `spec` is that of the new table; `learned_from` are the stays that the cohort and its runs were fitted on.
    pub(crate) fn new<'s>(
        path: &'a Path,
        file: &'a CohortFile,
        spec: &Spec,
        applied: &'a Applied,
        learned_from: impl Iterator<Item = &'s RecordedStay>,
    ) -> Self {
        let patients = spec.table.patient.is_some() && file.spec.table.patient.is_some();
        let (mut people, mut stays) = (BTreeSet::new(), BTreeSet::new());
        for stay in learned_from {
            people.insert(stay.patient.as_str());
            stays.insert(stay.stay.as_str());
        }
        let known = |stay: &&RecordedStay| {
            stays.contains(stay.stay.as_str()) || (patients && people.contains(stay.patient.as_str()))
        };
        Self {
            path,
            file,
            flow: &applied.flow,
            drift: &applied.drift,
            n_stays: applied.stays.stays().len(),
            known: applied.stays.stays().iter().filter(known).count(),
            with_outcome: spec.outcome.is_some() || file.spec.outcome.is_none(),
        }
    }

    /// Who was left out, how far the table is from training, and the scores.
    pub(crate) fn write(&self, out: &mut dyn Write, scores: &Scores) -> Result<(), Failure> {
        flow_of(self.path, self.flow).write(out)?;
        writeln!(out)?;
        self.columns().write(out)?;
        writeln!(out)?;
        for (label, words) in self.in_words() {
            text::pair(out, label, &words)?;
        }
        writeln!(out)?;
        let findings: Vec<Finding> = self.file.findings.iter().cloned().chain(self.finding()).collect();
        write_scores(out, self.file, &findings, scores)
    }

    /// That people are in both tables.
    fn finding(&self) -> Option<Finding> {
        (self.known > 0).then(|| Finding {
            code: "learned-from".into(),
            severity: Severity::Warning,
            message: format!(
                "{} of {} stays have the id of a stay or patient that was learned from or chosen by; where they are the same people, the \
                 scores below are no scores on new ones",
                count(self.known),
                count(self.n_stays)
            ),
            example: None,
        })
    }

    /// The columns that have shifted, and some others.
    fn columns(&self) -> Tabular {
        let all = &self.drift.columns;
        let shifted = all.iter().filter(|own| own.shift != Shift::None).count();
        let row = |own: &ColumnDrift| {
            let unit = self.file.spec.units.get(&own.column).map_or(String::new(), |unit| format!(", {unit}"));
            let role = if own.role == Role::Field { " (at start)" } else { "" };
            let optional = |x: Option<f64>| x.map_or("–".into(), |x| format!("{x:.2}"));
            let mean = if own.mean.new.is_nan() { "–".into() } else { short(own.mean.new) };
            vec![
                format!("{}{unit}{role}", own.column),
                match own.shift {
                    Shift::Large => "large".into(),
                    Shift::Some => "some".into(),
                    Shift::None => String::new(),
                },
                short(own.mean.train),
                mean,
                optional(own.standardised_difference),
                optional(own.stability_index),
                per_cent(own.outside),
                format!("{} → {}", per_cent(own.missing.train), per_cent(own.missing.new)),
                per_cent(own.implausible),
            ]
        };
        let header = ["", "shift", "mean", "here", "difference", "index", "outside", "missing", "implausible"];
        let rows: Vec<Vec<String>> = all.iter().take(shifted + SHOWN).map(row).collect();
        let title = match (shifted, all.len().saturating_sub(rows.len())) {
            (0, rest) => format!("Columns against training: none has shifted ({} more are alike)", count(rest)),
            (n, 0) => format!("Columns against training: {} of {} have shifted", count(n), count(all.len())),
            (n, rest) => {
                let all = count(all.len());
                format!("Columns against training: {} of {all} have shifted ({} more have not)", count(n), count(rest))
            }
        };
        Tabular::new(title, &header, rows)
    }

    /// What the rows are as states, and what the columns of the table mean.
    fn in_words(&self) -> Vec<(&'static str, String)> {
        let Drift { rows, home, far, .. } = self.drift;
        let at_home = match self.file.reference.validation {
            Some(_) => "in the validation stays",
            None => "in training",
        };
        let mut told = vec![
            (
                "states",
                format!(
                    "{} of the steps are in states that are rare in training; {} {at_home}",
                    per_cent(rows.rare),
                    per_cent(home.rare)
                ),
            ),
            (
                "actions",
                format!(
                    "{} of the steps take an action that the model does not admit in its state; {} {at_home}. No agent can take it",
                    per_cent(rows.inadmissible),
                    per_cent(home.inadmissible)
                ),
            ),
        ];
        if home.distance > 0.0 {
            let distance = format!(
                "rows are {:.2} times as far from their state as {at_home}; {} of them further than all but 1 % there",
                rows.distance / home.distance,
                per_cent(*far)
            );
            told.insert(1, ("distance", distance));
        }
        told.push(match (rows.bad_ends, self.file.reference.train.bad_ends) {
            (Some(here), Some(train)) => {
                ("ends", format!("{} ended badly; {} in training", per_cent(here), per_cent(train)))
            }
            _ if self.with_outcome => ("ends", "not known".into()),
            _ => {
                let column = self.file.spec.outcome.as_ref().map_or("", |outcome| outcome.column.as_str());
                let words = format!("the table has no {column}: what a policy would have reached is left out");
                ("ends", words)
            }
        });
        told.push((
            "difference",
            "of the means, in standard deviations of training; index: population stability, 0.1 is some and 0.25 a large shift, beyond \
             twice what chance explains in so few stays; outside: beyond all training values"
                .into(),
        ));
        told
    }
}

/// A share in per cent.
fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// An action with what is known of it in a state.
#[derive(Debug, Serialize)]
struct GivenAction {
    action: usize,
    name: String,
    /// Training steps in the state that took it; nothing where too few patients were there to tell.
    steps: Option<u64>,
    share: Option<f64>,
    /// What the agent would do: its probability.
    agent: f64,
    /// Whether the model admits it in the state.
    admitted: bool,
}

/// What is known of one person, and what would be done.
pub(crate) struct PersonAnswer<'a> {
    file: &'a CohortFile,
    recognised: Recognised,
    steps: u64,
    /// Patients who were in the state; nothing where too few to tell.
    patients: Option<usize>,
    /// What was given in the state or would be by the agent, the most frequent first.
    actions: Vec<GivenAction>,
    /// Actions of the agent, the best first.
    ranked: Vec<usize>,
}

impl<'a> PersonAnswer<'a> {
    /// Asks the agent, and counts what was given to those in the same state.
    pub(crate) fn new(
        file: &'a CohortFile,
        model: &Cmdp,
        agent: &Agent,
        train: &TrainStays,
        recognised: Recognised,
        smallest: usize,
    ) -> Result<Self, Failure> {
        let n_actions = file.encoder.actions.len();
        let state = recognised.state;
        let mut given = vec![0_u64; n_actions];
        let mut patients = BTreeSet::new();
        for stay in train.stays() {
            for (visited, action) in stay.trajectory.states.iter().zip(&stay.trajectory.actions) {
                if *visited == state {
                    given[action.index()] += 1;
                    patients.insert(stay.patient.as_str());
                }
            }
        }
        let steps: u64 = given.iter().sum();
        let told = patients.len() >= smallest;
        let visited = [state];
        let predictions = Predictions::of(model, agent, std::slice::from_ref(&recognised.context), &[&visited])?;
        let probabilities = predictions.probabilities();
        let by = predictions.ranks().unwrap_or_else(|| probabilities.to_vec());
        let mut ranked: Vec<usize> = (0..n_actions).filter(|&a| admitted(model, state.index(), a)).collect();
        // What it does comes first, whatever ranks the others.
        ranked.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(by[b].total_cmp(&by[a])));
        let action = |action: usize| GivenAction {
            action,
            name: action_in_words(&file.spec, &file.encoder, action),
            steps: told.then_some(given[action]),
            share: told.then(|| given[action] as f64 / steps.max(1) as f64),
            agent: probabilities[action],
            admitted: admitted(model, state.index(), action),
        };
        let mut order: Vec<usize> = (0..n_actions).filter(|&a| given[a] > 0 || probabilities[a] > 0.0).collect();
        // Their order would tell what their numbers may not.
        order.sort_by_key(|&a| (std::cmp::Reverse(if told { given[a] } else { 0 }), a));
        order.retain(|&a| told || probabilities[a] > 0.0);
        let actions = order.into_iter().map(action).collect();
        let patients = told.then_some(patients.len());
        Ok(Self { file, recognised, steps, patients, actions, ranked })
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Recognised { state, context, distance, fields, known, unusual } = &self.recognised;
        let warnings: Vec<_> = unusual.iter().map(|own| json!({"message": own.message(), "value": own})).collect();
        let ranked: Vec<_> = self
            .ranked
            .iter()
            .map(|&a| json!({"action": a, "name": action_in_words(&self.file.spec, &self.file.encoder, a)}))
            .collect();
        let line = json!({
            "state": state.0, "context": context.values(), "fields": fields, "measurements": known,
            "distance": distance, "distance_in_training": self.file.reference.train.distance,
            "patients": self.patients, "steps": self.patients.map(|_| self.steps), "given": self.actions, "agent": ranked,
            "warnings": warnings, "note": NOT_FOR_CLINICAL_USE,
        });
        Ok(writeln!(out, "{line}")?)
    }

    pub(crate) fn write_text(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Recognised { state, distance, fields, known, .. } = &self.recognised;
        let n_states = self.file.encoder.centroids.n_clusters();
        text::title(out, &format!("State {} of 0 to {}", state.0, n_states - 1))?;
        let seen = match self.patients {
            Some(patients) => {
                format!("{} patients in {} steps of training", count(patients), count(self.steps as usize))
            }
            None => TOO_FEW.into(),
        };
        text::pair(out, "seen in", &seen)?;
        let usual = self.file.reference.train.distance;
        if usual > 0.0 {
            text::pair(
                out,
                "distance",
                &format!(
                    "{} from its centre; training rows are {} from theirs",
                    three_digits(*distance),
                    three_digits(usual)
                ),
            )?;
        }
        let field = |own: &coirl_cohort::KnownField| format!("{}={}", own.column, three_digits(own.value));
        let (given, filled): (Vec<_>, Vec<_>) = fields.iter().partition(|own| own.given);
        let list =
            |fields: Vec<&coirl_cohort::KnownField>| fields.into_iter().map(field).collect::<Vec<_>>().join(", ");
        if !given.is_empty() {
            text::pair(out, "context", &list(given))?;
        }
        if !filled.is_empty() {
            text::pair(out, "", &format!("not given, and filled in as in training: {}", list(filled)))?;
        }
        writeln!(out)?;
        let rows = known.iter().filter(|own| own.given).map(|own| {
            let unit = self.file.spec.units.get(&own.name).cloned().unwrap_or_default();
            vec![own.name.clone(), three_digits(own.value), three_digits(own.typical), unit]
        });
        Tabular::new("What is known", &["", "here", "in the state", "unit"], rows.collect()).write(out)?;
        let filled = known.iter().filter(|own| !own.given);
        let filled: Vec<String> = filled.map(|own| format!("{} {}", own.name, three_digits(own.value))).collect();
        if !filled.is_empty() {
            writeln!(out)?;
            text::pair(out, "filled in", &format!("as in training: {}", filled.join(", ")))?;
        }
        writeln!(out)?;
        self.given().write(out)?;
        writeln!(out)?;
        let best: Vec<String> = self
            .ranked
            .iter()
            .take(3)
            .map(|&action| action_in_words(&self.file.spec, &self.file.encoder, action))
            .collect();
        text::pair(
            out,
            "the agent",
            &best.first().map_or("admits no action".into(), |first| format!("would do: {first}")),
        )?;
        if best.len() > 1 {
            text::pair(out, "", &format!("then rather: {}", best[1..].join("; ")))?;
        }
        writeln!(out, "\n{NOT_FOR_CLINICAL_USE}")?;
        Ok(())
    }

    /// What was given to those in the state.
    fn given(&self) -> Tabular {
        let row = |own: &GivenAction| {
            let agent = if own.agent > 0.0 { format!("{:.0} %", 100.0 * own.agent) } else { String::new() };
            let steps = own.steps.map_or(TOO_FEW.into(), |n| count(n as usize));
            let rare = if own.admitted { "" } else { " (too rare for the model)" };
            vec![format!("{}{rare}", own.name), steps, own.share.map_or(String::new(), per_cent), agent]
        };
        let shown = |(i, own): &(usize, &GivenAction)| *i < 2 * SHOWN || own.agent > 0.0;
        let rows = self.actions.iter().enumerate().filter(shown).map(|(_, own)| row(own)).collect();
        Tabular::new("What similar patients were given in training", &["", "steps", "share", "agent"], rows)
    }
}

fn admitted(model: &Cmdp, state: usize, action: usize) -> bool {
    model.pairs().find(state, action).is_some()
}
