//! The cohort that was learned from, and how what was learned does on its test stays.

use super::markup::{Markup, details, json, pairs, paragraph, table, table_of_words};
use super::page::Section;
use crate::cohorts::{
    CohortFile, CohortFolder, Scores, TOO_FEW, action_in_words, by_severity, described, flow, in_truth, matching,
    reached, reservations, subgroups, unseen_by_estimates, verdict, warnings,
};
use crate::failure::Failure;
use crate::numbers::{count, short, three_digits};
use crate::text::Tabular;
use coirl::model::Cmdp;
use coirl_cohort::{Actions, RecordedStay, TrainStays};
use std::collections::BTreeSet;

/// Measurements that a state is told by.
const TELLING: usize = 3;

/// Scores, where there are test stays, with the cohort they are from.
pub(crate) struct CohortSections<'a> {
    pub(crate) cohort: &'a CohortFolder,
    pub(crate) model: &'a Cmdp,
    pub(crate) scores: Option<&'a Scores>,
}

impl CohortSections<'_> {
    /// What comes of it: a summary, what to look at before believing it, and the scores.
    pub(crate) fn results(&self) -> Result<Vec<Section>, Failure> {
        let mut sections = vec![self.summary()?, self.look_at()];
        if let Some(scores) = self.scores {
            sections.extend(agreement(scores)?);
            sections.extend(survival(scores));
            sections.extend(worth(scores));
        }
        Ok(sections)
    }

    /// What it rests on: who was in the table, and how much was seen.
    pub(crate) fn origins(&self) -> Result<Vec<Section>, Failure> {
        Ok(vec![self.who()?, self.support()])
    }

    /// The most important in a few lines.
    fn summary(&self) -> Result<Section, Failure> {
        let (cohort, model) = (self.cohort, self.model);
        let patients = |stays: &[RecordedStay]| {
            let mut ids: Vec<&str> = stays.iter().map(|stay| stay.patient.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            count(ids.len())
        };
        let (train, validation, test) = (cohort.train(model)?, cohort.validation(model)?, cohort.test(model)?);
        let [train, validation, test] = [train.stays(), validation.stays(), test.stays()].map(patients);
        let mut told = vec![(
            cohort.file.people(),
            format!("{train} to learn from, {validation} to choose by, {test} to score on"),
        )];
        match self.scores.and_then(|scores| scores.runs.first()) {
            Some(scored) => told.push(("verdict", format!("The agent {}.", verdict(scored)))),
            None => told.push(("verdict", "There are no patients to score on.".into())),
        }
        told.push(match warnings(&cohort.file.findings).len() {
            0 => ("warnings", "None about the table.".into()),
            1 => ("warnings", "One about the table, which may make everything below wrong.".into()),
            n => ("warnings", format!("{n} about the table, any of which may make everything below wrong.")),
        });
        Ok(Section::new("summary", "Summary", pairs(told)))
    }

    /// Who is in it, and what the model is made of.
    fn who(&self) -> Result<Section, Failure> {
        let (cohort, model) = (self.cohort, self.model);
        let file = &cohort.file;
        let held_out = [cohort.validation(model)?.stays().len(), cohort.test(model)?.stays().len()];
        let content = Markup::all([
            table(&flow(file)),
            pairs(described(file, model, &cohort.train(model)?, held_out)),
            details("Measurements that make the states", table(&measurements(file))),
            details("What the actions are", table(&actions(file))),
            details("What the context is made of", table(&contexts(file))),
        ]);
        Ok(Section::new("cohort", "The cohort", content))
    }

    /// What the linter said of the table.
    fn look_at(&self) -> Section {
        let findings = by_severity(&self.cohort.file.findings);
        let content = if findings.is_empty() {
            paragraph("Nothing suspicious was found in the table.")
        } else {
            let row = |(label, finding): (&str, &coirl_cohort::Finding)| {
                vec![label.to_owned(), finding.code.clone(), finding.message.clone()]
            };
            let rows = findings.into_iter().map(row).collect();
            table_of_words(&Tabular::new("Findings about the table", &["severity", "what", "seen"], rows))
        };
        Section::new("findings", "What to look at", content)
    }

    /// How much of the model rests on what was seen.
    fn support(&self) -> Section {
        let support = &self.cohort.file.support;
        let share = |part: usize, of: usize| format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64);
        let n_states = self.cohort.file.encoder.centroids.n_clusters();
        let pairs = n_states * self.cohort.file.encoder.actions.len();
        let row = |what: &str, n: String, share: String| vec![what.to_owned(), n, share];
        let unsupported = format!("{:.1} %", 100.0 * support.steps_unsupported);
        let rows = vec![
            row("training steps", count(support.steps as usize), String::new()),
            row("(state, action) pairs seen", count(support.pairs_seen), share(support.pairs_seen, pairs)),
            row("… often enough to be known", count(support.pairs_supported), share(support.pairs_supported, pairs)),
            row("training steps in other pairs", String::new(), unsupported),
            row("states with too few training steps", count(support.thin_states), share(support.thin_states, n_states)),
        ];
        let content = table(&Tabular::new("What the transitions rest on", &["", "number", "share"], rows));
        Section::new("support", "Support", content)
    }
}

