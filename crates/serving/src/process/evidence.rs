//! Whether the arena would serve this program better than the underlying allocator does. It saves page faults: those on memory that the
//! program had before, gave back, and faults in again. A program that marks its steps has them planned; any other has to show such faults
//! first. One that shows none is left to the underlying allocator, as if Lowtide were not there.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use lowtide_core::options::ArenaUse;
use lowtide_memory::process::Uncancelled;

use crate::serving::slabs;
use crate::settings::Settings;
use crate::system::errno::Errno;
use crate::system::memory::page_size;
use crate::system::process::{self, Unknown};

/// How many bytes have to be asked for in large blocks before the arena is made. A process that reads a few folders or
/// one file never gets there, and pays nothing for it.
const WORTH: u64 = 4 << 20;

/// Faults are counted after so many bytes of large blocks, and ever less often where there are few.
const WINDOW: u64 = 64 << 20;
const LONGEST_WINDOW: u64 = 4 << 30;

/// Where this part of the bytes that were asked for is faulted in again, in so many windows in a row, the arena is worth it.
const PART: u64 = 8;
const WINDOWS: u32 = 6;

/// Whether the program will mark its steps, or does so already.
static MARKS_STEPS: AtomicBool = AtomicBool::new(false);
/// How many bytes were asked for, and how many it takes until faults are counted.
static ASKED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(WORTH);
/// Whether somebody is counting.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// How many bytes this library has given back to the system, which are faulted in again because of it.
static DISCARDED: AtomicU64 = AtomicU64::new(0);
/// What was seen last time: bytes asked for, bytes faulted in, the most bytes resident; and in how many windows in a row there was enough.
static LAST_ASKED: AtomicU64 = AtomicU64::new(0);
static LAST_FAULTED: AtomicU64 = AtomicU64::new(0);
static LAST_PEAK: AtomicU64 = AtomicU64::new(0);
/// The most bytes resident by a count that is cheap, and that knows of what the process was before too.
static LAST_USED: AtomicU64 = AtomicU64::new(0);
static ENOUGH: AtomicU32 = AtomicU32::new(0);

/// So many bytes were asked for before anybody served. Faults are counted from now on.
pub(crate) fn begin(asked: u64) {
    ASKED.store(asked, Ordering::Relaxed);
    NEXT.store(asked.max(WORTH), Ordering::Relaxed);
}

/// The program marks its steps.
pub(crate) fn expect_steps() {
    if !MARKS_STEPS.swap(true, Ordering::Relaxed) {
        NEXT.store(WORTH, Ordering::Relaxed);
        // Blocks of slabs do not ask whether there is to be an arena.
        if Settings::get().is_some_and(|settings| settings.arena_use != ArenaUse::Never) {
            slabs::retire_all();
        }
    }
}

/// The program has asked for so many bytes in large blocks that slabs had.
pub(crate) fn add(bytes: u64) {
    ASKED.fetch_add(bytes, Ordering::Relaxed);
}

/// This library has given back so many bytes that the program may need again: no arena would save that.
pub(crate) fn discarded(bytes: u64) {
    DISCARDED.fetch_add(bytes, Ordering::Relaxed);
}

/// The program asks for a large block of `bytes`: whether the arena is to be made for it.
#[inline]
pub(crate) fn is_enough(bytes: u64) -> bool {
    // One that is refused is not to count for more than all others.
    let bytes = bytes.min(WINDOW);
    let asked = ASKED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    asked >= NEXT.load(Ordering::Relaxed) && decide(asked)
}

#[cold]
fn decide(asked: u64) -> bool {
    let Some(settings) = Settings::get() else { return false };
    match settings.arena_use {
        ArenaUse::Always => true,
        ArenaUse::Auto if MARKS_STEPS.load(Ordering::Relaxed) => true,
        ArenaUse::Auto => faults_in_again(asked),
        ArenaUse::Never => {
            NEXT.store(u64::MAX, Ordering::Relaxed);
            false
        }
    }
}

/// Whether much of what was asked for since the last time was faulted in without more being resident than ever.
fn faults_in_again(asked: u64) -> bool {
    if COUNTING.swap(true, Ordering::Acquire) {
        return false;
    }
    let usage = process::usage();
    let faulted = (usage.minor * page_size() as u64).saturating_sub(DISCARDED.load(Ordering::Relaxed));
    let since = |last: &AtomicU64, now: u64| now.saturating_sub(last.swap(now, Ordering::Relaxed));
    let is_first = LAST_FAULTED.load(Ordering::Relaxed) == 0;
    let asked_since = since(&LAST_ASKED, asked);
    let faulted_since = since(&LAST_FAULTED, faulted);
    // A program that goes through phases grows where it was large before: only what makes it larger than ever is new.
    let is_enough = |grown: u64| !is_first && faulted_since.saturating_sub(grown) >= asked_since / PART;
    let mut has_enough = is_enough(since(&LAST_USED, usage.peak_resident));
    if has_enough || is_first {
        let kept = Errno::keep();
        let uncancelled = Uncancelled::begin();
        let peak = process::peak_resident();
        drop(uncancelled);
        drop(kept);
        match peak {
            Ok(peak) => has_enough = is_enough(since(&LAST_PEAK, peak)),
            // Without files, what is faulted in for the first time cannot be told from what is faulted in again.
            Err(Unknown::ForGood) => {
                NEXT.store(u64::MAX, Ordering::Relaxed);
                COUNTING.store(false, Ordering::Release);
                return false;
            }
            Err(Unknown::Now) => has_enough = false,
        }
    }
    let windows = if has_enough { ENOUGH.load(Ordering::Relaxed) + 1 } else { 0 };
    ENOUGH.store(windows, Ordering::Relaxed);
    let window = if is_first || has_enough { WINDOW } else { (2 * asked_since).clamp(WINDOW, LONGEST_WINDOW) };
    if !MARKS_STEPS.load(Ordering::Relaxed) {
        NEXT.store(asked.saturating_add(window), Ordering::Relaxed);
    }
    COUNTING.store(false, Ordering::Release);
    windows >= WINDOWS
}

/// The process has forked: what it writes to is copied, which costs faults that no arena saves. Counting begins anew.
pub(crate) fn forked() {
    LAST_FAULTED.store(0, Ordering::Relaxed);
    ENOUGH.store(0, Ordering::Relaxed);
}

/// Faults are not counted any more.
pub(crate) fn stop() {
    if !MARKS_STEPS.load(Ordering::Relaxed) {
        NEXT.store(u64::MAX, Ordering::Relaxed);
    }
}

/// How many bytes were asked for in large blocks before there was an arena.
pub(crate) fn asked() -> u64 {
    ASKED.load(Ordering::Relaxed)
}

/// In a forked child nobody is counting, and its faults begin at none.
pub(crate) fn forget() {
    COUNTING.store(false, Ordering::Relaxed);
    LAST_FAULTED.store(0, Ordering::Relaxed);
    ENOUGH.store(0, Ordering::Relaxed);
    // What its parent has asked for is not its own.
    ASKED.store(0, Ordering::Relaxed);
    LAST_ASKED.store(0, Ordering::Relaxed);
    if NEXT.load(Ordering::Relaxed) != u64::MAX {
        NEXT.store(WORTH, Ordering::Relaxed);
    }
}
