//! Percentile intervals of resampled numbers.

use crate::error::{Error, Result, check_room};

/// From `lower` to `upper`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// The middle `level` of the numbers, quantiles interpolated between neighbours; nothing where there are no numbers.
    pub fn of(mut numbers: Vec<f64>, level: f64) -> Option<Self> {
        let last = numbers.len().checked_sub(1)?;
        numbers.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let at = share * last as f64;
            let below = at.floor() as usize;
            let above = (below + 1).min(last);
            numbers[below] + (at - below as f64) * (numbers[above] - numbers[below])
        };
        Some(Self { lower: quantile(0.5 - 0.5 * level), upper: quantile(0.5 + 0.5 * level) })
    }

    /// upper − lower.
    pub fn width(self) -> f64 {
        self.upper - self.lower
    }

    /// Whether the number lies in it, ends included.
    pub fn contains(self, x: f64) -> bool {
        (self.lower..=self.upper).contains(&x)
    }
}

/// Refuses levels that are none.
pub fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    let reason = "expected a share between 0 and 1";
    Err(Error::InvalidSetting { name: "level", value: level.to_string(), reason })
}

/// Refuses numbers of resamples that make no interval.
pub fn check_resamples(name: &'static str, count: usize) -> Result<()> {
    if count >= 2 {
        return check_room(name, &[count]);
    }
    Err(Error::InvalidSetting { name, value: count.to_string(), reason: "expected at least 2" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_hundred_and_one_numbers() {
        let numbers: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(Interval::of(numbers.clone(), 0.5), Some(Interval { lower: 25.0, upper: 75.0 }));
        assert_eq!(Interval::of(numbers, 0.75), Some(Interval { lower: 12.5, upper: 87.5 }));
        assert_eq!(Interval::of(vec![3.0], 0.95), Some(Interval { lower: 3.0, upper: 3.0 }));
        assert_eq!(Interval::of(Vec::new(), 0.95), None);
    }
}
