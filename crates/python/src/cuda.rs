//! CUDA memory of whatever allocator PyTorch uses: its object is asked through here, so that what it does can be written
//! down. It serves everything itself.

#![expect(unsafe_code, reason = "stands in for functions of a C++ object")]

use std::ffi::{CStr, c_void};
use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::c10::{
    DataPtr, Deleter, Device, Family, Mangled, Object, Original, Refusal, Slot, Stream, patch, slot_of, stream_handle,
};
use crate::recorder::{self, Kind, Place};
use crate::symbols::find;
use crate::threads;

/// The allocator as it was.
struct Behind {
    object: Object,
    original: Original,
    deleter: Deleter,
    slots: Slots,
    current_stream: unsafe extern "C-unwind" fn(i8) -> Stream,
    current_device: unsafe extern "C-unwind" fn() -> i8,
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

const LIBRARY: &CStr = c"libtorch_cuda.so";
const TABLE: Mangled = c"_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE";

impl Slots {
    /// Reads them from the one class of such allocators whose functions are exported.
    fn find() -> Result<Self, Refusal> {
        let slot = |symbol: Mangled| {
            let missing = || format!("no function `{}` is exported", symbol.to_string_lossy());
            slot_of(LIBRARY, TABLE, symbol).ok_or_else(|| Refusal::unexpected(Family::CUDA.what, missing()))
        };
        let known = [
            (c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator8allocateEm", Slot::ALLOCATE),
            (c"_ZNK5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator11raw_deleterEv", Slot::RAW_DELETER),
        ];
        for (symbol, expected) in known {
            let found = slot(symbol)?;
            if found != expected {
                let why = format!("`{}` is function {found} and not {expected}", symbol.to_string_lossy());
                return Err(Refusal::unexpected(Family::CUDA.what, why));
            }
        }
        Ok(Self {
            raw_alloc: slot(c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator9raw_allocEm")?,
            raw_alloc_with_stream: slot(
                c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator21raw_alloc_with_streamEmP11CUstream_st",
            )?,
            raw_delete: slot(c"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator10raw_deleteEPv")?,
            record_stream: slot(
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
    let function = |symbol| find(c"libc10_cuda.so", symbol).ok_or(Refusal::NoCuda);
    let current_stream = function(c"_ZN3c104cuda20getCurrentCUDAStreamEa")?;
    let current_device = function(c"_ZN3c104cuda14current_deviceEv")?;
    let Some(deleter) = original.raw_deleter(object) else {
        return Err(Refusal::unexpected(Family::CUDA.what, "it has no `raw_deleter`"));
    };
    threads::watch_forks();
    BEHIND.get_or_init(|| Behind {
        object,
        original,
        deleter,
        slots,
        // SAFETY: `CUDAStream c10::cuda::getCurrentCUDAStream(DeviceIndex)`; 16 plain bytes are returned as in C.
        current_stream: unsafe {
            mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(i8) -> Stream>(current_stream.as_ptr())
        },
        // SAFETY: `DeviceIndex c10::cuda::current_device()`.
        current_device: unsafe {
            mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> i8>(current_device.as_ptr())
        },
    });
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
        // SAFETY: CUDA is initialised, and the device is one that PyTorch named.
        let stream = unsafe { (self.current_stream)(device) };
        Place { device: u32::try_from(device).unwrap_or(0), stream: stream_handle(stream).unwrap_or(0) }
    }
}

/// Stands in for `allocate`.
extern "C-unwind" fn allocate(_this: *mut c_void, bytes: usize) -> DataPtr {
    let behind = behind();
    let watch = recorder::Watch::new(Kind::Cuda, bytes);
    let mut block = behind.original.allocate(behind.object, bytes);
    watch.served();
    if block.device.kind == Device::CUDA && block.is_freed_by(behind.deleter) {
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
        // SAFETY: CUDA is initialised.
        let device = unsafe { (behind.current_device)() };
        recorder::allocated(Kind::Cuda, bytes, block, Some(behind.place(device)));
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
        // SAFETY: CUDA is initialised.
        let device = u32::try_from(unsafe { (behind.current_device)() }).unwrap_or(0);
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
