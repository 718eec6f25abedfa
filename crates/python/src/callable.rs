//! PyTorch's filter of streams for a capture: a C++ `std::function<bool(cudaStream_t)>`, which is copied because the
//! caller's own goes when the call returns.

#![expect(unsafe_code, reason = "reads a C++ object")]

use std::ffi::c_void;
use std::ptr;

use lowtide_core::StreamId;

/// `std::function` of libstdc++: what is called, who copies and destroys it, and how it is called.
#[repr(C)]
pub(crate) struct Callable {
    functor: [usize; 2],
    manager: Option<unsafe extern "C-unwind" fn(*mut [usize; 2], *const [usize; 2], Operation) -> bool>,
    invoker: Option<unsafe extern "C-unwind" fn(*const [usize; 2], *const *mut c_void) -> bool>,
}

/// What a manager is asked to do.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(dead_code, reason = "the numbers are the runtime's")]
enum Operation {
    TypeInfo,
    FunctorPointer,
    Clone,
    Destroy,
}

// SAFETY: PyTorch calls its own from whichever thread allocates.
unsafe impl Send for Callable {}

impl Callable {
    /// A copy of the object at `original`; `None` where it is empty.
    ///
    /// # Safety
    /// `original` points to a live `std::function<bool(cudaStream_t)>`.
    pub(crate) unsafe fn copy(original: *const Self) -> Option<Self> {
        // SAFETY: the caller's promise; the fields are plain words.
        let (manager, invoker) = unsafe { ((*original).manager?, (*original).invoker?) };
        let mut functor = [0; 2];
        // SAFETY: the manager copies what it manages into two words that are there for it.
        unsafe { manager(&raw mut functor, &raw const (*original).functor, Operation::Clone) };
        Some(Self { functor, manager: Some(manager), invoker: Some(invoker) })
    }

    /// Whether the filter takes `stream`.
    pub(crate) fn takes(&self, stream: StreamId) -> bool {
        let stream: *mut c_void = ptr::without_provenance_mut(stream.0 as usize);
        // SAFETY: the invoker belongs to the functor and takes its arguments by address.
        self.invoker.is_some_and(|invoker| unsafe { invoker(&raw const self.functor, &raw const stream) })
    }
}

impl Drop for Callable {
    fn drop(&mut self) {
        if let Some(manager) = self.manager {
            let functor = &raw mut self.functor;
            // SAFETY: the copy is destroyed once.
            unsafe { manager(functor, functor, Operation::Destroy) };
        }
    }
}
