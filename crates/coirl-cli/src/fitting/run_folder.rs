//! A finished run, opened again: what was learned, and from what. `source.json` beside the result names the model and the data, so
//! that later commands need only the folder.

use super::data::{Data, DataArgs};
use super::dynamics::LEARNED_MODEL;
use crate::cohorts::CohortFolder;
use crate::destination::to_file;
use crate::failure::Failure;
use crate::models;
use crate::output::{MANIFEST, UNFINISHED};
use coirl::artifact::{read_fitted, read_text};
use coirl::demos::{Split, Train, Validation};
use coirl::learn::Problem;
use coirl::methods::{Entry, Fitted, method};
use coirl::model::Cmdp;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name of the result in the output folder.
pub(crate) const FITTED: &str = "fitted.safetensors";
const SOURCE: &str = "source.json";
/// Validation stays of a cohort that a run is watched on, as in the paper.
const VALIDATION_STAYS: usize = 300;

/// Where a run got its data from.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// Model and demonstrations.
    pub(crate) data: DataArgs,
    /// Seed of the run, which also decides the split.
    pub(crate) seed: u64,
    /// Share of the demonstrations that was kept to stop by.
    pub(crate) validation: Option<f64>,
    /// What the method was called when it was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<String>,
}

impl Source {
    /// Writes it into an output folder. A cohort is named from there, so that both can be moved together.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let written = Self { data: self.data.seen_from(folder), ..self.clone() };
        let text = serde_json::to_string_pretty(&written).map_err(std::io::Error::from)?;
        to_file(&folder.join(SOURCE), |out| Ok(writeln!(out, "{text}")?))
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let text = read_text(path, "the source of a run")?;
        let source: Self = serde_json::from_str(&text).map_err(|error| Failure::in_file(path, error))?;
        let data = source.data.found_from(path.parent().unwrap_or(Path::new("")));
        if let Some(cohort) = data.cohort().filter(|cohort| !CohortFolder::is_in(cohort)) {
            let reason = format!(
                "the cohort {} is not there: put it back, say where it is under \"cohort\" in this file, or build it and fit again",
                cohort.display()
            );
            return Err(Failure::in_file(path, reason));
        }
        Ok(Self { data, ..source })
    }

    /// Reads the data of a new run and splits off what it is not to learn from. An estimator that its method does not use is refused.
    pub(crate) fn open(&self) -> Result<SourceData, Failure> {
        if let Some(entry) = self.entry() {
            self.data.check_estimator(entry.name, &(entry.method)())?;
        }
        self.open_again()
    }

    /// The method, by the name that was typed.
    fn entry(&self) -> Option<&'static Entry> {
        method(self.method.as_deref()?)
    }

    /// Reads the data of a run and splits off what it did not learn from.
    fn open_again(&self) -> Result<SourceData, Failure> {
        let mut data = self.data.read_for(self.seed, self.entry().is_some_and(Entry::is_interactive))?;
        let demonstrations = std::mem::take(&mut data.demonstrations);
        let mut left_out = 0.0;
        let (train, validation) = match self.validation {
            None => {
                let kept = self.data.validation_of_cohort(&data.model, VALIDATION_STAYS, self.seed)?;
                left_out = kept.as_ref().map_or(0.0, |(_, share)| *share);
                (Train::new(demonstrations), kept.map(|(kept, _)| kept))
            }
            Some(share) => {
                let split = Split::random(demonstrations, share, 0.0, self.seed)?;
                if split.validation.demonstrations().is_empty() {
                    let message = format!("--validation {share} keeps no demonstration; give a larger share");
                    return Err(Failure::refused(message));
                }
                (split.train, Some(split.validation))
            }
        };
        Ok(SourceData { data, train, validation, left_out })
    }
}

/// The data of a run, with the demonstrations by what they are for.
pub(crate) struct SourceData {
    /// Everything but the demonstrations.
    pub(crate) data: Data,
    pub(crate) train: Train,
    pub(crate) validation: Option<Validation>,
    /// Share of the steps of validation stays that the model does not admit; they are no part of `validation`.
    pub(crate) left_out: f64,
}

/// A finished run.
pub(crate) struct Run {
    /// The file of the result.
    pub(crate) path: PathBuf,
    pub(crate) fitted: Fitted,
    source: Option<Source>,
    /// Whether the source was typed rather than read.
    typed: bool,
}

