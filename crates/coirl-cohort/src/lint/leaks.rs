//! Columns that know what they should not: what is being given in their own row, or how the stay will end.
//!
//! Every column of the state and of the context is judged alone, by how well it tells rows with a dose from rows without, and stays that end badly from others
//! ([`separation`]). Limits are above what honest columns reach: the highest SOFA of a stay has an area under the ROC curve of 0.90
//! for death in intensive care, its mean 0.88, that of admission 0.79 (Ferreira et al. 2001); for vasopressors, SOFA without its
//! cardiovascular part has 0.72 in the MIMIC-III demo. The lower end of the interval must be above the limit, so that small tables raise no alarm by chance.
//! Training and validation stays are looked at, at most 2,000 patients: what is left out because of a warning was not chosen on the test stays.

use super::separation::{Folds, Separation, Unit, number, separation};
use super::{Finding, warning};
use crate::spec::{OutcomeSpec, Spec};
use crate::split::Parts;
use crate::stays::Stay;
use crate::table::Table;
use coirl::Result;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Patients that are looked at.
const MOST_PATIENTS: usize = 2000;
/// Limits for telling rows with a dose from others, and rows with much of it: by the column, and by its change since the row before. Who gets much is told
/// better by honest measurements than who gets any: blood pressure has up to 0.89 in tables of the simulator, whose clinicians lapse in 5 % of the steps only.
const BY_LEVEL: [f64; 2] = [0.82, 0.91];
const BY_CHANGE: [f64; 2] = [0.72, 0.78];
/// Actions by number that are looked at, the most frequent first.
const MOST_NUMBERED: usize = 5;
/// Values of a column that are flags or grades rather than measurements.
const GRADES: usize = 5;
/// How sure a bad end is, at the lower end of its interval, for a grade to give it away, and the share of bad ends from which on that is nothing special.
const CERTAIN: f64 = 0.85;
const OFTEN_BAD: f64 = 0.6;

/// The stays that are looked at, with the folds of their patients.
pub(super) struct Sample<'a> {
    stays: Vec<(&'a Stay, u32)>,
    folds: Folds,
}

impl<'a> Sample<'a> {
    pub(super) fn of(table: &'a Table, parts: &'a Parts) -> Self {
        let name = |stay: &Stay| match &table.patients {
            Some(patients) => patients.name(stay.patient),
            None => table.stays.name(stay.number),
        };
        let mut patients: BTreeMap<(u64, &str), Vec<&Stay>> = BTreeMap::new();
        for stay in parts.train.iter().chain(&parts.validation) {
            patients.entry((number(name(stay)), name(stay))).or_default().push(stay);
        }
        let folds = Folds::of(patients.keys().take(MOST_PATIENTS).map(|(_, name)| *name));
        let stays = patients.into_values().take(MOST_PATIENTS).enumerate();
        Self { stays: stays.flat_map(|(i, own)| own.into_iter().map(move |stay| (stay, i as u32))).collect(), folds }
    }

    /// One unit per row, of what `value` and `kind` say of row t of a stay; rows of which nothing is known are left out.
    pub(super) fn rows(
        &self,
        value: impl Fn(&Stay, usize) -> Option<f32>,
        kind: impl Fn(&Stay, usize) -> bool,
    ) -> Option<Separation> {
        let mut units = Vec::new();
        for &(stay, patient) in &self.stays {
            let own = (0..stay.rows.len()).filter_map(|t| Some((value(stay, t)?, kind(stay, t))));
            units.extend(own.map(|(value, kind)| Unit { patient, value, kind }));
        }
        separation(&units, &self.folds)
    }

    /// One unit per stay.
    pub(super) fn stays(
        &self,
        value: impl Fn(&Stay) -> Option<f32>,
        kind: impl Fn(&Stay) -> bool,
    ) -> Option<Separation> {
        separation(&self.units(value, kind), &self.folds)
    }

    fn units(&self, value: impl Fn(&Stay) -> Option<f32>, kind: impl Fn(&Stay) -> bool) -> Vec<Unit> {
        let unit = |&(stay, patient): &(&Stay, u32)| Some(Unit { patient, value: value(stay)?, kind: kind(stay) });
        self.stays.iter().filter_map(unit).collect()
    }
}

