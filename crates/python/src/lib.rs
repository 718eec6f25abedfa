//! The Python module `lowtide._lowtide`, and in the same library the C functions that PyTorch calls. Nothing is decided
//! here: the module hands what Python and PyTorch say to the crates below.

mod command;

/// What the Python package is made of.
#[pyo3::pymodule]
mod _lowtide {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::command::main;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
