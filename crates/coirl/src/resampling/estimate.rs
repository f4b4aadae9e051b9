//! The bootstrap by patient: as many patients as there are, drawn with replacement, again and again.
//!
//! A statistic is a function of how often each patient was drawn. The interval goes from percentile to percentile of its values. It
//! shows what another sample of patients from the same hospital would do to the number, and nothing of its bias. Every resample has a
//! stream of its own, so that the result does not depend on the number of threads. Cost: one statistic per resample.

use super::interval::{Interval, check_level, check_resamples};
use crate::error::Result;
use crate::random::stream;
use rand::RngExt;
use rayon::prelude::*;

/// How patients are drawn again.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resampling {
    /// Resamples, at least 2.
    pub resamples: usize,
    /// Share of them inside an interval.
    pub level: f64,
    /// Seed.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Self { resamples: 1000, level: 0.95, seed: 0 }
    }
}

/// A number with its interval over resampled patients; no interval where the number had no value in some resample.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// From all patients.
    pub value: f64,
    /// From resampled ones.
    pub interval: Option<Interval>,
}

impl Resampling {
    /// Refuses settings that make no interval.
    pub fn check(&self) -> Result<()> {
        check_resamples("resamples", self.resamples)?;
        check_level(self.level)
    }

    /// A statistic of every resample of patients, in their order. It is given how often each patient counts.
    pub fn of_resamples<T: Send>(&self, n_patients: usize, statistic: impl Fn(&[f64]) -> T + Sync) -> Vec<T> {
        let resample = |number: usize| {
            let mut random = stream(self.seed, "resampled patients", number as u64);
            let mut times = vec![0.0; n_patients];
            (0..n_patients).for_each(|_| times[random.random_range(0..n_patients)] += 1.0);
            statistic(&times)
        };
        (0..self.resamples).into_par_iter().map(resample).collect()
    }

    /// Statistics of all patients, with intervals. `statistics` is given how often each patient counts.
    pub fn estimates<const N: usize>(
        &self,
        n_patients: usize,
        statistics: impl Fn(&[f64]) -> [f64; N] + Sync,
    ) -> [Estimate; N] {
        let resampled = self.of_resamples(n_patients, &statistics);
        let values = statistics(&vec![1.0; n_patients]);
        std::array::from_fn(|i| {
            let numbers: Vec<f64> = resampled.iter().map(|values| values[i]).collect();
            let defined = values[i].is_finite() && numbers.iter().all(|x| x.is_finite());
            Estimate { value: values[i], interval: defined.then(|| Interval::of(numbers, self.level)).flatten() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard error of a mean is known, and a normal interval is ± 1.96 of them.
    #[test]
    fn the_interval_of_a_mean_is_as_wide_as_its_standard_error_says() {
        let n = 400;
        let x: Vec<f64> = (0..n).map(|i| f64::from(i % 2)).collect();
        let mean = |times: &[f64]| [times.iter().zip(&x).map(|(m, x)| m * x).sum::<f64>() / f64::from(n)];
        let settings = Resampling { resamples: 4000, ..Resampling::default() };
        let [estimate] = settings.estimates(n as usize, mean);
        assert_eq!(estimate.value, 0.5);
        let width = estimate.interval.map_or(f64::NAN, Interval::width);
        let expected = 2.0 * 1.96 * (0.25 / f64::from(n)).sqrt();
        assert!((width / expected - 1.0).abs() < 0.06, "{width} instead of {expected}");
    }

    #[test]
    fn a_number_that_some_resample_lacks_has_no_interval() {
        let present = |times: &[f64]| [if times[0] > 0.0 { 1.0 } else { f64::NAN }];
        assert_eq!(Resampling::default().estimates(3, present), [Estimate { value: 1.0, interval: None }]);
    }
}
