//! Parquet: every column of numbers, in the order of the file.

use super::Table;
use super::columns::{Cells, Column};
use crate::failure::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use coirl::artifact::{open_regular, unpacked_limit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use std::panic;
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<Table, Failure> {
    let cells = columns(path)?;
    let (n_columns, n_rows) = (cells.columns.len(), cells.n_rows());
    let mut values = Vec::with_capacity(n_columns * n_rows);
    for row in 0..n_rows {
        for column in &cells.columns {
            let cell = column.cells[row].filter(|x| x.is_finite());
            let found = column.cells[row].map_or("nothing".into(), |x| x.to_string());
            let refuse = || cells.refuse(row, &column.name, format!("{found}; expected a finite number"));
            values.push(cell.ok_or_else(refuse)?);
        }
    }
    let names = cells.columns.into_iter().map(|column| column.name).collect();
    Ok(Table { path: path.to_owned(), n_columns: n_columns.max(1), names, values, lines: Vec::new() })
}

/// The columns with their names; cells may be missing.
pub(super) fn columns(path: &Path) -> Result<Cells, Failure> {
    refusing_panics(path, || read_columns(path))
}

/// The Parquet library panics on some damaged files (a column of negative length, for one), which is no way to refuse.
pub(super) fn refusing_panics<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Failure> + panic::UnwindSafe,
) -> Result<T, Failure> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let read = panic::catch_unwind(read);
    panic::set_hook(hook);
    read.unwrap_or_else(|_| Err(Failure::in_file(path, "is no readable .parquet file: it is damaged")))
}

fn read_columns(path: &Path) -> Result<Cells, Failure> {
    let refuse =
        |error: &dyn std::fmt::Display| Failure::in_file(path, format!("is no readable .parquet file: {error}"));
    let (file, size) = open_regular(path, "a .parquet file")?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| refuse(&error))?;
    let mut unpacked = Unpacking::of(path, size, builder.metadata())?;
    let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut columns: Vec<Column> = names.into_iter().map(|name| Column { name, cells: Vec::new() }).collect();
    for batch in builder.build().map_err(|error| refuse(&error))? {
        let batch = batch.map_err(|error| refuse(&error))?;
        unpacked.keep(&batch)?;
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            append(array, &mut column.cells).ok_or_else(|| {
                let reason = format!("column {} holds {}; expected numbers", column.name, array.data_type());
                Failure::in_file(path, reason)
            })?;
        }
    }
    Ok(Cells { path: path.to_owned(), columns, lines: Vec::new() })
}

/// What may still be kept of a file. A run of equal cells takes a few bytes, however long it is.
pub(super) struct Unpacking<'a> {
    path: &'a Path,
    limit: u64,
    left: u64,
}

impl<'a> Unpacking<'a> {
    /// Refuses a file of `size` bytes whose columns say that they unpack to too much.
    pub(super) fn of(path: &'a Path, size: u64, metadata: &ParquetMetaData) -> Result<Self, Failure> {
        let limit = unpacked_limit(size);
        let unpacking = Self { path, limit, left: limit };
        let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
        let claimed = columns.fold(0_u64, |sum, column| {
            sum.saturating_add(u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX))
        });
        if claimed > limit { Err(unpacking.refuse()) } else { Ok(unpacking) }
    }

    /// Counts the cells of some rows that are kept.
    pub(super) fn keep(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let bytes = (batch.num_rows() as u64).saturating_mul((batch.num_columns() * size_of::<Option<f64>>()) as u64);
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.refuse())?;
        Ok(())
    }

    fn refuse(&self) -> Failure {
        let limit = self.limit;
        Failure::in_file(self.path, format!("unpacks to more than {limit} bytes, the most for a file of its size"))
    }
}

/// Appends the numbers of an array, or nothing where it holds something else.
pub(super) fn append(array: &ArrayRef, cells: &mut Vec<Option<f64>>) -> Option<()> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef, cells: &mut Vec<Option<f64>>, number: impl Fn(T::Native) -> f64) {
        cells.extend(array.as_primitive::<T>().iter().map(|cell| cell.map(&number)));
    }
    match array.data_type() {
        DataType::Float64 => of::<Float64Type>(array, cells, |x| x),
        DataType::Float32 => of::<Float32Type>(array, cells, f64::from),
        DataType::Int8 => of::<Int8Type>(array, cells, f64::from),
        DataType::Int16 => of::<Int16Type>(array, cells, f64::from),
        DataType::Int32 => of::<Int32Type>(array, cells, f64::from),
        DataType::Int64 => of::<Int64Type>(array, cells, |x| x as f64),
        DataType::UInt8 => of::<UInt8Type>(array, cells, f64::from),
        DataType::UInt16 => of::<UInt16Type>(array, cells, f64::from),
        DataType::UInt32 => of::<UInt32Type>(array, cells, f64::from),
        DataType::UInt64 => of::<UInt64Type>(array, cells, |x| x as f64),
        DataType::Boolean => {
            cells.extend(array.as_boolean().iter().map(|cell| cell.map(|yes| f64::from(u8::from(yes)))))
        }
        DataType::Null => cells.extend(std::iter::repeat_n(None, array.len())),
        _ => return None,
    }
    Some(())
}
