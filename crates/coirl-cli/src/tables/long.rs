//! Long tables of people, a row per stay and step: .csv, also compressed by gzip, and .parquet. Rows are read one after the other and
//! only the columns that are needed are kept.

use super::csv::{BUFFER, open, quote, whole};
use super::dates::{self, Time, time_of};
use super::found_columns::Columns;
use super::parquet::{Unpacking, append, refusing_panics};
use crate::failure::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use coirl::Error;
use coirl::artifact::{open_regular, unpacked_limit};
use coirl::nearest::near;
use coirl_cohort::{Observations, Spec, Table};
use csv::{ByteRecord, ReaderBuilder, Trim};
use flate2::bufread::MultiGzDecoder;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 1 << 16;

/// Reads the columns that a spec needs, and gives the spec as it is for this table. `progress` is given the number of rows from time to
/// time.
pub(crate) fn read(path: &Path, spec: &Spec, progress: impl FnMut(u64)) -> Result<(Table, Spec), Failure> {
    read_as(path, &|header| Ok(spec.for_columns(header)), progress)
}

/// Reads a new table for a cohort with this spec. It may do without an outcome; of all other columns that are missing each is named.
pub(crate) fn read_new(path: &Path, spec: &Spec, progress: impl FnMut(u64)) -> Result<(Table, Spec), Failure> {
    let for_new = |header: &[String]| {
        let spec = spec.for_new_columns(header);
        // What is no column is a code there, and need not have been observed.
        if spec.table.observations.is_some() {
            return Ok(spec);
        }
        let used = spec.columns();
        let spare: Vec<&str> = header.iter().map(String::as_str).filter(|name| !used.contains(name)).collect();
        let missing =
            used.iter().filter(|name| !header.iter().any(|own| own == *name)).map(|name| match near(name, &spare) {
                Some(meant) => format!("'{name}' (the nearest is '{meant}')"),
                None => format!("'{name}'"),
            });
        let missing: Vec<String> = missing.collect();
        match missing.len() {
            0 => Ok(spec),
            _ => Err(Failure::in_file(
                path,
                format!("has no column {}, which the cohort was built on", missing.join(", ")),
            )),
        }
    };
    read_as(path, &for_new, progress)
}

/// From the names of the columns to the spec for them.
type Resolve<'a> = &'a dyn Fn(&[String]) -> Result<Spec, Failure>;

fn read_as(path: &Path, resolve: Resolve<'_>, progress: impl FnMut(u64)) -> Result<(Table, Spec), Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => {
            refusing_panics(path, std::panic::AssertUnwindSafe(|| from_parquet(path, resolve, progress)))
        }
        _ => from_csv(path, resolve, progress),
    }
}

/// What rows become: rows of a step, or observations that make such rows.
enum Rows {
    Steps(Table),
    Observations(Observations),
}

impl Rows {
    fn new(spec: &Spec, columns: &Columns<'_>) -> Self {
        match columns.observed {
            Some(_) => Rows::Observations(Observations::new(spec)),
            None => Rows::Steps(Table::new(&columns.names, columns.patient.is_some())),
        }
    }

    /// Whether the value of a row with this code is needed.
    fn uses(&self, code: &str) -> bool {
        matches!(self, Rows::Observations(observations) if observations.uses(code))
    }

    /// Adds a row: the cells of its columns, and what was observed where it is an observation.
    fn push(
        &mut self,
        names: &[&str],
        (stay, patient): (&str, Option<&str>),
        time: f64,
        cells: impl Iterator<Item = f64>,
        (code, value): (&str, f64),
    ) -> coirl::Result<()> {
        match self {
            Rows::Steps(table) => table.push(stay, patient, time, cells),
            Rows::Observations(observations) => {
                let values = names.iter().copied().zip(cells).chain(std::iter::once((code, value)));
                observations.push(stay, patient, time, code, values)
            }
        }
    }

    fn finish(self, path: &Path, dated: &Dated) -> Result<Table, Failure> {
        let mut table = match self {
            Rows::Steps(table) => table,
            Rows::Observations(observations) => observations.finish().map_err(|error| Failure::in_file(path, error))?,
        };
        dated.tell(&mut table);
        Ok(table)
    }
}

