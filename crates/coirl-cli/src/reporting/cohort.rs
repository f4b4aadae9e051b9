//! The cohort that was learned from, and how what was learned does on its test stays.

use super::markup::{Markup, details, json, pairs, paragraph, table, table_of_words};
use super::page::Section;
use crate::cohorts::{
    CohortFile, CohortFolder, Scores, by_severity, described, flow, in_truth, matching, reached, reservations,
    subgroups,
};
use crate::failure::Failure;
use crate::numbers::{count, short};
use crate::text::Tabular;
use coirl::cohort::Actions;
use coirl::model::Cmdp;

/// Scores, where there are test stays, with the cohort they are from.
pub(crate) struct CohortSections<'a> {
    pub(crate) cohort: &'a CohortFolder,
    pub(crate) model: &'a Cmdp,
    pub(crate) scores: Option<&'a Scores>,
}

impl CohortSections<'_> {
    pub(crate) fn all(&self) -> Result<Vec<Section>, Failure> {
        let mut sections = vec![self.who()?, self.look_at(), self.support()];
        if let Some(scores) = self.scores {
            sections.extend(agreement(scores)?);
            sections.extend(survival(scores));
            sections.extend(worth(scores));
        }
        Ok(sections)
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
            let row = |(label, finding): (&str, &coirl::cohort::Finding)| {
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

fn measurements(file: &CohortFile) -> Tabular {
    let rows = file.encoder.measurements.iter().map(|measurement| {
        let numbers = [measurement.mean, measurement.spread, measurement.weight].map(short);
        [measurement.column.clone(), measurement.lag.to_string()].into_iter().chain(numbers).collect()
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
    let row = |field: &coirl::cohort::ContextField| {
        vec![field.column.clone(), short(field.range[0]), short(field.range[1]), short(field.fill)]
    };
    let rows = file.encoder.contexts.fields.iter().map(row).collect();
    let header = ["field", "scaled to 0", "scaled to 1", "where nothing is known"];
    Tabular::new("Fields, in the units of the table", &header, rows)
}

fn agreement(scores: &Scores) -> Result<Option<Section>, Failure> {
    let Some(matched) = matching(&scores.runs) else { return Ok(None) };
    let settings = details("Settings of the scores, complete", json(&scores.settings)?);
    let says =
        "Shares are in per cent, with intervals over resampled patients; nothing was learned from these patients.";
    let content = Markup::all([paragraph(says), table(&matched), table(&subgroups(&scores.runs)), settings]);
    Ok(Some(Section::new("matching", "Does it do what was done?", content)))
}

fn survival(scores: &Scores) -> Option<Section> {
    let off_policy = scores.off_policy.as_ref()?;
    let content = Markup::all([table(&reached(off_policy)), pairs(reservations(off_policy))]);
    Some(Section::new("off-policy", "What it would have reached", content))
}

fn worth(scores: &Scores) -> Option<Section> {
    let content = table(&in_truth(&scores.runs)?);
    Some(Section::new("worth", "What it is worth in truth", content))
}
