//! Finds functions and objects of libraries that the process has already loaded.

#![expect(unsafe_code, reason = "asks the loader")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// What `symbol` names in `library`, by the library's file name. `None` where the library is not loaded or has no such
/// symbol. Nothing is loaded.
pub(crate) fn find(library: &CStr, symbol: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: both names end in zero; a library that is not loaded yet stays so.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is open. It is not closed again: what is found must stay loaded.
    NonNull::new(unsafe { libc::dlsym(handle, symbol.as_ptr()) })
}
