//! What a result was made with, and what it consists of: `manifest.json` beside it.
//!
//! Neither clocks nor numbers of threads are in it: the same seed gives the same bytes.

use super::folder::OutputFolder;
use crate::destination::to_file;
use crate::failure::Failure;
use coirl::artifact::{digest_of_file, read_text};
use coirl::plan::{Simd, processor_features};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

pub(crate) const MANIFEST: &str = "manifest.json";
/// Version of the format.
const VERSION: u32 = 1;

/// What a result was made with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u32,
    /// The command that made it.
    pub(crate) command: String,
    /// Version of the program.
    pub(crate) program: String,
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
    /// SHA-256 of what it was made from.
    pub(crate) data: BTreeMap<String, String>,
    /// As they were resolved.
    pub(crate) settings: serde_json::Value,
    /// SHA-256 of the files it consists of.
    pub(crate) files: BTreeMap<String, String>,
}

/// What of a machine can have a part in the last digits of a result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) system: String,
    pub(crate) architecture: String,
    pub(crate) processor_features: Vec<String>,
    /// What of them planning and clustering used.
    pub(crate) vector_instructions: Simd,
}

impl Machine {
    fn this() -> Self {
        Self {
            system: std::env::consts::OS.into(),
            architecture: std::env::consts::ARCH.into(),
            processor_features: processor_features().into_iter().map(str::to_owned).collect(),
            vector_instructions: Simd::Auto.resolve(),
        }
    }
}

/// What became of a file since its manifest was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Since {
    Unchanged,
    Changed,
    Missing,
}

impl Since {
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Since::Unchanged => "unchanged",
            Since::Changed => "changed",
            Since::Missing => "missing",
        }
    }
}

impl Manifest {
    pub(crate) fn new(command: &str, seed: u64, settings: &impl Serialize) -> Result<Self, Failure> {
        Ok(Self {
            version: VERSION,
            command: command.into(),
            program: format!("coirl {}", env!("CARGO_PKG_VERSION")),
            machine: Machine::this(),
            seed,
            data: BTreeMap::new(),
            settings: serde_json::to_value(settings).map_err(std::io::Error::from)?,
            files: BTreeMap::new(),
        })
    }

    /// The same, made from this.
    pub(crate) fn with_data(mut self, what: impl Into<String>, digest: impl Into<String>) -> Self {
        self.data.insert(what.into(), digest.into());
        self
    }

    /// Takes away what an earlier run left: files are about to change, and a folder with a manifest is complete.
    pub(crate) fn withdraw(folder: &OutputFolder) -> Result<(), Failure> {
        let path = folder.file(MANIFEST);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::in_file(&path, error)),
            _ => Ok(()),
        }
    }

    /// Writes it into the folder, with the digests of these files there. The last thing that is written.
    pub(crate) fn write<'n>(
        mut self,
        folder: &OutputFolder,
        files: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Failure> {
        for name in files {
            self.files.insert(name.into(), digest_of_file(&folder.file(name))?);
        }
        let text = serde_json::to_string_pretty(&self).map_err(std::io::Error::from)?;
        to_file(&folder.file(MANIFEST), |out| Ok(writeln!(out, "{text}")?))
    }

    /// The manifest of a folder; nothing where it has none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, "a manifest")?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| Failure::in_file(&path, error))?;
        if manifest.version != VERSION {
            let reason = format!("version {}; this program reads version {VERSION}", manifest.version);
            return Err(Failure::in_file(&path, reason));
        }
        Ok(Some(manifest))
    }

    /// Compares the files of a folder with what was written.
    pub(crate) fn compare(&self, folder: &Path) -> Result<BTreeMap<&str, Since>, Failure> {
        let state = |name: &str, digest: &str| -> Result<Since, Failure> {
            let path = folder.join(name);
            Ok(match path.is_file() {
                false => Since::Missing,
                true if digest_of_file(&path)? == digest => Since::Unchanged,
                true => Since::Changed,
            })
        };
        // A manifest names files beside itself only.
        let own = self.files.iter().filter(|(name, _)| Path::new(name).components().all(is_name));
        own.map(|(name, digest)| Ok((name.as_str(), state(name, digest)?))).collect()
    }
}

fn is_name(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_))
}
