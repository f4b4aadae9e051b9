//! The folder that results go to.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// A folder that is there. Unless kept, whatever was created for it and is still empty goes away again.
pub(crate) struct OutputFolder {
    path: PathBuf,
    /// From the outermost inwards.
    created: Vec<PathBuf>,
}

impl OutputFolder {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let mut created: Vec<PathBuf> = Vec::new();
        for folder in path.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            if folder.is_dir() {
                break;
            }
            if folder.exists() {
                return Err(Failure::in_file(folder, "is a file; --out needs a folder"));
            }
            created.insert(0, folder.to_owned());
        }
        let opened = Self { path: path.to_owned(), created };
        std::fs::create_dir_all(path).map_err(|error| Failure::in_file(path, error))?;
        Ok(opened)
    }

    /// The same for a folder that holds nothing but what `marks`, or `others` that may be there before, say is ours.
    pub(crate) fn open_own(path: &Path, marks: &[&str], others: &[&str]) -> Result<Self, Failure> {
        if path.is_dir() && !marks.iter().any(|mark| path.join(mark).exists()) {
            let entries = std::fs::read_dir(path).map_err(|error| Failure::in_file(path, error))?;
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let mut foreign: Vec<String> = names.filter(|name| !others.contains(&name.as_str())).collect();
            foreign.sort();
            if let Some(first) = foreign.first() {
                let reason = format!(
                    "holds {first}, which this command did not write; --out needs a new folder or one of its own"
                );
                return Err(Failure::in_file(path, reason));
            }
        }
        Self::open(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        // Refused for folders that hold something, which is what is wanted.
        for folder in self.created.iter().rev() {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}
