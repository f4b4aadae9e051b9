//! Columns of data frames through the Arrow C stream interface (`__arrow_c_stream__`), which pandas, Polars, PyArrow, DuckDB and others have.
#![allow(unsafe_code)] // takes over the stream that a capsule holds

use crate::arrays::vector;
use crate::errors::{of_family, with_data};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatchReader};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyList};

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// The named columns of a frame: numbers (booleans and dates among them) as arrays of floats with NaN where nothing is, words as lists.
#[pyfunction]
pub(crate) fn columns<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    names: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.as_ptr().cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule bears the name that the Arrow interface reserves for a pointer to such a stream, and owns it until it is taken;
    // `from_raw` moves the stream out and leaves a released one behind, as the interface asks of a consumer.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer) }.map_err(|error| refused(py, error))?;
    let schema = reader.schema();
    let mut at = Vec::with_capacity(names.len());
    for name in &names {
        at.push(schema.index_of(name).map_err(|_| {
            let all: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let others = match coirl::nearest::near(name, &all) {
                Some(meant) => format!("the nearest is '{meant}'"),
                None => format!("it has {}", all.join(", ")),
            };
            about(py, name, format!("the frame has no column '{name}'; {others}"))
        })?);
    }
    let mut batches = Vec::new();
    for batch in reader {
        batches.push(batch.map_err(|error| refused(py, error))?);
    }
    let dict = PyDict::new(py);
    for (name, at) in names.iter().zip(at) {
        let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(at)).collect();
        if words(schema.field(at).data_type()) {
            let list = PyList::empty(py);
            for part in parts {
                append_words(&list, part)?;
            }
            dict.set_item(name, list)?;
        } else {
            let mut values = Vec::new();
            for part in parts {
                append_numbers(&mut values, part).ok_or_else(|| {
                    let kind = part.data_type();
                    about(py, name, format!("column '{name}' is of type {kind}; expected numbers or words"))
                })?;
            }
            dict.set_item(name, vector(py, values))?;
        }
    }
    Ok(dict)
}

fn words(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => words(values),
        _ => false,
    }
}

fn append_words(list: &Bound<'_, PyList>, part: &ArrayRef) -> PyResult<()> {
    macro_rules! each {
        ($array:expr) => {
            for word in $array.iter() {
                list.append(word)?;
            }
        };
    }
    match part.data_type() {
        DataType::LargeUtf8 => each!(part.as_string::<i64>()),
        DataType::Utf8View => each!(part.as_string_view()),
        DataType::Dictionary(_, _) => {
            if let Some(coded) = part.as_any_dictionary_opt() {
                let all = PyList::empty(list.py());
                append_words(&all, coded.values())?;
                for (i, key) in coded.normalized_keys().into_iter().enumerate() {
                    if coded.is_null(i) {
                        list.append(list.py().None())?;
                    } else {
                        list.append(all.get_item(key)?)?;
                    }
                }
            }
        }
        _ => each!(part.as_string::<i32>()),
    }
    Ok(())
}

/// Adds the numbers of a column; nothing where it holds something else. Dates and times count in their own unit.
fn append_numbers(values: &mut Vec<f64>, part: &ArrayRef) -> Option<()> {
    macro_rules! each {
        ($($kind:pat => $type:ty),* $(,)?) => {
            match part.data_type() {
                $($kind => {
                    let part = part.as_primitive::<$type>();
                    values.extend(part.iter().map(|x| x.map_or(f64::NAN, |x| x as f64)));
                })*
                DataType::Boolean => {
                    values.extend(part.as_boolean().iter().map(|x| x.map_or(f64::NAN, |x| f64::from(u8::from(x)))));
                }
                DataType::Null => values.resize(values.len() + part.len(), f64::NAN),
                _ => return None,
            }
        };
    }
    use arrow_array::types::*;
    each! {
        DataType::Float64 => Float64Type,
        DataType::Float32 => Float32Type,
        DataType::Int8 => Int8Type,
        DataType::Int16 => Int16Type,
        DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type,
        DataType::UInt8 => UInt8Type,
        DataType::UInt16 => UInt16Type,
        DataType::UInt32 => UInt32Type,
        DataType::UInt64 => UInt64Type,
        DataType::Date32 => Date32Type,
        DataType::Date64 => Date64Type,
        DataType::Timestamp(TimeUnit::Second, _) => TimestampSecondType,
        DataType::Timestamp(TimeUnit::Millisecond, _) => TimestampMillisecondType,
        DataType::Timestamp(TimeUnit::Microsecond, _) => TimestampMicrosecondType,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => TimestampNanosecondType,
    }
    Some(())
}

/// What is wrong with a column.
fn about(py: Python<'_>, column: &str, message: String) -> PyErr {
    let data = PyDict::new(py);
    match data.set_item("column", column) {
        Ok(()) => with_data(py, "DataError", message, data),
        Err(error) => error,
    }
}

fn refused(py: Python<'_>, error: impl std::fmt::Display) -> PyErr {
    of_family(py, "DataError", format!("the frame cannot be read: {error}"))
}