/// A number, or what a word stands for; nothing is known of an empty cell. Otherwise the reason why it is refused.
fn number_of(spec: &Spec, name: &str, cell: &str) -> Result<f64, String> {
    let missing =
        cell.is_empty() || cell.eq_ignore_ascii_case("nan") || spec.table.missing.iter().any(|word| word == cell);
    if missing {
        return Ok(f64::NAN);
    }
    let codes = spec.table.codes.get(name);
    if let Some(code) = codes.and_then(|codes| codes.get(cell)) {
        return Ok(*code);
    }
    cell.parse::<f64>().map_err(|_| {
        let shown = quote(cell.as_bytes());
        let with_point = cell.replacen(',', ".", 1);
        if with_point != cell && with_point.parse::<f64>().is_ok() {
            return format!("'{shown}' has a decimal comma; expected a number with a point, {with_point}");
        }
        match codes {
            Some(codes) => {
                let known: Vec<&str> = codes.keys().map(String::as_str).collect();
                format!("'{shown}'; expected a number, or one of {} as [table.codes.{name}] says", known.join(", "))
            }
            None => format!(
                "'{shown}'; expected a number: write numbers, say what words stand for under [table.codes.{name}], or list it as \
                 missing under [table]"
            ),
        }
    })
}

/// Whether times are dates: all of them or none.
#[derive(Default)]
struct Dated(Option<bool>);

impl Dated {
    /// The number of a time, or the reason why it is refused.
    fn number_of(&mut self, cell: &str) -> Result<f64, String> {
        let refuse = |why: &str| format!("'{}'{why}; {}", quote(cell.as_bytes()), dates::EXPECTED);
        let (value, dated) = match time_of(cell) {
            Some(Time::Number(x)) => (x, false),
            Some(Time::Date(x)) => (x, true),
            None => return Err(refuse("")),
        };
        match *self.0.get_or_insert(dated) == dated {
            true => Ok(value),
            false if dated => Err(refuse(" is a date among numbers")),
            false => Err(refuse(" is a number among dates")),
        }
    }

    fn tell(&self, table: &mut Table) {
        if self.0 == Some(true) {
            table.say_dated();
        }
    }
}

