//! What each thread keeps: its number, whether it is inside the arena, and where its freed blocks are. The three words lie in the block that every
//! thread is born with, where the library under the program has them, reached without a call: nothing is allocated, registered or torn down for them.

#![expect(unsafe_code, reason = "reaches thread-local words by assembly")]

use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use lowtide_core::ThreadId;
use lowtide_core::preload::THREAD_WORDS;

use super::cache::Cache;

const _: () = assert!(size_of::<Words>() == THREAD_WORDS * size_of::<u64>());

/// How far the words are from a thread's pointer.
static DISTANCE: AtomicIsize = AtomicIsize::new(0);

/// So far the words are from each thread's pointer.
pub(crate) fn begin(distance: isize) {
    DISTANCE.store(distance, Ordering::Relaxed);
}

/// What lies in the thread's block.
#[repr(C)]
struct Words {
    /// How often the thread has entered and not left.
    depth: u64,
    /// Its number; zero for none yet.
    number: u64,
    /// Its cache.
    cache: *mut Cache,
}

#[inline]
fn words() -> *mut Words {
    let pointer: *mut Words;
    // SAFETY: reads the thread's own pointer.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) pointer, options(nostack, pure, readonly));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mrs {0}, tpidr_el0", out(reg) pointer, options(nostack, pure, nomem));
    }
    pointer.wrapping_byte_offset(DISTANCE.load(Ordering::Relaxed))
}

/// The number of this thread.
pub(crate) fn number() -> ThreadId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let words = words();
    // SAFETY: the words are this thread's alone. A signal handler that gets in between only takes a number too.
    unsafe {
        if (*words).number == 0 {
            (*words).number = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        ThreadId((*words).number)
    }
}

/// Where this thread's freed blocks are.
#[inline]
pub(crate) fn cache() -> *mut Cache {
    // SAFETY: the words are this thread's alone.
    unsafe { (*words()).cache }
}

/// This thread's freed blocks are there from now on.
pub(crate) fn set_cache(cache: *mut Cache) {
    // SAFETY: the words are this thread's alone.
    unsafe { (*words()).cache = cache };
}

/// Whether this thread is inside: it may then hold the arena's lock.
#[inline]
pub(crate) fn is_inside() -> bool {
    // SAFETY: the words are this thread's alone.
    unsafe { (*words()).depth > 0 }
}

/// Whether this thread was inside already when it last entered.
pub(crate) fn was_inside() -> bool {
    // SAFETY: the words are this thread's alone.
    unsafe { (*words()).depth > 1 }
}

/// Enters; until [`leave`], what this thread asks for comes from the underlying allocator.
pub(crate) fn enter() {
    // SAFETY: the words are this thread's alone. A signal handler leaves the depth as it found it. The write may not move
    // behind what follows, because a handler may look at it in between.
    unsafe {
        let depth = &raw mut (*words()).depth;
        depth.write_volatile(depth.read_volatile() + 1);
    }
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// Leaves.
pub(crate) fn leave() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    // SAFETY: as in `enter`.
    unsafe {
        let depth = &raw mut (*words()).depth;
        depth.write_volatile(depth.read_volatile() - 1);
    }
}

/// Being inside, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// Enters, unless the thread is inside already.
    pub(crate) fn enter() -> Option<Self> {
        if is_inside() {
            return None;
        }
        enter();
        Some(Self(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        leave();
    }
}
