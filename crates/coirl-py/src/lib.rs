//! The extension module behind the Python package `coirl`: newtypes, conversions and the map of errors; no mathematics.
//!
//! Python (`python/coirl`) checks and converts what people pass and shows what comes back; this module takes contiguous arrays of one
//! type each, and settings as JSON in the form in which they are saved. Work runs on threads of its own with the interpreter released;
//! see [`threads`].

mod agents;
mod arrays;
mod command;
mod contexts;
mod demonstrations;
mod domains;
mod errors;
mod experts;
mod fitting;
mod frames;
mod model;
mod off_policy;
mod planning;
mod policies;
mod threads;
mod transfer;

use pyo3::prelude::*;

#[pymodule]
fn _coirl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Kernel>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<agents::Fitted>()?;
    module.add_class::<transfer::Transfer>()?;
    module.add_function(wrap_pyfunction!(command::run, module)?)?;
    module.add_function(wrap_pyfunction!(domains::grid, module)?)?;
    module.add_function(wrap_pyfunction!(domains::driving, module)?)?;
    module.add_function(wrap_pyfunction!(domains::sepsis, module)?)?;
    module.add_function(wrap_pyfunction!(domains::garnet, module)?)?;
    module.add_function(wrap_pyfunction!(domains::pendulum, module)?)?;
    module.add_function(wrap_pyfunction!(domains::maze, module)?)?;
    module.add_function(wrap_pyfunction!(domains::epidemic, module)?)?;
    module.add_function(wrap_pyfunction!(domains::sepsis_patients, module)?)?;
    module.add_function(wrap_pyfunction!(domains::known_mappings, module)?)?;
    module.add_function(wrap_pyfunction!(fitting::default_settings, module)?)?;
    module.add_function(wrap_pyfunction!(fitting::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fitting::registry, module)?)?;
    module.add_function(wrap_pyfunction!(fitting::preset, module)?)?;
    module.add_function(wrap_pyfunction!(frames::columns, module)?)?;
    module.add_function(wrap_pyfunction!(off_policy::assess, module)?)?;
    module.add_function(wrap_pyfunction!(threads::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads::threads, module)?)?;
    Ok(())
}