fn from_csv(path: &Path, resolve: Resolve<'_>, mut progress: impl FnMut(u64)) -> Result<(Table, Spec), Failure> {
    let (content, compressed) = plain(path)?;
    let mut content = BufReader::with_capacity(BUFFER, content);
    let delimiter = delimiter(path, &mut content, compressed)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(delimiter)
        .from_reader(content);
    let mut record = ByteRecord::new();
    let broken = |error: csv::Error, row: u64| {
        let end = error.into_kind();
        let reason = match end {
            csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => error.to_string(),
            csv::ErrorKind::Io(error) if compressed => {
                format!("is damaged or cut off after row {row}: {error}; expected a whole gzip file")
            }
            csv::ErrorKind::Io(error) => format!("after row {row}: {error}"),
            other => format!("after row {row}: {other:?}"),
        };
        Failure::in_file(path, reason)
    };
    if !reader.read_byte_record(&mut record).map_err(|error| broken(error, 0))? {
        return Err(Failure::in_file(path, "is empty; expected a header with the names of the columns"));
    }
    let header: Vec<String> = record.iter().map(whole).collect();
    let spec = &resolve(&header)?;
    let columns = Columns::find(path, &header, spec)?;
    let mut rows = Rows::new(spec, &columns);
    let mut dated = Dated::default();
    let mut row = 0;
    let mut cells = vec![0.0; columns.numbers.len()];
    while reader.read_byte_record(&mut record).map_err(|error| broken(error, row))? {
        row += 1;
        let line = record.position().map_or(0, csv::Position::line);
        let refuse = |column: &str, reason: String| {
            Failure::in_file(path, format!("row {row} (line {line}), column {column}: {reason}"))
        };
        if record.len() != header.len() {
            let column = header.get(record.len()).map_or("beyond the last", String::as_str);
            let reason = format!("the row has {} cells; expected {}, as the header has", record.len(), header.len());
            return Err(refuse(column, reason));
        }
        let text = |at: usize| std::str::from_utf8(&record[at]).map_err(|_| quote(&record[at]));
        let number = |at: usize, name: &str| match text(at) {
            Ok(cell) => number_of(spec, name, cell).map_err(|reason| refuse(name, reason)),
            Err(bytes) => Err(refuse(name, format!("'{bytes}'; expected a number"))),
        };
        for ((cell, &at), name) in cells.iter_mut().zip(&columns.numbers).zip(&columns.names) {
            *cell = number(at, name)?;
        }
        let time = text(columns.time).map_err(|bytes| format!("'{bytes}'; {}", dates::EXPECTED));
        let time = time.and_then(|cell| dated.number_of(cell)).map_err(|reason| refuse(&spec.table.time, reason))?;
        // Replaced characters would make one person of two.
        let id_of = |at: usize, name: &str| match text(at) {
            Ok(cell) => Ok(id(cell)),
            Err(bytes) => Err(refuse(name, format!("'{bytes}'; expected text in UTF-8"))),
        };
        let stay = id_of(columns.stay, &spec.table.stay)?;
        let patient = columns.patient.map(|at| id_of(at, name_in(spec, "patient"))).transpose()?;
        let observed = match columns.observed {
            Some([code, value]) => {
                let code = id_of(code, "code")?;
                let value = if rows.uses(&code) { number(value, &code)? } else { f64::NAN };
                (code, value)
            }
            None => (String::new(), f64::NAN),
        };
        let ids = (stay.as_str(), patient.as_deref());
        let (code, value) = (observed.0.as_str(), observed.1);
        rows.push(&columns.names, ids, time, cells.iter().copied(), (code, value)).map_err(|error| match error {
            Error::Cell { column, reason, .. } => refuse(name_in(spec, &column), reason),
            other => Failure::in_file(path, other),
        })?;
        if row.is_multiple_of(ROWS_PER_REPORT) {
            progress(row);
        }
    }
    if row == 0 {
        return Err(Failure::in_file(path, "has a header and no rows"));
    }
    progress(row);
    Ok((rows.finish(path, &dated)?, spec.clone()))
}

/// The column of a key that the library speaks of.
fn name_in<'a>(spec: &'a Spec, column: &'a str) -> &'a str {
    match column {
        "stay" => &spec.table.stay,
        "time" => &spec.table.time,
        "patient" => spec.table.patient.as_deref().unwrap_or(column),
        other => other,
    }
}

/// The text of a file, whether it is compressed or not: the first bytes tell.
fn plain(path: &Path) -> Result<(Box<dyn Read>, bool), Failure> {
    let mut content = open(path)?;
    let start = content.fill_buf().map_err(|error| Failure::in_file(path, error))?;
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Ok((Box::new(content), false));
    }
    let size = content.get_ref().metadata().map_err(|error| Failure::in_file(path, error))?.len();
    let limit = unpacked_limit(size);
    Ok((Box::new(Unpacked { text: MultiGzDecoder::new(content), limit, left: limit }), true))
}

/// Compressed text that ends with an error where it goes on beyond what a file of its size may hold.
struct Unpacked<R> {
    text: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.text.read(buffer)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            let limit = self.limit;
            let reason = format!("unpacks to more than {limit} bytes, the most for a file of its size");
            io::Error::new(io::ErrorKind::FileTooLarge, reason)
        })?;
        Ok(n)
    }
}

/// What separates cells: the first of comma, tab, semicolon and pipe that the header has.
fn delimiter(path: &Path, content: &mut impl BufRead, compressed: bool) -> Result<u8, Failure> {
    let start = content.fill_buf().map_err(|error| match compressed {
        true => Failure::in_file(
            path,
            format!("is damaged or cut off before its first row: {error}; expected a whole gzip file"),
        ),
        false => Failure::in_file(path, error),
    })?;
    let header = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok([b',', b'\t', b';', b'|'].into_iter().find(|separator| header.contains(separator)).unwrap_or(b','))
}

