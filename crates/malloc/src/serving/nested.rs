//! Large blocks for a thread that is inside the arena, as a rule in a signal handler that has interrupted it. The allocator
//! below may have been interrupted as well, so these come from a few slots of fresh pages that need no lock.

#![expect(unsafe_code, reason = "maps pages")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::serving::underlying;

const SLOTS: usize = 32;
const SLOT: usize = 4 << 20;

/// Where the slots begin; zero until one was needed.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// A bit for each slot that is in use.
static USED: AtomicU32 = AtomicU32::new(0);

/// A block of zeros; none where it is too large, or all slots are in use.
#[cold]
pub(crate) fn allocate(bytes: usize, align: usize) -> Option<*mut c_void> {
    if bytes > SLOT || align > SLOT {
        return None;
    }
    let base = base()?;
    let mut used = USED.load(Ordering::Relaxed);
    loop {
        let slot = used.trailing_ones() as usize;
        if slot == SLOTS {
            return None;
        }
        match USED.compare_exchange_weak(used, used | 1 << slot, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                let block = (base + slot * SLOT) as *mut c_void;
                // SAFETY: the slot is this call's alone.
                let opened = unsafe { libc::mprotect(block, SLOT, libc::PROT_READ | libc::PROT_WRITE) };
                if opened != 0 {
                    USED.fetch_and(!(1 << slot), Ordering::Release);
                    return None;
                }
                return Some(block);
            }
            Err(now) => used = now,
        }
    }
}

/// Where the slots begin; addresses are taken the first time, and `free` is told to look out for them.
fn base() -> Option<usize> {
    let base = BASE.load(Ordering::Acquire);
    if base != 0 {
        return Some(base);
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: takes new addresses, with one slot more than needed, so that the first can begin at a multiple.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), (SLOTS + 1) * SLOT, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let new = (mapped as usize).next_multiple_of(SLOT);
    match BASE.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            underlying::look_out();
            Some(new)
        }
        Err(earlier) => {
            // SAFETY: nobody knows these addresses.
            unsafe { libc::munmap(mapped, (SLOTS + 1) * SLOT) };
            underlying::look_out();
            Some(earlier)
        }
    }
}

/// Whether the block is one of these.
pub(crate) fn owns(block: *const c_void) -> bool {
    let base = BASE.load(Ordering::Acquire);
    base != 0 && (block as usize).wrapping_sub(base) < SLOTS * SLOT
}

/// How large each block is.
pub(crate) const fn size() -> usize {
    SLOT
}

/// Takes a block back.
///
/// # Safety
/// It is one of these, and nobody uses it any more.
pub(crate) unsafe fn release(block: *mut c_void) {
    let slot = (block as usize - BASE.load(Ordering::Acquire)) / SLOT;
    // SAFETY: the caller's. Touched again, the pages are zero.
    unsafe { libc::madvise(block, SLOT, libc::MADV_DONTNEED) };
    USED.fetch_and(!(1 << slot), Ordering::Release);
}
