//! How often each action was taken, by row: a state, or the action before.

use std::collections::HashMap;

/// Weights of the overall shares, in observations, of which the likeliest on validation steps is taken.
const STRENGTHS: [f64; 9] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0];
/// Where nothing is left to choose by.
const STRENGTH: f64 = 1.0;

/// Counts by row with the shares that they are drawn to: (n(row, a) + κ base(a)) / (n(row) + κ).
#[derive(Debug, Clone)]
pub(super) struct Counts {
    times: HashMap<(usize, u32), f64>,
    totals: Vec<f64>,
    /// The most frequent action of each row, of equals the one with the largest share of all, then the lowest.
    most: Vec<Option<u32>>,
    base: Vec<f64>,
    strength: f64,
}

impl Counts {
    /// Of (row, action); rows without any have the shares of `base` alone.
    pub(super) fn of(n_rows: usize, base: Vec<f64>, seen: impl Iterator<Item = (usize, u32)>) -> Self {
        let mut times: HashMap<(usize, u32), f64> = HashMap::new();
        let mut totals = vec![0.0; n_rows];
        for (row, action) in seen {
            *times.entry((row, action)).or_default() += 1.0;
            totals[row] += 1.0;
        }
        let mut entries: Vec<(usize, u32, f64)> = times.iter().map(|(&(row, action), &n)| (row, action, n)).collect();
        entries.sort_by_key(|&(row, action, _)| (row, action));
        let mut most: Vec<Option<u32>> = vec![None; n_rows];
        let mut best = vec![(0.0, 0.0); n_rows];
        for (row, action, n) in entries {
            let own = (n, base[action as usize]);
            if own > best[row] {
                (best[row], most[row]) = (own, Some(action));
            }
        }
        Self { times, totals, most, base, strength: STRENGTH }
    }

    /// Chooses κ by the likelihood of (row, action); nothing changes where there are none.
    pub(super) fn chosen_on(mut self, seen: &[(usize, u32)]) -> Self {
        let likelihood = |strength: f64| -> f64 {
            seen.iter().map(|&(row, action)| self.probability_at(row, action, strength).ln()).sum()
        };
        let scored = STRENGTHS.map(|strength| (strength, likelihood(strength)));
        if !seen.is_empty() {
            self.strength = scored
                .into_iter()
                .fold((STRENGTH, f64::NEG_INFINITY), |best, new| if new.1 > best.1 { new } else { best })
                .0;
        }
        self
    }

    fn probability_at(&self, row: usize, action: u32, strength: f64) -> f64 {
        let n = self.times.get(&(row, action)).copied().unwrap_or_default();
        (n + strength * self.base[action as usize]) / (self.totals[row] + strength)
    }

    /// Of an action in a row.
    pub(super) fn probability(&self, row: usize, action: u32) -> f64 {
        self.probability_at(row, action, self.strength)
    }

    /// Of every action in a row.
    pub(super) fn row(&self, row: usize) -> Vec<f64> {
        (0..self.base.len() as u32).map(|action| self.probability(row, action)).collect()
    }

    /// The most frequent action of a row; nothing where none was seen.
    pub(super) fn most_frequent(&self, row: usize) -> Option<u32> {
        self.most[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_what_was_not_seen_and_decide_between_equals() {
        let seen = [(0, 2), (0, 1), (1, 0), (1, 0), (1, 2)];
        let counts = Counts::of(3, vec![0.2, 0.5, 0.3], seen.into_iter());
        assert_eq!([0, 1, 2].map(|row| counts.most_frequent(row)), [Some(1), Some(0), None]);
        assert_eq!(counts.probability(2, 0), 0.2);
        assert!((counts.probability(0, 2) - (1.0 + 0.3) / 3.0).abs() < 1e-12);
        assert!((counts.row(1).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_strength_is_that_of_validation_steps() {
        let counts = || Counts::of(1, vec![0.5, 0.5], [(0, 0), (0, 0), (0, 0)].into_iter());
        // Nothing but what was seen, against as often as not.
        assert_eq!(counts().chosen_on(&[(0, 0); 20]).strength, STRENGTHS[0]);
        assert_eq!(counts().chosen_on(&[(0, 0), (0, 1)].repeat(20)).strength, STRENGTHS[8]);
        assert_eq!(counts().chosen_on(&[]).strength, STRENGTH);
    }
}
