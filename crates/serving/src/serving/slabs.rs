//! Blocks of 32 KiB to 1 MiB by size class, for programs that replace many of them while the arena does not serve. glibc searches its lists for
//! each of these, splits and joins them, and so touches ever other pages; here a block of a class is handed out again as it is.
//!
//! A slab is a stretch of addresses that is cut into blocks of one class. Its pages come from the system as they are touched. Free blocks whose
//! pages are resident are handed out before others, lowest addresses first, also for requests of the next smaller classes; beyond a part of
//! what is in use, pages of free blocks go back to the system, highest addresses first. How much of a free block is resident is looked up now
//! and then: many programs touch little of what they ask for.
//!
//! Threads keep some blocks for themselves ([`cache`](super::cache)) and come here for the others, under one lock.

#![expect(unsafe_code, reason = "hands out pages of its own")]

mod state;

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use lowtide_memory::system::files::huge_pages::{HugePages, Mode};

use crate::process::{alterations, lifecycle};
use crate::serving::cache;
use crate::serving::classes::{class_of, size_of_class};
use crate::serving::deferred::Deferred;
use crate::serving::thread::Inside;
use crate::system::errno::Errno;
use crate::system::{memory, process};
use state::Slabs;

/// The bytes of a slab, which has no more blocks than a word has bits.
const SLAB: usize = 4 << 20;
const MOST: usize = 128;
const _: () = assert!(SLAB / size_of_class(0) <= MOST);

/// What blocks begin at multiples of.
pub(crate) const ALIGN: usize = 4 << 10;

/// How many slabs there are addresses for.
const SLABS: usize = 1 << 14;

/// A request takes a free block of its class, or else of one of so many larger classes.
pub(crate) const HIGHER: usize = 2;

/// While it is not known yet whether slabs suit the program, one of so many requests is served, so that little is lost where they do not.
pub(crate) const TRIED: usize = 8;

/// Where the slabs are; no bytes before there are any.
static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// The class of each slab.
static CLASS: [AtomicU8; SLABS] = [const { AtomicU8::new(0) }; SLABS];
/// Whether no new blocks come from here.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// Whether glibc's blocks have huge pages without asking, which is better where all of them is touched.
static ARE_HUGE: AtomicBool = AtomicBool::new(false);
/// Whether nothing may be asked of the system: what there is serves on.
static IS_QUIET: AtomicBool = AtomicBool::new(false);
/// Whether free blocks may be locked.
static IS_LOCKED: AtomicBool = AtomicBool::new(false);
/// Whether the program touches little of its blocks.
static IS_SPARSE: AtomicBool = AtomicBool::new(false);
/// Whether it is not known yet whether slabs suit the program.
static IS_ON_TRIAL: AtomicBool = AtomicBool::new(true);
/// Whether the lock may be held by a thread that is gone: what is freed from now on stays where it is.
static IS_LOST: AtomicBool = AtomicBool::new(false);

static STATE: Mutex<Slabs> = Mutex::new(Slabs::new());
/// Blocks that came back while their thread was inside.
static DEFERRED: Deferred = Deferred::new();

/// Whether the block is one of these.
#[inline]
pub(crate) fn owns(block: *const c_void) -> bool {
    let length = LENGTH.load(Ordering::Acquire);
    (block as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) < length
}

/// Where they are.
pub(crate) fn range() -> Range<usize> {
    let length = LENGTH.load(Ordering::Acquire);
    let base = BASE.load(Ordering::Relaxed);
    base..base + length
}

/// The class of a block.
#[inline]
pub(crate) fn class(block: *const c_void) -> usize {
    let slab = (block as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) / SLAB;
    CLASS.get(slab).map_or(0, |class| usize::from(class.load(Ordering::Relaxed)))
}

/// The bytes of a block.
pub(crate) fn size(block: *const c_void) -> usize {
    size_of_class(class(block))
}

/// A block for `bytes`, which are no more than a class has.
#[inline(never)]
pub(crate) fn take(bytes: usize) -> Option<*mut c_void> {
    if is_closed() {
        return None;
    }
    with(|slabs| slabs.take(class_of(bytes))).flatten().map(|block| block as *mut c_void)
}

/// Whether no new blocks come from here.
#[inline]
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Whether there are slabs, and they serve.
pub(crate) fn are_serving() -> bool {
    LENGTH.load(Ordering::Relaxed) > 0 && !is_closed()
}

/// Whether little of the program's blocks is resident.
pub(crate) fn is_sparse() -> bool {
    IS_SPARSE.load(Ordering::Relaxed)
}

/// Whether few blocks are to come from here, because it is not known yet whether slabs suit the program.
#[inline]
pub(crate) fn is_on_trial() -> bool {
    IS_ON_TRIAL.load(Ordering::Relaxed)
}

/// Whether pages of free blocks are not needed any more.
fn is_over() -> bool {
    is_closed() || lifecycle::serving().is_some()
}

/// No new blocks come from here any more.
fn retire() {
    IS_CLOSED.store(true, Ordering::Relaxed);
    cache::stop_leaving();
}

