//! What somebody should look at before they believe a cohort: leakage, mixed-up people, thin support, columns that say nothing.

mod copies;
mod leaks;
mod missing;
mod outcome;
mod quantities;
mod same_time;
mod separation;
mod units;
mod values;

use super::encoder::{Actions, Encoder};
use super::model::SupportSummary;
use super::spec::{ContextScale, Spec};
use super::split::Parts;
use super::stays::{Stay, steps_between};
use super::step_length::StepLength;
use super::table::Table;
use coirl::Result;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Share of the most frequent action from which on there is little to predict.
const MAJORITY: f64 = 0.8;
/// Share of the steps that may be skipped, filled in or unsupported without a word.
const SKIPPED: f64 = 0.01;
/// Share of the transitions that skip steps from which on a step has another length than was said.
const MOSTLY_SKIPPED: f64 = 0.5;
const FILLED: f64 = 0.3;
const UNSUPPORTED: f64 = 0.1;
/// Age in years that nobody reaches.
const OLDEST_YEARS: f64 = 150.0;
/// How close to mean 0 and variance 1 a column of raw measurements never is, and how many such columns are no accident.
const STANDARDISED: f64 = 0.02;
const STANDARDISED_COLUMNS: usize = 3;

/// Seconds below which a step that was given as a number is rather one in another unit.
const SHORT_STEP: f64 = 3600.0;
/// Fields of a simplex that leave too few numbers to tell people apart.
const FEW_FIELDS: usize = 2;
/// Times that a field is exchanged among people, to see how many agree by chance.
const EXCHANGES: usize = 20;
/// Patients below which a part says little.
const FEW_PATIENTS: usize = 20;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Results may be wrong.
    Warning,
}

/// Something that somebody should look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A short name for it.
    pub code: String,
    /// How serious it is.
    pub severity: Severity,
    /// What was seen and what to do. Names nobody.
    pub message: String,
    /// A place in the table where it can be seen: a stay, a patient, a row. For whoever holds the table, and for nobody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

impl Finding {
    /// The same without the example, for what is passed on.
    pub fn anonymous(&self) -> Self {
        Self { example: None, ..self.clone() }
    }

    fn with_example(self, example: String) -> Self {
        Self { example: Some(example), ..self }
    }
}

fn warning(code: &str, message: String) -> Finding {
    Finding { code: code.into(), severity: Severity::Warning, message, example: None }
}

fn note(code: &str, message: String) -> Finding {
    Finding { severity: Severity::Note, ..warning(code, message) }
}

/// What the table itself says.
pub(super) fn table(table: &Table, spec: &Spec, parts: &Parts) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    dose_among_measurements(spec, &mut findings);
    let sample = leaks::Sample::of(table, parts);
    leaks::leaks(table, spec, &sample, &mut findings)?;
    missing::missing(table, spec, parts, &sample, &mut findings)?;
    copies::copies(table, spec, parts, &mut findings)?;
    people_mixed_up(table, spec, parts, &mut findings)?;
    rows_in_several_places(table, &mut findings);
    same_time::same_time(table, spec, &mut findings);
    patients_in_two_parts(table, spec, parts, &mut findings)?;
    constant_and_unmeasured(table, spec, &parts.train, &mut findings)?;
    standardised_before(table, spec, parts, &mut findings)?;
    ages(table, spec, parts, &mut findings)?;
    units::units(table, spec, parts, &mut findings)?;
    skipped_steps(table, spec, parts, &mut findings);
    doses_not_recorded(table, spec, parts, &mut findings)?;
    outcome::outcome(table, spec, parts, &mut findings)?;
    values::values(table, spec, parts, &mut findings)?;
    few_fields(spec, &mut findings);
    short_step(table, spec, &mut findings);
    small_parts(parts, &mut findings);
    if let Some(column) = &spec.action.column {
        let message = format!(
            "actions are taken from {column} as they are; if its levels were quantiles of all rows, the test stays helped to choose them"
        );
        findings.push(note("given-actions", message));
    }
    Ok(findings)
}

/// What the actions of training rows say.
pub(super) fn actions(actions: &Actions, table: &Table, train: &[Stay]) -> Result<Vec<Finding>> {
    let mut times = vec![0_u64; actions.len()];
    for &row in train.iter().flat_map(|stay| &stay.rows) {
        times[actions.of_row(table, row as usize)?.index()] += 1;
    }
    let total: u64 = times.iter().sum();
    let most = times.iter().copied().max().unwrap_or_default();
    let share = most as f64 / total.max(1) as f64;
    if share < MAJORITY {
        return Ok(Vec::new());
    }
    let action = times.iter().position(|n| *n == most).unwrap_or_default();
    let name = &actions.names()[action];
    let message = format!(
        "{:.1} % of the training steps take one action ({name}); always predicting it is that accurate, so compare with the \
         majority and look at macro-F1",
        100.0 * share
    );
    Ok(vec![warning("majority-action", message)])
}