/// Ids that are whole numbers are the same however they are written: 200001 and 200001.0.
fn id(cell: &str) -> String {
    match cell.strip_suffix(".0") {
        Some(whole) if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) => whole.to_owned(),
        _ => cell.to_owned(),
    }
}

fn from_parquet(path: &Path, resolve: Resolve<'_>, mut progress: impl FnMut(u64)) -> Result<(Table, Spec), Failure> {
    let refuse =
        |error: &dyn std::fmt::Display| Failure::in_file(path, format!("is no readable .parquet file: {error}"));
    let (file, size) = open_regular(path, "a .parquet file")?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| refuse(&error))?;
    let mut unpacked = Unpacking::of(path, size, builder.metadata())?;
    let header: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let spec = &resolve(&header)?;
    let columns = Columns::find(path, &header, spec)?;
    let observed = columns.observed.into_iter().flatten();
    let wanted =
        columns.numbers.iter().copied().chain([columns.stay, columns.time]).chain(columns.patient).chain(observed);
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    let mut rows = Rows::new(spec, &columns);
    let mut dated = Dated::default();
    let mut row = 0;
    for batch in builder.with_projection(mask).build().map_err(|error| refuse(&error))? {
        let batch = batch.map_err(|error| refuse(&error))?;
        unpacked.keep(&batch)?;
        append_batch(path, spec, &batch, &columns, &mut rows, &mut dated, &mut row)?;
        progress(row);
    }
    if row == 0 {
        return Err(Failure::in_file(path, "has no rows"));
    }
    Ok((rows.finish(path, &dated)?, spec.clone()))
}

fn append_batch(
    path: &Path,
    spec: &Spec,
    batch: &RecordBatch,
    columns: &Columns<'_>,
    rows: &mut Rows,
    dated: &mut Dated,
    row: &mut u64,
) -> Result<(), Failure> {
    let before = *row;
    let array = |name: &str| {
        let array = batch.column_by_name(name);
        array.ok_or_else(|| Failure::in_file(path, format!("has no column '{name}' in one of its parts")))
    };
    let numbers = |name: &str| {
        let array = array(name)?;
        if let Some(texts) = texts(array) {
            let number = |(i, text): (usize, Option<&str>)| {
                number_of(spec, name, text.unwrap_or_default().trim()).map(Some).map_err(|reason| {
                    Failure::in_file(path, format!("row {}, column {name}: {reason}", before + i as u64 + 1))
                })
            };
            return texts.into_iter().enumerate().map(number).collect();
        }
        let mut cells = Vec::with_capacity(array.len());
        append(array, &mut cells).ok_or_else(|| {
            Failure::in_file(path, format!("column {name} holds {}; expected numbers", array.data_type()))
        })?;
        Ok::<_, Failure>(cells)
    };
    let values: Vec<Vec<Option<f64>>> = columns.names.iter().map(|name| numbers(name)).collect::<Result<_, _>>()?;
    let times = times(path, array(&spec.table.time)?, &spec.table.time, dated, before)?;
    let stays = ids(path, array(&spec.table.stay)?, &spec.table.stay)?;
    let patients = spec.table.patient.as_deref().map(|name| ids(path, array(name)?, name)).transpose()?;
    let observed = match &spec.table.observations {
        Some(own) => {
            let codes = ids(path, array(&own.code)?, &own.code)?;
            Some((observed_values(path, spec, array(&own.value)?, &codes, rows, before)?, codes))
        }
        None => None,
    };
    for i in 0..batch.num_rows() {
        *row += 1;
        let cells = values.iter().map(|column| column[i].unwrap_or(f64::NAN));
        let ids = (stays[i].as_str(), patients.as_ref().map(|patients| patients[i].as_str()));
        let seen = observed.as_ref().map_or(("", f64::NAN), |(values, codes)| (codes[i].as_str(), values[i]));
        rows.push(&columns.names, ids, times[i], cells, seen).map_err(|error| match error {
            Error::Cell { column, reason, .. } => {
                Failure::in_file(path, format!("row {row}, column {}: {reason}", name_in(spec, &column)))
            }
            other => Failure::in_file(path, other),
        })?;
    }
    Ok(())
}

