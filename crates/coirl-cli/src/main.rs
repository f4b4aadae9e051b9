//! The binary: everything is in the library of this crate, which the Python package runs as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(coirl_cli::run(std::env::args_os()))
}
