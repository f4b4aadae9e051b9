//! How well one column alone tells two kinds of units apart, whatever the shape of the relation.
//!
//! Values are put into bins of equal numbers (a bin per value where there are few). The score of a unit is the share of the kind in its bin
//! among the patients of the other folds, drawn to the overall share; the area under the ROC curve of these scores is cross-validated, so that bins
//! alone reach no more than chance, and a relation that is not monotone is seen like one that is. Beside it stands the area of the values themselves, rising
//! or falling, which is sharper where there are few units; the better of the two counts. The interval is that of Obuchowski (1997) for clusters:
//! units of one patient are not independent. Before it is computed, a patient of either kind at chance is added (as in the intervals of
//! Agresti and Coull), so that a perfect separation of few patients is no certainty. Cost: a sort of the units.

use coirl::random::stream;
use rand::RngExt;

/// Folds of the cross-validation.
const FOLDS: usize = 5;
/// Bins at most, and units that each has at least.
const MOST_BINS: usize = 20;
const UNITS_PER_BIN: usize = 10;
/// Units above which bins are as sharp as the values themselves.
const MOST_RANKED: usize = 5000;
/// Observations' worth of the overall share in the score of a bin.
const STRENGTH: f64 = 2.0;
/// Patients of each kind below which nothing can be told.
const FEWEST: usize = 10;
/// Standard errors from the estimate to the end of a 95 % interval.
const DEVIATES: f64 = 1.96;

/// Patients as the cross-validation needs them: by the place of each in a list, its fold. Folds depend on the name of a patient only, so that the
/// order of a table changes nothing.
#[derive(Debug, Clone)]
pub(super) struct Folds(Vec<u8>);

impl Folds {
    pub(super) fn of<'a>(patients: impl Iterator<Item = &'a str>) -> Self {
        Self(patients.map(|name| (number(name) % FOLDS as u64) as u8).collect())
    }
}

/// A random number that belongs to a patient.
pub(super) fn number(patient: &str) -> u64 {
    stream(0, &format!("patient of the linter {patient}"), 0).random()
}

/// What is told apart: a row, or a stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// The place of the patient in the list of folds.
    pub(super) patient: u32,
    /// What is known of it; never NaN.
    pub(super) value: f32,
    /// Its kind.
    pub(super) kind: bool,
}

/// How well two kinds are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Separation {
    /// Area under the ROC curve.
    pub(super) auc: f64,
    /// Lower end of its 95 % interval.
    pub(super) lower: f64,
}

/// Nothing where there are too few patients of a kind.
pub(super) fn separation(units: &[Unit], folds: &Folds) -> Option<Separation> {
    let mut of_kinds = [vec![false; folds.0.len()], vec![false; folds.0.len()]];
    units.iter().for_each(|unit| of_kinds[usize::from(unit.kind)][unit.patient as usize] = true);
    let with = of_kinds.map(|of_kind| of_kind.into_iter().filter(|is| *is).count());
    if with.iter().any(|n| *n < FEWEST) {
        return None;
    }
    let edges = edges(units);
    let n_bins = edges.len() + 1;
    let cells: Vec<usize> = units
        .iter()
        .map(|unit| {
            let bin = edges.partition_point(|edge| unit.value > *edge);
            usize::from(folds.0[unit.patient as usize]) * n_bins + bin
        })
        .collect();
    let counts = counted(units, &cells, FOLDS * n_bins);
    let totals = counts.iter().fold([0.0; 2], |sum, own| [sum[0] + own[0], sum[1] + own[1]]);
    let n_patients = folds.0.len();
    let judged =
        |cells: &[usize], counts: &[[f64; 2]], scores: &[f64]| judged(units, cells, counts, scores, n_patients, with);
    let by_bin = judged(&cells, &counts, &scores(&counts, n_bins, totals));
    if units.len() > MOST_RANKED {
        return Some(by_bin);
    }
    let mut values: Vec<f32> = units.iter().map(|unit| unit.value).collect();
    values.sort_by(f32::total_cmp);
    values.dedup();
    let cells: Vec<usize> = units.iter().map(|unit| values.partition_point(|value| *value < unit.value)).collect();
    let counts = counted(units, &cells, values.len());
    let ranks = |sign: f64| (0..values.len()).map(|rank| sign * rank as f64).collect::<Vec<_>>();
    let rising = judged(&cells, &counts, &ranks(1.0));
    let by_rank = if rising.auc >= 0.5 { rising } else { judged(&cells, &counts, &ranks(-1.0)) };
    Some(if by_rank.lower > by_bin.lower { by_rank } else { by_bin })
}

