//! The first thing that the library does in a process, and the last.

#![cfg_attr(not(test), expect(unsafe_code, reason = "names functions for the loader to call"))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lowtide_memory::process::Uncancelled;

use crate::process::{exit, forks, lifecycle};
use crate::report::summary;
use crate::settings::Settings;
use crate::system::process;

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
static FIRST: extern "C" fn() = first;

#[used]
#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
static LAST: extern "C" fn() = last;

/// When the process began, by a clock that goes on, in nanoseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

extern "C" fn first() {
    begin();
    Settings::read();
    lifecycle::watch_panics();
    forks::watch();
    exit::watch();
}

extern "C" fn last() {
    let uncancelled = Uncancelled::begin();
    summary::write();
    drop(uncancelled);
}

/// The process begins now.
pub(crate) fn begin() {
    BEGAN.store(process::now().as_nanos() as u64, Ordering::Relaxed);
}

/// How long the process has run.
pub(crate) fn elapsed() -> Duration {
    process::now().saturating_sub(Duration::from_nanos(BEGAN.load(Ordering::Relaxed)))
}