/// What the model says.
pub(super) fn model(spec: &Spec, encoder: &Encoder, support: &SupportSummary, filled: f64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if support.steps_unsupported.max(support.steps_rare) > UNSUPPORTED {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let beside = match support.states_rare {
            0 => String::new(),
            n => format!(
                "; in {n} of {} states no action was seen so often, and the commonest are admitted whatever their number ({} pairs)",
                encoder.centroids.n_clusters(),
                support.pairs_rare
            ),
        };
        let message = format!(
            "{} of the training steps take an action that was seen fewer than {} times in its state, {} one that the model does not \
             admit{beside}. Where such actions lead is hardly known: use fewer states, or a lower min_support",
            percent(support.steps_rare),
            spec.dynamics.min_support,
            percent(support.steps_unsupported),
        );
        findings.push(warning("thin-support", message));
    }
    if support.thin_states > 0 {
        let message = format!(
            "{} of {} states have fewer than {} training steps; hardly anything is known about any action there",
            support.thin_states,
            encoder.centroids.n_clusters(),
            spec.dynamics.min_support
        );
        findings.push(note("thin-states", message));
    }
    if filled > FILLED {
        let message =
            format!("{:.0} % of the cells of training rows were not measured and are filled in", 100.0 * filled);
        findings.push(warning("mostly-imputed", message));
    }
    findings
}

fn dose_among_measurements(spec: &Spec, findings: &mut Vec<Finding>) {
    for name in spec.state.measurements.iter().filter(|name| spec.column(name).lag == 0) {
        if spec.action.doses.contains(name) || spec.action.column.as_ref() == Some(name) {
            let message = format!(
                "{name} is the action of a row and one of its measurements as well: the state gives the action away; \
                 say lag = 1 under [state.columns.{name}], or leave it out"
            );
            findings.push(warning("action-leaks", message));
        }
    }
}

/// Fields that should stay the same during a stay and do not.
fn people_mixed_up(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    for name in &spec.context.fields {
        let column = table.column(name)?;
        let mut changing = 0;
        let mut first: Option<String> = None;
        for stay in parts.all() {
            let known = || stay.rows.iter().map(|&row| row as usize).filter(|&row| !column[row].is_nan());
            let Some(start) = known().next() else { continue };
            if let Some(other) = known().find(|&row| column[row] != column[start]) {
                changing += 1;
                first.get_or_insert_with(|| {
                    let id = table.stays.name(stay.number);
                    let (a, b) = (column[start], column[other]);
                    format!("stay {id}: {a} in row {}, {b} in row {}", start + 1, other + 1)
                });
            }
        }
        if let Some(first) = first {
            let message = format!(
                "{name} changes within {changing} of {} stays: two people under one id? If it may change, move it to \
                 at_start under [context]",
                parts.all().count()
            );
            findings.push(warning("changing-person", message).with_example(first));
        }
    }
    Ok(())
}

/// Stays whose rows are not together, in tables where those of others are.
fn rows_in_several_places(table: &Table, findings: &mut Vec<Finding>) {
    let mut last: Vec<Option<usize>> = vec![None; table.n_stays()];
    let mut torn: Vec<u32> = Vec::new();
    let mut example = None;
    for row in 0..table.n_rows() {
        let stay = table.stays.of_row(row);
        if let Some(before) = last[stay as usize]
            && before + 1 != row
        {
            torn.push(stay);
            example.get_or_insert((stay, before, row));
        }
        last[stay as usize] = Some(row);
    }
    torn.sort_unstable();
    torn.dedup();
    // A table that is sorted by time has all stays in many places.
    if let Some((stay, before, row)) = example
        && torn.len() * 10 <= table.n_stays()
    {
        let message = format!(
            "the rows of {} of {} stays are not together: two people under one id?",
            torn.len(),
            table.n_stays()
        );
        let place = format!("stay {}: row {}, then row {}", table.stays.name(stay), before + 1, row + 1);
        findings.push(warning("torn-stay", message).with_example(place));
    }
}

