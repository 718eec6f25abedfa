//! CPU tensors: PyTorch's allocator of them is asked through here, so that large blocks can come from Lowtide's arena and
//! all of them can be written down. Until somebody asks for either, nothing is changed.

#![expect(unsafe_code, reason = "stands in for functions of a C++ object")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lowtide_core::{Align, Bytes, ThreadId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{Host, HostOptions, Pages};
use lowtide_pool::{Address, Arena, ArenaOptions, Pool, Request};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::c10::{DataPtr, Deleter, Family, Object, Original, Refusal, Slot, patch};
use crate::guard::CPU;
use crate::ranges::{Ranged, Ranges};
use crate::recorder::{self, Kind};
use crate::{options, steps, threads};

/// PyTorch's allocator as it was.
struct Behind {
    object: Object,
    original: Original,
    deleter: Deleter,
}

static BEHIND: OnceLock<Behind> = OnceLock::new();

/// What serves large blocks.
struct Serving {
    arena: Arena,
    threshold: usize,
}

static SERVING: OnceLock<Serving> = OnceLock::new();
static RANGES: Ranges = Ranges::new();

/// What a block's address is a multiple of: whatever PyTorch's own kernels wish for.
const ALIGN: Option<Align> = Align::new(64);

/// Stands in for PyTorch's allocator of CPU tensors from now on.
pub(crate) fn stand_in() -> Result<(), Refusal> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if BEHIND.get().is_some() {
        return Ok(());
    }
    let object = Object::cpu()?;
    let original = Family::CPU.check(object)?;
    Family::CPU.try_out(object, original)?;
    let Some(deleter) = original.raw_deleter(object) else {
        return Err(Refusal::unexpected(Family::CPU.what, "it has no `raw_deleter`"));
    };
    threads::watch_forks();
    BEHIND.get_or_init(|| Behind { object, original, deleter });
    let functions = [(Slot::ALLOCATE, allocate as *const c_void), (Slot::RAW_DELETER, raw_deleter as *const c_void)];
    patch(object, original, &functions);
    Ok(())
}

/// Stands in for `allocate`.
extern "C-unwind" fn allocate(_this: *mut c_void, bytes: usize) -> DataPtr {
    let Some(behind) = BEHIND.get() else { std::process::abort() };
    if let Some(block) = CPU.call(|| serve(bytes)).flatten() {
        recorder::allocated(Kind::Cpu, bytes, block.data, None);
        return block;
    }
    let watch = recorder::Watch::new(Kind::Cpu, bytes);
    let mut block = behind.original.allocate(behind.object, bytes);
    watch.served();
    if block.is_freed_by(behind.deleter) {
        block.deleter = Some(delete);
        recorder::allocated(Kind::Cpu, bytes, block.data, None);
    }
    block
}

/// Stands in for `raw_deleter`: one function frees all blocks.
extern "C-unwind" fn raw_deleter(_this: *const c_void) -> Deleter {
    delete
}

unsafe extern "C-unwind" fn delete(block: *mut c_void) {
    recorder::freed(block);
    let address = block as u64;
    if RANGES.contain(address) {
        // In a forked child the memory is a copy that goes with the process, and the arena's locks may be held forever.
        if let Some(serving) = SERVING.get()
            && !threads::is_forked()
        {
            CPU.free(|| serving.arena.free(Address(address)));
        }
    } else if let Some(behind) = BEHIND.get() {
        // SAFETY: the block is not the arena's, so it is PyTorch's, whose own function this is.
        unsafe { (behind.deleter)(block) };
    }
}

/// A block of the arena, where it is large enough and there is room.
fn serve(bytes: usize) -> Option<DataPtr> {
    let serving = SERVING.get().filter(|serving| bytes >= serving.threshold && !threads::is_forked())?;
    let request = Request {
        align: ALIGN.unwrap_or(Align::ONE),
        thread: ThreadId(threads::number()),
        ..Request::new(Bytes::new(bytes as u64))
    };
    let address = serving.arena.alloc(&request).ok()?;
    Some(DataPtr::host(std::ptr::with_exposed_provenance_mut(address.0 as usize), delete))
}

/// Serves CPU tensors of at least `threshold` bytes from an arena of their own, from now on. Without `learn`, blocks are
/// placed as they come.
#[pyfunction]
#[pyo3(signature = (threshold = 1 << 20, learn = true))]
pub(crate) fn serve_cpu(python: Python<'_>, threshold: usize, learn: bool) -> PyResult<()> {
    if threshold == 0 {
        return Err(PyValueError::new_err("the threshold is 0, and a block has at least one byte"));
    }
    if let Some(serving) = SERVING.get() {
        let known = serving.threshold;
        return if known == threshold {
            Ok(())
        } else {
            Err(PyRuntimeError::new_err(format!("CPU tensors of {known} bytes and more are served already")))
        };
    }
    let host = Host::new(&HostOptions { pages: Pages::Transparent, ..HostOptions::default() });
    let source = Arc::new(Ranged::new(Arc::new(host), &RANGES));
    let learner = if learn { Some(LearnerOptions::default().with(&options::of_learning()?)) } else { None };
    let arena = Arena::new(source, ArenaOptions { learner, ..ArenaOptions::default() })
        .map_err(|error| PyRuntimeError::new_err(format!("no arena for CPU tensors: {error}")))?;
    stand_in().map_err(|refusal| refusal.raise(python))?;
    SERVING.get_or_init(|| Serving { arena, threshold });
    steps::listen(|| {
        if let Some(serving) = SERVING.get().filter(|_| !threads::is_forked()) {
            CPU.call(|| serving.arena.step());
        }
    });
    Ok(())
}

/// What CPU tensors take of the arena: bytes `live` and `reserved` with their peaks, and how many blocks a plan `planned`
/// or `missed`; `None` where it serves none.
#[pyfunction]
pub(crate) fn cpu_stats(python: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(serving) = SERVING.get().filter(|_| !threads::is_forked()) else { return Ok(None) };
    let (stats, served) = python.detach(|| CPU.ask(|| (serving.arena.stats(), serving.arena.served())))?;
    let dict = PyDict::new(python);
    dict.set_item("threshold", serving.threshold)?;
    dict.set_item("live", stats.live.get())?;
    dict.set_item("peak_live", stats.peak_live.get())?;
    dict.set_item("reserved", stats.reserved.get())?;
    dict.set_item("peak_reserved", stats.peak_reserved.get())?;
    dict.set_item("planned", served.hits)?;
    dict.set_item("missed", served.misses)?;
    dict.set_item("failed_frees", CPU.failed_frees())?;
    Ok(Some(dict))
}

/// Gives memory of the arena that no CPU tensor uses back to the system, and says how many bytes.
#[pyfunction]
pub(crate) fn trim_cpu(python: Python<'_>) -> PyResult<u64> {
    let Some(serving) = SERVING.get().filter(|_| !threads::is_forked()) else { return Ok(0) };
    let given = python.detach(|| CPU.ask(|| serving.arena.trim()))?;
    given.map(Bytes::get).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
