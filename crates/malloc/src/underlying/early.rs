//! A little memory for what is asked before the underlying allocator is known: looking for it may itself allocate. It
//! is handed out once and never taken back.

#![expect(unsafe_code, reason = "hands out parts of a static")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use lowtide_core::preload::EARLY_UNIT;

const BYTES: usize = 64 << 10;

/// Each block is preceded by its size, in a unit of this many bytes, and begins at a multiple of it.
const UNIT: usize = EARLY_UNIT;

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: parts of it are handed out, each once; nobody else looks at them.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

fn start() -> usize {
    MEMORY.0.get() as usize
}

/// A block of zeros; null where there is no more.
pub(crate) fn allocate(bytes: usize, align: usize) -> *mut c_void {
    let align = align.max(UNIT);
    let mut used = USED.load(Ordering::Relaxed);
    loop {
        let at = ((start() + used + UNIT + align - 1) & !(align - 1)) - start();
        let Some(end) = at.checked_add(bytes.max(1)).filter(|end| *end <= BYTES) else { return ptr::null_mut() };
        match USED.compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                let block = (start() + at) as *mut usize;
                // SAFETY: the part from `used` to `end` is this call's alone, and `at` is at least a unit behind `used`.
                unsafe { block.byte_sub(UNIT).write(bytes) };
                return block.cast();
            }
            Err(now) => used = now,
        }
    }
}

/// Where the blocks are; empty where nothing was handed out.
pub(crate) fn range() -> Range<usize> {
    start()..start() + if USED.load(Ordering::Relaxed) > 0 { BYTES } else { 0 }
}

/// Whether the block is one of these.
#[inline]
pub(crate) fn owns(block: *const c_void) -> bool {
    (block as usize).wrapping_sub(start()) < BYTES
}

/// How large the block is.
///
/// # Safety
/// It is one of these.
pub(crate) unsafe fn size(block: *const c_void) -> usize {
    // SAFETY: the caller's: its size precedes it.
    unsafe { block.cast::<usize>().byte_sub(UNIT).read() }
}
