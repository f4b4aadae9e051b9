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
