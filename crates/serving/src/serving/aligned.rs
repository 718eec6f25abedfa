//! Small blocks at multiples of a line of the processor's cache, as PyTorch has for every small tensor on the CPU. glibc cuts each from a longer
//! block and puts what is left before and behind it back into its lists; it does not keep those that come back for the next of their size. Where the
//! arena serves, a thread keeps them: in lists by size, which run through the blocks themselves. Whether a block that comes back was asked for like
//! this cannot be told, and does not matter: it is kept where it is aligned, and its size was asked for lately.

#![expect(unsafe_code, reason = "keeps its lists inside free blocks")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::report::notice::give_up;
use crate::serving::large::LARGE;
use crate::serving::underlying;

/// What the blocks begin at multiples of.
pub(crate) const ALIGN: usize = 64;

/// Sizes of glibc's blocks are so far apart, from the smallest on.
const UNIT: usize = 16;
const SMALLEST: usize = 24;
/// Up to here each of them has a class; above there are eight classes between two powers of two.
const FINEST: usize = SMALLEST + 63 * UNIT;
const FINE: usize = (FINEST - SMALLEST) / UNIT + 1;
const STEPS: usize = 8;
const COARSE: usize = 1 << 10;
/// Without that of the largest sizes, whose blocks glibc would make large.
const CLASSES: usize = FINE + STEPS * (LARGE / COARSE).ilog2() as usize - 1;

/// How many bytes a thread keeps. Then all goes back, so that what is not asked for any more does not stay.
const MOST: usize = 1 << 20;
/// How many blocks of a class it keeps.
const MOST_OF_CLASS: u8 = 64;
/// How many threads keep any.
const THREADS: usize = 32;
static KEEPING: AtomicUsize = AtomicUsize::new(0);

/// The start of a free block.
#[repr(C)]
struct Free {
    next: *mut Free,
    /// [`mark`] while it is free. A block of the program's has that by chance or not at all.
    mark: usize,
}

/// What a thread keeps.
pub(crate) struct Aligned {
    /// Whether this thread is one of [`THREADS`].
    may_keep: bool,
    bytes: usize,
    /// Which classes were asked for since all went back, a bit each.
    wanted: u128,
    counts: [u8; CLASSES],
    lists: [*mut Free; CLASSES],
}

const _: () = assert!(CLASSES <= u128::BITS as usize);

/// The class of blocks for so many bytes; [`CLASSES`] where there is none.
#[inline]
const fn class_for(bytes: usize) -> usize {
    if bytes <= FINEST {
        return bytes.saturating_sub(SMALLEST).div_ceil(UNIT);
    }
    let power = (bytes - 1).ilog2() as usize;
    let step = (bytes - 1 - (1 << power)) >> (power - STEPS.ilog2() as usize);
    FINE + (power - COARSE.ilog2() as usize) * STEPS + step
}

/// What blocks of a class have at least.
const fn size_of_class(class: usize) -> usize {
    if class < FINE {
        return SMALLEST + class * UNIT;
    }
    let (power, step) = ((class - FINE) / STEPS + COARSE.ilog2() as usize, (class - FINE) % STEPS);
    (1 << power) + (step + 1) * ((1 << power) / STEPS)
}

/// The class that a block of so many bytes can serve.
#[inline]
const fn class_of(bytes: usize) -> Option<usize> {
    let above = class_for(bytes + 1);
    if above == 0 || above > CLASSES { None } else { Some(above - 1) }
}

#[inline]
fn mark() -> usize {
    static OWN: u8 = 0;
    (&raw const OWN).addr() ^ 0x5bd1_e995_9e37_79b9
}

impl Aligned {
    pub(crate) const fn new() -> Self {
        Self { may_keep: false, bytes: 0, wanted: 0, counts: [0; CLASSES], lists: [ptr::null_mut(); CLASSES] }
    }

    /// A block that was kept; `bytes` are fewer than of a large one.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<*mut c_void> {
        let class = class_for(bytes);
        let (list, count) = self.lists.get_mut(class).zip(self.counts.get_mut(class))?;
        self.wanted |= 1 << class;
        let block = *list;
        if block.is_null() {
            return None;
        }
        // SAFETY: it was put here, and is nobody's.
        unsafe {
            *list = (*block).next;
            (*block).mark = 0;
        }
        *count -= 1;
        self.bytes -= size_of_class(class);
        Some(block.cast())
    }

    /// Keeps a block that has so many bytes, where there is room for it.
    ///
    /// # Safety
    /// It is one of glibc's, begins at a multiple of [`ALIGN`], and nobody uses it any more.
    #[inline]
    pub(crate) unsafe fn keep(&mut self, block: *mut c_void, bytes: usize) -> bool {
        let Some(class) = class_of(bytes).filter(|class| self.wanted >> class & 1 != 0) else { return false };
        let free = block.cast::<Free>();
        // SAFETY: the caller's; the smallest block is as long.
        if unsafe { (*free).mark } == mark() {
            // This thread has kept it already, or another one.
            give_up(format_args!("free(): double free of the block at {block:p}"));
        }
        let size = size_of_class(class);
        if self.bytes + size > MOST {
            self.empty();
            return false;
        }
        let Some((list, count)) = self.lists.get_mut(class).zip(self.counts.get_mut(class)) else { return false };
        if *count >= MOST_OF_CLASS || !self.may_keep && !begin(&mut self.may_keep) {
            return false;
        }
        // SAFETY: as above.
        unsafe { free.write(Free { next: *list, mark: mark() }) };
        *list = free;
        *count += 1;
        self.bytes += size;
        true
    }

    /// Gives all back.
    #[cold]
    pub(crate) fn empty(&mut self) {
        for list in &mut self.lists {
            while !list.is_null() {
                let block = *list;
                // SAFETY: as in `take`.
                unsafe {
                    *list = (*block).next;
                    (*block).mark = 0;
                    underlying::free(block.cast());
                }
            }
        }
        self.bytes = 0;
        self.wanted = 0;
        self.counts.fill(0);
    }

    /// The thread ends.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.may_keep) {
            KEEPING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A new block of glibc's, which can be kept as a rule when it comes back.
///
/// # Safety
/// As of the C library; `bytes` are fewer than of a large block.
pub(crate) unsafe fn new(bytes: usize) -> *mut c_void {
    let class = class_for(bytes);
    // SAFETY: the caller's.
    unsafe { underlying::memalign(ALIGN, if class < CLASSES { size_of_class(class) } else { bytes }) }
}

/// This thread is to keep blocks, unless too many do.
#[cold]
fn begin(may_keep: &mut bool) -> bool {
    let one_more = |threads: usize| (threads < THREADS).then_some(threads + 1);
    *may_keep = KEEPING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
    *may_keep
}

/// In a forked child, no other thread is left.
pub(crate) fn forget(own: Option<&Aligned>) {
    KEEPING.store(usize::from(own.is_some_and(|own| own.may_keep)), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_serves_what_it_is_for_and_every_block_has_the_largest_that_it_can_serve() {
        for bytes in 0..LARGE {
            let class = class_for(bytes);
            assert!(class <= CLASSES && size_of_class(class) >= bytes, "{bytes}");
            assert!(class == 0 || size_of_class(class - 1) < bytes, "{bytes}");
        }
        for bytes in SMALLEST..LARGE {
            let class = class_of(bytes).unwrap();
            assert!(size_of_class(class) <= bytes, "{bytes}");
            assert!(class + 1 == CLASSES || size_of_class(class + 1) > bytes, "{bytes}");
        }
        assert_eq!((class_of(SMALLEST - 1), size_of_class(CLASSES)), (None, LARGE));
    }
}
