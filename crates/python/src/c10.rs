//! PyTorch's allocators as C++ objects: what they hand out, and how single functions of one object are replaced. An
//! object is first compared with what is expected of it; one that differs is refused and stays as it was.

#![expect(unsafe_code, reason = "reads and calls objects of C++")]

mod layout;
mod patch;

use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem;
use std::ptr::NonNull;

pub(crate) use layout::{Family, cuda_slot};
pub(crate) use patch::{Original, Slot, patch};

use crate::system::find_in;

/// Frees a block by its context.
pub(crate) type Deleter = unsafe extern "C-unwind" fn(*mut c_void);

/// `c10::Device`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    pub(crate) kind: i8,
    pub(crate) index: i8,
}

impl Device {
    pub(crate) const CPU: Self = Self { kind: 0, index: -1 };
    /// `c10::DeviceType::CUDA`.
    pub(crate) const CUDA: i8 = 1;
}

/// `c10::DataPtr` of libstdc++: a pointer, and who frees it. It goes out of scope here without being freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPtr {
    pub(crate) data: *mut c_void,
    pub(crate) deleter: Option<Deleter>,
    pub(crate) context: *mut c_void,
    pub(crate) device: Device,
}

impl DataPtr {
    /// A block of the host's memory.
    pub(crate) fn host(data: *mut c_void, deleter: Deleter) -> Self {
        Self { data, deleter: Some(deleter), context: data, device: Device::CPU }
    }

    /// Whether `deleter` would free it by its own address.
    pub(crate) fn is_freed_by(&self, deleter: Deleter) -> bool {
        !self.data.is_null()
            && self.data == self.context
            && self.deleter.is_some_and(|own| std::ptr::fn_addr_eq(own, deleter))
    }
}

/// `c10::Stream`, which `c10::cuda::CUDAStream` is too.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    pub(crate) device: Device,
    pub(crate) id: i64,
}

/// An object of a class of allocators, alive for as long as the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object(NonNull<c_void>);

// SAFETY: PyTorch's allocators are static, and are used by all threads.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// The allocator of CPU tensors.
    pub(crate) fn cpu() -> Result<Self, Refusal> {
        let function = find_in(c"libc10.so", c"_ZN3c1015GetCPUAllocatorEv").ok_or(Refusal::NotLoaded)?;
        // SAFETY: `c10::Allocator* c10::GetCPUAllocator()`.
        let get: unsafe extern "C-unwind" fn() -> *mut c_void = unsafe { mem::transmute(function.as_ptr()) };
        // SAFETY: the library is loaded, so that its objects are there.
        NonNull::new(unsafe { get() }).map(Self).ok_or(Refusal::NotLoaded)
    }

    /// The allocator of CUDA memory that is in use now.
    pub(crate) fn cuda() -> Result<Self, Refusal> {
        let symbol = c"_ZN3c104cuda20CUDACachingAllocator9allocatorE";
        let place = find_in(c"libc10_cuda.so", symbol).ok_or(Refusal::NoCuda)?;
        // SAFETY: `std::atomic<CUDAAllocator*>`, which is one word and lives as long as the library.
        let pointer = unsafe { place.cast::<std::sync::atomic::AtomicPtr<c_void>>().as_ref() };
        NonNull::new(pointer.load(std::sync::atomic::Ordering::Acquire)).map(Self).ok_or(Refusal::NoCuda)
    }

    /// The allocator of host memory pinned for CUDA.
    pub(crate) fn pinned() -> Result<Self, Refusal> {
        // Without this library there is no such allocator, and asking for it would throw.
        find_in(c"libtorch_cuda.so", c"_ZTIN2at13HostAllocatorE").ok_or(Refusal::NoCuda)?;
        let symbol = c"_ZN2at16getHostAllocatorEN3c1010DeviceTypeE";
        let function = find_in(c"libtorch_cpu.so", symbol).ok_or(Refusal::NoCuda)?;
        // SAFETY: `at::HostAllocator* at::getHostAllocator(c10::DeviceType)`.
        let get: unsafe extern "C-unwind" fn(i8) -> *mut c_void = unsafe { mem::transmute(function.as_ptr()) };
        // SAFETY: the library that registers the allocator of this type is loaded.
        NonNull::new(unsafe { get(Device::CUDA) }).map(Self).ok_or(Refusal::NoCuda)
    }

    pub(crate) fn pointer(self) -> *mut c_void {
        self.0.as_ptr()
    }
}

