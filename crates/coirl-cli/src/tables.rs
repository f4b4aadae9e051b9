//! Tables of numbers: contexts, weights and mappings, from .csv, .npy, .npz and .parquet.

mod columns;
mod csv;
mod dates;
mod found_columns;
pub(crate) mod long;
mod parquet;

pub(crate) use columns::Cells;

use crate::failure::Failure;
use coirl::artifact;
use coirl::nearest::near;
use std::path::{Path, PathBuf};

/// Names of columns that a message lists.
const MOST_NAMES: usize = 20;

/// A rectangular table of finite numbers.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    n_columns: usize,
    /// One per column, or none where the file names none.
    names: Vec<String>,
    /// Row-major.
    values: Vec<f64>,
    /// The line of each row, where the file has lines.
    lines: Vec<u64>,
}

impl Table {
    /// Reads the table; `key` is its name in an archive of several arrays.
    pub(crate) fn read(path: &Path, key: &'static str) -> Result<Self, Failure> {
        let table = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => csv::read(path)?,
            Some("npy" | "npz") => from_array(path, key)?,
            Some("parquet") => parquet::read(path)?,
            Some("safetensors") if key == "mapping" => from_fitted(path)?,
            _ => {
                let reason = format!("{} are read from .csv, .npy, .npz or .parquet files", words(key));
                return Err(Failure::in_file(path, reason));
            }
        };
        table.filled(key)
    }

    /// A table that is part of the program.
    pub(crate) fn shipped(name: &str, content: &str, key: &'static str) -> Result<Self, Failure> {
        csv::parse(Path::new(name), content.as_bytes())?.filled(key)
    }

    fn filled(self, key: &'static str) -> Result<Self, Failure> {
        if self.values.is_empty() {
            return Err(self.refuse(format!("holds no rows; expected {}", words(key))));
        }
        Ok(self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.values.len() / self.n_columns
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_columns)
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Refuses tables of another width.
    pub(crate) fn expect_columns(&self, expected: usize, reason: &str) -> Result<(), Failure> {
        if self.n_columns == expected {
            return Ok(());
        }
        Err(Failure::in_file(&self.path, format!("has {} columns; expected {expected}, {reason}", self.n_columns)))
    }

    /// The same table with its columns in the order of these names. Files that name no columns, or none of these, are
    /// taken in their own order.
    pub(crate) fn ordered_by(mut self, wanted: &[String]) -> Result<Self, Failure> {
        if !self.names.iter().any(|name| wanted.iter().any(|other| same_name(name, other))) {
            return Ok(self);
        }
        let order = named_positions(&self.names, wanted).map_err(|reason| self.refuse(reason))?;
        let sorted = |row: &[f64]| order.iter().map(|&at| row[at]).collect::<Vec<_>>();
        self.values = self.values.chunks_exact(self.n_columns).flat_map(sorted).collect();
        self.names = wanted.to_vec();
        Ok(self)
    }

    /// What is wrong with the file as a whole.
    pub(crate) fn refuse(&self, reason: impl std::fmt::Display) -> Failure {
        Failure::in_file(&self.path, reason)
    }

    /// What is wrong with a row, which counts from zero as the results do.
    pub(crate) fn refuse_row(&self, row: usize, reason: impl std::fmt::Display) -> Failure {
        let line = self.lines.get(row).map(|line| format!(" (line {line})")).unwrap_or_default();
        Failure::in_file(&self.path, format!("row {row}{line}: {reason}"))
    }
}

/// Where each of the `wanted` names is among the `given`; every one must be there once, and no other.
pub(crate) fn named_positions(given: &[String], wanted: &[String]) -> Result<Vec<usize>, String> {
    let listed = wanted.join(", ");
    for (i, name) in given.iter().enumerate() {
        if given[..i].iter().any(|other| same_name(other, name)) {
            return Err(format!("'{name}' is given twice"));
        }
        if !wanted.iter().any(|other| same_name(other, name)) {
            let candidates: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let meant = near(name, &candidates).map_or(String::new(), |meant| format!("; the nearest is '{meant}'"));
            return Err(format!("a context has no '{name}'{meant}; expected {listed}"));
        }
    }
    let position = |name: &String| {
        let at = given.iter().position(|other| same_name(other, name));
        at.ok_or_else(|| format!("'{name}' is missing; expected {listed}"))
    };
    wanted.iter().map(position).collect()
}

/// Names, as many as a line holds.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("'{}'", csv::quote(name.as_bytes()))).collect();
    let rest = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}{rest}", shown.join(", "))
}

/// Names with spaces are a nuisance to type: dashes and underscores stand for them.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.trim().to_lowercase().replace([' ', '_'], "-");
    plain(a) == plain(b)
}

/// A key as it is said.
fn words(key: &str) -> String {
    key.replace('_', " ")
}

/// The mapping that was learned.
fn from_fitted(path: &Path) -> Result<Table, Failure> {
    let fitted = artifact::read_fitted(path)?;
    let mapping = fitted.mapping().map_err(|error| Failure::in_file(path, error))?;
    let n_columns = mapping.n_features();
    let values = mapping.all_weights();
    Ok(Table { path: path.to_owned(), n_columns, names: Vec::new(), values, lines: Vec::new() })
}

/// A vector is one row.
fn from_array(path: &Path, key: &'static str) -> Result<Table, Failure> {
    let (shape, values) = artifact::read_numbers(path, key)?;
    let n_columns = match shape[..] {
        [n] | [_, n] => n,
        _ => return Err(Failure::in_file(path, format!("has shape {shape:?}; expected a table of rows and columns"))),
    };
    if let Some(i) = values.iter().position(|x| !x.is_finite()) {
        let place = format!("row {}, column {}", i / n_columns, i % n_columns);
        return Err(Failure::in_file(path, format!("{place}: {}; expected a finite number", values[i])));
    }
    Ok(Table { path: path.to_owned(), n_columns: n_columns.max(1), names: Vec::new(), values, lines: Vec::new() })
}
