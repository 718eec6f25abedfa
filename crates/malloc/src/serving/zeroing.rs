//! Zeros for `calloc`: memory that may hold something is cleared, except for pages that the system has never given or has
//! taken back. Those are zero, and writing to them would make them resident.

#![expect(unsafe_code, reason = "clears memory, and asks the system what is in it")]

use std::ffi::{c_int, c_long};
use std::ops::Range;
use std::ptr;

use crate::report::notice::Errno;

/// The least memory for which asking is cheaper than clearing it.
const WORTH: u64 = 2 << 20;

/// `PAGEMAP_SCAN` of Linux 6.7, and the kinds of pages that it tells apart.
const SCAN: libc::c_ulong = 0xc060_6610;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// The question to `PAGEMAP_SCAN`.
#[repr(C)]
#[derive(Default)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    room: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    told: u64,
}

/// A part of the answer: pages that are alike.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    kinds: u64,
}

/// Clears a part of memory.
///
/// # Safety
/// The memory is private, without a file behind it, and nobody else uses it.
pub(crate) unsafe fn clear(part: Range<u64>) {
    if part.end - part.start < WORTH {
        // SAFETY: the caller's.
        return unsafe { write(part) };
    }
    let kept = Errno::keep();
    let pages = open();
    // SAFETY: the caller's.
    unsafe { clear_held(pages as c_int, part) };
    if pages >= 0 {
        // SAFETY: it was opened just now, and nobody else knows of it.
        unsafe { libc::syscall(libc::SYS_close, pages) };
    }
    drop(kept);
}

/// Opens what tells of this process's pages. The C library's own functions would end a thread here that is to be cancelled.
fn open() -> c_long {
    let (name, flags) = (c"/proc/self/pagemap", libc::O_RDONLY | libc::O_CLOEXEC);
    // SAFETY: the name ends in zero.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), flags) }
}

/// Clears the pages that hold something; where the system does not say, all of them.
unsafe fn clear_held(pages: c_int, part: Range<u64>) {
    // SAFETY: always.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 };
    let end = part.end.next_multiple_of(page);
    let mut from = part.start / page * page;
    // They lie on a stack that may be small.
    let mut regions = [Region::default(); 64];
    while from < end {
        let mut question = Question {
            size: size_of::<Question>() as u64,
            start: from,
            end,
            regions: regions.as_mut_ptr() as u64,
            room: regions.len() as u64,
            inverted: ZERO,
            all_of: ZERO,
            any_of: PRESENT | SWAPPED,
            told: PRESENT | SWAPPED,
            ..Question::default()
        };
        // SAFETY: writes as many regions as there is room for.
        let count = unsafe { libc::ioctl(pages, SCAN as _, &raw mut question) };
        let answer = usize::try_from(count).ok().and_then(|count| regions.get(..count));
        let Some(answer) = answer.filter(|_| question.walk_end > from) else {
            // SAFETY: the caller's.
            return unsafe { write(from.max(part.start)..part.end) };
        };
        for held in answer {
            // SAFETY: the caller's: a region shares at least a byte with the part.
            unsafe { write(held.start.max(part.start)..held.end.min(part.end)) };
        }
        from = question.walk_end;
    }
}

unsafe fn write(part: Range<u64>) {
    // SAFETY: the caller's.
    unsafe { ptr::write_bytes(part.start as *mut u8, 0, (part.end - part.start) as usize) };
}
