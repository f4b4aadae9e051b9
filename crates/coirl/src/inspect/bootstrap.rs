//! How much W would change with other demonstrations: resample them with replacement, fit again with the same settings.
//!
//! Every replicate is scaled to ‖W‖₂ = 1, the only convention there is: a positive multiple of W explains the same, and −W
//! does not, so that no sign has to be chosen. The interval of an entry is from percentile to percentile of its replicates. It
//! shows the spread of the learner's answer, which may be narrow where the learner always makes the same choice among mappings
//! that explain as much: what the demonstrations determine is another question, see [`determine`](super::determine). Resamples,
//! seeds and so intervals are the same whatever the number of threads. Cost: one fit per replicate.

use super::progress::{Listener, tell};
use crate::error::Result;
use crate::learn::{Problem, Stop, Watch};
use crate::methods::{Settings, fit};
use crate::optim::norm;
use crate::random::stream;
use crate::resampling::{Interval, check_level, check_resamples};
use rand::RngExt;
use rayon::prelude::*;

/// Settings of the bootstrap.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BootstrapSettings {
    /// Fits on resampled demonstrations.
    pub replicates: usize,
    /// Share of the replicates inside an interval.
    pub level: f64,
    /// Seed of the resamples.
    pub seed: u64,
}

impl Default for BootstrapSettings {
    fn default() -> Self {
        Self { replicates: 100, level: 0.95, seed: 0 }
    }
}

/// What the replicates say.
#[derive(Debug, Clone, PartialEq)]
pub struct Bootstrap {
    /// One interval per entry, row-major; those of weights that everybody has come last.
    pub intervals: Vec<Interval>,
    /// Replicates that learned something; W = 0 has no direction.
    pub replicates: usize,
}

/// Replicates between two reports of progress; the results do not depend on it.
const WAVE: usize = 8;

/// Fits again and again on resampled demonstrations.
pub fn bootstrap(
    problem: &Problem<'_>,
    settings: &Settings,
    bootstrap: &BootstrapSettings,
    listener: Listener<'_>,
) -> Result<Bootstrap> {
    check_level(bootstrap.level)?;
    check_resamples("replicates", bootstrap.replicates)?;
    let replicate = |number: usize| -> Result<Option<Vec<f64>>> {
        let mut random = stream(bootstrap.seed, "bootstrap replicate", number as u64);
        let drawn: Vec<usize> = (0..problem.len()).map(|_| random.random_range(0..problem.len())).collect();
        let settings = Settings { seed: random.random(), ..unwatched(settings) };
        let fitted = fit(&problem.select(&drawn)?, &settings, Watch::default(), &mut ())?;
        let mapping = fitted.mapping()?.all_weights();
        let size = norm(&mapping);
        Ok((size > 0.0).then(|| mapping.iter().map(|w| w / size).collect()))
    };
    let mut mappings: Vec<Vec<f64>> = Vec::with_capacity(bootstrap.replicates);
    for first in (0..bootstrap.replicates).step_by(WAVE) {
        let last = (first + WAVE).min(bootstrap.replicates);
        let wave: Vec<Option<Vec<f64>>> = (first..last).into_par_iter().map(replicate).collect::<Result<_>>()?;
        mappings.extend(wave.into_iter().flatten());
        tell(listener, last, bootstrap.replicates)?;
    }
    let of_entry = |entry: usize| {
        let values: Vec<f64> = mappings.iter().map(|mapping| mapping.get(entry).copied().unwrap_or(0.0)).collect();
        Interval::of(values, bootstrap.level).unwrap_or(Interval { lower: f64::NAN, upper: f64::NAN })
    };
    let n = mappings.iter().map(Vec::len).fold(problem.n_parameters(), usize::max);
    Ok(Bootstrap { intervals: (0..n).map(of_entry).collect(), replicates: mappings.len() })
}

/// The settings of a run that nobody watches. Its rules for stopping stay, but for the validation demonstrations.
pub(super) fn unwatched(settings: &Settings) -> Settings {
    let needs_loss = settings.stop.loss.is_some();
    Settings {
        stop: Stop { patience: None, ..settings.stop.clone() },
        record_every: if needs_loss { settings.record_every } else { Some(0) },
        record_loss: Some(needs_loss),
        ..settings.clone()
    }
}
