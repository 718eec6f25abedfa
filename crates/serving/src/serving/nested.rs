//! Large blocks for a thread that is inside the arena, as a rule in a signal handler that has interrupted it. The
//! underlying allocator may have been interrupted as well, so these come from a few slots of fresh pages that need no
//! lock.

#![expect(unsafe_code, reason = "hands out pages of its own")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::serving::underlying;
use crate::system::memory;

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
                if !unsafe { memory::open(block, SLOT) } {
                    USED.fetch_and(!(1 << slot), Ordering::Release);
                    return None;
                }
                return Some(block);
            }
            Err(now) => used = now,
        }
    }
}

/// Where the slots begin; addresses are taken the first time, and from then on `free` looks out for them.
fn base() -> Option<usize> {
    let base = BASE.load(Ordering::Acquire);
    if base != 0 {
        return Some(base);
    }
    // One slot more than needed, so that the first can begin at a multiple.
    let mapped = memory::reserve((SLOTS + 1) * SLOT)?;
    let new = mapped.next_multiple_of(SLOT);
    // Before anybody has a block of these.
    underlying::look_out();
    match BASE.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(new),
        Err(earlier) => {
            // SAFETY: nobody knows these addresses.
            unsafe { memory::release(mapped, (SLOTS + 1) * SLOT) };
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
    unsafe { memory::discard(block as usize..block as usize + SLOT) };
    USED.fetch_and(!(1 << slot), Ordering::Release);
}
