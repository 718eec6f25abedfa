//! What the program calls: the functions of `malloc`'s family and `_exit`, as glibc documents them, and three of
//! Lowtide's own. A request that is not large, and a block that is not the arena's, are passed on to the underlying
//! allocator by a comparison and a jump.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use lowtide_memory::process::Uncancelled;
use lowtide_pool::HostArena;

use crate::process::{evidence, exit, lifecycle};
use crate::report::{faults, marks};
use crate::service;
use crate::serving::large::{self, LARGE};
use crate::serving::{cache, underlying};
use crate::system::errno::{Errno, set_errno};
use crate::system::memory::page_size;

/// A block of at least `bytes`.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::malloc(bytes) } else { large::allocate(bytes) } }
}

/// Takes a block back, and leaves `errno` alone.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's.
    unsafe {
        if lifecycle::owns(block) {
            large::release(block);
        } else if !cache::put(block) {
            underlying::free(block);
        }
    }
}

/// `free` by an old name.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { free(block) }
}

/// A block of zeros.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    // Where the product overflows, the underlying allocator refuses and says why.
    let total = count.checked_mul(bytes).unwrap_or(0);
    // SAFETY: the caller's.
    unsafe { if total < LARGE { underlying::calloc(count, bytes) } else { large::allocate_zeroed(total) } }
}

/// Makes a block larger or smaller.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if lifecycle::owns(block) {
            large::resize(block, bytes)
        } else if bytes < LARGE {
            underlying::realloc(block, bytes)
        } else {
            large::grow(block, bytes)
        }
    }
}

/// `realloc` to `count` times `bytes`.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    let Some(total) = count.checked_mul(bytes) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's.
    unsafe { realloc(block, total) }
}

/// A block at a multiple of `align`, put where `place` points to. What went wrong is returned; `errno` is left alone.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let kept = Errno::keep();
    // SAFETY: the caller's.
    let block = unsafe { aligned(align, bytes) };
    drop(kept);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's.
    unsafe { place.write(block) };
    0
}

/// A block at a multiple of `align`. What is no power of two is the underlying allocator's to judge: versions of glibc differ.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if align.is_power_of_two() { aligned(align, bytes) } else { underlying::aligned_alloc(align, bytes) } }
}

/// A block at a multiple of `align`. What is no power of two is the underlying allocator's to judge.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { aligned(align, bytes) }
}

/// A block at the beginning of a page.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { aligned(page_size(), bytes) }
}

/// Whole pages.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    let Some(bytes) = bytes.checked_next_multiple_of(page_size()) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's.
    unsafe { aligned(page_size(), bytes) }
}

/// How much of a block can be used.
///
/// # Safety
/// As of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { if lifecycle::owns(block) { large::usable(block) } else { underlying::usable(block) } }
}

/// Gives free memory back to the system, Lowtide's and that of the underlying allocator. 1 where some was given back.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn malloc_trim(keep: usize) -> c_int {
    let kept = Errno::keep();
    cache::trim();
    let given = large::trim() > 0;
    let given = c_int::from(underlying::trim(keep) != 0 || given);
    drop(kept);
    given
}

/// What is allocated. Blocks of the arena count as those that glibc maps one by one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let kept = Errno::keep();
    let mut info = underlying::mallinfo2();
    if let Some(stats) = large::call(lifecycle::arena(), HostArena::stats) {
        info.hblks += stats.blocks as usize;
        info.hblkhd += stats.live.get() as usize;
    }
    drop(kept);
    info
}

/// The same with numbers that were long enough once; one that is too large is cut off, as in the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn mallinfo() -> libc::mallinfo {
    let info = mallinfo2();
    libc::mallinfo {
        arena: info.arena as c_int,
        ordblks: info.ordblks as c_int,
        smblks: info.smblks as c_int,
        hblks: info.hblks as c_int,
        hblkhd: info.hblkhd as c_int,
        usmblks: info.usmblks as c_int,
        fsmblks: info.fsmblks as c_int,
        uordblks: info.uordblks as c_int,
        fordblks: info.fordblks as c_int,
        keepcost: info.keepcost as c_int,
    }
}

/// The program closes a step.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn lowtide_step() {
    let kept = Errno::keep();
    evidence::expect_steps();
    faults::step();
    service::step();
    drop(kept);
}

/// The program will mark its steps: large blocks come from the arena from now on.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn lowtide_expect_steps() {
    evidence::expect_steps();
}

/// Gives free memory back to the system, and says how many bytes of Lowtide's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn lowtide_trim() -> usize {
    let kept = Errno::keep();
    cache::trim();
    let given = large::trim();
    underlying::trim(0);
    drop(kept);
    given
}

/// The program names a moment, for the summary.
///
/// # Safety
/// `name` is null or ends in zero.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn lowtide_mark(name: *const c_char) {
    let kept = Errno::keep();
    let uncancelled = Uncancelled::begin();
    if !name.is_null() {
        // SAFETY: the caller's.
        marks::add(unsafe { CStr::from_ptr(name) });
    }
    drop(uncancelled);
    drop(kept);
}

/// Ends the process at once, after its summary.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _exit(status: c_int) -> ! {
    exit::exit(status)
}

/// `_exit` by the name that C has for it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _Exit(status: c_int) -> ! {
    exit::exit(status)
}

#[inline]
unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::memalign(align, bytes) } else { large::allocate_aligned(align, bytes) } }
}
