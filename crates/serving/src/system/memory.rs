//! Pages of this process.

#![expect(unsafe_code, reason = "calls the system's memory functions")]

use std::ffi::{c_int, c_uint, c_void};
use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munlock, munmap};

use super::errno::Errno;

const FRESH: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);

/// The size of a page of this machine.
pub(crate) fn page_size() -> usize {
    // SAFETY: reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// New addresses that nobody can use yet; none where the system has no more.
pub(crate) fn reserve(bytes: usize) -> Option<usize> {
    map(bytes, ProtFlags::empty())
}

/// New pages, of which those that are never touched are never there; none where the system refuses.
pub(crate) fn take(bytes: usize) -> Option<usize> {
    map(bytes, ProtFlags::READ | ProtFlags::WRITE)
}

fn map(bytes: usize, access: ProtFlags) -> Option<usize> {
    // SAFETY: the system chooses addresses that are not in use.
    unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, FRESH) }.ok().map(|start| start as usize)
}

/// Gives addresses back.
///
/// # Safety
/// They are the caller's, and nobody uses them any more.
pub(crate) unsafe fn release(start: usize, bytes: usize) {
    // SAFETY: the caller's. There is no way to fail for what was mapped whole.
    let _ = unsafe { munmap(start as *mut c_void, bytes) };
}

/// Lets reserved addresses be used; false where the system refuses.
///
/// # Safety
/// They are the caller's.
pub(crate) unsafe fn open(start: *mut c_void, bytes: usize) -> bool {
    // SAFETY: the caller's.
    unsafe { mprotect(start, bytes, MprotectFlags::READ | MprotectFlags::WRITE) }.is_ok()
}

/// Lets nobody use addresses any more.
///
/// # Safety
/// They are the caller's, and nobody uses what is there.
pub(crate) unsafe fn shut(start: *mut c_void, bytes: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { mprotect(start, bytes, MprotectFlags::empty()) };
}

/// Gives pages back; touched again, they are zero. Where the system refuses, they stay.
///
/// # Safety
/// They are private pages of the caller's, and what is in them is no longer needed.
pub(crate) unsafe fn discard(pages: Range<usize>) {
    // SAFETY: the caller's.
    let _ = unsafe { madvise(pages.start as *mut c_void, pages.len(), Advice::LinuxDontNeed) };
}

/// Asks for huge pages; where the system refuses, small ones stay.
///
/// # Safety
/// The pages are the caller's.
pub(crate) unsafe fn join(pages: Range<usize>) {
    // SAFETY: the caller's; what is in the pages stays.
    let _ = unsafe { madvise(pages.start as *mut c_void, pages.len(), Advice::LinuxHugepage) };
}

/// `mprotect` of the C library, without calling it: Lowtide stands in for that.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn protect(start: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_mprotect, start, bytes, protection) as c_int }
}

/// `madvise`, likewise.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn advise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_madvise, start, bytes, advice) as c_int }
}

/// `mlock` and, with flags, `mlock2`, likewise.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn lock(start: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        match flags {
            0 => libc::syscall(libc::SYS_mlock, start, bytes) as c_int,
            _ => libc::syscall(libc::SYS_mlock2, start, bytes, flags) as c_int,
        }
    }
}

/// Asks for small pages, also where the system would make all of them huge.
///
/// # Safety
/// The pages are the caller's.
pub(crate) unsafe fn keep_small(pages: Range<usize>) {
    // SAFETY: the caller's; what is in the pages stays.
    let _ = unsafe { madvise(pages.start as *mut c_void, pages.len(), Advice::LinuxNoHugepage) };
}

/// Lets the system move pages out.
///
/// # Safety
/// The pages are the caller's.
pub(crate) unsafe fn unlock(pages: Range<usize>) {
    // SAFETY: the caller's; what is in the pages stays.
    let _ = unsafe { munlock(pages.start as *mut c_void, pages.len()) };
}

/// How many bytes of these pages are resident; none where the system does not say.
pub(crate) fn resident(pages: Range<usize>) -> Option<usize> {
    let page = page_size();
    let mut are_resident = [0_u8; 1024];
    let kept = Errno::keep();
    let counts = pages.clone().step_by(are_resident.len() * page).map(|start| {
        let bytes = (pages.end - start).min(are_resident.len() * page);
        // SAFETY: there is a byte for each page, and the pages are only looked at.
        let result = unsafe { libc::syscall(libc::SYS_mincore, start, bytes, are_resident.as_mut_ptr()) };
        let are_resident = are_resident.get(..bytes / page).filter(|_| result == 0)?;
        Some(are_resident.iter().filter(|&&page| page & 1 != 0).count())
    });
    let count: Option<usize> = counts.sum();
    drop(kept);
    count.map(|count| count * page)
}

/// Gives pages the protection and the advice back that new ones have, and lets the system move them out. With `are_joined` they are to be huge.
///
/// # Safety
/// They are private pages of the caller's.
pub(crate) unsafe fn make_usual(range: Range<usize>, are_joined: bool) {
    let page = page_size();
    let start = (range.start / page * page) as *mut c_void;
    let bytes = range.end.next_multiple_of(page) - start as usize;
    // SAFETY: the caller's; nothing that is in the pages changes. What the system does not know was not set either.
    unsafe {
        protect(start, bytes, libc::PROT_READ | libc::PROT_WRITE);
        for advice in
            [libc::MADV_DOFORK, libc::MADV_KEEPONFORK, libc::MADV_DODUMP, libc::MADV_UNMERGEABLE, libc::MADV_NORMAL]
        {
            advise(start, bytes, advice);
        }
        if are_joined {
            advise(start, bytes, libc::MADV_HUGEPAGE);
        }
        // What shares a page with a neighbour may be locked for that.
        let inner = range.start.next_multiple_of(page)..range.end / page * page;
        if inner.start < inner.end {
            libc::syscall(libc::SYS_munlock, inner.start, inner.len());
        }
    }
}

/// Copies as much as can be read from the beginning of `from`, up to `bytes`, and says how much that was.
///
/// # Safety
/// `to` has that many bytes, which nobody else uses. `errno` may change.
pub(crate) unsafe fn copy_readable(from: *mut c_void, to: *mut c_void, bytes: usize) -> usize {
    let [source, target] = [from, to].map(|base| libc::iovec { iov_base: base, iov_len: bytes });
    // SAFETY: reads this process's own memory as far as there is any, into what is the caller's.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const target, 1, &raw const source, 1, 0) };
    usize::try_from(copied).unwrap_or(0)
}
