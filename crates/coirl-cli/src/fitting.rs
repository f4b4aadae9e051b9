//! Learning a mapping, from what was typed to what is written.

mod data;
mod folder;
mod methods;
mod picture;
mod report;
mod shipped;
mod trajectories;
mod watcher;

pub(crate) use data::{Data, DataArgs, mapping_of};
pub(crate) use folder::OutputFolder;
pub(crate) use methods::{METHODS, MethodArgs};
pub(crate) use picture::picture;
pub(crate) use report::{Report, status_in_words, write_mapping};
pub(crate) use watcher::{CHECKPOINT, Watcher, on_interrupt};
