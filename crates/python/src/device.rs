//! What Python says to the devices and asks of them.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_formats::write_trace_gzip;
use lowtide_learn::LearnerOptions;
use lowtide_pool::{ArenaOptions, DeviceStats, Fleet, FleetOptions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::fleet::{self, Kind, fleet};
use crate::guard::{self, DEVICES};
use crate::{options, throw, timing};

/// A plan that is not proved by then is good enough: it is the sooner served.
const PLANNING: Duration = Duration::from_secs(1);

/// Serves the memory of the process's devices from now on: those of CUDA, or simulated ones of `simulated` bytes each,
/// whose call number `panic_at` panics, so that tests see what a defect does.
/// `False` where they are served already.
#[pyfunction]
#[pyo3(signature = (*, limit=None, learn=true, plans=None, peers=true, history=1 << 17, simulated=None, panic_at=None))]
pub(crate) fn serve_devices(
    limit: Option<u64>,
    learn: bool,
    plans: Option<PathBuf>,
    peers: bool,
    history: usize,
    simulated: Option<u64>,
    panic_at: Option<u64>,
) -> PyResult<bool> {
    let usual = LearnerOptions { cache: plans, threads: planners(), time_limit: PLANNING, ..LearnerOptions::default() };
    let learner =
        if learn { Some(usual.with(&options::of_learning()?)).filter(|learner| learner.enabled) } else { None };
    let arena = ArenaOptions { learner, ..ArenaOptions::on_device() };
    let options = FleetOptions { arena, limit: limit.map(Bytes::new), history };
    let kind =
        simulated.map_or(Kind::Cuda { peers }, |memory| Kind::Simulated { memory: Bytes::new(memory), panic_at });
    Ok(fleet::open(kind, options))
}

/// Plans are made beside the program, which has its own use for the processor.
fn planners() -> NonZeroUsize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new((cores / 4).min(4)).unwrap_or(NonZeroUsize::MIN)
}

/// Whether a shortage is raised as `torch.OutOfMemoryError`.
#[pyfunction]
pub(crate) fn raises_out_of_memory() -> bool {
    throw::is_exact()
}

/// Measures how long the hooks take from now on, or no more.
#[pyfunction]
pub(crate) fn measure_hooks(enabled: bool) {
    timing::enable(enabled);
}

/// What device `device` holds and did; `None` where it was not used yet.
#[pyfunction]
pub(crate) fn device_stats(python: Python<'_>, device: u32) -> PyResult<Option<Bound<'_, PyDict>>> {
    let stats = python.detach(|| ask(|fleet| Some((fleet.stats(device)?, fleet.steps()))))?.flatten();
    stats.map(|(stats, steps)| dictionary(python, &stats, steps)).transpose()
}

/// Asks the devices something; none where there are none.
fn ask<R>(question: impl FnOnce(&'static Fleet) -> R) -> PyResult<Option<R>> {
    fleet().map(|fleet| DEVICES.ask(|| question(fleet))).transpose()
}

fn dictionary<'py>(python: Python<'py>, stats: &DeviceStats, steps: u64) -> PyResult<Bound<'py, PyDict>> {
    let numbers = PyDict::new(python);
    for (name, value) in [
        ("requested_bytes", stats.requested.get()),
        ("peak_requested_bytes", stats.peak_requested.get()),
        ("allocated_bytes", stats.allocated.get()),
        ("peak_allocated_bytes", stats.peak_allocated.get()),
        ("reserved_bytes", stats.reserved.get()),
        ("peak_reserved_bytes", stats.peak_reserved.get()),
        ("peak_blocks", stats.peak_blocks),
        ("allocated_in_all", stats.allocated_in_all.get()),
        ("allocations", stats.allocs),
        ("frees", stats.frees),
        ("failed_frees", stats.failed_frees),
        ("retries", stats.retries),
        ("out_of_memory", stats.shortages),
        ("steps", steps),
        ("plan_hits", stats.served.hits),
        ("plan_misses", stats.served.misses),
        ("handles_created", stats.calls.created),
        ("handles_mapped", stats.calls.mapped),
        ("handles_unmapped", stats.calls.unmapped),
        ("handles_destroyed", stats.calls.destroyed),
        ("driver_calls", stats.calls.handles()),
        ("driver_ns", stats.calls.nanoseconds),
        ("waits", stats.calls.waits),
        ("waited_ns", stats.calls.waited_ns),
        ("holds", stats.calls.holds),
        ("alloc_ns", timing::ALLOC.total()),
        ("free_ns", timing::FREE.total()),
        ("record_stream_ns", timing::RECORD.total()),
    ] {
        numbers.set_item(name, value)?;
    }
    for (name, times, part) in [
        ("alloc_ns_p50", &timing::ALLOC, 0.5),
        ("alloc_ns_p99", &timing::ALLOC, 0.99),
        ("free_ns_p50", &timing::FREE, 0.5),
        ("free_ns_p99", &timing::FREE, 0.99),
    ] {
        numbers.set_item(name, times.quantile(part))?;
    }
    Ok(numbers)
}

/// Lets the peaks of device `device` begin at what is there now.
#[pyfunction]
pub(crate) fn reset_peaks(device: u32) -> PyResult<()> {
    ask(|fleet| fleet.reset_peaks(device)).map(Option::unwrap_or_default)
}

/// Gives back whatever can be given back on all devices, and says how many bytes.
#[pyfunction]
pub(crate) fn trim_devices(python: Python<'_>) -> PyResult<u64> {
    let given = python.detach(|| ask(Fleet::trim))?.unwrap_or(Ok(Bytes::ZERO));
    given.map(Bytes::get).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Takes at most `limit` bytes of device `device` from now on; all of it with `None`.
#[pyfunction]
#[pyo3(signature = (device, limit))]
pub(crate) fn limit_device(device: u32, limit: Option<u64>) -> PyResult<()> {
    let limited = ask(|fleet| fleet.set_limit(device, limit.map(Bytes::new)))?.unwrap_or(Ok(()));
    limited.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The last requests of all devices, a few steps of them, as a trace: CSV, gzip.
#[pyfunction]
pub(crate) fn device_history(python: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let written = python.detach(|| {
        let trace = ask(Fleet::history)?.unwrap_or_default();
        let mut text = Vec::new();
        let written = write_trace_gzip(&trace, &mut text).map(|()| text);
        written.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    });
    Ok(PyBytes::new(python, &written?))
}

/// What went wrong since the last call, a sentence each: in learning, in frees, and by defects of Lowtide.
#[pyfunction]
pub(crate) fn device_warnings() -> Vec<String> {
    let of_devices = fleet().and_then(|fleet| DEVICES.call(|| fleet.warnings())).unwrap_or_default();
    of_devices.into_iter().chain(guard::warnings()).collect()
}
