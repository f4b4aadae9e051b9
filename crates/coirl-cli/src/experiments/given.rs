//! What is given instead of drawn: context sequences, first mappings and true mappings, from files.

use crate::contexts::read_contexts;
use crate::failure::Failure;
use crate::tables::Table;
use clap::Args;
use coirl::mapping::LinearMapping;
use coirl_experiments::{Experiment, Given, World};
use std::path::{Path, PathBuf};

/// Files to be used instead of what an experiment draws.
#[derive(Debug, Args)]
pub(crate) struct GivenArgs {
    /// Contexts to learn from, one row each (.csv, .npy, .npz); several times for one sequence per seed
    #[arg(long, value_name = "FILE")]
    contexts: Vec<PathBuf>,
    /// W₁, from which methods start (.csv, .npy, .npz); several times for one per seed
    #[arg(long, value_name = "FILE")]
    initial: Vec<PathBuf>,
    /// The true mapping, contexts by features (.csv, .npy, .npz, fitted.safetensors)
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
}

impl GivenArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.initial.is_empty() && self.mapping.is_none()
    }

    /// Reads the files, and says which they were.
    pub(crate) fn read(&self, experiment: &Experiment) -> Result<(Given, Vec<(String, String)>), Failure> {
        if self.is_empty() {
            return Ok((Given::default(), Vec::new()));
        }
        let Some(place) = experiment.study.place() else {
            let reason = "--contexts, --initial and --mapping: this experiment learns from a table of patients";
            return Err(Failure::Usage(reason.into()));
        };
        let world = World::new(place)?;
        let (model, d) = (world.model(), world.truth().dimension());
        let k = model.n_features();
        let contexts = |path: &PathBuf| read_contexts(path, model, &model.names().contexts);
        let initial = |path: &PathBuf| {
            let values = Table::read(path, "mapping")?.into_values();
            if values.len() != d * k {
                let reason = format!("holds {} numbers; expected {d} rows of {k}", values.len());
                return Err(Failure::in_file(path, reason));
            }
            Ok(values)
        };
        let mapping = |path: &PathBuf| -> Result<LinearMapping, Failure> {
            LinearMapping::new(d, k, initial(path)?).map_err(|error| Failure::in_file(path, error))
        };
        let given = Given {
            contexts: self.contexts.iter().map(contexts).collect::<Result<_, _>>()?,
            initial: self.initial.iter().map(initial).collect::<Result<_, _>>()?,
            mapping: self.mapping.as_ref().map(mapping).transpose()?,
        };
        let files = self.contexts.iter().chain(&self.initial).chain(&self.mapping);
        let named = |path: &PathBuf| Ok((path.display().to_string(), digest(path)?));
        Ok((given, files.map(named).collect::<Result<_, Failure>>()?))
    }
}

fn digest(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::in_file(path, error))?;
    Ok(coirl::artifact::digest_of(&bytes))
}
