//! The command line, for `python -m lowtide`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line with `arguments`, the program's name first, and returns its exit code.
#[pyfunction]
pub(crate) fn main(python: Python<'_>, arguments: Vec<OsString>) -> u8 {
    python.detach(|| lowtide_cli::run(arguments))
}
