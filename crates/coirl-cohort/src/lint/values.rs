//! Values that no instrument shows: sentinels such as −999 that stand for "not measured", and columns that are mostly empty.
//!
//! A column's spread is its median absolute deviation, which sentinels hardly move. Cost: a few passes over every column.

use super::{Finding, note, warning};
use crate::spec::Spec;
use crate::split::Parts;
use crate::table::Table;
use coirl::Result;

/// Robust standard deviations beyond which a value is out of the ordinary, and the factor that makes a deviation one.
const FAR: f64 = 10.0;
const TO_STANDARD: f64 = 1.4826;
/// Share of the values outside the plausible range from which on the range or the unit is wrong.
const MOSTLY_IMPLAUSIBLE: f64 = 0.2;
/// Zeros below which they are no code.
const FEWEST_ZEROS: usize = 5;
/// Different values of a grade, whose zero is one.
const GRADES: usize = 12;
/// Share of empty cells from which on a column is mostly empty.
const MOSTLY_MISSING: f64 = 0.5;

pub(super) fn values(table: &Table, spec: &Spec, parts: &Parts, findings: &mut Vec<Finding>) -> Result<()> {
    let named = |name: &str| {
        spec.outcome.as_ref().is_none_or(|outcome| outcome.column != name)
            && spec.action.column.as_deref() != Some(name)
    };
    for name in spec.columns().into_iter().filter(|name| named(name)) {
        let column = table.column(name)?;
        let all = || parts.all().flat_map(|stay| &stay.rows).map(|&row| column[row as usize]);
        let n = all().count();
        let range = spec.cohort.plausible.get(name);
        let plausible = |x: &f32| range.is_none_or(|[lo, hi]| (*lo..=*hi).contains(&f64::from(*x)));
        let measured: Vec<f32> = all().filter(|x| !x.is_nan()).collect();
        let known: Vec<f32> = measured.iter().copied().filter(plausible).collect();
        if let (Some([lo, hi]), out @ 1..) = (range, measured.len() - known.len()) {
            let message = format!(
                "{out} of {} values of {name} are outside {lo} to {hi} and count as not measured",
                measured.len()
            );
            findings.push(match out as f64 > MOSTLY_IMPLAUSIBLE * measured.len() as f64 {
                true => warning("implausible-column", format!("{message}: is that the unit and the range of {name}?")),
                false => note("implausible-dropped", message),
            });
        }
        let missing = (n - known.len()) as f64 / n.max(1) as f64;
        // A column without any value is told of elsewhere.
        if missing > MOSTLY_MISSING && !known.is_empty() {
            let message = format!("{:.0} % of the cells of {name} are empty or implausible", 100.0 * missing);
            findings.push(note("mostly-missing", message));
        }
        let dose = spec.action.doses.iter().any(|dose| dose == name);
        let zeros = if dose { 0 } else { zeros_apart(&measured) };
        if zeros > 0 {
            let message = format!(
                "{name} is 0 in {zeros} cells and never near it: a code for \"not measured\"? List it as missing under [table], or \
                 give {name} a range under [cohort.plausible]"
            );
            findings.push(warning("sentinel-value", message));
        }
        for (value, times) in far_out(&known, dose).into_iter().filter(|(value, _)| zeros == 0 || *value != 0.0) {
            let message = format!(
                "{name} has a value far from all others: a code for \"not measured\"? List it as missing under [table], \
                 or give {name} a range under [cohort.plausible]"
            );
            findings.push(warning("sentinel-value", message).with_example(format!("{value} in {times} rows")));
        }
    }
    Ok(())
}

/// How often a column is zero, where zero is repeated and far below all that is measured otherwise; 0 where it is not.
fn zeros_apart(measured: &[f32]) -> usize {
    let mut others: Vec<f32> = measured.iter().copied().filter(|x| *x != 0.0).collect();
    let zeros = measured.len() - others.len();
    others.sort_by(f32::total_cmp);
    let at = |share: f64| f64::from(others[(share * (others.len() - 1) as f64) as usize]);
    if zeros < FEWEST_ZEROS
        || others.len() < measured.len() / 2
        || others[0] <= 0.0
        || others[0] == others[others.len() - 1]
    {
        return 0;
    }
    // From the first hundredth to the median there are 2.33 standard deviations.
    let (low, middle) = (at(0.01), at(0.5));
    let grades = others.chunk_by(|a, b| a == b).count() <= GRADES;
    let between = others.partition_point(|x| f64::from(*x) < 0.5 * low);
    if !grades && low > 2.5 * (middle - low) / 2.33 && between * 10 < zeros { zeros } else { 0 }
}

