//! The one place of this crate that speaks to the operating system: it finds functions and objects of libraries that the
//! process has already loaded, and asks to be called after forks. Nothing is loaded here.

#![expect(unsafe_code, reason = "asks the loader, and hands the system a function to call")]

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// What `symbol` names in `library`, by the library's file name. `None` where the library is not loaded or has no such
/// symbol.
pub(crate) fn find_in(library: &CStr, symbol: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name ends in zero; a library that is not loaded yet stays so.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // It is not closed again: what is found must stay loaded.
    if handle.is_null() { None } else { look_up(handle, symbol) }
}

/// What `symbol` names for the program itself, in whichever library.
pub(crate) fn find(symbol: &CStr) -> Option<NonNull<c_void>> {
    look_up(libc::RTLD_DEFAULT, symbol)
}

fn look_up(place: *mut c_void, symbol: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the place is an open library or stands for all; the name ends in zero.
    NonNull::new(unsafe { libc::dlsym(place, symbol.as_ptr()) })
}

/// Whether an address lies in a library or in the program's file.
pub(crate) fn is_in_a_library(address: *const c_void) -> bool {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the call takes any address, and writes only what it is given to write.
    !address.is_null() && unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0
}

/// Has a function called in every child that is forked.
pub(crate) fn at_fork(child: extern "C" fn()) {
    // SAFETY: the function lives as long as the program: this library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(child)) };
}