fn patients_in_two_parts(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    if let Some(patients) = &table.patients {
        let foreign = |stay: &Stay, row: u32| patients.of_row(row as usize) != stay.patient;
        let other = |stay: &Stay| stay.rows.iter().copied().find(|&row| foreign(stay, row));
        let mixed: Vec<&Stay> = parts.all().filter(|stay| other(stay).is_some()).collect();
        if let Some((stay, row)) = mixed.first().and_then(|stay| Some((stay, other(stay)?))) {
            let message = format!(
                "{} of {} stays have rows of two patients: patients may be in two parts of the split",
                mixed.len(),
                parts.all().count()
            );
            let names = [stay.patient, patients.of_row(row as usize)].map(|patient| patients.name(patient));
            let id = table.stays.name(stay.number);
            let place = format!("stay {id} has rows of patients {} and {} (row {})", names[0], names[1], row + 1);
            findings.push(warning("patient-in-two-parts", message).with_example(place));
        }
        return Ok(());
    }
    let columns: Vec<&[f32]> = spec.context.fields.iter().map(|name| table.column(name)).collect::<Result<_>>()?;
    let person = |stay: &Stay| -> Option<Vec<u32>> {
        let row = *stay.rows.first()? as usize;
        columns.iter().map(|column| (!column[row].is_nan()).then(|| column[row].to_bits())).collect()
    };
    let mut trained: HashMap<Vec<u32>, u32> = HashMap::new();
    for stay in &parts.train {
        if let Some(person) = person(stay) {
            trained.entry(person).or_insert(stay.number);
        }
    }
    let elsewhere: Vec<(Vec<u32>, u32)> =
        parts.validation.iter().chain(&parts.test).filter_map(|stay| Some((person(stay)?, stay.number))).collect();
    let again: Vec<(u32, u32)> =
        elsewhere.iter().filter_map(|(person, number)| Some((*trained.get(person)?, *number))).collect();
    let n = parts.validation.len() + parts.test.len();
    let by_chance = agreement_by_chance(&trained, &elsewhere);
    match again.first() {
        // Some agree by chance, and coarse fields do for most; then nothing can be said.
        Some(&(train, other))
            if again.len() * 100 >= n
                && again.len() * 5 < n
                && again.len() as f64 > by_chance + 4.0 * by_chance.max(1.0).sqrt() =>
        {
            let message = format!(
                "{} of {n} stays to validate and test on have the same {} as a stay to learn from: the same people? Splits are \
                 by stay; name the column of the patient under [table]",
                again.len(),
                spec.context.fields.join(", ")
            );
            let place = format!("stays {} and {}", table.stays.name(train), table.stays.name(other));
            findings.push(warning("patient-in-two-parts", message).with_example(place));
        }
        _ => findings.push(note(
            "no-patient-column",
            "splits are by stay, for no column of the patient is named: if somebody has two stays, name it under [table]".into(),
        )),
    }
    Ok(())
}

