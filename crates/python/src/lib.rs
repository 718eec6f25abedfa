//! The Python module `lowtide._lowtide`, and in the same library the C functions that PyTorch calls. Nothing is decided
//! here: the module hands what Python and PyTorch say to the crates below.

mod answers;
mod c10;
mod callable;
mod command;
mod cpu;
mod cuda;
mod device;
mod fleet;
mod guard;
mod hooks;
mod marks;
mod options;
mod pinned;
mod ranges;
mod recorder;
mod simulate;
mod steps;
mod system;
mod threads;
mod throw;
mod timing;

/// What the Python package is made of.
#[pyo3::pymodule]
mod _lowtide {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::answers::answer_workspaces;
    #[pymodule_export]
    use super::command::{main, parse_device_memory, parse_size, show_size};
    #[pymodule_export]
    use super::cpu::{cpu_stats, serve_cpu, trim_cpu};
    #[pymodule_export]
    use super::device::{
        device_history, device_stats, device_warnings, limit_device, measure_hooks, raises_out_of_memory, reset_peaks,
        serve_devices, trim_devices,
    };
    #[pymodule_export]
    use super::marks::mark;
    #[pymodule_export]
    use super::options::{option, variable};
    #[pymodule_export]
    use super::pinned::{pinned_stats, serve_pinned};
    #[pymodule_export]
    use super::recorder::{enter_backward, leave_backward, record_cuda, start_recording, stop_recording};
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::steps::step;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
