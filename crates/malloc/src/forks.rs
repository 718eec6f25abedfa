//! Who comes before whom around a fork. Handlers that prepare are called in the reverse order of their registration, and what the program's
//! handlers wait for may need memory: so this library's are registered before all others, when the first of those is: it stands in for the
//! function that registers them. A process in which nobody registers any has none of ours either until it asks for a large block. The underlying
//! allocator's alone come first, because this library needs memory until it has prepared.

#![cfg_attr(test, allow(unsafe_code, reason = "registers handlers"))]
#![cfg_attr(not(test), expect(unsafe_code, reason = "stands in for the C library's function, and registers handlers"))]

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::first::set_errno;
use crate::{loader, opening, underlying};

/// A handler; null for none.
type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// Whether this library's handlers are registered, or are about to be.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
/// The C library's function; null until it is needed.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Registers this library's handlers, unless that was done.
#[inline]
pub(crate) fn register() {
    if !IS_REGISTERED.load(Ordering::Relaxed) {
        register_now();
    }
}

#[cold]
fn register_now() {
    if IS_REGISTERED.swap(true, Ordering::Relaxed) {
        return;
    }
    opening::begin_process();
    // Its handlers are called after this library's, which need memory and wait for threads that do: so it registers before.
    underlying::begin();
    // SAFETY: the handlers live as long as the program.
    unsafe { pass_on(Some(opening::prepare), Some(opening::parent), Some(opening::child), ptr::null_mut()) };
}

/// Registers handlers of forks: what `pthread_atfork` calls, which is linked into every library that uses it.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    if prepare.is_none_or(|prepare| !underlying::has(prepare as *mut c_void)) {
        register();
    }
    // SAFETY: the caller's.
    unsafe { pass_on(prepare, parent, child, library) }
}

unsafe fn pass_on(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    let mut real = REAL.load(Ordering::Relaxed);
    if real.is_null() {
        real = loader::next(c"__register_atfork");
        REAL.store(real, Ordering::Relaxed);
    }
    if real.is_null() {
        set_errno(libc::ENOSYS);
        return libc::ENOSYS;
    }
    // SAFETY: the function is of this type; the rest is the caller's.
    unsafe { transmute::<*mut c_void, Register>(real)(prepare, parent, child, library) }
}
