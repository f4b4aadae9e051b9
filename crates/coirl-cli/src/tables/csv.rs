//! Comma-separated values: numbers only, below a header that is optional.

use super::Table;
use crate::failure::Failure;
use coirl::artifact::open_regular;
use csv::{ByteRecord, ReaderBuilder, Trim};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Characters of a refused value that are quoted.
const LONGEST_QUOTE: usize = 40;
/// Bytes that are read at a time.
pub(super) const BUFFER: usize = 1 << 20;

pub(super) fn read(path: &Path) -> Result<Table, Failure> {
    parse(path, open(path)?)
}

/// Opens a file that may be text: refuses what its first bytes say is something else.
pub(super) fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let (file, _) = open_regular(path, "a .csv file")?;
    let mut content = BufReader::with_capacity(BUFFER, file);
    let start = content.fill_buf().map_err(|error| Failure::in_file(path, error))?;
    let foreign: [(&[u8], &str); 5] = [
        (b"PAR1", "is a Parquet file; give it the name .parquet"),
        (b"PK\x03\x04", "is a workbook (.xlsx) or another zip archive; save the sheet as .csv"),
        (b"\xd0\xcf\x11\xe0", "is a workbook (.xls); save the sheet as .csv"),
        (b"\xff\xfe", "is text in UTF-16; save it as UTF-8"),
        (b"\xfe\xff", "is text in UTF-16; save it as UTF-8"),
    ];
    match foreign.iter().find(|(bytes, _)| start.starts_with(bytes)) {
        Some((_, reason)) => Err(Failure::in_file(path, reason)),
        None => Ok(content),
    }
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
                table.names = record.iter().map(whole).collect();
                continue;
            }
        }
        let names = &table.names;
        let place = |column: usize| {
            let name = names.get(column);
            let name = name.map(|name| format!(" ({})", quote(name.as_bytes()))).unwrap_or_default();
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

/// The text of a cell.
pub(super) fn whole(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).trim_start_matches('\u{feff}').to_owned()
}

/// The text of a cell as far as a message shows it. Different cells may look the same.
pub(super) fn quote(cell: &[u8]) -> String {
    let text = whole(cell);
    if text.chars().count() <= LONGEST_QUOTE {
        return text;
    }
    text.chars().take(LONGEST_QUOTE).chain(['…']).collect()
}