/// Takes a block back.
///
/// # Safety
/// It is one of these, and nobody uses it any more.
#[inline(never)]
pub(crate) unsafe fn put(block: *mut c_void) {
    if with(|slabs| slabs.put(block as usize)).is_none() && !IS_LOST.load(Ordering::Relaxed) {
        // SAFETY: the caller's.
        unsafe { DEFERRED.put(block) };
    }
}

/// What a program did to the pages of a block ends with it.
///
/// # Safety
/// As of [`put`].
#[inline]
pub(crate) unsafe fn make_usual(block: *mut c_void) {
    if alterations::exist() {
        let bytes = size(block);
        // SAFETY: the caller's.
        unsafe { alterations::undo(block as usize..block as usize + bytes) };
    }
}

/// Gives the pages of all free blocks back, and says how many bytes those had at most.
pub(crate) fn trim() -> usize {
    with(|slabs| slabs.purge(0, usize::MAX)).unwrap_or(0)
}

/// From now on nothing is asked of the system.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
    cache::stop_leaving();
}

/// How many blocks are handed out, and their bytes.
pub(crate) fn live() -> (usize, usize) {
    with(|slabs| (slabs.blocks, slabs.live)).unwrap_or_default()
}

/// No new blocks come from here, and what is free cannot be touched any more: the system is about to lock all that can.
pub(crate) fn close() {
    retire();
    IS_LOCKED.store(true, Ordering::Relaxed);
    if LENGTH.load(Ordering::Relaxed) > 0 {
        with(Slabs::close);
        cut();
    }
}

/// Gives addresses back that no slab was made of, which count where addresses are limited.
pub(crate) fn cut() {
    with(|slabs| {
        let range = range();
        let end = range.start + slabs.positions.len() * SLAB;
        if end < range.end {
            LENGTH.store(end - range.start, Ordering::Release);
            // SAFETY: nobody has had these addresses.
            unsafe { memory::release(end, range.end - end) };
        }
    });
}

/// Works on the slabs, with what came back late; none where this thread must not.
fn with<R>(work: impl FnOnce(&mut Slabs) -> R) -> Option<R> {
    if IS_LOST.load(Ordering::Relaxed) {
        return None;
    }
    let inside = Inside::enter()?;
    let (mut slabs, is_contended) = match STATE.try_lock() {
        Ok(slabs) => (slabs, false),
        Err(TryLockError::Poisoned(slabs)) => (slabs.into_inner(), false),
        Err(TryLockError::WouldBlock) => {
            let kept = Errno::keep();
            let slabs = lock();
            drop(kept);
            (slabs, true)
        }
    };
    slabs.entered += 1;
    slabs.contended += usize::from(is_contended);
    DEFERRED.take(|block| slabs.put(block as usize));
    let result = work(&mut slabs);
    drop(slabs);
    drop(inside);
    Some(result)
}

fn lock() -> MutexGuard<'static, Slabs> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Frozen(UnsafeCell<Option<MutexGuard<'static, Slabs>>>);

// SAFETY: only the thread that has the lock looks at it.
unsafe impl Sync for Frozen {}

static FROZEN: Frozen = Frozen(UnsafeCell::new(None));

/// The process is about to be copied: the slabs stay as they are. Not for a thread that is inside already.
pub(crate) fn freeze() {
    if IS_LOST.load(Ordering::Relaxed) {
        return;
    }
    let guard = lock();
    // SAFETY: this thread has the lock now.
    unsafe { *FROZEN.0.get() = Some(guard) };
}

/// It was copied, by the thread that has frozen the slabs.
pub(crate) fn thaw() {
    // SAFETY: this thread has the lock.
    drop(unsafe { (*FROZEN.0.get()).take() });
}

/// In a forked child whose lock nobody can have: what is there stays as it is.
pub(crate) fn abandon() {
    IS_LOST.store(true, Ordering::Relaxed);
    IS_CLOSED.store(true, Ordering::Relaxed);
}

/// Addresses for all slabs; false where there are none to be had, or where they are limited.
fn begin() -> bool {
    if LENGTH.load(Ordering::Relaxed) > 0 {
        return true;
    }
    // One slab more than needed, so that the first can begin at a multiple.
    let bytes = (SLABS + 1) * SLAB;
    let Some(mapped) = (!process::is_limited()).then(|| memory::reserve(bytes)).flatten() else {
        retire();
        return false;
    };
    let base = mapped.next_multiple_of(SLAB);
    let end = base + SLABS * SLAB;
    // SAFETY: nobody knows these addresses.
    unsafe {
        if base > mapped {
            memory::release(mapped, base - mapped);
        }
        if mapped + bytes > end {
            memory::release(end, mapped + bytes - end);
        }
        memory::keep_small(base..end);
    }
    ARE_HUGE.store(HugePages::of_machine().mode() == Some(Mode::Always), Ordering::Relaxed);
    BASE.store(base, Ordering::Relaxed);
    LENGTH.store(end - base, Ordering::Release);
    true
}
