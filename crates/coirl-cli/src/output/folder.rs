//! The folder that results go to.

use super::lock::{FolderLock, LOCK};
use crate::arguments::Global;
use crate::failure::Failure;
use coirl::artifact::remove_abandoned;
use std::fs::File;
use std::path::{Path, PathBuf};

/// There from when a folder is ours until something else in it says so: what a run leaves that was killed, or failed, is no reason to refuse
/// the folder to the next.
pub(crate) const UNFINISHED: &str = ".coirl.unfinished";

/// A folder that is there. Unless kept, whatever was created for it and is still empty goes away again.
pub(crate) struct OutputFolder {
    path: PathBuf,
    lock: Option<FolderLock>,
    /// What says that the folder is ours once the run has ended; without any, nothing was marked.
    marks: Vec<String>,
    /// From the outermost inwards.
    created: Vec<PathBuf>,
}

impl OutputFolder {
    /// A folder that nobody else writes to meanwhile.
    pub(crate) fn open(path: &Path, global: &Global) -> Result<Self, Failure> {
        let mut opened = Self::open_shared(path)?;
        opened.lock = Some(FolderLock::take(path, global)?);
        remove_abandoned(path);
        Ok(opened)
    }

    /// A folder that others may write to as well, each to folders of its own in it.
    pub(crate) fn open_shared(path: &Path) -> Result<Self, Failure> {
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
        let opened = Self { path: path.to_owned(), lock: None, marks: Vec::new(), created };
        std::fs::create_dir_all(path).map_err(|error| Failure::in_file(path, error))?;
        Ok(opened)
    }

    /// A folder that holds nothing but what `marks`, or `others` that may be there before, say is ours, and that nobody else
    /// writes to meanwhile.
    pub(crate) fn open_own(path: &Path, marks: &[&str], others: &[&str], global: &Global) -> Result<Self, Failure> {
        let mut opened = Self::open(path, global)?;
        if !marks.iter().chain([&UNFINISHED]).any(|mark| path.join(mark).exists()) {
            let entries = std::fs::read_dir(path).map_err(|error| Failure::in_file(path, error))?;
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let ours = |name: &str| name == LOCK || others.contains(&name);
            let mut foreign: Vec<String> = names.filter(|name| !ours(name)).collect();
            foreign.sort();
            if let Some(first) = foreign.first() {
                let reason = format!(
                    "holds {first}, which this command did not write; --out needs a new folder or one of its own"
                );
                return Err(Failure::in_file(path, reason));
            }
        }
        let mark = opened.file(UNFINISHED);
        File::create(&mark).map_err(|error| Failure::in_file(&mark, error))?;
        opened.marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
        Ok(opened)
    }

    /// A folder in this one, under the same lock.
    pub(crate) fn folder(&self, name: &str) -> Result<Self, Failure> {
        let opened = Self::open_shared(&self.file(name))?;
        remove_abandoned(&opened.path);
        Ok(opened)
    }

    /// Whether there is nothing in it but what goes away with the run.
    fn is_bare(&self) -> bool {
        let own = |entry: &std::fs::DirEntry| [LOCK, UNFINISHED].iter().any(|name| entry.file_name() == *name);
        std::fs::read_dir(&self.path).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| own(&entry))))
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
        // What a failed run leaves must stay ours as well.
        let said = self.marks.iter().any(|mark| self.file(mark).exists());
        if !self.marks.is_empty() && (said || self.is_bare()) {
            let _ = std::fs::remove_file(self.file(UNFINISHED));
        }
        // A folder that holds its lock is not empty.
        self.lock = None;
        // Refused for folders that hold something, which is what is wanted.
        for folder in self.created.iter().rev() {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}
