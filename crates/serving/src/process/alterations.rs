//! What a program does to the pages of a block: it protects, locks or advises them. The C library gives such a block's pages back when it is
//! freed, so that the next block knows nothing of it; the arena and slabs keep them, and so they are put right again before they serve another.

#![expect(unsafe_code, reason = "stands in for the C library's functions")]

use std::ffi::{c_int, c_uint, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lowtide_memory::Pages;

use crate::process::lifecycle;
use crate::serving::slabs;
use crate::settings::Settings;
use crate::system::errno::Errno;
use crate::system::memory;

/// How many ranges are known one by one. Where there are more, every block counts as altered.
const MOST: usize = 64;

/// How many are known.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static IS_FULL: AtomicBool = AtomicBool::new(false);
static STARTS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static ENDS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// Sets what may be done with pages.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn mprotect(start: *mut c_void, bytes: usize, protection: c_int) -> c_int {
    note(start, bytes);
    // SAFETY: the caller's.
    unsafe { memory::protect(start, bytes, protection) }
}

/// Says how pages will be used.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if !is_about_contents(advice) {
        note(start, bytes);
    }
    // SAFETY: the caller's.
    unsafe { memory::advise(start, bytes, advice) }
}

/// Keeps pages in memory.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn mlock(start: *const c_void, bytes: usize) -> c_int {
    note(start, bytes);
    // SAFETY: the caller's.
    unsafe { memory::lock(start, bytes, 0) }
}

/// Keeps pages in memory, at once or as they are touched.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe extern "C" fn mlock2(start: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    note(start, bytes);
    // SAFETY: the caller's.
    unsafe { memory::lock(start, bytes, flags) }
}

/// Whether advice is about what is in the pages now, and not about the pages.
fn is_about_contents(advice: c_int) -> bool {
    matches!(
        advice,
        libc::MADV_DONTNEED
            | libc::MADV_WILLNEED
            | libc::MADV_FREE
            | libc::MADV_HUGEPAGE
            | libc::MADV_COLD
            | libc::MADV_PAGEOUT
            | libc::MADV_POPULATE_READ
            | libc::MADV_POPULATE_WRITE
    )
}

/// Pages may have been altered. Those of the underlying allocator are its own affair.
fn note(start: *const c_void, bytes: usize) {
    let range = start as usize..(start as usize).saturating_add(bytes);
    let arena = lifecycle::range();
    if !meet(&range, &(arena.start as usize..arena.end as usize)) && !meet(&range, &slabs::range()) {
        return;
    }
    let is_known = |place: usize| {
        let (known, end) = (STARTS[place].load(Ordering::Acquire), ENDS[place].load(Ordering::Acquire));
        known != 0 && known <= range.start && range.end <= end
    };
    if (0..MOST).any(is_known) {
        return;
    }
    for place in 0..MOST {
        if STARTS[place].compare_exchange(0, range.start, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            ENDS[place].store(range.end, Ordering::Release);
            COUNT.fetch_add(1, Ordering::AcqRel);
            return;
        }
    }
    IS_FULL.store(true, Ordering::Release);
}

fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Whether any pages of the arena or of slabs may have been altered.
#[inline]
pub(crate) fn exist() -> bool {
    COUNT.load(Ordering::Relaxed) > 0 || IS_FULL.load(Ordering::Relaxed)
}

/// The pages of a block that is about to be freed are as they were before the program had them.
///
/// # Safety
/// The block is the arena's or a slab's, and nobody uses it any more.
#[cold]
pub(crate) unsafe fn undo(block: Range<usize>) {
    let mut is_altered = IS_FULL.load(Ordering::Acquire);
    for place in 0..MOST {
        let (start, end) = (STARTS[place].load(Ordering::Acquire), ENDS[place].load(Ordering::Acquire));
        if start == 0 || start >= block.end || end <= block.start {
            continue;
        }
        is_altered = true;
        // The pages at its ends may be the neighbours' too.
        let page = memory::page_size();
        let (first, last) = (block.start / page * page, block.end.next_multiple_of(page));
        match (start >= first, end <= last) {
            (true, true) => {
                // An end that stays behind costs at most a look in vain.
                if STARTS[place].compare_exchange(start, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    COUNT.fetch_sub(1, Ordering::AcqRel);
                }
            }
            (true, false) => {
                let _ = STARTS[place].compare_exchange(start, last, Ordering::AcqRel, Ordering::Relaxed);
            }
            (false, true) => {
                let _ = ENDS[place].compare_exchange(end, first, Ordering::AcqRel, Ordering::Relaxed);
            }
            (false, false) => {}
        }
    }
    if is_altered {
        let kept = Errno::keep();
        let is_arenas = lifecycle::owns(block.start as *const c_void);
        let are_joined = is_arenas && Settings::get().is_some_and(|settings| settings.pages == Pages::Transparent);
        // SAFETY: the caller's; the arena's pages are private.
        unsafe { memory::make_usual(block, are_joined) };
        drop(kept);
    }
}
