//! What the loader knows: which function a name means for those who come after the library under the program.

#![expect(unsafe_code, reason = "calls the library under the program")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

type Next = extern "C" fn(*const c_char) -> *mut c_void;

/// Who asks the loader: the library under the program, after which the others come.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// That library is asked from now on.
pub(crate) fn enter(next: Next) {
    NEXT.store(next as *mut c_void, Ordering::Release);
}

/// What `name` means for those who come after that library; null for nothing. The loader may allocate.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    let next = NEXT.load(Ordering::Acquire);
    if next.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: `enter` was given a function of this type.
    unsafe { transmute::<*mut c_void, Next>(next)(name.as_ptr()) }
}
