//! An experiment as a file: what is studied, who takes part, what is drawn and what is claimed about it.

use super::claims::{Claim, Judged};
use super::curves::{Curve, SeedCurves, over_seeds};
use super::studies::Study;
use coirl::demos::Estimator;
use coirl::learn::Stop;
use coirl::mapping::LinearMapping;
use coirl::methods::{Method, Settings};
use coirl::model::Context;
use coirl::settings_file::{merge, refused};
use coirl::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// One line.
    pub title: String,
    /// Which part of the paper it shows; nothing where it goes beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// What is done, and how it differs from the paper, in a few sentences.
    pub about: String,
    /// How many seeds.
    pub seeds: u64,
    /// What is studied.
    pub study: Study,
    /// Who takes part.
    #[serde(rename = "method", default)]
    pub methods: Vec<Entrant>,
    /// What is drawn.
    #[serde(rename = "picture", default)]
    pub pictures: Vec<Picture>,
    /// What is claimed.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// What is different in a quick run: keys as above.
    #[serde(default, skip_serializing)]
    pub quick: toml::Table,
    /// What is different at the paper's scale.
    #[serde(default, skip_serializing)]
    pub paper_scale: toml::Table,
}

/// How much of an experiment is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// As the file has it.
    #[default]
    Usual,
    /// In seconds, to see that everything works.
    Quick,
    /// As large as in the paper, whatever that takes.
    Paper,
}

/// A method that takes part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// What it is called in tables and pictures.
    pub name: String,
    /// How it learns.
    pub learner: Method,
    /// How feature expectations are read off trajectories; by default the choice model looks at single actions, and other methods
    /// use the default estimator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// Steps; by default as many as the method usually takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Passes over the demonstrations, one step for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u64>,
    /// Steps between two looks, and looks without anything better that end a run, where a study watches validation stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<(u64, u64)>,
    /// Whether generalised policy improvement over the policies of the training contexts is measured beside planning.
    #[serde(default)]
    pub improvement: bool,
    /// Left out of quick runs.
    #[serde(default, skip_serializing)]
    pub slow: bool,
    /// How it learns at the paper's scale, where that is another way.
    #[serde(default, skip_serializing)]
    pub paper_learner: Option<Method>,
    /// What the paper reports: mean and standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<(f64, f64)>,
}

impl Entrant {
    /// The estimator of a problem that this method learns from.
    pub(super) fn estimator(&self) -> Option<Estimator> {
        match (&self.estimator, &self.learner) {
            (None, Method::Choice(_)) => None,
            (given, _) => Some(given.clone().unwrap_or_default()),
        }
    }

    /// Settings of a run on so many demonstrations.
    pub(super) fn settings(&self, demonstrations: usize, seed: u64) -> Settings {
        let passes = self.passes.map(|passes| passes.saturating_mul(demonstrations as u64));
        let stop = Stop { max_steps: self.steps.or(passes), ..Stop::default() };
        Settings { seed, stop, record_every: Some(0), record_loss: Some(false), ..Settings::new(self.learner.clone()) }
    }
}

/// A panel: one measure of all methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Which measure.
    pub measure: String,
    /// What the horizontal axis is called.
    pub x: String,
    /// What the vertical axis is called.
    pub y: String,
    /// How y is drawn.
    #[serde(default)]
    pub scale: Axis,
    /// Whether x is drawn by its logarithm.
    #[serde(default)]
    pub log_x: bool,
    /// The part of y to be drawn; all of it by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

/// How numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// As they are.
    #[default]
    Linear,
    /// As shares, in per cent.
    Percent,
    /// By their logarithm.
    Log,
}

/// What is given instead of drawn: for each seed in turn, the last one for all that are left.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Contexts to learn from, one sequence for each seed.
    pub contexts: Vec<Vec<Context>>,
    /// W₁, one for each seed.
    pub initial: Vec<Vec<f64>>,
    /// What experts want.
    pub mapping: Option<LinearMapping>,
}

impl Given {
    /// What a run of this number is given.
    pub(super) fn of<T>(all: &[T], number: usize) -> Option<&T> {
        all.get(number).or(all.last())
    }
}

