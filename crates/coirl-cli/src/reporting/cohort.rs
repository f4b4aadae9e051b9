//! The cohort that was learned from, and how what was learned does on its test stays.

use super::demonstrated::Field;
use super::hazards::hazard_picture;
use super::markup::{Markup, details, element, json, pairs, paragraph, table, table_of_words};
use super::page::Section;
use crate::cohorts::{
    CohortFile, CohortFolder, Scores, TOO_FEW, about_rules, action_in_words, by_part, by_severity, described, flow,
    hazard, in_truth, in_unit, matching, rare_actions, reached, reservations, rules, subgroups, unseen_by_estimates,
    verdict, warnings,
};
use crate::failure::Failure;
use crate::numbers::{count, short, three_digits};
use crate::text::Tabular;
use coirl::model::Cmdp;
use coirl_cohort::agreement::Foreseen;
use coirl_cohort::{Actions, PartSummary, RecordedStay, TrainStays};
use std::collections::BTreeSet;

/// Measurements that a state is told by.
const TELLING: usize = 3;
/// Values below this share of the spread of a measurement are rounding.
const ROUNDING: f64 = 1e-6;

/// Scores, where there are test stays, with the cohort they are from.
pub(crate) struct CohortSections<'a> {
    pub(crate) cohort: &'a CohortFolder,
    pub(crate) model: &'a Cmdp,
    pub(crate) scores: Option<&'a Scores>,
    /// Patients below which nothing is told.
    pub(crate) smallest_cell: usize,
}

impl CohortSections<'_> {
    /// What comes of it: a summary, what to look at before believing it, and the scores.
    pub(crate) fn results(&self) -> Result<Vec<Section>, Failure> {
        let mut sections = vec![self.summary()?, self.look_at()];
        if let Some(scores) = self.scores {
            sections.extend(agreement(&self.cohort.file, scores)?);
            sections.extend(rare(scores));
            sections.extend(survival(scores));
            sections.extend(worth(scores));
        }
        Ok(sections)
    }

    /// What it rests on: who was in the table, and how much was seen.
    pub(crate) fn origins(&self) -> Result<Vec<Section>, Failure> {
        Ok(vec![self.who()?, self.support()])
    }

    /// The fields of the contexts that were learned from, in the units that people use; values that are not known are left out.
    pub(crate) fn fields(&self) -> Result<Vec<Field>, Failure> {
        let train = self.cohort.train(self.model)?;
        let file = &self.cohort.file;
        let field = |(j, own): (usize, &coirl_cohort::ContextField)| {
            let (spec, column) = (file.spec.clone(), own.column.clone());
            Field {
                name: own.column.clone(),
                values: train.stays().iter().map(|stay| stay.fields[j]).filter(|x| own.knows(*x)).collect(),
                shown: Box::new(move |x| in_unit(&spec, &column, x)),
            }
        };
        Ok(file.encoder.contexts.fields.iter().enumerate().map(field).collect())
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
        let mut told = vec![match self.scores.and_then(|scores| scores.runs.first()) {
            Some(scored) => ("verdict", format!("The agent {}.", verdict(scored))),
            None => ("verdict", "There are no patients to score on.".into()),
        }];
        told.push((
            cohort.file.people(),
            format!("{train} to learn from, {validation} to choose by, {test} to score on"),
        ));
        told.extend(self.scores.iter().flat_map(|scores| scores.limits_in_words()));
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
        let (train, validation, test) = (cohort.train(model)?, cohort.validation(model)?, cohort.test(model)?);
        let stays = [train.stays(), validation.stays(), test.stays()];
        let smallest = self.smallest_cell;
        let parts = stays.map(|stays| PartSummary::of(stays, &file.encoder.contexts).withholding(smallest));
        let held_out = [parts[1].stays, parts[2].stays];
        let content = Markup::all([
            table(&flow(file)),
            table(&by_part(file, &parts)),
            pairs(described(file, model, &train, held_out)),
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
            row("… that the model admits", count(support.pairs_supported), share(support.pairs_supported, pairs)),
            row(
                "… of them seen too rarely, but the commonest of their state",
                count(support.pairs_rare),
                share(support.pairs_rare, pairs),
            ),
            row("training steps in pairs that are not admitted", String::new(), unsupported),
            row(
                "training steps in pairs seen too rarely",
                String::new(),
                format!("{:.1} %", 100.0 * support.steps_rare),
            ),
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
        Some(action) => action_in_words(&file.spec, encoder, action),
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
            let x = own.in_unit(row[j]);
            // What is left of a mean by rounding is nothing.
            let x = if x.abs() < ROUNDING * own.spread { 0.0 } else { x };
            match own.is_measured() {
                true => format!("{} {}", own.name(), in_unit(&file.spec, &own.column, x)),
                false => format!("{} {}", own.name(), three_digits(x)),
            }
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
                        level => {
                            let edge = dose.edges.get(level - 1);
                            edge.map_or("any".into(), |edge| in_unit(&file.spec, &dose.column, *edge))
                        }
                    };
                    let typical = in_unit(&file.spec, &dose.column, *typical);
                    vec![format!("{}, level {level}", dose.column), most, typical]
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
    let row =
        |field: &coirl_cohort::ContextField| vec![field.column.clone(), in_unit(&file.spec, &field.column, field.fill)];
    let rows = file.encoder.contexts.fields.iter().map(row).collect();
    // The ends that fields are scaled by are those of single patients; cohort.json has them.
    let header = ["field", "where nothing is known"];
    Tabular::new("Fields of the context", &header, rows)
}

fn agreement(file: &CohortFile, scores: &Scores) -> Result<Option<Section>, Failure> {
    let Some(matched) = matching(scores) else { return Ok(None) };
    let settings = details("Settings of the scores, complete", json(&scores.settings)?);
    let says =
        "Shares are in per cent, with intervals over resampled patients; nothing was learned from these patients.";
    let verdicts = scores.runs.iter().map(|scored| paragraph(&format!("The agent {}.", verdict(scored))));
    let content =
        verdicts.chain([paragraph(says), table(&matched)]).chain(rules(scores).iter().map(table).collect::<Vec<_>>());
    let about = pairs(about_rules(scores.logistic));
    let content = Markup::all(content.chain([about, table(&subgroups(file, scores)), settings]));
    Ok(Some(Section::new("matching", "Does it do what was done?", content)))
}

/// How rare actions are foreseen, with a curve each; nothing where there are none.
fn rare(scores: &Scores) -> Option<Section> {
    let foreseen = &scores.runs.first()?.agreement.rare;
    let says = "Whether the agent gives a rare action a higher probability at the steps at which it was taken: the probability that such a step has a higher one than \
                a step without (AUC; a half is chance). The curves show how often it was taken, and the agent's mean probability of it.";
    let curve = |own: &Foreseen| {
        let shown = hazard(own, scores.limits.people());
        let words = format!("{}: recorded share and the agent's mean probability by step", own.event);
        let drawing = hazard_picture(own).and_then(|svg| Markup::drawing(&svg, &own.event, &words));
        let figure =
            drawing.map(|drawing| element("figure", &[("tabindex", "0"), ("aria-label", &own.event)], drawing));
        Markup::all([figure.unwrap_or_default(), details("The same as a table", table(&shown))])
    };
    let content = [paragraph(says), table(&rare_actions(scores)?)].into_iter().chain(foreseen.iter().map(curve));
    Some(Section::new("rare", "Rare actions", Markup::all(content)))
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
