//! What the program calls: the functions of `malloc`'s family and `_exit`, as glibc documents them, and four of
//! Lowtide's own. A request that is not large, and a block that is not the arena's, are passed on to the underlying
//! allocator by a comparison and a jump. They take their places in the table of the library under the program.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

use lowtide_core::preload::Entries;
use lowtide_memory::process::Uncancelled;
use lowtide_pool::HostArena;

use crate::process::{alterations, evidence, exit, forks, lifecycle, limits, locking, namespaces, start};
use crate::report::{faults, marks};
use crate::service;
use crate::serving::large::{self, LARGE};
use crate::serving::{aligned, cache, slabs, underlying};
use crate::system::errno::{Errno, set_errno};
use crate::system::memory::page_size;

/// Takes all places in the table. Those of functions that are about blocks come first, so that who has a block of the arena finds them.
pub(crate) fn enter(table: &Entries) {
    let places = [
        (&table.free, free as *mut c_void),
        (&table.malloc_usable_size, malloc_usable_size as *mut c_void),
        (&table.mprotect, alterations::mprotect as *mut c_void),
        (&table.madvise, alterations::madvise as *mut c_void),
        (&table.mlock, alterations::mlock as *mut c_void),
        (&table.mlock2, alterations::mlock2 as *mut c_void),
        (&table.mlockall, locking::mlockall as *mut c_void),
        (&table.prlimit, limits::prlimit as *mut c_void),
        (&table.prctl, namespaces::prctl as *mut c_void),
        (&table.unshare, namespaces::unshare as *mut c_void),
        (&table.setns, namespaces::setns as *mut c_void),
        (&table.exit, _exit as *mut c_void),
        (&table.finish, start::finish as *mut c_void),
        (&table.quick_finish, exit::quick_finish as *mut c_void),
        (&table.fork_prepare, forks::prepare as *mut c_void),
        (&table.fork_parent, forks::parent as *mut c_void),
        (&table.fork_child, forks::child as *mut c_void),
        (&table.malloc_trim, malloc_trim as *mut c_void),
        (&table.mallinfo2, mallinfo2 as *mut c_void),
        (&table.step, lowtide_step as *mut c_void),
        (&table.expect_steps, lowtide_expect_steps as *mut c_void),
        (&table.trim, lowtide_trim as *mut c_void),
        (&table.mark, lowtide_mark as *mut c_void),
        (&table.realloc, realloc as *mut c_void),
        (&table.calloc, calloc as *mut c_void),
        (&table.memalign, memalign as *mut c_void),
        (&table.posix_memalign, posix_memalign as *mut c_void),
        (&table.aligned_alloc, aligned_alloc as *mut c_void),
        (&table.valloc, valloc as *mut c_void),
        (&table.pvalloc, pvalloc as *mut c_void),
        (&table.malloc, malloc as *mut c_void),
    ];
    for (entry, function) in places {
        entry.store(function, Ordering::Release);
    }
}

/// A block of at least `bytes`.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::malloc(bytes) } else { large::allocate(bytes) } }
}

/// Takes a block back, and leaves `errno` alone.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's.
    unsafe {
        if lifecycle::owns(block) {
            large::release(block);
        } else if slabs::owns(block) {
            cache::put(block);
        } else if cache::concerns(block) {
            cache::put_other(block);
        } else {
            underlying::free(block);
        }
    }
}

/// A block of zeros.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    // Where the product overflows, the underlying allocator refuses and says why.
    let total = count.checked_mul(bytes).unwrap_or(0);
    // SAFETY: the caller's.
    unsafe { if total < LARGE { underlying::calloc(count, bytes) } else { large::allocate_zeroed(total) } }
}

/// Makes a block larger or smaller.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if lifecycle::owns(block) {
            large::resize(block, bytes)
        } else if slabs::owns(block) {
            large::resize_in_slab(block, bytes)
        } else if bytes < LARGE {
            underlying::realloc(block, bytes)
        } else {
            large::grow(block, bytes)
        }
    }
}

/// A block at a multiple of `align`, put where `place` points to. What went wrong is returned; `errno` is left alone.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let kept = Errno::keep();
    // SAFETY: the caller's.
    let block = unsafe { allocate_aligned(align, bytes) };
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
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if align.is_power_of_two() { allocate_aligned(align, bytes) } else { underlying::aligned_alloc(align, bytes) }
    }
}

/// A block at a multiple of `align`. What is no power of two is the underlying allocator's to judge.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { allocate_aligned(align, bytes) }
}

/// A block at the beginning of a page.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { allocate_aligned(page_size(), bytes) }
}

/// Whole pages.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    let Some(bytes) = bytes.checked_next_multiple_of(page_size()) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's.
    unsafe { allocate_aligned(page_size(), bytes) }
}

/// How much of a block can be used.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe {
        if lifecycle::owns(block) {
            large::usable(block)
        } else if slabs::owns(block) {
            slabs::size(block)
        } else {
            underlying::usable(block)
        }
    }
}

/// Gives free memory back to the system, Lowtide's and that of the underlying allocator. 1 where some was given back.
pub(crate) extern "C" fn malloc_trim(keep: usize) -> c_int {
    let kept = Errno::keep();
    cache::trim();
    let given = slabs::trim() + large::trim() > 0;
    let given = c_int::from(underlying::trim(keep) != 0 || given);
    drop(kept);
    given
}

/// What is allocated. Blocks of the arena and of slabs count as those that glibc maps one by one.
pub(crate) extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let kept = Errno::keep();
    cache::trim();
    let mut info = underlying::mallinfo2();
    if let Some(stats) = large::call(lifecycle::arena(), HostArena::stats) {
        info.hblks += stats.blocks as usize;
        info.hblkhd += stats.live.get() as usize;
    }
    let (blocks, bytes) = slabs::live();
    info.hblks += blocks;
    info.hblkhd += bytes;
    drop(kept);
    info
}

/// The program closes a step.
pub(crate) extern "C" fn lowtide_step() {
    let kept = Errno::keep();
    evidence::expect_steps();
    faults::step();
    service::step();
    drop(kept);
}

/// The program will mark its steps: large blocks come from the arena from now on.
pub(crate) extern "C" fn lowtide_expect_steps() {
    evidence::expect_steps();
}

/// Gives free memory back to the system, and says how many bytes of Lowtide's.
pub(crate) extern "C" fn lowtide_trim() -> usize {
    let kept = Errno::keep();
    cache::trim();
    let given = slabs::trim() + large::trim();
    underlying::trim(0);
    drop(kept);
    given
}

/// The program names a moment, for the summary.
///
/// # Safety
/// `name` is null or ends in zero.
pub(crate) unsafe extern "C" fn lowtide_mark(name: *const c_char) {
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
pub(crate) extern "C" fn _exit(status: c_int) -> ! {
    exit::exit(status)
}

#[inline]
unsafe fn allocate_aligned(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if bytes >= LARGE {
            return large::allocate_aligned(align, bytes);
        }
        // Other alignments are rare.
        let kept = if align == aligned::ALIGN { cache::take_aligned(bytes) } else { None };
        kept.unwrap_or_else(|| underlying::memalign(align, bytes))
    }
}
