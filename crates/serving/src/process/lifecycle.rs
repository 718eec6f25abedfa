//! The arena's life: made once it is [worth it](evidence), given up when it reports what cannot be. Nobody waits
//! for either: who comes before it is made, and who comes after it was given up, is served by the underlying allocator.

#![expect(unsafe_code, reason = "hands out the arena, which is never taken down")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use lowtide_memory::process::Uncancelled;
use lowtide_pool::HostArena;

use crate::process::evidence;
use crate::report::notice::say;
use crate::service;
use crate::serving::classes::Kind;
use crate::serving::thread::{self, Inside};
use crate::serving::{leaving, slabs, underlying};
use crate::settings::Settings;
use crate::system::errno::Errno;

const UNMADE: u8 = 0;
const MAKING: u8 = 1;
const MADE: u8 = 2;
const ASIDE: u8 = 3;
static PHASE: AtomicU8 = AtomicU8::new(UNMADE);

/// The arena, once it was made.
static ARENA: AtomicPtr<HostArena> = AtomicPtr::new(ptr::null_mut());
/// The arena while it serves.
static SERVING: AtomicPtr<HostArena> = AtomicPtr::new(ptr::null_mut());
/// Where its range begins and how long it is: no bytes until there is one.
static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Whether it serves no new blocks.
static IS_RETIRED: AtomicBool = AtomicBool::new(false);
/// Why it was given up.
static REASON: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());
/// Where the last panic was.
static PANIC: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

/// Whether the block is one of the arena's.
#[inline]
pub(crate) fn owns(block: *const c_void) -> bool {
    let length = LENGTH.load(Ordering::Acquire);
    (block as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) < length
}

/// Where the blocks of the arena are.
pub(crate) fn range() -> Range<u64> {
    let length = LENGTH.load(Ordering::Acquire) as u64;
    let base = BASE.load(Ordering::Relaxed) as u64;
    base..base + length
}

/// The range of the arena gets shorter: what is behind it may be anybody's soon.
pub(crate) fn cut(range: &Range<u64>) {
    LENGTH.store((range.end - range.start) as usize, Ordering::Release);
}

/// The arena, if it was ever made, and its lock can be had.
pub(crate) fn arena() -> Option<&'static HostArena> {
    read(&ARENA)
}

/// The arena, unless it was given up or is not made yet.
#[inline]
pub(crate) fn serving() -> Option<&'static HostArena> {
    read(&SERVING)
}

/// No new blocks come from the arena; those that it has handed out come back to it.
pub(crate) fn retire() {
    IS_RETIRED.store(true, Ordering::Release);
    Kind::ALL.into_iter().for_each(leaving::stop);
}

/// The arena for a new block of `bytes`, unless it was given up, is retired or is not worth making yet.
#[inline]
pub(crate) fn begun(bytes: usize) -> Option<&'static HostArena> {
    if IS_RETIRED.load(Ordering::Relaxed) {
        return None;
    }
    serving().or_else(|| {
        if PHASE.load(Ordering::Relaxed) == UNMADE && evidence::is_enough(bytes as u64) { make() } else { None }
    })
}

/// Why Lowtide stepped aside, if it did.
pub(crate) fn reason() -> Option<&'static str> {
    read(&REASON).map(String::as_str)
}

#[inline]
fn read<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: null, or what `leak` made of a box, which nobody frees.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

fn leak<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Has panics noted. No fork is in the middle of it, which would leave its lock behind: the library under the program sees to that.
pub(crate) fn watch_panics() {
    panic::set_hook(Box::new(note_panic));
}

fn make() -> Option<&'static HostArena> {
    let settings = Settings::get()?;
    let inside = Inside::enter()?;
    PHASE.compare_exchange(UNMADE, MAKING, Ordering::Acquire, Ordering::Relaxed).ok()?;
    let kept = Errno::keep();
    let uncancelled = Uncancelled::begin();
    let make = || HostArena::new(settings.arena()).inspect(service::look_for_room);
    let made = catch_unwind(AssertUnwindSafe(make));
    match made {
        // A child that was forked meanwhile, in a signal handler, has given it up.
        Ok(Ok(arena)) if PHASE.compare_exchange(MAKING, MADE, Ordering::AcqRel, Ordering::Relaxed).is_ok() => {
            let range = arena.range();
            let arena = leak(arena);
            BASE.store(range.start as usize, Ordering::Relaxed);
            LENGTH.store((range.end - range.start) as usize, Ordering::Release);
            ARENA.store(arena, Ordering::Release);
            SERVING.store(arena, Ordering::Release);
            // What the underlying allocator has kept of large blocks is of no more use.
            underlying::trim(0);
            slabs::retire_all();
            leaving::begin();
        }
        Ok(Ok(_)) => {}
        Ok(Err(error)) => step_aside(format_args!("no range of addresses for large blocks: {error}")),
        Err(panic) => broken(panic),
    }
    drop(uncancelled);
    drop(kept);
    drop(inside);
    serving()
}

/// Gives the arena up: what it handed out stays where it is, and new blocks come from the underlying allocator.
pub(crate) fn step_aside(reason: fmt::Arguments<'_>) {
    if PHASE.swap(ASIDE, Ordering::AcqRel) == ASIDE {
        return;
    }
    SERVING.store(ptr::null_mut(), Ordering::Release);
    REASON.store(leak(reason.to_string()), Ordering::Release);
    say(format_args!("steps aside, large blocks come from the underlying allocator: {reason}"));
}

/// Gives the arena up because it panicked.
#[cold]
pub(crate) fn broken(panic: Box<dyn Any + Send>) {
    step_aside(format_args!("{}", read(&PANIC).map_or("a panic of unknown place", String::as_str)));
    // Dropping what a panic carries may panic again.
    std::mem::forget(panic);
}

/// Keeps where a panic was; one of the library's own threads, whom nobody asks, says it.
fn note_panic(info: &panic::PanicHookInfo<'_>) {
    let text = info.to_string().replace('\n', " ");
    if !thread::is_inside() {
        say(format_args!("{text}"));
    }
    PANIC.store(leak(text), Ordering::Release);
}

/// In a forked child whose thread was inside the arena, its lock may be held by a thread that is gone. So nobody asks the
/// arena for anything any more: what it handed out stays where it is.
pub(crate) fn abandon() {
    PHASE.store(ASIDE, Ordering::Release);
    SERVING.store(ptr::null_mut(), Ordering::Release);
    ARENA.store(ptr::null_mut(), Ordering::Release);
}

/// In a forked child, whoever was making the arena is gone.
pub(crate) fn forget_maker() {
    let _ = PHASE.compare_exchange(MAKING, UNMADE, Ordering::AcqRel, Ordering::Relaxed);
    if arena().is_none() {
        let _ = PHASE.compare_exchange(MADE, UNMADE, Ordering::AcqRel, Ordering::Relaxed);
    }
}
