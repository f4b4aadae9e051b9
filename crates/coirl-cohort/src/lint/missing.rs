//! Cells that are empty for a reason: what is not measured in whom all is well, or in who gets nothing, is not missing at random, and filling it in with what
//! others had takes the reason away.

use super::leaks::{Sample, Seen};
use super::separation::Separation;
use super::{Finding, warning};
use crate::spec::Spec;
use crate::split::Parts;
use crate::stays::Stay;
use crate::table::Table;
use coirl::Result;

/// Shares of empty cells between which something can be told, and from which on a column may leave out what is normal.
const SOME: [f64; 2] = [0.02, 0.98];
const MUCH: f64 = 0.2;
/// Areas under the ROC curve that the absence of a value honestly has: sicker people are measured more often. For single rows, 0.75 is
/// a difference of 50 points between the shares of empty cells.
const BY_STAY: f64 = 0.75;
const BY_ROW: f64 = 0.72;
/// How steeply the values must begin: the distance of the lowest tenth by that from there to the median, both of logarithms where all values are positive.
const STEEP: f64 = 0.45;
/// Share of the values that may be the extreme itself: more are a floor of the instrument.
const FLOOR: f64 = 0.02;
/// Values below which a distribution cannot be judged.
const FEWEST: usize = 60;

pub(super) fn missing(
    table: &Table,
    spec: &Spec,
    parts: &Parts,
    sample: &Sample<'_>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for name in &spec.state.measurements {
        let seen = Seen::of(table, spec, name, 0)?;
        let cells: Vec<Option<f32>> =
            parts.all().flat_map(|stay| (0..stay.rows.len()).map(|t| seen.at(stay, t)).collect::<Vec<_>>()).collect();
        let share = cells.iter().filter(|cell| cell.is_none()).count() as f64 / cells.len().max(1) as f64;
        if !(SOME[0]..=SOME[1]).contains(&share) {
            continue;
        }
        let found = match telling(table, spec, sample, name, &seen)? {
            Some(found) => Some(found),
            None if share >= MUCH => abnormal(name, share, cells.into_iter().flatten().map(f64::from).collect()),
            None => None,
        };
        findings.extend(found);
    }
    Ok(())
}

/// Whether a column is empty tells the end of a stay, or what is given in a row.
fn telling(table: &Table, spec: &Spec, sample: &Sample<'_>, name: &str, seen: &Seen<'_>) -> Result<Option<Finding>> {
    let absent = |stay: &Stay, t: usize| f32::from(u8::from(seen.at(stay, t).is_none()));
    let mut found: Option<(Separation, String)> = None;
    if let Some(outcome) = &spec.outcome {
        let ends = table.column(&outcome.column)?;
        let bad = |stay: &Stay| stay.rows.last().is_some_and(|&row| f64::from(ends[row as usize]) == outcome.bad);
        let of_stay = |stay: &Stay| {
            let n = stay.rows.len();
            Some((0..n).map(|t| absent(stay, t)).sum::<f32>() / n as f32)
        };
        let separation = sample.stays(of_stay, bad).filter(|found| found.lower > BY_STAY);
        found = separation.map(|separation| (separation, "stays that end badly from others".into()));
    }
    for dose in spec.action.doses.iter().filter(|dose| *dose != name) {
        let doses = table.column(dose)?;
        let given = |stay: &Stay, t: usize| doses[stay.rows[t] as usize] > 0.0;
        if let Some(separation) = sample.rows(|stay, t| Some(absent(stay, t)), given).filter(|own| own.lower > BY_ROW)
            && found.as_ref().is_none_or(|(most, _)| separation.auc > most.auc)
        {
            found = Some((separation, format!("rows with {dose} from others")));
        }
    }
    Ok(found.map(|(Separation { auc, lower }, what)| {
        let message = format!(
            "whether {name} is empty or implausible tells {what} with an area under the ROC curve of {auc:.2} (at least {lower:.2}): it is not missing by \
             chance, and filling it in hides why; say what an empty cell means, or leave {name} out"
        );
        warning("missing-tells", message)
    }))
}

/// A distribution that begins or ends steeply where there is no floor: only what is abnormal was written down.
fn abnormal(name: &str, share: f64, mut values: Vec<f64>) -> Option<Finding> {
    if values.len() < FEWEST {
        return None;
    }
    if values.iter().all(|x| *x > 0.0) {
        values.iter_mut().for_each(|x| *x = x.ln());
    }
    values.sort_by(f64::total_cmp);
    let steep = |values: &[f64]| {
        let at = |share: f64| values[(share * (values.len() - 1) as f64) as usize];
        let heap = values.iter().take_while(|x| **x == values[0]).count() as f64 / values.len() as f64;
        let (first, tenth, middle) = (at(0.0), at(0.1), at(0.5));
        // Nothing is below zero of what cannot be negative.
        first != 0.0 && heap <= FLOOR && middle > tenth && tenth - first < STEEP * (middle - tenth)
    };
    let mirrored: Vec<f64> = values.iter().rev().map(|x| -x).collect();
    let side = match (steep(&values), steep(&mirrored)) {
        (true, false) => "below",
        (false, true) => "above",
        _ => return None,
    };
    let message = format!(
        "{name} is empty in {:.0} % of the cells and has no values {side} a sharp limit: was only what is abnormal written down? Then \
         an empty cell means normal, and must not be filled in with what others had",
        100.0 * share
    );
    Some(warning("missing-means-normal", message))
}
