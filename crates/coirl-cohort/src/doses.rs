//! Doses in levels: zero, and quantiles of what was given.
//!
//! Of the n non-zero doses of the training rows, one with rank r (the mean rank of equal doses) has level ⌈q r / n⌉ of q = levels − 1, as in the
//! AI Clinician; equal doses are never in two levels. Where no more than q different amounts were given, each is a level of its own.

use serde::{Deserialize, Serialize};

/// Ranks that fall on a boundary belong below it, whatever the rounding.
const TIE: f64 = 1e-10;

/// The levels of a dose, fitted on training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoseLevels {
    /// The column.
    pub column: String,
    /// The largest dose of every level above zero but the last.
    pub edges: Vec<f64>,
    /// The median training dose of every level; zero where a level was never given.
    pub typical: Vec<f64>,
}

impl DoseLevels {
    /// From the doses of training rows; doses that were not recorded count as zero.
    pub(super) fn fit(column: &str, doses: impl Iterator<Item = f64>, levels: usize, given: Option<&[f64]>) -> Self {
        let mut given_doses: Vec<f64> = doses.filter(|dose| *dose > 0.0).collect();
        given_doses.sort_by(f64::total_cmp);
        let edges = given.map_or_else(|| quantile_edges(&given_doses, levels - 1), <[f64]>::to_vec);
        let mut typical = vec![0.0; levels];
        for group in given_doses.chunk_by(|a, b| level_of(&edges, *a) == level_of(&edges, *b)) {
            typical[level_of(&edges, group[0])] = group[group.len() / 2];
        }
        Self { column: column.into(), edges, typical }
    }

    /// The level of a dose.
    pub fn level(&self, dose: f64) -> usize {
        level_of(&self.edges, dose)
    }

    /// Number of levels, zero among them.
    pub fn n_levels(&self) -> usize {
        self.typical.len()
    }
}

fn level_of(edges: &[f64], dose: f64) -> usize {
    if dose > 0.0 { 1 + edges.iter().take_while(|edge| dose > **edge).count() } else { 0 }
}

/// Upper edges of all levels above zero but the last; levels that nothing falls into end where the one before does.
fn quantile_edges(sorted: &[f64], parts: usize) -> Vec<f64> {
    let n = sorted.len() as f64;
    let groups: Vec<&[f64]> = sorted.chunk_by(|a, b| a == b).collect();
    let mut edges = vec![0.0; parts - 1];
    let mut rank = 0.0;
    for (i, group) in groups.iter().enumerate() {
        let mean_rank = rank + (group.len() as f64 + 1.0) / 2.0;
        rank += group.len() as f64;
        let by_rank = (parts as f64 * mean_rank / n - TIE).ceil().max(1.0) as usize - 1;
        let part = if groups.len() <= parts { i } else { by_rank };
        if part < parts - 1 {
            edges[part..].fill(group[0]);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_zero_and_quartiles_of_what_was_given() {
        let doses = (0..=8).map(f64::from).chain([f64::NAN, 0.0, -1.0]);
        let levels = DoseLevels::fit("dose", doses, 5, None);
        let of: Vec<usize> =
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, f64::NAN].map(|x| levels.level(x)).into();
        assert_eq!(of, [0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 0]);
        assert_eq!(levels.typical, [0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn equal_doses_share_a_level_by_their_mean_rank() {
        // Ranks 1 to 6 are one dose with mean rank 3.5 of 10, the second quarter; 7 to 10 follow.
        let doses = [5.0; 6].into_iter().chain([6.0, 7.0, 8.0, 9.0]);
        let levels = DoseLevels::fit("dose", doses, 5, None);
        assert_eq!([4.0, 5.0, 6.0, 7.0, 8.0, 9.0].map(|x| levels.level(x)), [2, 2, 3, 4, 4, 4]);
    }

    #[test]
    fn few_amounts_are_levels_of_their_own_however_often_they_are_given() {
        let doses = [1.0; 90].into_iter().chain([2.0; 5]).chain([3.0; 4]).chain([4.0]);
        let levels = DoseLevels::fit("dose", doses, 5, None);
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(|x| levels.level(x)), [1, 2, 3, 4]);
        assert_eq!(levels.typical, [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn nothing_given_and_given_edges() {
        let never = DoseLevels::fit("dose", std::iter::empty(), 5, None);
        assert_eq!((never.level(0.0), never.n_levels()), (0, 5));
        assert!(never.level(1.0) > 0);
        let fixed = DoseLevels::fit("dose", [0.3, 4.0].into_iter(), 3, Some(&[1.0]));
        assert_eq!([0.5, 1.0, 1.5].map(|x| fixed.level(x)), [1, 1, 2]);
        assert_eq!(fixed.typical, [0.0, 0.3, 4.0]);
    }
}