/// Which states at least `smallest` patients were in: the measurements of others would be those of single people.
pub(crate) fn states_known(train: &TrainStays, n_states: usize, smallest: usize) -> Vec<bool> {
    let mut patients: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); n_states];
    for stay in train.stays() {
        for state in &stay.trajectory.states {
            if let Some(seen) = patients.get_mut(state.index()) {
                seen.insert(&stay.patient);
            }
        }
    }
    patients.into_iter().map(|seen| seen.len() >= smallest).collect()
}

/// The features of the reward as somebody at a bedside knows them: a state that is `known` by its most unusual measurements, an action by
/// its doses.
pub(crate) fn features_in_words(file: &CohortFile, names: &[String], known: &[bool]) -> Vec<String> {
    let encoder = &file.encoder;
    let n_states = encoder.centroids.n_clusters();
    if names.len() != n_states + encoder.actions.len() {
        return names.to_vec();
    }
    let telling = telling_measurements(file);
    let word = |(j, name): (usize, &String)| match j.checked_sub(n_states) {
        None if known.get(j) == Some(&false) => format!("{name}: {TOO_FEW}"),
        None => format!("{name}: {}", telling.get(j).cloned().unwrap_or_default()),
        Some(action) => action_in_words(encoder, action),
    };
    names.iter().enumerate().map(word).collect()
}

/// Of every state the measurements that are furthest from the mean of the states, in the units of the table.
fn telling_measurements(file: &CohortFile) -> Vec<String> {
    let measurements: Vec<_> = file.encoder.measurements.iter().collect();
    let centroids: Vec<&[f64]> = file.encoder.centroids.rows().collect();
    let n = centroids.len().max(1) as f64;
    let moments = |j: usize| {
        let mean = centroids.iter().map(|row| row[j]).sum::<f64>() / n;
        let variance = centroids.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    };
    let moments: Vec<(f64, f64)> = (0..measurements.len()).map(moments).collect();
    let of_state = |row: &&[f64]| {
        let unusual = |j: usize| {
            let (mean, spread) = moments[j];
            if spread > 0.0 { ((row[j] - mean) / spread).abs() } else { 0.0 }
        };
        let mut order: Vec<usize> = (0..measurements.len()).collect();
        order.sort_by(|&a, &b| unusual(b).total_cmp(&unusual(a)));
        let told = order.iter().take(TELLING).map(|&j| {
            let own = measurements[j];
            let unit = file.spec.units.get(&own.column).filter(|_| own.is_measured());
            let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
            format!("{} {}{unit}", own.name(), three_digits(own.in_unit(row[j])))
        });
        told.collect::<Vec<_>>().join(", ")
    };
    centroids.iter().map(of_state).collect()
}

