//! Runs an experiment seed by seed. Every finished seed is kept, so that a run that was stopped goes on where it was.

use super::results::{Kept, Results};
use crate::destination::to_file;
use crate::failure::Failure;
use crate::fitting::stop_wanted;
use crate::output::OutputFolder;
use crate::progress;
use coirl::artifact::read_text;
use coirl_experiments::{Experiment, Given, Scale, SeedCurves};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const SEEDS: &str = "seeds";
pub(crate) const SETTINGS: &str = "experiment.toml";
const TIMINGS: &str = "timings.json";
/// Parts of a method that progress is told in.
const PARTS: f64 = 100.0;

/// An experiment that is to be run.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) experiment: Experiment,
    pub(crate) scale: Scale,
    pub(crate) first_seed: u64,
    pub(crate) given: Given,
    /// Names and digests of the files that were given.
    pub(crate) given_files: Vec<(String, String)>,
}

/// A seed that is finished.
#[derive(Serialize, Deserialize)]
struct FinishedSeed {
    /// What it was made with; another makes it worthless.
    made_with: MadeWith,
    run: SeedCurves,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct MadeWith {
    version: String,
    number: usize,
    settings: String,
    given: Vec<(String, String)>,
}

impl Task {
    /// Runs what is missing and writes everything but pictures. Nothing where it was stopped.
    pub(crate) fn run(&self, folder: &OutputFolder, place: &str, quiet: bool) -> Result<Option<Results>, Failure> {
        let seeds = folder.folder(SEEDS)?;
        let settings = self.experiment.to_toml()?;
        to_file(&folder.file(SETTINGS), |file| Ok(file.write_all(settings.as_bytes())?))?;
        let n = self.experiment.seeds as usize;
        let bar = progress::experiment(format!("{place}{}", self.name), quiet);
        bar.set_length((n as u64).saturating_mul(self.experiment.methods.len() as u64 * PARTS as u64));
        let mut timings = Timings::read(&folder.file(TIMINGS));
        let mut runs = Vec::new();
        for number in 0..n {
            let seed = self.first_seed.wrapping_add(number as u64);
            let path = seeds.file(&format!("{seed}.json"));
            let made_with = self.made_with(number)?;
            let run = match kept(&path, &made_with) {
                Some(run) => run,
                None => {
                    let clock = Clock::default();
                    let told = |method: &str, done: f64| {
                        clock.tell(method, done);
                        bar.set_position((number * self.experiment.methods.len()) as u64 * PARTS as u64 + clock.done());
                        if stop_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    };
                    let run = match self.experiment.run(number, seed, &self.given, &told) {
                        Err(coirl::Error::Interrupted { .. }) => {
                            bar.finish_and_clear();
                            return Ok(None);
                        }
                        run => run?,
                    };
                    let finished = FinishedSeed { made_with, run };
                    let json = serde_json::to_string(&finished).map_err(std::io::Error::from)?;
                    to_file(&path, |file| Ok(writeln!(file, "{json}")?))?;
                    timings.0.insert(seed.to_string(), clock.seconds());
                    timings.write(&folder.file(TIMINGS))?;
                    finished.run
                }
            };
            bar.set_position(((number + 1) * self.experiment.methods.len()) as u64 * PARTS as u64);
            runs.push(run);
        }
        bar.finish_and_clear();
        let kept = Kept {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            scale: self.scale,
            given: self.given_files.clone(),
            settings: self.experiment.clone(),
            runs,
        };
        let results = Results::of(kept);
        results.write(folder.path())?;
        Ok(Some(results))
    }

    /// What decides about a seed: neither claims and pictures, nor how many seeds there are.
    fn made_with(&self, number: usize) -> Result<MadeWith, Failure> {
        let mut own = self.experiment.clone();
        (own.seeds, own.claims, own.pictures) = (1, Vec::new(), Vec::new());
        (own.title, own.about, own.paper) = (String::new(), String::new(), None);
        // Which of the given files a seed uses depends on its number.
        let number = if self.given_files.is_empty() { 0 } else { number };
        let given = self.given_files.clone();
        Ok(MadeWith { version: env!("CARGO_PKG_VERSION").into(), number, settings: own.to_toml()?, given })
    }
}

/// A seed that was finished before with the same settings; a file that cannot be read is as good as none.
fn kept(path: &Path, made_with: &MadeWith) -> Option<SeedCurves> {
    let text = read_text(path, "a finished seed").ok()?;
    let finished: FinishedSeed = serde_json::from_str(&text).ok()?;
    (finished.made_with == *made_with).then_some(finished.run)
}

/// Which method is how far, and since when.
#[derive(Default)]
struct Clock(Mutex<BTreeMap<String, Lap>>);

/// A method under way.
struct Lap {
    begun: Instant,
    done: f64,
    seconds: f64,
}

impl Clock {
    /// Begins a method when it is first heard of; after its end the clock stands still.
    fn tell(&self, method: &str, done: f64) {
        let mut methods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lap = methods.entry(method.to_owned()).or_insert_with(|| Lap { begun: Instant::now(), done, seconds: 0.0 });
        if lap.done < 1.0 {
            lap.done = done;
            lap.seconds = lap.begun.elapsed().as_secs_f64();
        }
    }

    fn done(&self) -> u64 {
        let methods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        methods.values().map(|lap| (PARTS * lap.done) as u64).sum()
    }

    fn seconds(&self) -> BTreeMap<String, f64> {
        let methods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        methods.iter().map(|(name, lap)| (name.clone(), lap.seconds)).collect()
    }
}

/// Seconds of every method, by seed. Not part of the results: clocks differ.
#[derive(Default, Serialize, Deserialize)]
struct Timings(BTreeMap<String, BTreeMap<String, f64>>);

impl Timings {
    fn read(path: &Path) -> Self {
        read_text(path, "timings").ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        to_file(path, |file| Ok(writeln!(file, "{json}")?))
    }
}