/// A column as the model sees it: late by its lag, and without values that count as not measured.
pub(super) struct Seen<'a> {
    cells: &'a [f32],
    lag: usize,
    plausible: Option<[f64; 2]>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(table: &'a Table, spec: &Spec, name: &str, lag: usize) -> Result<Self> {
        Ok(Self { cells: table.column(name)?, lag, plausible: spec.cohort.plausible.get(name).copied() })
    }

    /// The value in row t of a stay.
    pub(super) fn at(&self, stay: &Stay, t: usize) -> Option<f32> {
        let x = self.cells[stay.rows[t.checked_sub(self.lag)?] as usize];
        let plausible = self.plausible.is_none_or(|[lo, hi]| (lo..=hi).contains(&f64::from(x)));
        (!x.is_nan() && plausible).then_some(x)
    }

    fn first(&self, stay: &Stay) -> Option<f32> {
        (0..stay.rows.len()).find_map(|t| self.at(stay, t))
    }

    fn last(&self, stay: &Stay) -> Option<f32> {
        self.at(stay, stay.rows.len() - 1)
    }

    fn mean(&self, stay: &Stay) -> Option<f32> {
        let known: Vec<f64> = (0..stay.rows.len()).filter_map(|t| self.at(stay, t)).map(f64::from).collect();
        (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64) as f32)
    }
}

pub(super) fn leaks(table: &Table, spec: &Spec, sample: &Sample<'_>, findings: &mut Vec<Finding>) -> Result<()> {
    let kinds = given(table, spec, sample)?;
    let known_at_once: Vec<&String> =
        spec.state.measurements.iter().filter(|name| spec.column(name).lag == 0).collect();
    let of_doses = known_at_once.par_iter().map(|name| of_the_dose(table, spec, sample, &kinds, name));
    findings.extend(of_doses.collect::<Result<Vec<_>>>()?.into_iter().flatten());
    let Some(outcome) = &spec.outcome else { return Ok(()) };
    let fields = spec.context.columns().map(|name| (name, None));
    let measurements = spec.state.measurements.iter().map(|name| (name.as_str(), Some(spec.column(name).lag)));
    let all: Vec<(&str, Option<usize>)> = fields.chain(measurements).collect();
    let of_ends = all.par_iter().map(|&(name, lag)| of_the_end(table, spec, sample, outcome, name, lag));
    findings.extend(of_ends.collect::<Result<Vec<_>>>()?.into_iter().flatten());
    Ok(())
}

/// A kind of rows.
struct Kind<'a> {
    name: String,
    /// Whether it is of much of a drug rather than of any.
    much: bool,
    /// Whether a row of the table is of it.
    is: Box<dyn Fn(usize) -> bool + Sync + 'a>,
}

/// Rows by what was given in them: any dose of a drug, or more than the median of what was given of it; an action by its number.
fn given<'a>(table: &'a Table, spec: &Spec, sample: &Sample<'_>) -> Result<Vec<Kind<'a>>> {
    let rows = || sample.stays.iter().flat_map(|(stay, _)| &stay.rows).map(|&row| row as usize);
    let mut kinds: Vec<Kind<'a>> = Vec::new();
    for name in &spec.action.doses {
        let column = table.column(name)?;
        let mut doses: Vec<f32> = rows().map(|row| column[row]).filter(|dose| *dose > 0.0).collect();
        doses.sort_by(f32::total_cmp);
        let median = doses.get(doses.len() / 2).copied().unwrap_or_default();
        kinds.push(Kind { name: name.clone(), much: false, is: Box::new(move |row| column[row] > 0.0) });
        let is = Box::new(move |row: usize| column[row] > median);
        kinds.push(Kind { name: format!("much {name}"), much: true, is });
    }
    if let Some(name) = &spec.action.column {
        let column = table.column(name)?;
        let mut times: BTreeMap<u32, usize> = BTreeMap::new();
        rows().for_each(|row| *times.entry(column[row].to_bits()).or_default() += 1);
        let mut often: Vec<(u32, usize)> = times.into_iter().collect();
        often.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        for (bits, _) in often.into_iter().take(MOST_NUMBERED) {
            let action = f32::from_bits(bits);
            let is = Box::new(move |row: usize| column[row] == action);
            kinds.push(Kind { name: format!("{name} {action}"), much: true, is });
        }
    }
    Ok(kinds)
}

