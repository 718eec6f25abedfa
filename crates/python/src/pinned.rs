//! Pinned memory: PyTorch's allocator of it is asked through here, so that blocks come at their exact size from a pool of
//! Lowtide's. What the pool cannot serve, PyTorch serves as before.

#![expect(unsafe_code, reason = "stands in for functions of a C++ object")]

use std::ffi::c_void;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::HostOptions;
use lowtide_memory::cuda::{self, CudaPinned};
use lowtide_pool::{Address, Pool, Request, Segments, Stats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::c10::{
    Current, DataPtr, Family, Object, Original, Refusal, Slot, Stream, names_streams, patch, stream_handle,
};
use crate::guard::PINNED;
use crate::ranges::{Ranged, Ranges};
use crate::threads;

/// The versions of PyTorch in which the functions that only pinned memory has are known to stand where they are expected:
/// nothing that it exports tells.
const KNOWN: RangeInclusive<(u32, u32)> = (2, 11)..=(2, 15);

/// The most devices that have a pool.
const MOST: usize = 64;

/// PyTorch's allocator as it was, and what tells which device a thread uses and on which stream.
struct Behind {
    object: Object,
    original: Original,
    current: Current,
}

static BEHIND: OnceLock<Behind> = OnceLock::new();

/// A pool for each device that pinned memory is asked for; none where the driver refused.
static POOLS: [OnceLock<Option<Segments>>; MOST] = [const { OnceLock::new() }; MOST];
static RANGES: [Ranges; MOST] = [const { Ranges::new() }; MOST];

fn behind() -> &'static Behind {
    BEHIND.get().unwrap_or_else(|| std::process::abort())
}

fn pool(device: usize) -> Option<&'static Segments> {
    let made = POOLS.get(device)?.get_or_init(|| {
        let source = CudaPinned::new(device as u32, &HostOptions::default()).ok()?;
        Some(Segments::new(Arc::new(Ranged::new(Arc::new(source), &RANGES[device]))))
    });
    made.as_ref()
}

fn made_pools() -> impl Iterator<Item = (usize, &'static Segments)> {
    POOLS.iter().enumerate().filter_map(|(device, pool)| Some((device, pool.get()?.as_ref()?)))
}

/// The pool that an address is of, in the process in which it was made.
fn owner(address: *mut c_void) -> Option<(usize, &'static Segments)> {
    if threads::is_forked() {
        return None;
    }
    made_pools().find(|&(device, _)| RANGES[device].contain(address as u64))
}

/// A block for the device that the thread uses. What is asked for in a capture belongs to the graph: PyTorch serves it.
fn serve(behind: &Behind, bytes: usize) -> Option<Address> {
    if bytes == 0 || threads::is_forked() {
        return None;
    }
    let device = behind.current.device();
    let number = usize::try_from(device).ok()?;
    let pool = PINNED.call(|| pool(number)).flatten()?;
    let stream = stream_handle(behind.current.stream(device))?;
    PINNED.call(|| {
        if cuda::is_captured(number as u32, StreamId(stream)) != Ok(false) {
            return None;
        }
        pool.alloc(&Request::new(Bytes::new(bytes as u64))).ok()
    })?
}

/// Stands in for `allocate`.
extern "C-unwind" fn allocate(_this: *mut c_void, bytes: usize) -> DataPtr {
    let behind = behind();
    match serve(behind, bytes) {
        Some(address) => DataPtr::host(std::ptr::with_exposed_provenance_mut(address.0 as usize), delete),
        None => behind.original.allocate(behind.object, bytes),
    }
}

/// Frees a block of a pool; others keep PyTorch's own function.
unsafe extern "C-unwind" fn delete(block: *mut c_void) {
    if let Some((_, pool)) = owner(block) {
        // A block whose streams cannot be asked is kept: they may still use it.
        PINNED.free(|| pool.free(Address(block as u64)));
    }
}

/// Stands in for `record_event`: work on `stream` uses the block.
extern "C-unwind" fn record_event(this: *mut c_void, data: *mut c_void, context: *mut c_void, stream: Stream) -> bool {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, Stream) -> bool;
    let owned = [context, data].into_iter().find_map(|block| Some((block, owner(block)?)));
    let Some((block, (device, pool))) = owned else {
        // SAFETY: the function that stood at this place.
        let function: Function = unsafe { mem::transmute(behind().original.function(Slot::RECORD_EVENT)) };
        // SAFETY: the caller's arguments.
        return unsafe { function(this, data, context, stream) };
    };
    let Some(handle) = stream_handle(stream) else { return false };
    let recorded = PINNED.call(|| match u32::try_from(stream.device.index) {
        Ok(other) if other as usize != device => {
            // A pool marks streams of its own device alone: with another's, the work is waited for.
            cuda::finish(other, StreamId(handle)).is_ok()
        }
        _ => pool.record(Address(block as u64), StreamId(handle)).is_ok(),
    });
    recorded.unwrap_or(false)
}

/// Stands in for `empty_cache`.
extern "C-unwind" fn empty_cache(this: *mut c_void) {
    type Function = unsafe extern "C-unwind" fn(*mut c_void);
    let behind = behind();
    if !threads::is_forked() {
        for (_, pool) in made_pools() {
            // What cannot be given back stays and is used again.
            PINNED.call(|| pool.trim().ok());
        }
    }
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(Slot::EMPTY_CACHE)) };
    // SAFETY: the caller's arguments.
    unsafe { function(this) };
}

/// Serves pinned memory at its exact size from now on. Starts nothing: a device's pool is made when a thread that uses
/// the device first asks.
#[pyfunction]
pub(crate) fn serve_pinned(python: Python<'_>) -> PyResult<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if BEHIND.get().is_some() {
        return Ok(());
    }
    check_version(python)?;
    let object = Object::pinned().map_err(|refusal| refusal.raise(python))?;
    let original = Family::PINNED.check(object).map_err(|refusal| refusal.raise(python))?;
    let current = Current::find().map_err(|refusal| refusal.raise(python))?;
    threads::watch_forks();
    BEHIND.get_or_init(|| Behind { object, original, current });
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

fn stats_of_all_pools() -> Stats {
    made_pools().map(|(_, pool)| pool.stats()).fold(Stats::default(), |all, one| Stats {
        live: all.live + one.live,
        peak_live: all.peak_live + one.peak_live,
        reserved: all.reserved + one.reserved,
        peak_reserved: all.peak_reserved + one.peak_reserved,
    })
}

/// What pinned memory takes, in bytes: `live` and `reserved` with their peaks; `None` where it is not served.
#[pyfunction]
pub(crate) fn pinned_stats(python: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    if BEHIND.get().is_none() || threads::is_forked() {
        return Ok(None);
    }
    let stats = python.detach(|| PINNED.ask(stats_of_all_pools))?;
    let dict = PyDict::new(python);
    dict.set_item("live", stats.live.get())?;
    dict.set_item("peak_live", stats.peak_live.get())?;
    dict.set_item("reserved", stats.reserved.get())?;
    dict.set_item("peak_reserved", stats.peak_reserved.get())?;
    dict.set_item("failed_frees", PINNED.failed_frees())?;
    Ok(Some(dict))
}
