//! Whether the outcome can be one: two values, both of which occur, the same throughout a stay.

use super::{Finding, note, warning};
use crate::spec::{OutcomeSpec, Spec};
use crate::split::Parts;
use crate::table::Table;
use coirl::Result;

pub(super) fn outcome(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    let Some(outcome) = &spec.outcome else {
        let message = "no outcome is named: scores say whether the same is done, and not what comes of it; say column under [outcome]";
        findings.push(note("no-outcome", message.into()));
        return Ok(());
    };
    let column = table.column(&outcome.column)?;
    let mut ends: Vec<f32> = parts
        .all()
        .filter_map(|stay| stay.rows.last())
        .map(|&row| column[row as usize])
        .filter(|x| !x.is_nan())
        .collect();
    let bad = ends.iter().filter(|end| f64::from(**end) == outcome.bad).count();
    let n = ends.len();
    ends.sort_by(f32::total_cmp);
    ends.dedup();
    values(outcome, &ends, bad, n, findings);
    contradictions(table, outcome, column, &ends, parts, findings);
    Ok(())
}

/// Two values, both of which occur.
fn values(outcome: &OutcomeSpec, ends: &[f32], bad: usize, n: usize, findings: &mut Vec<Finding>) {
    let OutcomeSpec { column, bad: value, .. } = outcome;
    let listed: Vec<String> = ends.iter().take(5).map(f32::to_string).collect();
    let more = if ends.len() > 5 { ", …" } else { "" };
    let message = match () {
        () if n == 0 => return,
        () if bad == 0 => Some(format!(
            "{column} never is {value}, the value of a bad end: every stay counts as ended well (it has the values {}{more}); say the \
             right value as bad under [outcome]",
            listed.join(", ")
        )),
        () if bad == n => Some(format!(
            "{column} is {value}, the value of a bad end, in every stay: nothing can be told from it; is that the right column and value?"
        )),
        () if ends.len() > 2 => Some(format!(
            "{column} has {} different values ({}{more}); {value} is a bad end and all others are good ones: is that meant?",
            ends.len(),
            listed.join(", ")
        )),
        () => None,
    };
    findings.extend(message.map(|message| warning("outcome-values", message)));
    if (bad * 2 > n) && bad < n {
        let message = format!(
            "{:.0} % of the stays end badly, by {column} = {value}: if that is not what you know of them, the outcome is inverted",
            100.0 * bad as f64 / n as f64
        );
        findings.push(note("mostly-bad", message));
    }
}

/// Stays in which two ends are said. Values that no stay ends with, such as a reward of zero before the end, are no ends.
fn contradictions(
    table: &Table,
    outcome: &OutcomeSpec,
    column: &[f32],
    ends: &[f32],
    parts: &Parts,
    findings: &mut Vec<Finding>,
) {
    let (mut torn, mut example) = (0, None);
    for stay in parts.all() {
        let Some(&last) = stay.rows.last() else { continue };
        let differs = |row: &&u32| {
            let x = column[**row as usize];
            x != column[last as usize] && ends.contains(&x)
        };
        if let Some(&other) = stay.rows.iter().find(differs) {
            torn += 1;
            example.get_or_insert((stay.number, other, last));
        }
    }
    if let Some((stay, other, last)) = example {
        let message = format!(
            "{} contradicts itself within {torn} of {} stays; the last row of a stay counts",
            outcome.column,
            parts.all().count()
        );
        let said = |row: u32| format!("{} in row {}", column[row as usize], row + 1);
        let place = format!("stay {}: {}, {}", table.stays.name(stay), said(other), said(last));
        findings.push(warning("outcome-contradicts", message).with_example(place));
    }
}