/// How many people would be the same as one to learn from by chance: with the field that tells most taken from somebody else.
fn agreement_by_chance(trained: &HashMap<Vec<u32>, u32>, others: &[(Vec<u32>, u32)]) -> f64 {
    let Some((first, _)) = others.first() else { return 0.0 };
    let different = |field: &usize| {
        let mut values: Vec<u32> = others.iter().map(|(person, _)| person[*field]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let Some(finest) = (0..first.len()).max_by_key(different) else { return 0.0 };
    let shifts = EXCHANGES.min(others.len().saturating_sub(1)).max(1);
    let mut agree = 0_usize;
    for shift in 1..=shifts {
        for (i, (person, _)) in others.iter().enumerate() {
            let mut mixed = person.clone();
            mixed[finest] = others[(i + shift) % others.len()].0[finest];
            agree += usize::from(trained.contains_key(&mixed));
        }
    }
    agree as f64 / shifts as f64
}

fn constant_and_unmeasured(table: &Table, spec: &Spec, train: &[Stay], findings: &mut Vec<Finding>) -> Result<()> {
    for name in spec.state.measurements.iter().map(String::as_str).chain(spec.context.columns()) {
        let column = table.column(name)?;
        let mut known =
            train.iter().flat_map(|stay| &stay.rows).map(|&row| column[row as usize]).filter(|x| !x.is_nan());
        match known.next() {
            None => findings.push(warning("never-measured", format!("{name} has no value in any training row"))),
            Some(first) if known.all(|x| x == first) => {
                findings.push(warning(
                    "constant-column",
                    format!("{name} is {first} in every training row; it says nothing"),
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Measurements that have mean zero and variance one over all rows were standardised before the split.
fn standardised_before(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    let mut like: Vec<&str> = Vec::new();
    for name in &spec.state.measurements {
        let column = table.column(name)?;
        let rows = || {
            parts.all().flat_map(|stay| &stay.rows).map(|&row| f64::from(column[row as usize])).filter(|x| !x.is_nan())
        };
        let n = rows().count().max(1) as f64;
        let mean = rows().sum::<f64>() / n;
        let variance = rows().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        if mean.abs() < STANDARDISED && (variance - 1.0).abs() < STANDARDISED {
            like.push(name);
        }
    }
    if like.len() >= STANDARDISED_COLUMNS {
        let message = format!(
            "{} measurements ({}, …) have mean 0 and variance 1 over all rows: they were standardised before the split, with \
             the help of the test stays; use raw measurements",
            like.len(),
            like[..STANDARDISED_COLUMNS].join(", ")
        );
        findings.push(warning("fitted-on-all-rows", message));
    }
    Ok(())
}

fn ages(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    for name in spec.columns() {
        let word = |part: &str| part.eq_ignore_ascii_case("age");
        if !name.split(|c: char| !c.is_alphabetic()).any(word) {
            continue;
        }
        let column = table.column(name)?;
        let mut values: Vec<f32> =
            parts.all().filter_map(|stay| Some(column[*stay.rows.first()? as usize])).filter(|x| !x.is_nan()).collect();
        values.sort_by(f32::total_cmp);
        let Some(&median) = values.get(values.len() / 2) else { continue };
        let median = f64::from(median);
        let unit = spec.units.get(name).map(String::as_str);
        let message = match unit {
            Some("days") if (1.0..OLDEST_YEARS).contains(&median) => {
                Some(format!("{name} is said to be in days, but its median is {median:.0}: years?"))
            }
            Some("years") | None if median > OLDEST_YEARS => {
                Some(format!("{name} has median {median:.0}: days? Say so under [units], and give bounds in days"))
            }
            _ => None,
        };
        findings.extend(message.map(|message| warning("age-unit", message)));
    }
    Ok(())
}

fn skipped_steps(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) {
    let (mut steps, mut skipped, mut example) = (0_u64, 0_u64, None);
    for stay in parts.all() {
        for two in stay.rows.windows(2) {
            steps += 1;
            if steps_between(table, &spec.cohort, two) > 1 {
                skipped += 1;
                example.get_or_insert((stay.number, two[1]));
            }
        }
    }
    if let Some((stay, row)) = example
        && skipped as f64 > SKIPPED * steps as f64
    {
        let message = format!(
            "{skipped} of {steps} transitions skip steps and count as one step; gaps = \"cut\" under [cohort] ends stays there \
             instead"
        );
        let place = format!("stay {}, before row {}", table.stays.name(stay), row + 1);
        let finding = if skipped as f64 > MOSTLY_SKIPPED * steps as f64 {
            let message = format!("{message}. So many are rather a step of another length: say step under [cohort]");
            warning("step-length", message)
        } else {
            note("skipped-steps", message)
        };
        findings.push(finding.with_example(place));
    }
}

fn doses_not_recorded(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    for name in &spec.action.doses {
        let column = table.column(name)?;
        let missing = |row: &&u32| !(column[**row as usize] >= 0.0);
        let n = parts.all().flat_map(|stay| &stay.rows).filter(missing).count();
        if let Some(row) = parts.all().flat_map(|stay| &stay.rows).find(missing) {
            let message = format!("{name} is missing or negative in {n} rows; they count as no dose");
            findings.push(warning("dose-not-recorded", message).with_example(format!("row {}", row + 1)));
        }
    }
    Ok(())
}

/// On the simplex only proportions count: one field is the same for everybody, and of two there is one number left.
fn few_fields(spec: &Spec, findings: &mut Vec<Finding>) {
    let n = spec.context.columns().count();
    if spec.context.scale == ContextScale::Simplex && n <= FEW_FIELDS {
        let message = format!(
            "a context of {n} field{} on the simplex keeps only their proportions: different people can get the same context; say \
             scale = \"standardise\" under [context]",
            if n == 1 { "" } else { "s" }
        );
        findings.push(warning("few-context-fields", message));
    }
}

fn short_step(table: &Table, spec: &Spec, findings: &mut Vec<Finding>) {
    if let (StepLength::Number(step), true) = (&spec.cohort.step, table.is_dated())
        && *step < SHORT_STEP
    {
        let message = format!(
            "times are dates and a step is {step} seconds long; if another unit is meant, say so: step = \"4 hours\" under [cohort]"
        );
        findings.push(note("short-step", message));
    }
}

fn small_parts(parts: &Parts, findings: &mut Vec<Finding>) {
    for (stays, purpose, without) in [
        (&parts.validation, "choose by", "nothing says when to stop learning"),
        (&parts.test, "score on", "nothing can be scored"),
    ] {
        let mut patients: Vec<u32> = stays.iter().map(|stay| stay.patient).collect();
        patients.sort_unstable();
        patients.dedup();
        match patients.len() {
            0 => findings
                .push(warning("empty-part", format!("there are no patients to {purpose}: {without}; see [split]"))),
            n @ ..FEW_PATIENTS => {
                let message =
                    format!("there are only {n} patients to {purpose}: shares of them say little; see [split]");
                findings.push(note("few-patients", message));
            }
            _ => {}
        }
    }
}