fn measurements(file: &CohortFile) -> Tabular {
    let rows = file.encoder.measurements.iter().map(|measurement| {
        let numbers = [measurement.mean, measurement.spread, measurement.weight].map(short);
        [measurement.name(), measurement.lag.to_string()].into_iter().chain(numbers).collect()
    });
    let header = ["column", "steps late", "mean", "spread", "weight"];
    Tabular::new("After their transform, on training rows", &header, rows.collect())
}

fn actions(file: &CohortFile) -> Tabular {
    match &file.encoder.actions {
        Actions::Doses(doses) => {
            let levels = doses.iter().flat_map(|dose| {
                dose.typical.iter().enumerate().map(|(level, typical)| {
                    let most = match level {
                        0 => "0".into(),
                        level => dose.edges.get(level - 1).map_or("any".into(), |edge| short(*edge)),
                    };
                    vec![format!("{}, level {level}", dose.column), most, short(*typical)]
                })
            });
            let title = "An action is a level of every dose";
            Tabular::new(title, &["dose", "at most", "training median"], levels.collect())
        }
        Actions::Numbered { column, number } => Tabular::new(
            "Actions are numbers in a column",
            &["column", "actions"],
            vec![vec![column.clone(), count(*number)]],
        ),
    }
}

fn contexts(file: &CohortFile) -> Tabular {
    let row = |field: &coirl_cohort::ContextField| vec![field.column.clone(), short(field.fill)];
    let rows = file.encoder.contexts.fields.iter().map(row).collect();
    // The ends that fields are scaled by are those of single patients; cohort.json has them.
    let header = ["field", "where nothing is known"];
    Tabular::new("Fields, in the units of the table", &header, rows)
}

fn agreement(scores: &Scores) -> Result<Option<Section>, Failure> {
    let Some(matched) = matching(&scores.runs) else { return Ok(None) };
    let settings = details("Settings of the scores, complete", json(&scores.settings)?);
    let says =
        "Shares are in per cent, with intervals over resampled patients; nothing was learned from these patients.";
    let verdicts = scores.runs.iter().map(|scored| paragraph(&format!("The agent {}.", verdict(scored))));
    let content = [paragraph(says), table(&matched)].into_iter().chain(verdicts);
    let content = Markup::all(content.chain([table(&subgroups(&scores.runs)), settings]));
    Ok(Some(Section::new("matching", "Does it do what was done?", content)))
}

/// The columns of the estimates in a sentence each.
const ESTIMATES: [(&str, &str); 6] = [
    (
        "FQE",
        "Fitted Q evaluation learns from recorded steps what comes after an action, and follows the policy through that.",
    ),
    (
        "WIS",
        "Weighted importance sampling is the mean outcome of stays, each weighted by how much likelier the policy makes its actions than clinicians did.",
    ),
    ("per decision", "The same with weights that grow step by step."),
    ("WDR", "Weighted doubly robust estimation is FQE, corrected by weights where stays went otherwise."),
    ("stays", "The effective number of stays behind the weights; below some hundred the weights are refused."),
    ("unseen", "The share of the policy on actions that were never recorded in their state."),
];

fn survival(scores: &Scores) -> Option<Section> {
    let off_policy = scores.off_policy.as_ref()?;
    let content = Markup::all([
        table(&reached(off_policy)),
        pairs(reservations(off_policy)),
        details("What the columns are", pairs(ESTIMATES.map(|(name, words)| (name, words.to_owned())))),
    ]);
    Some(Section::new("off-policy", "What it would have reached", content))
}

fn worth(scores: &Scores) -> Option<Section> {
    let says = "Value is by the clinicians' own reward, above random in per cent of what clinicians without lapses gain; takes unknown is the share of stays in \
                which the policy once takes an action whose consequences nobody knows.";
    let beware =
        unseen_by_estimates(scores).map_or_else(Markup::default, |words| paragraph(&format!("Beware: {words}.")));
    let content = Markup::all([table(&in_truth(&scores.runs)?), paragraph(says), beware]);
    Some(Section::new("worth", "What it is worth in truth", content))
}
