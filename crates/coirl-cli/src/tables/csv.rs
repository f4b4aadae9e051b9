//! Comma-separated values: numbers only, below a header that is optional.

use super::Table;
use crate::failure::Failure;
use csv::{ByteRecord, ReaderBuilder, Trim};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Characters of a refused value that are quoted.
const LONGEST_QUOTE: usize = 40;

pub(super) fn read(path: &Path) -> Result<Table, Failure> {
    parse(path, open(path)?)
}

pub(super) fn open(path: &Path) -> Result<File, Failure> {
    if path.is_dir() {
        return Err(Failure::in_file(path, "is a folder; expected a .csv file"));
    }
    File::open(path).map_err(|error| Failure::in_file(path, error))
}

pub(super) fn parse(path: &Path, content: impl Read) -> Result<Table, Failure> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(content);
    let mut table =
        Table { path: path.to_owned(), n_columns: 0, names: Vec::new(), values: Vec::new(), lines: Vec::new() };
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| Failure::in_file(path, error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let row = table.lines.len();
        if table.n_columns == 0 {
            table.n_columns = record.len();
            if record.iter().all(|cell| number(cell).is_none()) {
                table.names = record.iter().map(quote).collect();
                continue;
            }
        }
        let names = &table.names;
        let place = |column: usize| {
            let name = names.get(column);
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            format!("row {row} (line {line}), column {column}{name}")
        };
        if record.len() != table.n_columns {
            let (found, expected) = (record.len(), table.n_columns);
            let reason = match record.get(expected) {
                Some(extra) => format!(
                    "{}: '{}' is one value too many; expected {expected} columns",
                    place(expected),
                    quote(extra)
                ),
                None => format!("{}: nothing is there; expected {expected} columns, found {found}", place(found)),
            };
            return Err(Failure::in_file(path, reason));
        }
        for (column, cell) in record.iter().enumerate() {
            match number(cell) {
                Some(x) if x.is_finite() => table.values.push(x),
                _ => {
                    let reason = format!("{}: '{}'; expected a finite number", place(column), quote(cell));
                    return Err(Failure::in_file(path, reason));
                }
            }
        }
        table.lines.push(line);
    }
    table.n_columns = table.n_columns.max(1);
    Ok(table)
}

fn number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok()?;
    // Spreadsheets begin their files with a byte order mark.
    text.trim_start_matches('\u{feff}').trim().parse().ok()
}

pub(super) fn quote(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    let text = text.trim_start_matches('\u{feff}');
    if text.chars().count() <= LONGEST_QUOTE {
        return text.to_owned();
    }
    text.chars().take(LONGEST_QUOTE).chain(['…']).collect()
}
