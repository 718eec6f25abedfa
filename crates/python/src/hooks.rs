//! The functions that PyTorch calls through `CUDAPluggableAllocator`. They are called with no lock held, from any thread,
//! with the interpreter's lock or without it, and never take it. No panic leaves them; exceptions of C++ pass.

#![expect(unsafe_code, reason = "functions for a foreign caller")]

use std::ffi::{c_double, c_int, c_void};
use std::ptr;

use lowtide_core::{Align, Bytes, StreamId, ThreadId};
use lowtide_pool::{Address, Capture, Error, Fleet, Request};

use crate::callable::Callable;
use crate::fleet::{self, fleet};
use crate::guard::DEVICES;
use crate::timing::{self, timed};
use crate::{threads, throw};

/// What PyTorch's kernels expect of a block.
const ALIGN: u64 = 512;

/// `c10::MempoolId_t`, in two registers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PoolId(u64, u64);

fn stream(handle: *mut c_void) -> StreamId {
    StreamId(handle.addr() as u64)
}

fn address(pointer: *mut c_void) -> Address {
    Address(pointer.addr() as u64)
}

/// Why a block was refused, for the program.
enum Refused {
    Memory(String),
    Other(String),
}

/// A block. A filter of a capture may throw, so it is asked before the guard.
fn serve(size: usize, device: c_int, on: *mut c_void) -> Result<Address, Refused> {
    let Some(fleet) = fleet() else {
        return Err(Refused::Other(if fleet::is_lost() {
            "the device cannot be used in a forked process: start it with the `spawn` method".to_owned()
        } else {
            "no device is served: `lowtide.torch.install()` was not called".to_owned()
        }));
    };
    let request = Request {
        bytes: Bytes::new(size as u64),
        align: Align::new(ALIGN).unwrap_or(Align::ONE),
        stream: stream(on),
        thread: ThreadId(threads::number()),
    };
    let number = u32::try_from(device).map_err(|_| Refused::Other(format!("there is no device {device}")))?;
    let capture = fleet.capture_of(number, request.stream);
    let served = DEVICES.call(|| {
        let served = fleet.alloc_in(number, &request, capture);
        served.map_err(|error| refused(fleet, number, request.bytes, &error))
    });
    served.unwrap_or_else(|| Err(Refused::Other(DEVICES.refusal())))
}

/// Calls a device of the fleet, where there is one.
fn with_device(device: c_int, work: impl FnOnce(&'static Fleet, u32)) {
    if let (Some(fleet), Ok(device)) = (fleet(), u32::try_from(device)) {
        DEVICES.call(|| work(fleet, device));
    }
}

#[cold]
fn refused(fleet: &Fleet, device: u32, asked: Bytes, error: &Error) -> Refused {
    match error {
        Error::OutOfMemory { .. } | Error::TooLarge { .. } => {
            let shortage = fleet.shortage(device, asked);
            Refused::Memory(shortage.map_or_else(|| error.to_string(), |shortage| shortage.to_string()))
        }
        Error::Source(cause) => Refused::Other(format!("the device refused: {cause}")),
        _ => Refused::Other(error.to_string()),
    }
}

/// A block of `size` bytes on `device`, for work on `stream`. Throws where there is none.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn lowtide_alloc(size: usize, device: c_int, stream: *mut c_void) -> *mut c_void {
    if size == 0 {
        return ptr::null_mut();
    }
    match timed(&timing::ALLOC, || serve(size, device, stream)) {
        Ok(Address(address)) => return ptr::with_exposed_provenance_mut(address as usize),
        // Many programs look for these first words.
        Err(Refused::Memory(message)) => throw::out_of_memory(&format!("CUDA out of memory. Lowtide: {message}")),
        Err(Refused::Other(message)) => throw::failure(&format!("Lowtide: {message}")),
    }
    ptr::null_mut()
}

/// Takes a block back.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_free(pointer: *mut c_void, size: usize, device: c_int, _stream: *mut c_void) {
    // Where the process was forked, or its driver is gone at the end, there is nobody left to give it to.
    if !pointer.is_null() {
        timed(&timing::FREE, || {
            with_device(device, |fleet, device| {
                // The fleet counts what fails and says it.
                let _ = fleet.free(device, address(pointer), Bytes::new(size as u64));
            });
        });
    }
}

/// Notes that work on `stream` uses a block as well.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_record_stream(pointer: *mut c_void, on: *mut c_void) {
    if let (Some(fleet), false) = (fleet(), pointer.is_null()) {
        // A block of another allocator is none of ours to keep.
        timed(&timing::RECORD, || DEVICES.call(|| fleet.record(address(pointer), stream(on)).ok()));
    }
}

/// PyTorch has found its devices; each is opened when it is used.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_init(_count: c_int) {}

/// Gives back whatever can be given back: `torch.cuda.empty_cache()`.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_reset() {
    if let Some(fleet) = fleet() {
        // What cannot be given back now stays, and is asked for again.
        DEVICES.call(|| fleet.trim().ok());
    }
}

/// Takes at most a part of a device's memory.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_memory_fraction(fraction: c_double, device: c_int) {
    with_device(device, |fleet, device| {
        let capacity = fleet.capacity(device).ok().flatten();
        let part = capacity.filter(|_| fraction < 1.0).map(|all| Bytes::new((all.get() as f64 * fraction) as u64));
        // The smaller of what the program and its user allow.
        let limit = part.into_iter().chain(fleet.usual_limit()).min();
        let _ = fleet.set_limit(device, limit);
    });
}

/// The block that `pointer` lies in, and its size.
///
/// # Safety
/// `size` points to a word, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowtide_base_alloc(pointer: *mut c_void, size: *mut usize) -> *mut c_void {
    let found = fleet().and_then(|fleet| DEVICES.call(|| fleet.block_at(address(pointer))).flatten());
    let (start, bytes) = found.map_or((pointer, 0), |block| {
        (ptr::with_exposed_provenance_mut(block.address.0 as usize), block.bytes.get() as usize)
    });
    if !size.is_null() {
        // SAFETY: the caller's promise.
        unsafe { size.write(bytes) };
    }
    start
}

/// A capture begins; blocks whose stream `filter` takes belong to it.
///
/// # Safety
/// `filter` points to a live `std::function<bool(cudaStream_t)>`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowtide_begin_allocate_to_pool(device: c_int, pool: PoolId, filter: *const Callable) {
    // SAFETY: the caller's promise.
    let copied = unsafe { Callable::copy(filter) };
    if let Some(filter) = copied {
        with_device(device, |fleet, device| {
            let _ = fleet.begin_capture(device, Capture(pool.0, pool.1), move |stream| filter.takes(stream));
        });
    }
}

/// The capture is over.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_end_allocate_to_pool(device: c_int, pool: PoolId) {
    with_device(device, |fleet, device| fleet.end_capture(device, Capture(pool.0, pool.1)));
}

/// A graph of the capture is gone.
#[unsafe(no_mangle)]
pub extern "C" fn lowtide_release_pool(device: c_int, pool: PoolId) {
    with_device(device, |fleet, device| fleet.release_capture(device, Capture(pool.0, pool.1)));
}