/// How many units of either kind each cell has.
fn counted(units: &[Unit], cells: &[usize], n_cells: usize) -> Vec<[f64; 2]> {
    let mut counts = vec![[0.0; 2]; n_cells];
    units.iter().zip(cells).for_each(|(unit, &cell)| counts[cell][usize::from(unit.kind)] += 1.0);
    counts
}

/// How well the scores of cells tell the kinds apart.
fn judged(
    units: &[Unit],
    cells: &[usize],
    counts: &[[f64; 2]],
    scores: &[f64],
    n_patients: usize,
    with: [usize; 2],
) -> Separation {
    let totals = counts.iter().fold([0.0; 2], |sum, own| [sum[0] + own[0], sum[1] + own[1]]);
    let placements = placements(scores, counts, totals);
    let auc = counts.iter().zip(&placements).map(|(own, place)| own[1] * place[1]).sum::<f64>() / totals[1];
    let mut by_patient = vec![[0.0; 4]; n_patients];
    for (unit, &cell) in units.iter().zip(cells) {
        let kind = usize::from(unit.kind);
        let own = &mut by_patient[unit.patient as usize];
        own[kind] += placements[cell][kind];
        own[2 + kind] += 1.0;
    }
    by_patient.retain(|own| own[2] + own[3] > 0.0);
    Separation { auc, lower: lower(&by_patient, with) }
}

/// Upper edges of all bins but the last.
fn edges(units: &[Unit]) -> Vec<f32> {
    let mut values: Vec<f32> = units.iter().map(|unit| unit.value).collect();
    values.sort_by(f32::total_cmp);
    let n_bins = (values.len() / UNITS_PER_BIN).clamp(2, MOST_BINS);
    let groups = values.chunk_by(|a, b| a == b).count();
    let mut edges: Vec<f32> = if groups <= MOST_BINS {
        values.chunk_by(|a, b| a == b).map(|group| group[0]).collect()
    } else {
        (1..n_bins).map(|i| values[i * values.len() / n_bins]).collect()
    };
    edges.dedup();
    // The last bin has no upper edge.
    if edges.last() == values.last() {
        edges.pop();
    }
    edges
}

/// The share of the kind in every bin, from the other folds.
fn scores(counts: &[[f64; 2]], n_bins: usize, totals: [f64; 2]) -> Vec<f64> {
    let share = totals[1] / (totals[0] + totals[1]);
    let mut of_bins = vec![[0.0_f64; 2]; n_bins];
    for (i, own) in counts.iter().enumerate() {
        (0..2).for_each(|kind| of_bins[i % n_bins][kind] += own[kind]);
    }
    let score = |(i, own): (usize, &[f64; 2])| {
        let [others, kind] = [0, 1].map(|kind| of_bins[i % n_bins][kind] - own[kind]);
        (kind + STRENGTH * share) / (others + kind + STRENGTH)
    };
    counts.iter().enumerate().map(score).collect()
}

/// Of every cell, the share of the units of the kind that are above it, and of the others that are below it; ties count half.
fn placements(scores: &[f64], counts: &[[f64; 2]], totals: [f64; 2]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let mut placements = vec![[0.0; 2]; scores.len()];
    let mut below = [0.0; 2];
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let here = tied.iter().fold([0.0; 2], |sum, &i| [sum[0] + counts[i][0], sum[1] + counts[i][1]]);
        let above = (totals[1] - below[1] - 0.5 * here[1]) / totals[1];
        let beneath = (below[0] + 0.5 * here[0]) / totals[0];
        tied.iter().for_each(|&i| placements[i] = [above, beneath]);
        (0..2).for_each(|kind| below[kind] += here[kind]);
    }
    placements
}

