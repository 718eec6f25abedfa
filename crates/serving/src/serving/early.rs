//! Blocks that were handed out before the underlying allocator was known, by the library under the program. Each is preceded by its size, and
//! none is ever taken back.

#![expect(unsafe_code, reason = "reads what precedes a block")]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use lowtide_core::preload::EARLY_UNIT;

static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// They lie there.
pub(crate) fn enter(range: Range<usize>) {
    START.store(range.start, Ordering::Relaxed);
    BYTES.store(range.len(), Ordering::Relaxed);
}

/// Whether the block is one of these.
#[inline]
pub(crate) fn owns(block: *const c_void) -> bool {
    (block as usize).wrapping_sub(START.load(Ordering::Relaxed)) < BYTES.load(Ordering::Relaxed)
}

/// How large the block is.
///
/// # Safety
/// It is one of these.
pub(crate) unsafe fn size(block: *const c_void) -> usize {
    // SAFETY: the caller's: its size precedes it.
    unsafe { block.cast::<usize>().byte_sub(EARLY_UNIT).read() }
}
