//! Arrays in and out. What comes in is contiguous and of the right type: the Python side sees to it.

use numpy::ndarray::{Array2, Array3};
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The numbers of an array, without a copy.
pub(crate) fn numbers<'a, T: Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyTypeError::new_err("expected a contiguous array"))
}

/// The numbers of a contiguous matrix, row by row.
pub(crate) fn rows<'a, T: Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyTypeError::new_err("expected a contiguous array"))
}

/// An array from numbers, without a copy.
pub(crate) fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

/// A matrix from its numbers, row by row.
pub(crate) fn matrix<T: Element>(
    py: Python<'_>,
    n_rows: usize,
    n_columns: usize,
    values: Vec<T>,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let shaped = Array2::from_shape_vec((n_rows, n_columns), values);
    Ok(shaped.map_err(|error| crate::errors::internal(error.to_string()))?.into_pyarray(py))
}

/// A block of three dimensions from its numbers.
pub(crate) fn block<T: Element>(
    py: Python<'_>,
    shape: (usize, usize, usize),
    values: Vec<T>,
) -> PyResult<Bound<'_, PyArray3<T>>> {
    let shaped = Array3::from_shape_vec(shape, values);
    Ok(shaped.map_err(|error| crate::errors::internal(error.to_string()))?.into_pyarray(py))
}
