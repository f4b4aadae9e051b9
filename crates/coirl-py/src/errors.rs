//! Errors of the library as exceptions of `coirl.errors`: one class per family, with the data of the variant as attributes.

use coirl::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use pyo3::{IntoPyObjectExt, PyTypeInfo};

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A class of `coirl.errors`.
fn class<'py>(py: Python<'py>, family: &str) -> PyResult<Bound<'py, PyType>> {
    let module = MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("coirl.errors")?.unbind()))?;
    Ok(module.bind(py).getattr(family)?.cast_into::<PyType>()?)
}

/// An exception of a family with its data.
pub(crate) fn with_data(py: Python<'_>, family: &str, message: String, data: Bound<'_, PyDict>) -> PyErr {
    let raised = class(py, family).and_then(|class| class.call((message.clone(),), Some(&data)));
    match raised {
        Ok(value) => PyErr::from_value(value),
        // Without the package around it, this module has no classes of its own.
        Err(_) => PyErr::from_type(PyRuntimeError::type_object(py), message),
    }
}

/// A family without data.
pub(crate) fn of_family(py: Python<'_>, family: &str, message: impl Into<String>) -> PyErr {
    with_data(py, family, message.into(), PyDict::new(py))
}

/// What should not happen.
pub(crate) fn internal(message: String) -> PyErr {
    Python::attach(|py| of_family(py, "CoirlError", message))
}

/// A fault of ours, which is told as such instead of taking the interpreter down.
pub(crate) fn panicked() -> PyErr {
    internal("a fault inside coirl stopped the computation; please report it with what led to it".into())
}

/// The exception of an error.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    let data = PyDict::new(py);
    let family = family_and_data(&error, &data).unwrap_or("CoirlError");
    with_data(py, family, error.to_string(), data)
}

/// The family of an error; its data go to the dictionary.
fn family_and_data(error: &Error, data: &Bound<'_, PyDict>) -> PyResult<&'static str> {
    macro_rules! with {
        ($family:literal, $($field:ident),*) => {{
            $(data.set_item(stringify!($field), $field.clone().into_py_any(data.py())?)?;)*
            Ok($family)
        }};
    }
    match error {
        Error::EmptyModel { n_states, n_actions } => with!("ModelError", n_states, n_actions),
        Error::TooLarge { what, count, limit } => with!("ModelError", what, count, limit),
        Error::InvalidProbability { state, action, next, value } => with!("ModelError", state, action, next, value),
        Error::RowNotStochastic { state, action, sum } => with!("ModelError", state, action, sum),
        Error::SuccessorOutOfRange { state, action, next, n_states } => {
            with!("ModelError", state, action, next, n_states)
        }
        Error::PairFunction { state, action, .. } => with!("ModelError", state, action),
        Error::FeatureNotFinite { state, action, feature, value } => {
            with!("ModelError", state, action, feature, value)
        }
        Error::FeatureCount { state, action, expected, found } => {
            with!("ModelError", state, action, expected, found)
        }
        Error::PairNeverSeen { state, action } => with!("ModelError", state, action),
        Error::UnknownStateLeft { state, action, next } => with!("ModelError", state, action, next),
        Error::NoAdmissibleAction { state } | Error::NoKnownAction { state } => with!("ModelError", state),
        Error::InvalidDiscount { value } => with!("ModelError", value),
        Error::ImproperPolicy { state } => with!("ModelError", state),
        Error::AbsorbingFeature { state, feature, value } => with!("ModelError", state, feature, value),
        Error::InvalidHorizon { steps } => with!("ModelError", steps),
        Error::InitialNotStochastic { sum } => with!("ModelError", sum),
        Error::InvalidInitial { state, value } => with!("ModelError", state, value),
        Error::IncompatibleKernels { kernel, reason } => with!("ModelError", kernel, reason),
        Error::Shape { what, expected, found } => with!("ArrayError", what, expected, found),
        Error::NotFinite { what, index, value } => with!("ArrayError", what, index, value),
        Error::CellNotFinite { what, row, column, value } => with!("ArrayError", what, row, column, value),
        Error::InvalidContext { values, reason } => with!("ContextError", values, reason),
        Error::ContextNeeded => Ok("ContextError"),
        Error::DynamicsDependOnContext { dynamics, hint } => with!("ContextError", dynamics, hint),
        Error::EmptyLibrary { .. } => Ok("ContextError"),
        Error::CoverTooLarge { radius, needed, limit, reachable } => {
            with!("SettingError", radius, needed, limit, reachable)
        }
        Error::InvalidSetting { name, value, reason } => with!("SettingError", name, value, reason),
        Error::CriterionMismatch { operation, criterion, hint } => with!("SettingError", operation, criterion, hint),
        Error::Spec { place, reason } => with!("SettingError", place, reason),
        Error::NoMapping { agent } => with!("SettingError", agent),
        Error::NotLinear => Ok("SettingError"),
        Error::StateOutOfRange { number, state, n_states } => with!("DataError", number, state, n_states),
        Error::ActionNotAdmissible { state, action } => with!("DataError", state, action),
        Error::PolicyNotStochastic { state, sum } => with!("DataError", state, sum),
        Error::StepNotStochastic { step, sum } => with!("DataError", step, sum),
        Error::ActionOutOfRange { step, action, n_actions } => with!("DataError", step, action, n_actions),
        Error::RecordedActionImpossible { step, action } => with!("DataError", step, action),
        Error::NoCovariates => Ok("DataError"),
        Error::TooFewDistinctRows { distinct, clusters } => with!("DataError", distinct, clusters),
        Error::NoActions { method } => with!("DataError", method),
        Error::RewardsTooLarge { step, value, n_steps } => with!("DataError", step, value, n_steps),
        Error::TooFewPatients { patients, folds } => with!("DataError", patients, folds),
        Error::Diverged { step, what, value } => with!("CoirlError", step, what, value),
        Error::NoKnownActions { demonstrated } | Error::NoDecisions { demonstrated } => {
            with!("DataError", demonstrated)
        }
        Error::Cell { row, column, reason } => with!("DataError", row, column, reason),
        Error::EmptyCohort { stays, reason } => with!("DataError", stays, reason),
        Error::NotUnichain { first, second } => with!("SolverError", first, second),
        Error::EvaluationStalled { residual } => with!("SolverError", residual),
        Error::Solver { problem, reason } => with!("SolverError", problem, reason),
        Error::Checkpoint { reason } => with!("FileError", reason),
        Error::Io { path, source } => {
            data.set_item("path", path)?;
            data.set_item("errno", source.raw_os_error())?;
            Ok("FileError")
        }
        Error::Format { path, reason } => {
            data.set_item("path", path)?;
            with!("FileError", reason)
        }
        Error::InFile { path, source } => {
            family_and_data(source, data)?;
            data.set_item("path", path)?;
            Ok("FileError")
        }
        _ => Ok("CoirlError"),
    }
}
