//! Who has the places in the table first: functions that lead to the underlying allocator and to the system. They count what is asked for in
//! large blocks, until it is enough for the library that serves to be opened.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::hint::unreachable_unchecked;
use std::ptr;

use lowtide_core::preload::{LARGE, forbids_calls};

use crate::{entries, opening, underlying};

/// Small requests come by the million, and pay for a comparison and a jump: what large ones need is elsewhere in each of these.
pub(crate) unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::malloc(bytes) } else { large_malloc(bytes) } }
}

#[inline(never)]
unsafe extern "C" fn large_malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's. Once the library is open, another has the place.
    unsafe { if opening::is_due(bytes) { entries::malloc(bytes) } else { underlying::malloc(bytes) } }
}

/// Until the underlying allocator is settled, whose own function then has the place.
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { underlying::free(block) }
}

pub(crate) unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if count.saturating_mul(bytes) < LARGE { underlying::calloc(count, bytes) } else { large_calloc(count, bytes) }
    }
}

#[inline(never)]
unsafe extern "C" fn large_calloc(count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as in `large_malloc`.
    unsafe {
        if opening::is_due(count.saturating_mul(bytes)) {
            entries::calloc(count, bytes)
        } else {
            underlying::calloc(count, bytes)
        }
    }
}

pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::realloc(block, bytes) } else { large_realloc(block, bytes) } }
}

#[inline(never)]
unsafe extern "C" fn large_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: as in `large_malloc`.
    unsafe { if opening::is_due(bytes) { entries::realloc(block, bytes) } else { underlying::realloc(block, bytes) } }
}

pub(crate) unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if bytes < LARGE { underlying::memalign(align, bytes) } else { large_memalign(align, bytes) } }
}

#[inline(never)]
unsafe extern "C" fn large_memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as in `large_malloc`.
    unsafe { if opening::is_due(bytes) { entries::memalign(align, bytes) } else { underlying::memalign(align, bytes) } }
}

pub(crate) unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let kept = errno();
    // SAFETY: the caller's.
    let block = unsafe { memalign(align, bytes) };
    set_errno(kept);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's.
    unsafe { place.write(block) };
    0
}

pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { if align.is_power_of_two() { memalign(align, bytes) } else { underlying::aligned_alloc(align, bytes) } }
}

pub(crate) unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { memalign(page_size(), bytes) }
}

pub(crate) unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    let page = page_size();
    let Some(bytes) = bytes.checked_add(page - 1) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the caller's.
    unsafe { memalign(page, bytes & !(page - 1)) }
}

pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's.
    if block.is_null() { 0 } else { unsafe { underlying::usable(block) } }
}

pub(crate) unsafe extern "C" fn malloc_trim(keep: usize) -> c_int {
    let kept = errno();
    let given = underlying::trim(keep);
    set_errno(kept);
    given
}

pub(crate) unsafe extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let kept = errno();
    let info = underlying::mallinfo2();
    set_errno(kept);
    info
}

pub(crate) unsafe extern "C" fn mprotect(start: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mprotect, start, bytes, protection) as c_int }
}

pub(crate) unsafe extern "C" fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_madvise, start, bytes, advice) as c_int }
}

pub(crate) unsafe extern "C" fn mlock(start: *const c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mlock, start, bytes) as c_int }
}

pub(crate) unsafe extern "C" fn mlock2(start: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    if flags == 0 {
        // SAFETY: the caller's. Older systems know only this one.
        return unsafe { mlock(start, bytes) };
    }
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mlock2, start, bytes, flags) as c_int }
}

/// A process whose memory is locked stays with the underlying allocator.
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if opening::is_open() {
        // SAFETY: another has the place now.
        return unsafe { entries::mlockall(flags) };
    }
    // SAFETY: what is in memory stays.
    let outcome = unsafe { libc::syscall(libc::SYS_mlockall, flags) as c_int };
    if outcome == 0 {
        opening::rule_out();
    }
    outcome
}

pub(crate) unsafe extern "C" fn prlimit(
    process: libc::pid_t,
    resource: c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, new, old) as c_int }
}

/// A process that forbids system calls to itself may be killed for those that the other library needs.
pub(crate) unsafe extern "C" fn prctl(option: c_int, one: usize, two: usize, three: usize, four: usize) -> c_int {
    if forbids_calls(option) && opening::has_own_memory() {
        opening::rule_out();
        if opening::is_open() {
            // SAFETY: the caller's; another has the place now.
            return unsafe { entries::prctl(option, one, two, three, four) };
        }
    }
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_prctl, option, one, two, three, four) as c_int }
}

/// In another namespace there may be other files: the library is opened before.
pub(crate) unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: the caller's; where the library is open, another has the place.
    unsafe {
        if opening::quietly() { entries::unshare(flags) } else { libc::syscall(libc::SYS_unshare, flags) as c_int }
    }
}

pub(crate) unsafe extern "C" fn setns(file: c_int, kind: c_int) -> c_int {
    // SAFETY: as in `unshare`.
    unsafe {
        if opening::quietly() {
            entries::setns(file, kind)
        } else {
            libc::syscall(libc::SYS_setns, file, kind) as c_int
        }
    }
}

pub(crate) unsafe extern "C" fn exit(status: c_int) -> ! {
    // SAFETY: ends the process as the C library does; nothing comes after it.
    unsafe {
        libc::syscall(libc::SYS_exit_group, c_long::from(status));
        unreachable_unchecked()
    }
}

pub(crate) extern "C" fn nothing() {}

pub(crate) unsafe extern "C" fn step() {
    if opening::now() {
        // SAFETY: another has the place now.
        unsafe { entries::lowtide_step() }
    }
}

pub(crate) unsafe extern "C" fn expect_steps() {
    if opening::now() {
        // SAFETY: another has the place now.
        unsafe { entries::lowtide_expect_steps() }
    }
}

pub(crate) unsafe extern "C" fn trim() -> usize {
    let kept = errno();
    underlying::trim(0);
    set_errno(kept);
    0
}

pub(crate) unsafe extern "C" fn mark(name: *const c_char) {
    if opening::now() {
        // SAFETY: another has the place now; the rest is the caller's.
        unsafe { entries::lowtide_mark(name) }
    }
}

fn page_size() -> usize {
    // SAFETY: reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// `errno`, which belongs to the program.
pub(crate) fn errno() -> c_int {
    // SAFETY: the address of this thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: the address of this thread's own.
    unsafe { *libc::__errno_location() = value };
}
