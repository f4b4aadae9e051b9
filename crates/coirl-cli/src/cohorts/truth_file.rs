//! What a synthetic table was made with, in a file beside it. The file says which table it belongs to, by a digest of its stays: a table of
//! the same name that was written since is not taken for it.

use crate::destination::{note, to_file};
use crate::failure::Failure;
use coirl::artifact::read_text;
use coirl_cohort::synthetic::Synthetic;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TruthFile {
    pub(crate) settings: Synthetic,
    pub(crate) rows: usize,
    /// [`coirl_cohort::Table::fingerprint`] of the table.
    pub(crate) stays: String,
}

impl TruthFile {
    /// Where the truth of a table lies: `a.truth.json` for `a.csv`, `a.csv.gz` and `a.parquet`.
    pub(crate) fn beside(table: &Path) -> PathBuf {
        let plain =
            if table.extension().is_some_and(|end| end == "gz") { table.with_extension("") } else { table.to_owned() };
        plain.with_extension("truth.json")
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        to_file(path, |out| Ok(writeln!(out, "{text}")?))
    }

    /// What a table was made with; nothing where nobody says so, or it is said of another table.
    pub(crate) fn read(path: &Path, table: &coirl_cohort::Table, quiet: bool) -> Result<Option<Synthetic>, Failure> {
        let at = Self::beside(path);
        if !at.exists() {
            return Ok(None);
        }
        let text = read_text(&at, "what the table was made with")?;
        // Earlier versions wrote the settings alone.
        if let Ok(settings) = serde_json::from_str::<Synthetic>(&text) {
            return Ok(Some(settings));
        }
        let file: Self = serde_json::from_str(&text).map_err(|error| Failure::in_file(&at, error))?;
        if file.stays == table.fingerprint() {
            return Ok(Some(file.settings));
        }
        let reason = "belongs to another table (its stays have other numbers of rows), and is left out of account";
        note(quiet, &format!("{}: {reason}; remove it where {} is not synthetic", at.display(), path.display()));
        Ok(None)
    }
}
