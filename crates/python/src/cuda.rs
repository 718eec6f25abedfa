//! CUDA memory of whatever allocator PyTorch uses: its object is asked through here, so that what it does can be written
//! down. It serves everything itself.

#![expect(unsafe_code, reason = "stands in for functions of a C++ object")]

use std::ffi::c_void;
use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::c10::{
    Current, DataPtr, Deleter, Device, Family, Object, Original, Refusal, Slot, Stream, cuda_slot, patch, stream_handle,
};
use crate::recorder::{self, Kind, Place};
use crate::threads;

/// The allocator as it was.
struct Behind {
    object: Object,
    original: Original,
    deleter: Deleter,
    slots: Slots,
    current: Current,
}

static BEHIND: OnceLock<Behind> = OnceLock::new();

/// Where the functions stand that only CUDA's allocators have.
#[derive(Clone, Copy)]
struct Slots {
    raw_alloc: usize,
    raw_alloc_with_stream: usize,
    raw_delete: usize,
    record_stream: usize,
}

impl Slots {
    /// Reads them from the one class of such allocators whose functions are exported.
    fn find() -> Result<Self, Refusal> {
        let known = [
            (c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator8allocateEm", Slot::ALLOCATE),
            (c"_ZNK5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator11raw_deleterEv", Slot::RAW_DELETER),
        ];
        for (symbol, expected) in known {
            let found = cuda_slot(symbol)?;
            if found != expected {
                let why = format!("`{}` is function {found} and not {expected}", symbol.to_string_lossy());
                return Err(Refusal::unexpected(Family::CUDA.what, why));
            }
        }
        Ok(Self {
            raw_alloc: cuda_slot(c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9raw_allocEm")?,
            raw_alloc_with_stream: cuda_slot(
                c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator21raw_alloc_with_streamEmP11CUstream_st",
            )?,
            raw_delete: cuda_slot(c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator10raw_deleteEPv")?,
            record_stream: cuda_slot(
                c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator12recordStreamERKN3c107DataPtrENS3_4cuda10CUDAStreamE",
            )?,
        })
    }
}

/// Stands in for the allocator that PyTorch uses now, from now on. CUDA is initialised.
pub(crate) fn stand_in() -> Result<(), Refusal> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let object = Object::cuda()?;
    match BEHIND.get() {
        Some(behind) if behind.object == object => return Ok(()),
        Some(_) => {
            let why = "it took the place of another that is recorded already";
            return Err(Refusal::unexpected(Family::CUDA.what, why));
        }
        None => {}
    }
    let slots = Slots::find()?;
    let original = Family::CUDA.check(object)?;
    Family::CUDA.try_out(object, original)?;
    let current = Current::find()?;
    let Some(deleter) = original.raw_deleter(object) else {
        return Err(Refusal::unexpected(Family::CUDA.what, "it has no `raw_deleter`"));
    };
    threads::watch_forks();
    BEHIND.get_or_init(|| Behind { object, original, deleter, slots, current });
    let functions = [
        (Slot::ALLOCATE, allocate as *const c_void),
        (Slot::RAW_DELETER, raw_deleter as *const c_void),
        (slots.raw_alloc, raw_alloc as *const c_void),
        (slots.raw_alloc_with_stream, raw_alloc_with_stream as *const c_void),
        (slots.raw_delete, raw_delete as *const c_void),
        (slots.record_stream, record_stream as *const c_void),
    ];
    patch(object, original, &functions);
    Ok(())
}

fn behind() -> &'static Behind {
    BEHIND.get().unwrap_or_else(|| std::process::abort())
}

impl Behind {
    fn place(&self, device: i8) -> Place {
        let stream = stream_handle(self.current.stream(device)).unwrap_or(0);
        Place { device: u32::try_from(device).unwrap_or(0), stream }
    }
}

/// Stands in for `allocate`.
extern "C-unwind" fn allocate(_this: *mut c_void, bytes: usize) -> DataPtr {
    let behind = behind();
    let watch = recorder::Watch::new(Kind::Cuda, bytes);
    let mut block = behind.original.allocate(behind.object, bytes);
    watch.served();
    // Some allocators ask themselves for the deleter, and are told of the stand-in.
    let is_known = block.is_freed_by(behind.deleter) || block.is_freed_by(delete);
    if block.device.kind == Device::CUDA && is_known {
        block.deleter = Some(delete);
        if recorder::is_running() {
            recorder::allocated(Kind::Cuda, bytes, block.data, Some(behind.place(block.device.index)));
        }
    } else if block.data.is_null() {
        // A block of no bytes has no place; its deleter is the one that everybody is told of.
        block.deleter = Some(delete);
    }
    block
}

/// Stands in for `raw_deleter`: one function frees all blocks.
extern "C-unwind" fn raw_deleter(_this: *const c_void) -> Deleter {
    delete
}

unsafe extern "C-unwind" fn delete(block: *mut c_void) {
    recorder::freed(block);
    // SAFETY: the block came from the allocator whose own function this is.
    unsafe { (behind().deleter)(block) };
}

/// Stands in for `raw_alloc`.
extern "C-unwind" fn raw_alloc(this: *mut c_void, bytes: usize) -> *mut c_void {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, usize) -> *mut c_void;
    let behind = behind();
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(behind.slots.raw_alloc)) };
    let watch = recorder::Watch::new(Kind::Cuda, bytes);
    // SAFETY: the caller's arguments.
    let block = unsafe { function(this, bytes) };
    watch.served();
    if recorder::is_running() {
        recorder::allocated(Kind::Cuda, bytes, block, Some(behind.place(behind.current.device())));
    }
    block
}

/// Stands in for `raw_alloc_with_stream`.
extern "C-unwind" fn raw_alloc_with_stream(this: *mut c_void, bytes: usize, stream: *mut c_void) -> *mut c_void {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_void) -> *mut c_void;
    let behind = behind();
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(behind.slots.raw_alloc_with_stream)) };
    let watch = recorder::Watch::new(Kind::Cuda, bytes);
    // SAFETY: the caller's arguments.
    let block = unsafe { function(this, bytes, stream) };
    watch.served();
    if recorder::is_running() {
        let device = u32::try_from(behind.current.device()).unwrap_or(0);
        recorder::allocated(Kind::Cuda, bytes, block, Some(Place { device, stream: stream as u64 }));
    }
    block
}

/// Stands in for `raw_delete`. Where it is called by the allocator's own deleter, the block is known to be freed.
extern "C-unwind" fn raw_delete(this: *mut c_void, block: *mut c_void) {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);
    let behind = behind();
    recorder::freed(block);
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(behind.slots.raw_delete)) };
    // SAFETY: the caller's arguments.
    unsafe { function(this, block) };
}

/// Stands in for `recordStream`.
extern "C-unwind" fn record_stream(this: *mut c_void, block: *const DataPtr, stream: Stream) {
    type Function = unsafe extern "C-unwind" fn(*mut c_void, *const DataPtr, Stream);
    let behind = behind();
    // SAFETY: a reference of C++, which is never null.
    let context = unsafe { (*block).context };
    recorder::used(context, stream_handle(stream).unwrap_or(0));
    // SAFETY: the function that stood at this place.
    let function: Function = unsafe { mem::transmute(behind.original.function(behind.slots.record_stream)) };
    // SAFETY: the caller's arguments.
    unsafe { function(this, block, stream) };
}
