//! Contexts from arrays.

use crate::arrays::rows;
use coirl::Result;
use coirl::model::{Cmdp, Context, Mdp};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// One vector of numbers per context.
pub(crate) fn matrix_rows(matrix: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<Vec<f64>>> {
    let (n, d) = (matrix.shape()[0], matrix.shape()[1]);
    let values = rows(matrix)?;
    Ok((0..n).map(|i| values[i * d..(i + 1) * d].to_vec()).collect())
}

/// Contexts that the model accepts.
pub(crate) fn accepted(model: &Cmdp, values: Vec<Vec<f64>>) -> Result<Vec<Context>> {
    values.into_iter().map(|row| model.context_space().context(row)).collect()
}

/// The numbers of one context, where one is given.
pub(crate) fn one(context: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Option<Vec<f64>>> {
    context.map(|context| Ok(crate::arrays::numbers(&context)?.to_vec())).transpose()
}

/// The process of a context, or the one of all where none is given.
pub(crate) fn mdp(model: &Cmdp, context: Option<Vec<f64>>) -> Result<Mdp<'_>> {
    match context {
        Some(values) => model.mdp(&model.context_space().context(values)?),
        None => model.shared_mdp(),
    }
}