/// Values of observations; NaN of codes that are not used.
fn observed_values(
    path: &Path,
    spec: &Spec,
    array: &ArrayRef,
    codes: &[String],
    rows: &Rows,
    before: u64,
) -> Result<Vec<f64>, Failure> {
    if let Some(texts) = texts(array) {
        let number = |(i, (text, code)): (usize, (Option<&str>, &String))| match rows.uses(code) {
            true => number_of(spec, code, text.unwrap_or_default().trim()).map_err(|reason| {
                Failure::in_file(path, format!("row {}, column {code}: {reason}", before + i as u64 + 1))
            }),
            false => Ok(f64::NAN),
        };
        return texts.into_iter().zip(codes).enumerate().map(number).collect();
    }
    let mut cells = Vec::with_capacity(array.len());
    append(array, &mut cells)
        .ok_or_else(|| Failure::in_file(path, format!("values are {}; expected numbers or text", array.data_type())))?;
    Ok(cells.into_iter().map(|cell| cell.unwrap_or(f64::NAN)).collect())
}

/// Ids: whole numbers or text.
fn ids(path: &Path, array: &ArrayRef, name: &str) -> Result<Vec<String>, Failure> {
    if let Some(texts) = texts(array) {
        return Ok(texts.into_iter().map(|text| id(text.unwrap_or_default().trim())).collect());
    }
    let mut cells = Vec::with_capacity(array.len());
    if append(array, &mut cells).is_none() {
        let reason = format!("column {name} holds {}; expected numbers or text", array.data_type());
        return Err(Failure::in_file(path, reason));
    }
    Ok(cells.into_iter().map(|cell| cell.map_or(String::new(), |x| x.to_string())).collect())
}

/// Times: numbers, dates and times, or text of such. `before` rows were read already.
fn times(path: &Path, array: &ArrayRef, name: &str, dated: &mut Dated, before: u64) -> Result<Vec<f64>, Failure> {
    if let Some(texts) = texts(array) {
        let time = |(i, text): (usize, Option<&str>)| {
            dated.number_of(text.unwrap_or_default().trim()).map_err(|reason| {
                Failure::in_file(path, format!("row {}, column {name}: {reason}", before + i as u64 + 1))
            })
        };
        return texts.into_iter().enumerate().map(time).collect();
    }
    if array.data_type().is_temporal() {
        dated.0 = Some(true);
    }
    let seconds = |per_second: f64, values: Vec<Option<i64>>| -> Vec<f64> {
        values.into_iter().map(|x| x.map_or(f64::NAN, |x| x as f64 / per_second)).collect()
    };
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            return Ok(seconds(1.0, array.as_primitive::<TimestampSecondType>().iter().collect()));
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            return Ok(seconds(1e3, array.as_primitive::<TimestampMillisecondType>().iter().collect()));
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            return Ok(seconds(1e6, array.as_primitive::<TimestampMicrosecondType>().iter().collect()));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            return Ok(seconds(1e9, array.as_primitive::<TimestampNanosecondType>().iter().collect()));
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().iter();
            return Ok(days.map(|day| day.map_or(f64::NAN, |day| f64::from(day) * 86_400.0)).collect());
        }
        DataType::Date64 => return Ok(seconds(1e3, array.as_primitive::<Date64Type>().iter().collect())),
        _ => {}
    }
    let mut cells = Vec::with_capacity(array.len());
    match append(array, &mut cells) {
        Some(()) => Ok(cells.into_iter().map(|cell| cell.unwrap_or(f64::NAN)).collect()),
        None => Err(Failure::in_file(path, format!("column {name} holds {}; expected times", array.data_type()))),
    }
}

fn texts(array: &ArrayRef) -> Option<Vec<Option<&str>>> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_ids_however_they_are_written() {
        assert_eq!((id("200001.0"), id("200001"), id("a.0")), ("200001".into(), "200001".into(), "a.0".into()));
    }
}
