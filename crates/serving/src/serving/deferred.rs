//! Blocks that came back while their thread was inside, and may have the lock: a signal handler frees what it has interrupted.
//! They wait in a list that is threaded through the blocks themselves, until somebody comes by who may take the lock.

#![expect(unsafe_code, reason = "keeps its list inside the freed blocks")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A list of such blocks.
pub(crate) struct Deferred(AtomicPtr<c_void>);

/// Those of the arena.
pub(crate) static ARENA: Deferred = Deferred::new();

impl Deferred {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts a block on the list.
    ///
    /// # Safety
    /// It is a block of at least a page that nobody uses any more.
    pub(crate) unsafe fn put(&self, block: *mut c_void) {
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's; a block is larger than a pointer and more than aligned for it.
            unsafe { block.cast::<*mut c_void>().write(first) };
            match self.0.compare_exchange_weak(first, block, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all blocks off the list.
    #[inline]
    pub(crate) fn take(&self, each: impl FnMut(*mut c_void)) {
        if !self.0.load(Ordering::Relaxed).is_null() {
            self.take_all(each);
        }
    }

    #[cold]
    fn take_all(&self, mut each: impl FnMut(*mut c_void)) {
        let mut block = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        while !block.is_null() {
            // SAFETY: `put` wrote it, and the list is this call's alone.
            let next = unsafe { block.cast::<*mut c_void>().read() };
            each(block);
            block = next;
        }
    }
}