/// Called now and then with the method at work and the share of it that is done; may stop the experiment.
pub type Watcher<'w> = &'w (dyn Fn(&str, f64) -> ControlFlow<()> + Sync);

impl Experiment {
    /// Reads an experiment at some scale, with single settings replaced: pairs of a dotted key and a value in TOML.
    pub fn read(text: &str, scale: Scale, replaced: &[(String, toml::Value)]) -> Result<Self> {
        // Read alone first: only so do complaints know their line.
        let alone: Self = toml::from_str(text).map_err(|error| refused(text, &error))?;
        let mut table = text.parse::<toml::Table>().map_err(|error| refused(text, &error))?;
        match scale {
            Scale::Usual => {}
            Scale::Quick => merge(&mut table, alone.quick),
            Scale::Paper => merge(&mut table, alone.paper_scale),
        }
        for (key, value) in replaced {
            set(&mut table, key, value.clone())?;
        }
        let mut experiment: Self =
            toml::Value::Table(table).try_into().map_err(|error: toml::de::Error| refused("", &error))?;
        match scale {
            Scale::Usual => {}
            Scale::Quick => experiment.methods.retain(|entrant| !entrant.slow),
            Scale::Paper => {
                for entrant in &mut experiment.methods {
                    entrant.learner = entrant.paper_learner.take().unwrap_or_else(|| entrant.learner.clone());
                }
            }
        }
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<()> {
        let refuse = |place: &str, reason: &str| Err(Error::Spec { place: place.into(), reason: reason.into() });
        if self.seeds == 0 {
            return refuse("seeds", "0; expected at least 1");
        }
        if self.methods.is_empty() {
            return refuse("method", "there is none; expected at least one [[method]]");
        }
        for (i, entrant) in self.methods.iter().enumerate() {
            if self.methods[..i].iter().any(|other| other.name == entrant.name) {
                return refuse("method", &format!("two are called '{}'", entrant.name));
            }
        }
        self.study.check()
    }

    /// As a TOML file, complete: what a run with these settings can be repeated from.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string_pretty(self)
            .map_err(|error| Error::Spec { place: "experiment".into(), reason: error.to_string() })
    }

    /// One seed: the run of this number, counted from zero.
    pub fn run(&self, number: usize, seed: u64, given: &Given, watcher: Watcher<'_>) -> Result<SeedCurves> {
        let curves: Vec<Curve> = self.study.run(&self.methods, number, seed, given, watcher)?;
        Ok(SeedCurves { seed, curves })
    }

    /// What the claims come to.
    pub fn judge(&self, runs: &[SeedCurves]) -> Vec<Judged> {
        let means = over_seeds(runs);
        self.claims.iter().map(|claim| claim.judge(runs, &means)).collect()
    }
}

/// Parts of a dotted key; no setting lies as deep.
const MOST_PARTS: usize = 32;

/// Replaces a setting by its dotted key; a number among the parts counts in a list.
fn set(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<()> {
    let refuse = |reason: &str| Error::Spec { place: key.to_owned(), reason: reason.to_owned() };
    // Tables are dropped and written by functions that call themselves.
    if key.split('.').count() > MOST_PARTS {
        return Err(Error::Spec {
            place: "settings".into(),
            reason: format!("a key has more than {MOST_PARTS} parts"),
        });
    }
    let mut parts = key.split('.').peekable();
    let first = parts.next().filter(|part| !part.is_empty()).ok_or_else(|| refuse("expected a key"))?;
    if parts.peek().is_none() {
        table.insert(first.to_owned(), value);
        return Ok(());
    }
    let mut at = table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        at = match at {
            toml::Value::Table(inner) if last => {
                inner.insert(part.to_owned(), value);
                return Ok(());
            }
            toml::Value::Table(inner) => inner.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new())),
            toml::Value::Array(list) => {
                let slot = part.parse().ok().and_then(|i: usize| list.get_mut(i));
                let slot = slot.ok_or_else(|| refuse(&format!("'{part}' is no number of the list")))?;
                if last {
                    *slot = value;
                    return Ok(());
                }
                slot
            }
            _ => return Err(refuse(&format!("there is nothing below that '{part}' could be a part of"))),
        };
    }
    Ok(())
}
