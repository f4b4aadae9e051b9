//! Folders that results go to: who writes to them, and what was written with what.

mod folder;
mod lock;
mod manifest;

pub(crate) use folder::{OutputFolder, UNFINISHED};
pub(crate) use lock::FolderLock;
pub(crate) use manifest::{MANIFEST, Machine, Manifest, Since};
