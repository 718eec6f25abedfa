//! The threads of the program, numbered in the order in which they appear here, and whether this process is still the one
//! in which Lowtide was started: in a forked child other threads are gone, and with them whoever held a lock.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::system;

/// The number of this thread, from zero.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(u64::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == u64::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Whether this is a forked child of the process that called [`watch_forks`].
pub(crate) fn is_forked() -> bool {
    forks() > 0
}

/// How many forks this process is away from the one that called [`watch_forks`].
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// From now on [`forks`] tells.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    ONCE.call_once(|| system::at_fork(child));
}
