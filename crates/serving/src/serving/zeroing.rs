//! Zeros for `calloc`: memory that may hold something is cleared, except for pages that the system has never given or has
//! taken back. Those are zero, and writing to them would make them resident.

#![expect(unsafe_code, reason = "clears memory")]

use std::ops::Range;
use std::ptr;

use lowtide_memory::system::files::pagemap::Pagemap;

use crate::system::memory::page_size;

/// The least memory for which asking is cheaper than clearing it.
const WORTH: u64 = 2 << 20;

/// Clears a part of memory.
///
/// # Safety
/// The memory is private, without a file behind it, and nobody else uses it.
pub(crate) unsafe fn clear(part: Range<u64>) {
    if part.end - part.start < WORTH {
        // SAFETY: the caller's.
        return unsafe { write(part) };
    }
    let page = page_size() as u64;
    let pages = part.start / page * page..part.end.next_multiple_of(page);
    // Where the system does not say what holds something, all is cleared.
    let asked = Pagemap::open().map_or(part.start, |map| {
        map.each_resident(pages, |found| {
            // SAFETY: the caller's: a region shares at least a byte with the part.
            unsafe { write(found.start.max(part.start)..found.end.min(part.end)) };
        })
    });
    if asked < part.end {
        // SAFETY: the caller's.
        unsafe { write(asked.max(part.start)..part.end) };
    }
}

unsafe fn write(part: Range<u64>) {
    // SAFETY: the caller's.
    unsafe { ptr::write_bytes(part.start as *mut u8, 0, (part.end - part.start) as usize) };
}
