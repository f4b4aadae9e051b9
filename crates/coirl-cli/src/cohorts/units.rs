//! Numbers of a table with their units, and actions with the doses that they stand for.

use super::folder::CohortFile;
use crate::numbers::short;
use coirl::model::ActionId;
use coirl_cohort::{Actions, DoseLevels, Encoder, Spec};

const DAYS_PER_YEAR: f64 = 365.25;

/// A number of a column as people say it: with three digits and its unit, an age in years also where the table has days.
pub(crate) fn in_unit(spec: &Spec, column: &str, x: f64) -> String {
    let is_age = column.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("age"));
    match spec.unit_of(column) {
        Some("days") if is_age => format!("{} years", three_digits(x / DAYS_PER_YEAR)),
        Some(unit) => format!("{} {unit}", three_digits(x)),
        None => three_digits(x),
    }
}

/// As many digits as a clinician reads off an instrument.
pub(crate) fn three_digits(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return short(x);
    }
    let scale = 10f64.powi(2 - x.abs().log10().floor() as i32);
    short((x * scale).round() / scale)
}

/// An action by the levels of its doses, each with its range.
pub(crate) fn action_in_words(spec: &Spec, encoder: &Encoder, action: usize) -> String {
    let Actions::Doses(doses) = &encoder.actions else {
        return encoder.actions.names().get(action).cloned().unwrap_or_default();
    };
    let levels = encoder.actions.levels_of(ActionId(action as u32));
    let level =
        |(dose, level): (&DoseLevels, usize)| format!("{} {level}: {}", dose.column, level_in_words(spec, dose, level));
    doses.iter().zip(levels).map(level).collect::<Vec<_>>().join(", ")
}

/// All actions in words.
pub(crate) fn actions_in_words(file: &CohortFile) -> Vec<String> {
    (0..file.encoder.actions.len()).map(|action| action_in_words(&file.spec, &file.encoder, action)).collect()
}

/// Every dose with what its levels mean; nothing where actions are numbers.
pub(crate) fn levels_in_words(spec: &Spec, encoder: &Encoder) -> Vec<(String, String)> {
    let Actions::Doses(doses) = &encoder.actions else { return Vec::new() };
    let dose = |dose: &DoseLevels| {
        let levels = (0..dose.n_levels()).map(|level| format!("{level}: {}", level_in_words(spec, dose, level)));
        (dose.column.clone(), levels.collect::<Vec<_>>().join(", "))
    };
    doses.iter().map(dose).collect()
}

/// The range of a level; edges are the largest dose of every level above zero but the last.
fn level_in_words(spec: &Spec, dose: &DoseLevels, level: usize) -> String {
    let unit = spec.units.get(&dose.column).map(|unit| format!(" {unit}")).unwrap_or_default();
    let edge = |back: usize| level.checked_sub(back).and_then(|at| dose.edges.get(at)).copied().map(three_digits);
    match (level, edge(2), edge(1)) {
        (0, ..) => "none".into(),
        (_, Some(above), Some(most)) => format!("{above}–{most}{unit}"),
        (_, Some(above), None) => format!("above {above}{unit}"),
        (_, None, Some(most)) => format!("up to {most}{unit}"),
        (_, None, None) => "any".into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_years_and_levels_have_ranges() {
        let mut spec = Spec::preset("long").unwrap();
        let units = [("age", "days"), ("stay_days", "days"), ("fluid", "mL"), ("GCS", "3-15")];
        spec.units = units.map(|(column, unit)| (column.to_owned(), unit.to_owned())).into();
        assert_eq!(in_unit(&spec, "age", 24_472.0), "67 years");
        assert_eq!([in_unit(&spec, "stay_days", 12.0), in_unit(&spec, "other", 0.1234)], ["12 days", "0.123"]);
        assert_eq!(in_unit(&spec, "GCS", 13.0), "13");
        let dose = DoseLevels { column: "fluid".into(), edges: vec![40.0, 120.0, 500.0], typical: vec![0.0; 5] };
        let words: Vec<String> = (0..5).map(|level| level_in_words(&spec, &dose, level)).collect();
        assert_eq!(words, ["none", "up to 40 mL", "40–120 mL", "120–500 mL", "above 500 mL"]);
    }
}
