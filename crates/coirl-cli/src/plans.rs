//! Plans as they are written: for people, and in four formats for programs.
//!
//! Plans are written as they come; no writer holds more than a batch of them.

mod columns;
mod json;
mod npz;
mod parquet;
mod rows;
mod text;

pub(crate) use columns::{Columns, Contexts, action_name};
pub(crate) use npz::npy_header;
pub(crate) use text::{MOST_ROWS, action_counts, rest};

use crate::failure::Failure;
use coirl::plan::PlannedReward;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Takes plans in the order of their index.
pub(crate) trait PlanWriter {
    /// Writes a plan.
    fn push(&mut self, plan: &PlannedReward) -> Result<(), Failure>;
    /// Writes what comes after the last plan.
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}

/// How plans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Csv,
    Parquet,
    Npz,
}

impl Format {
    /// The format of a file's extension.
    pub(crate) fn of_extension(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "txt" => Some(Format::Table),
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            "npz" => Some(Format::Npz),
            _ => None,
        }
    }

    /// Whether the format is bytes that no terminal shows.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Npz)
    }
}

/// A writer of a text format.
pub(crate) fn text_writer<'a>(
    format: Format,
    columns: &'a Columns<'a>,
    out: &'a mut dyn Write,
) -> Result<Box<dyn PlanWriter + 'a>, Failure> {
    Ok(match format {
        Format::Table if columns.single => Box::new(text::OnePlan::new(columns, out)),
        Format::Table => Box::new(text::ManyPlans::new(columns, out)),
        Format::Json if columns.single => Box::new(json::OneObject::new(columns, out)),
        Format::Json => Box::new(json::Objects::new(columns, out)?),
        Format::Csv => Box::new(rows::CsvRows::new(columns, out)?),
        Format::Parquet | Format::Npz => return Err(Failure::Usage("this format needs --out FILE".into())),
    })
}

/// A writer of any format, into a file.
pub(crate) fn file_writer<'a>(
    format: Format,
    columns: &'a Columns<'a>,
    path: &Path,
    out: &'a mut BufWriter<File>,
) -> Result<Box<dyn PlanWriter + 'a>, Failure> {
    match format {
        Format::Parquet => Ok(Box::new(parquet::ParquetRows::new(columns, out)?)),
        Format::Npz => Ok(Box::new(npz::Arrays::new(columns, path, out)?)),
        Format::Table | Format::Json | Format::Csv => text_writer(format, columns, out),
    }
}