/// PyTorch's own functions that tell which device and stream a thread uses.
#[derive(Clone, Copy)]
pub(crate) struct Current {
    device: unsafe extern "C-unwind" fn() -> i8,
    stream: unsafe extern "C-unwind" fn(i8) -> Stream,
}

impl Current {
    pub(crate) fn find() -> Result<Self, Refusal> {
        let function = |symbol| find_in(c"libc10_cuda.so", symbol).ok_or(Refusal::NoCuda);
        let device = function(c"_ZN3c104cuda14current_deviceEv")?;
        let stream = function(c"_ZN3c104cuda20getCurrentCUDAStreamEa")?;
        // SAFETY: `DeviceIndex current_device()`, and `CUDAStream getCurrentCUDAStream(DeviceIndex)`, both of
        // `c10::cuda`, whose 16 plain bytes are returned as in C.
        unsafe {
            Ok(Self {
                device: mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn() -> i8>(device.as_ptr()),
                stream: mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(i8) -> Stream>(stream.as_ptr()),
            })
        }
    }

    pub(crate) fn device(self) -> i8 {
        // SAFETY: it takes nothing, and starts nothing.
        unsafe { (self.device)() }
    }

    /// The stream of `device`, which PyTorch has named.
    pub(crate) fn stream(self, device: i8) -> Stream {
        // SAFETY: the device is there.
        unsafe { (self.stream)(device) }
    }
}

type StreamHandle = unsafe extern "C-unwind" fn(*const Stream) -> *mut c_void;

fn stream_function() -> Option<StreamHandle> {
    static FUNCTION: std::sync::OnceLock<Option<StreamHandle>> = std::sync::OnceLock::new();
    *FUNCTION.get_or_init(|| {
        let function = find_in(c"libc10_cuda.so", c"_ZNK3c104cuda10CUDAStream6streamEv")?;
        // SAFETY: `cudaStream_t c10::cuda::CUDAStream::stream() const`.
        Some(unsafe { mem::transmute::<*mut c_void, StreamHandle>(function.as_ptr()) })
    })
}

/// Whether [`stream_handle`] can tell.
pub(crate) fn names_streams() -> bool {
    stream_function().is_some()
}

/// The handle that the driver has for a stream.
pub(crate) fn stream_handle(stream: Stream) -> Option<u64> {
    // SAFETY: the stream lives through the call, and came from PyTorch.
    stream_function().map(|function| unsafe { function(&raw const stream) } as u64)
}

/// Why an allocator is left as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// PyTorch is not there.
    NotLoaded,
    /// This PyTorch has nothing for CUDA.
    NoCuda,
    /// Something is not what it was in the versions that are known.
    Unexpected {
        /// What was looked at.
        what: &'static str,
        /// What was expected, and what was found.
        why: String,
    },
}

impl Refusal {
    pub(crate) fn unexpected(what: &'static str, why: impl fmt::Display) -> Self {
        Self::Unexpected { what, why: why.to_string() }
    }

    /// As Python's exception, for PyTorch of this version.
    pub(crate) fn raise(&self, python: pyo3::Python<'_>) -> pyo3::PyErr {
        use pyo3::prelude::*;
        let version = || python.import("torch")?.getattr("__version__")?.str()?.extract::<String>();
        let version = version().unwrap_or_else(|_| "of an unknown version".to_owned());
        pyo3::exceptions::PyRuntimeError::new_err(match self {
            Self::NotLoaded => "PyTorch is not loaded\nhint: import torch first".to_owned(),
            Self::NoCuda => {
                format!("PyTorch {version} has no CUDA\nhint: install a build of PyTorch for CUDA, or leave CUDA out")
            }
            Self::Unexpected { what, why } => format!(
                "PyTorch {version} has {what} that Lowtide does not know: {why}\n\
                 hint: nothing was changed; versions 2.11 to 2.15 are known, please report this one"
            ),
        })
    }
}

/// A name of C++ as it stands in the library.
pub(crate) type Mangled = &'static CStr;