impl Run {
    /// Opens an output folder of `coirl fit` or the result in it. Data that were typed go before those that the run names.
    pub(crate) fn open(path: &Path, typed: &DataArgs) -> Result<Self, Failure> {
        let (folder, path) = if path.is_dir() {
            (path.to_owned(), path.join(FITTED))
        } else {
            (path.parent().unwrap_or(Path::new("")).to_owned(), path.to_owned())
        };
        if folder.join(UNFINISHED).exists() && !folder.join(MANIFEST).exists() {
            let reason = "the last run into this folder was killed while it wrote its results, which may be of two runs; run it again";
            return Err(Failure::in_file(&folder, reason));
        }
        let fitted = read_fitted(&path)?;
        let written = folder.join(SOURCE);
        let source = if typed.is_given() {
            Some(Source { data: typed.clone(), seed: fitted.settings.seed, validation: None, method: None })
        } else if written.exists() {
            Some(Source::read(&written)?)
        } else {
            None
        };
        Ok(Self { path, fitted, source, typed: typed.is_given() })
    }

    /// Opens a run that says what it learned from; explains what else a folder is.
    pub(crate) fn finished(path: &Path) -> Result<Self, Failure> {
        if CohortFolder::is_in(path) {
            let reason = format!("is a cohort, not a run; `coirl fit {} --out RUN` makes one of it", path.display());
            return Err(Failure::in_file(path, reason));
        }
        if path.is_dir() && !path.join(FITTED).exists() {
            return Err(Failure::in_file(path, format!("is no run of `coirl fit`: it holds no {FITTED}")));
        }
        let run = Self::open(path, &DataArgs::default())?;
        if !run.has_data() {
            let reason = format!("has no {SOURCE} beside it; this needs the folder as `coirl fit` wrote it");
            return Err(Failure::in_file(&run.path, reason));
        }
        Ok(run)
    }

    /// What the method is called on the command line; where a run does not say, what it is called in the settings.
    pub(crate) fn method(&self) -> Result<String, Failure> {
        if let Some(name) = self.source.as_ref().and_then(|source| source.method.clone()) {
            return Ok(name);
        }
        let saved = serde_json::to_value(&self.fitted.settings.method).map_err(std::io::Error::from)?;
        Ok(match saved["name"].as_str().unwrap_or_default() {
            "neural" => "network".into(),
            "neural_cloning" => "bc-network".into(),
            name => name.replace('_', "-"),
        })
    }

    /// The model that was learned in, as it was then; the one that was typed, where one was.
    pub(crate) fn model(&self) -> Result<Cmdp, Failure> {
        let source = self.source("--model")?;
        if self.typed {
            return models::open(source.data.model_path(), source.seed);
        }
        Ok(self.data()?.data.model)
    }

    /// The cohort that was learned from.
    pub(crate) fn cohort(&self) -> Option<&Path> {
        self.source.as_ref()?.data.cohort()
    }

    /// Whether the model is one that the run learned, rather than one that it was given.
    pub(crate) fn learned_dynamics(&self) -> bool {
        let own = std::path::absolute(self.path.with_file_name(LEARNED_MODEL));
        self.source.as_ref().zip(own.ok()).is_some_and(|(source, own)| source.data.model_path() == own)
    }

    /// Whether the demonstrations can be read again.
    pub(crate) fn has_data(&self) -> bool {
        self.source.is_some() && !self.typed
    }

    /// The demonstrations that were learned from; refused where they have changed since.
    pub(crate) fn data(&self) -> Result<SourceData, Failure> {
        let opened = self.source("--model, --contexts and --feature-expectations or --trajectories")?.open_again()?;
        let digest = Problem::new(&opened.data.model, &opened.train, &opened.data.estimator)?.digest();
        if digest != self.fitted.digest {
            let (then, now) = (&self.fitted.digest, &digest);
            let reason = format!("was learned from other data (digest {then:.12}…, now {now:.12}…); fit again");
            return Err(Failure::in_file(&self.path, reason));
        }
        Ok(opened)
    }

    fn source(&self, flags: &str) -> Result<&Source, Failure> {
        self.source.as_ref().ok_or_else(|| {
            Failure::in_file(
                &self.path,
                format!("has no {SOURCE} beside it; say what it was learned from with {flags}"),
            )
        })
    }
}
