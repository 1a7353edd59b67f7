//! The command `corsair`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments and returns its exit code.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| corsair_cli::main(arguments.into_iter()))
}
