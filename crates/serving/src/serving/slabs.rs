//! Blocks of 32 KiB to 8 MiB by size class, for programs that replace many of them while the arena does not serve. glibc searches its lists for
//! each of these, splits and joins them, and so touches ever other pages; here a block of a class is handed out again as it is. Blocks above
//! 1 MiB are served where the program touches little of them, and only then.
//!
//! A slab is a stretch of addresses that is cut into blocks of one class. Its pages come from the system as they are touched. Free blocks whose
//! pages are resident are handed out before others, lowest addresses first, also for requests of the next smaller classes; beyond a part of
//! what is in use, pages of free blocks go back to the system, highest addresses first. How much of a free block is resident is looked up now
//! and then: many programs touch little of what they ask for.
//!
//! Threads keep some blocks for themselves ([`cache`](super::cache)) and come here for the others, under one lock.

#![expect(unsafe_code, reason = "hands out pages of its own")]

mod state;
mod suitability;

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use lowtide_memory::system::files::huge_pages::{HugePages, Mode};

use crate::process::alterations;
use crate::serving::classes::{Kind, size_of_class};
use crate::serving::deferred::Deferred;
use crate::serving::leaving;
use crate::serving::thread::Inside;
use crate::system::errno::Errno;
use crate::system::{memory, process};
use state::Slabs;
pub(crate) use suitability::Phase;
use suitability::Standing;

/// The addresses of slabs are handed out in pieces of so many bytes.
const PIECE: usize = 4 << 20;
/// How many pieces a slab of larger blocks has. A slab has no more blocks than a word has bits.
const PIECES_OF_LARGER: usize = 4;
const MOST: usize = 128;
const _: () = assert!(PIECE / size_of_class(0) <= MOST);

/// What blocks begin at multiples of.
pub(crate) const ALIGN: usize = 4 << 10;

/// How many pieces there are.
const PIECES: usize = 1 << 14;

/// A request takes a free block of its class, or else of one of so many larger classes.
pub(crate) const HIGHER: usize = 2;

/// While it is not known yet whether slabs suit the program, one of so many requests is served, so that little is lost where they do not.
pub(crate) const TRIED: usize = 8;

/// Where the slabs are; no bytes before there are any.
static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// The class of the blocks of each piece.
static CLASS: [AtomicU8; PIECES] = [const { AtomicU8::new(0) }; PIECES];
/// Whether glibc's blocks have huge pages without asking, which is better where all of them is touched.
static ARE_HUGE: AtomicBool = AtomicBool::new(false);
/// Whether nothing may be asked of the system: what there is serves on.
static IS_QUIET: AtomicBool = AtomicBool::new(false);
/// Whether free blocks may be locked.
static IS_LOCKED: AtomicBool = AtomicBool::new(false);
/// Whether the lock may be held by a thread that is gone: what is freed from now on stays where it is.
static IS_LOST: AtomicBool = AtomicBool::new(false);

static STATE: Mutex<Slabs> = Mutex::new(Slabs::new());
/// Blocks that came back while their thread was inside.
static DEFERRED: Deferred = Deferred::new();

/// Where a block of a slab is, in half a pointer's bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Address(u32);

const _: () = assert!(PIECES * PIECE / ALIGN < u32::MAX as usize);

impl Address {
    /// Nowhere.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// That of a block; none where no block begins.
    #[inline]
    pub(crate) fn of(block: *const c_void) -> Option<Self> {
        let offset = (block as usize).wrapping_sub(BASE.load(Ordering::Relaxed));
        offset.is_multiple_of(ALIGN).then_some(Self((offset / ALIGN) as u32))
    }

    /// The block that is there.
    #[inline]
    pub(crate) fn block(self) -> *mut c_void {
        (BASE.load(Ordering::Relaxed) + self.0 as usize * ALIGN) as *mut c_void
    }
}

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
    let piece = (block as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) / PIECE;
    CLASS.get(piece).map_or(0, |class| usize::from(class.load(Ordering::Relaxed)))
}

/// The bytes of a block.
pub(crate) fn size(block: *const c_void) -> usize {
    size_of_class(class(block))
}

/// A block of a class.
#[inline(never)]
pub(crate) fn take(class: usize) -> Option<*mut c_void> {
    if phase(class) == Phase::Closed {
        return None;
    }
    with(|slabs| slabs.take(class)).flatten().map(|block| block as *mut c_void)
}

/// Whether blocks of a class come from here.
#[inline]
pub(crate) fn phase(class: usize) -> Phase {
    Standing::of(Kind::of(class)).phase()
}

/// Whether there are slabs, and they serve all blocks of a kind.
pub(crate) fn are_serving() -> bool {
    LENGTH.load(Ordering::Relaxed) > 0 && Kind::ALL.iter().any(|&kind| Standing::of(kind).phase() == Phase::Serving)
}

/// Whether little of the program's blocks of a kind is resident.
pub(crate) fn are_sparse(kind: Kind) -> bool {
    Standing::of(kind).is_sparse()
}

/// No new blocks of a kind come from here any more.
fn retire(kind: Kind) {
    Standing::of(kind).close();
    leaving::stop(kind);
}

/// No new blocks come from here any more.
pub(crate) fn retire_all() {
    for kind in Kind::ALL {
        retire(kind);
    }
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
    with(Slabs::purge_all).unwrap_or(0)
}

/// From now on nothing is asked of the system.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
    Kind::ALL.into_iter().for_each(leaving::stop);
}

/// How many blocks are handed out, and their bytes.
pub(crate) fn live() -> (usize, usize) {
    with(|slabs| (slabs.blocks, slabs.live())).unwrap_or_default()
}

/// No new blocks come from here, and what is free cannot be touched any more: the system is about to lock all that can.
pub(crate) fn close() {
    retire_all();
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
        let end = range.start + slabs.pieces() * PIECE;
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
    slabs.is_contended = is_contended;
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
    for kind in Kind::ALL {
        Standing::of(kind).close();
    }
}

/// Addresses for all slabs; false where there are none to be had, or where they are limited.
fn begin() -> bool {
    if LENGTH.load(Ordering::Relaxed) > 0 {
        return true;
    }
    // One piece more than needed, so that the first can begin at a multiple.
    let bytes = (PIECES + 1) * PIECE;
    let Some(mapped) = (!process::is_limited()).then(|| memory::reserve(bytes)).flatten() else {
        retire_all();
        return false;
    };
    let base = mapped.next_multiple_of(PIECE);
    let end = base + PIECES * PIECE;
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