/// Lower end of the interval, from the sums of placements and the numbers of units of each patient: [placements; 2], [units; 2].
fn lower(patients: &[[f64; 4]], with: [usize; 2]) -> f64 {
    let n = patients.len() as f64 + 2.0;
    // The added patients have as many units as others do on average, at chance.
    let units = [0, 1].map(|kind| patients.iter().map(|own| own[2 + kind]).sum::<f64>());
    let added = [0, 1].map(|kind| units[kind] / with[kind] as f64);
    let all =
        || patients.iter().copied().chain([[0.5 * added[0], 0.0, added[0], 0.0], [0.0, 0.5 * added[1], 0.0, added[1]]]);
    let totals = [0, 1].map(|kind| units[kind] + added[kind]);
    let auc = 0.5 * [0, 1].map(|kind| all().map(|own| own[kind]).sum::<f64>() / totals[kind]).iter().sum::<f64>();
    let deviation = |own: [f64; 4], kind: usize| own[kind] - own[2 + kind] * auc;
    let square = |kind: usize| {
        let own = with[kind] as f64 + 1.0;
        own / (own - 1.0) * all().map(|own| deviation(own, kind).powi(2)).sum::<f64>() / totals[kind].powi(2)
    };
    let cross = n / (n - 1.0) * all().map(|own| deviation(own, 0) * deviation(own, 1)).sum::<f64>();
    let variance = square(0) + square(1) + 2.0 * cross / (totals[0] * totals[1]);
    auc - DEVIATES * variance.max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 patients with five units each; `value` is of the patient's number, the unit's number and its kind.
    fn separated(value: impl Fn(u32, u32, bool) -> f32) -> Separation {
        let folds = Folds::of((0..200).map(|i: i32| i.to_string()).collect::<Vec<_>>().iter().map(String::as_str));
        let unit = |patient: u32, t: u32| {
            let kind = patient.is_multiple_of(4);
            Unit { patient, value: value(patient, t, kind), kind }
        };
        let units: Vec<Unit> = (0..200).flat_map(|patient| (0..5).map(move |t| unit(patient, t))).collect();
        separation(&units, &folds).unwrap_or(Separation { auc: f64::NAN, lower: f64::NAN })
    }

    fn noise(patient: u32, t: u32) -> f32 {
        (number(&format!("{patient} {t}")) % 10_000) as f32 / 10_000.0
    }

    #[test]
    fn what_says_nothing_is_at_chance_and_what_says_all_is_one() {
        let nothing = separated(|patient, t, _| noise(patient, t));
        assert!((nothing.auc - 0.5).abs() < 0.05 && nothing.lower < 0.5, "{nothing:?}");
        // A value of each patient's own has nothing to learn from in other patients.
        let of_patient = separated(|patient, _, _| noise(patient, 0));
        assert!((of_patient.auc - 0.5).abs() < 0.1 && of_patient.lower < 0.5, "{of_patient:?}");
        let all = separated(|_, _, kind| f32::from(u8::from(kind)));
        assert!(all.auc == 1.0 && all.lower > 0.9, "{all:?}");
    }

    #[test]
    fn a_relation_that_is_not_monotone_is_seen() {
        // One kind is in the middle.
        let middle =
            separated(|patient, t, kind| if kind { 0.45 + 0.1 * noise(patient, t) } else { noise(patient, t) });
        assert!(middle.auc > 0.9, "{middle:?}");
    }

    #[test]
    fn units_of_one_patient_are_no_evidence_of_their_own() {
        let folds = Folds::of((0..40).map(|i: i32| i.to_string()).collect::<Vec<_>>().iter().map(String::as_str));
        let units = |times: u32| -> Vec<Unit> {
            let unit = |patient: u32| {
                let kind = patient.is_multiple_of(2);
                let value = noise(patient, 0) + if kind { 0.4 } else { 0.0 };
                std::iter::repeat_n(Unit { patient, value: (4.0 * value).floor(), kind }, times as usize)
            };
            (0..40).flat_map(unit).collect()
        };
        let lower = |times| separation(&units(times), &folds).map(|found| found.lower);
        let (once, often) = (lower(1).unwrap_or_default(), lower(50).unwrap_or_default());
        assert!((once - often).abs() < 0.06, "{once} {often}");
        assert_eq!(separation(&units(1)[..15], &folds), None);
    }
}
