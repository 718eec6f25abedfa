//! Pinned memory: PyTorch's allocator of it is asked through here, so that blocks come at their exact size from a pool of
//! Lowtide's. What the pool cannot serve, PyTorch serves as before.

#![expect(unsafe_code, reason = "stands in for functions of a C++ object")]

use std::ffi::c_void;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::HostOptions;
use lowtide_memory::cuda::CudaPinned;
use lowtide_pool::{Address, Pool, Request, Segments};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::c10::{DataPtr, Family, Object, Original, Refusal, Slot, Stream, names_streams, patch, stream_handle};
use crate::ranges::{Ranged, Ranges};
use crate::threads;

/// The versions of PyTorch in which the functions that only pinned memory has are known to stand where they are expected:
/// nothing that it exports tells.
const KNOWN: RangeInclusive<(u32, u32)> = (2, 11)..=(2, 15);

/// PyTorch's allocator as it was, and what serves in its place.
struct Behind {
    object: Object,
    original: Original,
    pool: Segments,
}

static BEHIND: OnceLock<Behind> = OnceLock::new();
static RANGES: Ranges = Ranges::new();

fn behind() -> &'static Behind {
    BEHIND.get().unwrap_or_else(|| std::process::abort())
}

/// Whether an address is one of the pool's, in the process in which it was made.
fn is_served(address: *mut c_void) -> bool {
    RANGES.contain(address as u64) && !threads::is_forked()
}

/// Stands in for `allocate`.
extern "C-unwind" fn allocate(_this: *mut c_void, bytes: usize) -> DataPtr {
    let behind = behind();
    if bytes > 0
        && !threads::is_forked()
        && let Ok(address) = behind.pool.alloc(&Request::new(Bytes::new(bytes as u64)))
    {
        return DataPtr::host(std::ptr::with_exposed_provenance_mut(address.0 as usize), delete);
    }
    behind.original.allocate(behind.object, bytes)
}

/// Frees a block of the pool; others keep PyTorch's own function.
unsafe extern "C-unwind" fn delete(block: *mut c_void) {
    if is_served(block) {
        // A block whose streams cannot be asked is kept: they may still use it.
        let _ = behind().pool.free(Address(block as u64));
    }
}

/// Stands in for `record_event`: work on `stream` uses the block.
extern "C-unwind" fn record_event(this: *mut c_void, data: *mut c_void, context: *mut c_void, stream: Stream) -> bool {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, Stream) -> bool;
    let behind = behind();
    let block = [context, data].into_iter().find(|&block| is_served(block));
    if let Some(block) = block {
        let recorded = stream_handle(stream)
            .is_some_and(|handle| behind.pool.record(Address(block as u64), StreamId(handle)).is_ok());
        return recorded;
    }
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(Slot::RECORD_EVENT)) };
    // SAFETY: the caller's arguments.
    unsafe { function(this, data, context, stream) }
}

/// Stands in for `empty_cache`.
extern "C-unwind" fn empty_cache(this: *mut c_void) {
    type Function = unsafe extern "C-unwind" fn(*mut c_void);
    let behind = behind();
    if !threads::is_forked() {
        // What cannot be given back stays and is used again.
        let _ = behind.pool.trim();
    }
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(Slot::EMPTY_CACHE)) };
    // SAFETY: the caller's arguments.
    unsafe { function(this) };
}

/// Serves pinned memory at its exact size from now on, registered with the driver through `device`.
#[pyfunction]
#[pyo3(signature = (device = 0))]
pub(crate) fn serve_pinned(python: Python<'_>, device: u32) -> PyResult<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if BEHIND.get().is_some() {
        return Ok(());
    }
    check_version(python)?;
    let object = Object::pinned().map_err(|refusal| refusal.raise(python))?;
    let original = Family::PINNED.check(object).map_err(|refusal| refusal.raise(python))?;
    let source = CudaPinned::new(device, &HostOptions::default()).map_err(|error| {
        PyRuntimeError::new_err(format!("no pinned memory for device {device}: {error}\nhint: leave `pinned` out"))
    })?;
    let pool = Segments::new(Arc::new(Ranged::new(Arc::new(source), &RANGES)));
    threads::watch_forks();
    BEHIND.get_or_init(|| Behind { object, original, pool });
    let functions = [
        (Slot::ALLOCATE, allocate as *const c_void),
        (Slot::RECORD_EVENT, record_event as *const c_void),
        (Slot::EMPTY_CACHE, empty_cache as *const c_void),
    ];
    patch(object, original, &functions);
    Ok(())
}

fn check_version(python: Python<'_>) -> PyResult<()> {
    let version: String = python.import("torch")?.getattr("__version__")?.str()?.extract()?;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let known = numbers.next().zip(numbers.next()).is_some_and(|version| KNOWN.contains(&version));
    if known && names_streams() {
        return Ok(());
    }
    let why = format!("`HostAllocator` of version {version} was never looked at, or its streams have no handles");
    Err(Refusal::unexpected(Family::PINNED.what, why).raise(python))
}

/// What pinned memory takes, in bytes: `live` and `reserved` with their peaks; `None` where it is not served.
#[pyfunction]
pub(crate) fn pinned_stats(python: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(behind) = BEHIND.get().filter(|_| !threads::is_forked()) else { return Ok(None) };
    let stats = python.detach(|| behind.pool.stats());
    let dict = PyDict::new(python);
    dict.set_item("live", stats.live.get())?;
    dict.set_item("peak_live", stats.peak_live.get())?;
    dict.set_item("reserved", stats.reserved.get())?;
    dict.set_item("peak_reserved", stats.peak_reserved.get())?;
    Ok(Some(dict))
}