/// The smallest and the largest value with how often they occur, where they are far out and either a row of nines or repeated. Doses come in
/// standard amounts, which repeat themselves; what is never negative may have a long tail and a ceiling, and must be far out in its logarithm too.
fn far_out(known: &[f32], dose: bool) -> Vec<(f32, usize)> {
    let least = known.iter().copied().fold(f32::INFINITY, f32::min);
    let most = known.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut found = Vec::new();
    for end in [least, most] {
        let others: Vec<f32> = known.iter().copied().filter(|x| *x != end).collect();
        let times = known.len() - others.len();
        if !is_beyond(end, &others) {
            continue;
        }
        let constant = others.iter().all(|x| *x == others[0]);
        let logarithm = |x: f32| if least > 0.0 { x.ln() } else { x.ln_1p() };
        let long_tail =
            || least >= 0.0 && !is_beyond(logarithm(end), &others.iter().map(|x| logarithm(*x)).collect::<Vec<_>>());
        let repeated = times > 1 && !dose && !constant && !long_tail();
        if is_row_of_nines(end) || repeated {
            found.push((end, times));
        }
    }
    found
}

/// Whether a value is far from the median of others and from the nearest of them.
fn is_beyond(end: f32, others: &[f32]) -> bool {
    let Some(middle) = median(others.to_vec()) else { return false };
    let deviations: Vec<f32> = others.iter().map(|x| (x - middle).abs()).collect();
    let mean = deviations.iter().map(|x| f64::from(*x)).sum::<f64>() / others.len() as f64;
    // Where more than half of the values are the same, the mean deviation is what is left.
    let typical = median(deviations).map_or(0.0, f64::from);
    let spread = TO_STANDARD * if typical > 0.0 { typical } else { mean };
    let nearest = others.iter().map(|x| (x - end).abs()).fold(f32::INFINITY, f32::min);
    [nearest, (middle - end).abs()].iter().all(|distance| f64::from(*distance) > FAR * spread)
}

/// 99, 999, −9999 and the like.
fn is_row_of_nines(x: f32) -> bool {
    let digits = x.abs().to_string();
    digits.len() >= 2 && digits.bytes().all(|digit| digit == b'9')
}

fn median(mut values: Vec<f32>) -> Option<f32> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f32::total_cmp).1)
}

#[cfg(test)]
mod tests {

    #[test]
    fn sentinels_are_told_from_long_tails() {
        let far_out = |values: &[f32]| super::far_out(values, false);
        let heart_rates = || (0..200).map(|i| 60.0 + (i % 50) as f32);
        assert!(far_out(&heart_rates().collect::<Vec<_>>()).is_empty());
        assert_eq!(far_out(&heart_rates().chain([-999.0]).collect::<Vec<_>>()), [(-999.0, 1)]);
        assert_eq!(far_out(&heart_rates().chain([9999.0, 9999.0]).collect::<Vec<_>>()), [(9999.0, 2)]);
        // Repeated and alone out there; once may be a measurement.
        assert_eq!(far_out(&heart_rates().chain([-5000.0, -5000.0]).collect::<Vec<_>>()), [(-5000.0, 2)]);
        assert!(far_out(&heart_rates().chain([5000.0]).collect::<Vec<_>>()).is_empty());
        // A laboratory value with a ceiling that is reached again and again.
        let enzyme: Vec<f32> =
            (0..200).map(|i| 40.0 * ((i as f32 - 100.0) / 40.0).exp()).chain([25_000.0; 4]).collect();
        assert!(far_out(&enzyme).is_empty());
        // Doses: mostly zero, with a tail that has no gap.
        let doses: Vec<f32> =
            (0..300).map(|i| if i < 200 { 0.0 } else { ((i - 199) as f32 / 5.0).exp2().round() }).collect();
        assert!(far_out(&doses).is_empty());
        let standard = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 5.0, 5.0];
        assert!(super::far_out(&standard, true).is_empty() && !far_out(&standard).is_empty());
        assert!(far_out(&[0.0, 1.0, 1.0, 0.0]).is_empty() && far_out(&[]).is_empty() && far_out(&[3.0]).is_empty());
    }
}
