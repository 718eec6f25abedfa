//! Large blocks that glibc has handed out before the arena or slabs took over. glibc would keep the memory of each that is freed for the next of its
//! size, which comes from elsewhere now: so its pages go back to the system.

#![expect(unsafe_code, reason = "gives pages of freed blocks back")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::evidence;
use crate::serving::cache::OVERHEAD;
use crate::serving::classes::Kind;
use crate::serving::underlying;
use crate::settings::Settings;
use crate::system::memory;

/// How much of a free block glibc uses for its lists.
const NOTES: usize = 32;

/// How many bytes of glibc's blocks of each kind will not be needed again once they are freed.
static LEFT: [AtomicUsize; Kind::ALL.len()] = [const { AtomicUsize::new(0) }; Kind::ALL.len()];

/// The arena has just been made: what glibc has handed out by now will not be needed again once it is freed.
pub(crate) fn begin() {
    if underlying::is_plain_glibc() {
        let bytes = underlying::mallinfo2().uordblks;
        for left in &LEFT {
            left.store(bytes, Ordering::Relaxed);
        }
    }
}

/// Slabs have so many bytes of a kind more than ever: as much of glibc's will not be needed again.
pub(crate) fn replaces(kind: Kind, bytes: usize) {
    LEFT[kind as usize].fetch_add(bytes, Ordering::Relaxed);
}

/// New blocks of a kind come from glibc again.
pub(crate) fn stop(kind: Kind) {
    LEFT[kind as usize].store(0, Ordering::Relaxed);
}

/// Gives the pages of a block back that is about to be freed, where it may be one of those.
///
/// # Safety
/// It is one of glibc's, and nobody uses it any more. What glibc itself writes to a free block is at its ends.
#[cold]
pub(crate) unsafe fn give_pages_back(block: *mut c_void, bytes: usize) {
    if Settings::get().is_none_or(|settings| settings.is_heap_huge) {
        return;
    }
    let left = &LEFT[Kind::of_size(bytes) as usize];
    if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_err() {
        return;
    }
    let page = memory::page_size();
    let (start, end) = (block as usize + NOTES, block as usize + bytes - OVERHEAD);
    let pages = start.next_multiple_of(page)..end / page * page;
    if !pages.is_empty() {
        evidence::discarded(memory::resident(pages.clone()).unwrap_or(pages.len()) as u64);
        // SAFETY: the caller's: nobody uses what is in these pages any more.
        unsafe { memory::discard(pages) };
    }
}
