//! The beginning: the library under the program has opened this one, and its functions take the places in the table. It may come in the middle of
//! the program's life, while other threads allocate.

#![cfg_attr(not(test), expect(unsafe_code, reason = "is called by the other library, and changes its table"))]
#![cfg_attr(test, allow(unsafe_code, reason = "is called by the other library, and changes its table"))]

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lowtide_core::preload::{self, Opening, VERSION};
use lowtide_memory::process::Uncancelled;

use crate::process::{evidence, exit, lifecycle};
use crate::report::summary;
use crate::serving::thread::{self, Inside};
use crate::serving::{exports, underlying};
use crate::settings::Settings;
use crate::system::process;

/// When the process began, by a clock that goes on, in nanoseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Serves from now on; anything but zero, and nothing has changed.
///
/// # Safety
/// All that is told is true, and stays so.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn lowtide_attach(opening: *const Opening) -> c_int {
    const _: preload::Attach = lowtide_attach;
    // SAFETY: the caller's. Whatever the version, it comes first.
    let opening = unsafe {
        if (&raw const (*opening).version).read() != VERSION {
            return 1;
        }
        &*opening
    };
    thread::begin(opening.start.thread_words);
    let Some(inside) = Inside::enter() else { return 1 };
    let uncancelled = Uncancelled::begin();
    let begun = catch_unwind(AssertUnwindSafe(|| begin_to_serve(opening)));
    drop(uncancelled);
    drop(inside);
    c_int::from(begun.is_err())
}

fn begin_to_serve(opening: &Opening) {
    underlying::enter(&opening.underlying);
    let age = if opening.start.is_new { Duration::ZERO } else { process::age().unwrap_or_default() };
    BEGAN.store(process::now().saturating_sub(age).as_nanos() as u64, Ordering::Relaxed);
    // SAFETY: the other library's word: so many bytes, which nobody changes.
    let words = unsafe { slice::from_raw_parts(opening.start.words, opening.start.words_bytes) };
    Settings::read(words, opening.start.is_cut);
    evidence::begin(opening.start.asked);
    lifecycle::watch_panics();
    exit::begin();
    // SAFETY: the other library's word: the table is there as long as the program.
    exports::enter(unsafe { &*opening.entries });
}

/// The process ends by `exit`, or by the end of `main`.
pub(crate) extern "C" fn finish() {
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
