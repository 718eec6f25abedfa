//! Blocks of the arena that came back while their thread was inside it: a signal handler frees what it has interrupted.
//! They wait in a list that is threaded through the blocks themselves, until somebody comes by who may take the lock.

#![expect(unsafe_code, reason = "keeps its list inside the freed blocks")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

static FIRST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Puts a block on the list.
///
/// # Safety
/// It is a block of the arena that nobody uses any more.
pub(crate) unsafe fn put(block: *mut c_void) {
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        // SAFETY: the caller's; a block is larger than a pointer and more than aligned for it.
        unsafe { block.cast::<*mut c_void>().write(first) };
        match FIRST.compare_exchange_weak(first, block, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Takes all blocks off the list.
#[inline]
pub(crate) fn take(each: impl FnMut(*mut c_void)) {
    if !FIRST.load(Ordering::Relaxed).is_null() {
        take_all(each);
    }
}

#[cold]
fn take_all(mut each: impl FnMut(*mut c_void)) {
    let mut block = FIRST.swap(ptr::null_mut(), Ordering::Acquire);
    while !block.is_null() {
        // SAFETY: `put` wrote it, and the list is this call's alone.
        let next = unsafe { block.cast::<*mut c_void>().read() };
        each(block);
        block = next;
    }
}
