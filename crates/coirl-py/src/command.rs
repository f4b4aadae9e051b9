//! The command line, as the wheel brings it along.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs a command, the name of the program first, and gives its exit code. Prints to the process's own streams.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| coirl_cli::run(arguments))
}