/// A measurement that, or whose change since the row before, tells what is given in its row.
fn of_the_dose(
    table: &Table,
    spec: &Spec,
    sample: &Sample<'_>,
    kinds: &[Kind<'_>],
    name: &str,
) -> Result<Option<Finding>> {
    if spec.action.doses.iter().chain(&spec.action.column).any(|dose| dose == name) {
        return Ok(None);
    }
    let seen = Seen::of(table, spec, name, 0)?;
    let change = |stay: &Stay, t: usize| Some(seen.at(stay, t)? - seen.at(stay, t.checked_sub(1)?)?);
    let mut worst: Option<(f64, String)> = None;
    for Kind { name: kind, much, is } in kinds {
        let much = usize::from(*much);
        let of_row = |stay: &Stay, t: usize| is(stay.rows[t] as usize);
        let found = [
            ("", BY_LEVEL[much], sample.rows(|stay, t| seen.at(stay, t), of_row)),
            ("the change of ", BY_CHANGE[much], sample.rows(change, of_row)),
        ];
        for (what, limit, found) in found {
            let Some(Separation { auc, lower }) = found.filter(|found| found.lower > limit) else { continue };
            if worst.as_ref().is_none_or(|(most, _)| auc > *most) {
                worst = Some((
                    auc,
                    format!(
                        "{what}{name} tells rows with {kind} from others with an area under the ROC curve of {auc:.2} (at least \
                         {lower:.2}): it seems to contain the action of its own row, and the state gives the action away; say lag = 1 \
                         under [state.columns.{name}], or leave it out"
                    ),
                ));
            }
        }
    }
    Ok(worst.map(|(_, message)| warning("action-leaks", message)))
}

/// A column that tells how the stay will end. `lag` is that of a measurement; of a field the first row counts.
fn of_the_end(
    table: &Table,
    spec: &Spec,
    sample: &Sample<'_>,
    outcome: &OutcomeSpec,
    name: &str,
    lag: Option<usize>,
) -> Result<Option<Finding>> {
    let seen = Seen::of(table, spec, name, lag.unwrap_or_default())?;
    let ends = table.column(&outcome.column)?;
    let bad = |stay: &Stay| stay.rows.last().is_some_and(|&last| f64::from(ends[last as usize]) == outcome.bad);
    // The nearer to the end, the more honest measurements know.
    let mut views = vec![("at the start", 0.88, sample.stays(|stay| seen.first(stay), bad))];
    if lag.is_some() {
        views.push(("row by row", 0.90, sample.rows(|stay, t| seen.at(stay, t), |stay, _| bad(stay))));
        views.push(("on average over a stay", 0.93, sample.stays(|stay| seen.mean(stay), bad)));
        views.push(("in the last row", 0.96, sample.stays(|stay| seen.last(stay), bad)));
    }
    let found = views.into_iter().filter_map(|(when, limit, found)| Some((when, found.filter(|f| f.lower > limit)?)));
    if let Some((when, Separation { auc, lower })) = found.max_by(|a, b| a.1.auc.total_cmp(&b.1.auc)) {
        let message = format!(
            "{when}, {name} tells bad ends from good ones with an area under the ROC curve of {auc:.2} (at least {lower:.2}), more than \
             honest measurements do: it seems to contain the outcome; leave {name} out"
        );
        return Ok(Some(warning("outcome-leak", message)));
    }
    let mut found = sure_sign(&sample.units(|stay| seen.first(stay), bad));
    if lag.is_some() {
        found = found.or_else(|| sure_sign(&sample.units(|stay| seen.last(stay), bad)));
    }
    Ok(found.map(|(value, n, share)| {
        let message = format!(
            "all {n} stays in which {name} is {value} ended badly, against {:.0} % of all: it seems to be known only afterwards; leave \
             {name} out",
            100.0 * share
        );
        warning("outcome-leak", message)
    }))
}

/// A grade that only stays with a bad end have, how many they are, and the share of bad ends among all.
fn sure_sign(stays: &[Unit]) -> Option<(f32, usize, f64)> {
    let mut grades: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
    for stay in stays {
        grades.entry(stay.value.to_bits()).or_default()[usize::from(stay.kind)] += 1;
        if grades.len() > GRADES {
            return None;
        }
    }
    let share = stays.iter().filter(|stay| stay.kind).count() as f64 / stays.len().max(1) as f64;
    // Clopper and Pearson: where all of n are bad, the lower end of the one-sided interval is the n-th root of 5 %.
    let certain = |n: usize| 0.05_f64.powf(1.0 / n as f64) >= CERTAIN;
    let sure = grades.into_iter().find(|(_, [good, bad])| *good == 0 && *bad > 0 && certain(*bad));
    let (bits, [_, n]) = sure.filter(|_| share <= OFTEN_BAD)?;
    Some((f32::from_bits(bits), n, share))
}
