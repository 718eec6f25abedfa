//! The command line, for `python -m lowtide`.

use std::ffi::OsString;

use lowtide_core::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes that a text such as `24GiB` stands for.
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    text.parse::<Bytes>().map(Bytes::get).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The bytes that a program can have of a device: an amount such as `24GiB`, or a GPU's name.
#[pyfunction]
pub(crate) fn parse_device_memory(text: &str) -> PyResult<u64> {
    lowtide_core::parse_device_memory(text).map(Bytes::get).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// An amount of memory as everything else of Lowtide writes it.
#[pyfunction]
pub(crate) fn show_size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Runs the command line with `arguments`, the program's name first, and returns its exit code.
#[pyfunction]
pub(crate) fn main(python: Python<'_>, arguments: Vec<OsString>) -> u8 {
    python.detach(|| lowtide_cli::run(arguments))
}
