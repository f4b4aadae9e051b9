//! Learning a mapping, from what was typed to what is written.

mod data;
mod dynamics;
mod methods;
mod picture;
mod report;
mod run_folder;
mod shipped;
mod trajectories;
mod watcher;

pub(crate) use data::{Data, DataArgs, EstimatorArg, Truth, contexts_of, mapping_of, read_recorded};
pub(crate) use dynamics::{DynamicsArgs, LEARNED_MODEL};
pub(crate) use methods::{MethodArgs, table_of_methods};
pub(crate) use picture::picture;
pub(crate) use report::{Report, agent_in_words, rows_of_mapping, status_in_words, write_mapping};
pub(crate) use run_folder::{FITTED, Run, Source, SourceData};
pub(crate) use watcher::{CHECKPOINT, Watcher, on_interrupt, stop_wanted};
