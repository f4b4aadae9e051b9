//! Tables whose columns are known by name and may have empty cells.

use super::{csv as numbers_csv, listed, parquet};
use crate::failure::Failure;
use coirl::artifact;
use csv::{ReaderBuilder, Trim};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Empty cells are `None`; so is NaN, which is how NumPy and pandas leave a cell empty.
    pub(crate) cells: Vec<Option<f64>>,
}

/// Columns of equal length.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(super) path: PathBuf,
    pub(crate) columns: Vec<Column>,
    /// The line of each row, where the file has lines.
    pub(super) lines: Vec<u64>,
}

impl Cells {
    /// A table that is part of the program.
    pub(crate) fn shipped(name: &str, content: &str) -> Result<Self, Failure> {
        parse_csv(Path::new(name), content.as_bytes())
    }

    /// Reads a .csv file with a header, a .parquet file, or the vectors of a .npz file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut cells = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => from_csv(path)?,
            Some("parquet") => parquet::columns(path)?,
            Some("npz") => from_archive(path)?,
            _ => return Err(Failure::in_file(path, "trajectories are read from .csv, .npz or .parquet files")),
        };
        for cell in cells.columns.iter_mut().flat_map(|column| &mut column.cells) {
            *cell = cell.filter(|x| !x.is_nan());
        }
        if cells.n_rows() == 0 {
            return Err(Failure::in_file(path, "holds no rows; expected trajectories"));
        }
        Ok(cells)
    }

    /// The table, and what is wrong with it.
    pub(crate) fn refuse_file(&self, reason: impl std::fmt::Display) -> Failure {
        Failure::in_file(&self.path, reason)
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The column of this name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Result<&Column, Failure> {
        self.find(name).ok_or_else(|| {
            let found: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
            Failure::in_file(&self.path, format!("has no column {name:?}; it has {}", listed(&found)))
        })
    }

    /// What is wrong with a cell.
    pub(crate) fn refuse(&self, row: usize, column: &str, reason: impl std::fmt::Display) -> Failure {
        let line = self.lines.get(row).map(|line| format!(" (line {line})")).unwrap_or_default();
        let column = numbers_csv::quote(column.as_bytes());
        Failure::in_file(&self.path, format!("row {row}{line}, column {column}: {reason}"))
    }
}

fn from_csv(path: &Path) -> Result<Cells, Failure> {
    parse_csv(path, numbers_csv::open(path)?)
}

fn parse_csv(path: &Path, content: impl Read) -> Result<Cells, Failure> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(content);
    let refuse = |error: csv::Error| Failure::in_file(path, error);
    let names: Vec<String> = reader.byte_headers().map_err(refuse)?.iter().map(numbers_csv::whole).collect();
    let columns = names.into_iter().map(|name| Column { name, cells: Vec::new() }).collect();
    let mut cells = Cells { path: path.to_owned(), columns, lines: Vec::new() };
    for record in reader.byte_records() {
        let record = record.map_err(refuse)?;
        let row = cells.lines.len();
        cells.lines.push(record.position().map_or(0, csv::Position::line));
        if record.len() != cells.columns.len() {
            let (found, expected) = (record.len(), cells.columns.len());
            return Err(cells.refuse(row, "count", format!("{found} columns; expected {expected}")));
        }
        for (i, cell) in record.iter().enumerate() {
            let text = numbers_csv::whole(cell);
            let value = match text.as_str() {
                "" => None,
                text => match text.parse::<f64>() {
                    Ok(x) => Some(x),
                    Err(_) => {
                        return Err(cells.refuse(
                            row,
                            &cells.columns[i].name,
                            format!("'{}'; expected a number", numbers_csv::quote(cell)),
                        ));
                    }
                },
            };
            cells.columns[i].cells.push(value);
        }
    }
    Ok(cells)
}

fn from_archive(path: &Path) -> Result<Cells, Failure> {
    let mut columns: Vec<Column> = Vec::new();
    for artifact::NamedArray { name, shape, values } in artifact::read_all_numbers(path)? {
        let [n] = shape[..] else {
            let reason =
                format!("key {name:?} has shape {shape:?}; expected a vector, or the keys \"states\" and \"actions\"");
            return Err(Failure::in_file(path, reason));
        };
        if let Some(first) = columns.first().filter(|first| first.cells.len() != n) {
            let reason = format!("key {name:?} has {n} entries, but key {:?} has {}", first.name, first.cells.len());
            return Err(Failure::in_file(path, reason));
        }
        columns.push(Column { name, cells: values.into_iter().map(Some).collect() });
    }
    Ok(Cells { path: path.to_owned(), columns, lines: Vec::new() })
}
