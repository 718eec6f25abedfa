//! Blocks that this thread has freed last, for its next ones of about their size: while the arena does not serve, the largest blocks that
//! glibc keeps no list for itself. They stay glibc's, so that any of them can go back to it, and they do when the thread ends, when memory
//! is trimmed and when the thread has more than its share.
//!
//! A thread's blocks are its own: nothing here is shared, and nothing waits.

#![expect(
    unsafe_code,
    reason = "keeps its lists in memory of the thread's own, and reads how large glibc's blocks are"
)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use lowtide_core::options::ArenaUse;

use crate::process::{evidence, lifecycle};
use crate::report::notice::give_up;
use crate::serving::large::LARGE;
use crate::serving::{thread, underlying};
use crate::settings::Settings;
use crate::system::errno::Errno;
use crate::system::{memory, threads};

/// The largest blocks that are kept.
pub(crate) const LARGEST: usize = 256 << 10;

/// Sizes between two powers of two are divided into so many classes.
const STEPS: usize = 8;
const CLASSES: usize = STEPS * (LARGEST / LARGE).ilog2() as usize;

/// How many blocks of a class a thread keeps, and how many bytes in all.
const SLOTS: usize = 8;
const MOST_BYTES: usize = 1 << 20;

/// How many bytes all threads may keep, and how much of that one takes at a time. Who comes late gets none: it has what glibc has.
const MOST_OF_ALL: usize = 4 << 20;
const SHARE: usize = 256 << 10;
static FREE_SHARES: AtomicUsize = AtomicUsize::new(MOST_OF_ALL / SHARE);

/// What a thread has asked for is counted after so many bytes.
const COUNTED: usize = 1 << 20;

/// Before a block of glibc lie its size and three flags; one of them says that it has a mapping of its own.
const FLAGS: usize = 7;
const MAPPED: usize = 2;
/// What no size has; blocks begin at multiples of [`ALIGN`]. Anything else is not glibc's, which says so itself.
const RESERVED: usize = 8;
const ALIGN: usize = 16;
/// How much of that size is not the program's.
const OVERHEAD: usize = 8;
/// How much of a free block glibc uses for its lists.
const NOTES: usize = 32;

#[derive(Clone, Copy)]
struct Bin {
    count: usize,
    blocks: [*mut c_void; SLOTS],
}

/// What a thread keeps.
pub(crate) struct Cache {
    /// Whether it is being changed: a signal handler that finds it so leaves it alone.
    is_busy: bool,
    bytes: usize,
    /// How many shares of what all threads may keep are this one's, and how many blocks it has freed since it had the last.
    shares: usize,
    freed: usize,
    /// What was asked for since it was last counted.
    asked: usize,
    bins: [Bin; CLASSES],
}

/// Stands for a thread that keeps nothing: it ends, or nobody wants it to.
const ENDED: *mut Cache = ptr::without_provenance_mut(SHORT_LIVED + 1);

/// How many blocks a thread frees before it keeps any, and again before it keeps a share more: glibc would hand out the same memory over and over,
/// and to touch other memory beside it costs faults. One that does little ends before that pays. At first the thread's word counts them.
const SHORT_LIVED: usize = 1024;

/// The key by which the C library ends a thread's cache; none before one was needed, or where there is none to be had.
static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);

/// How many bytes of blocks from before the arena may still be freed.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The smallest class whose blocks have `bytes`, which is not above [`LARGEST`].
fn class_above(bytes: usize) -> usize {
    let bytes = bytes.max(LARGE);
    let power = (bytes - 1).ilog2().max(LARGE.ilog2());
    let step = power - STEPS.ilog2();
    let beyond = bytes.saturating_sub(1 << power);
    STEPS * (power - LARGE.ilog2()) as usize + ((beyond + (1 << step) - 1) >> step)
}

/// What the blocks of a class have at least.
fn size_of_class(class: usize) -> usize {
    let power = LARGE << (class / STEPS);
    power + class % STEPS * (power / STEPS)
}

/// The largest class whose blocks need no more than `bytes`, which is at least [`LARGE`].
fn class_below(bytes: usize) -> usize {
    let power = bytes.ilog2();
    STEPS * (power - LARGE.ilog2()) as usize + ((bytes - (1 << power)) >> (power - STEPS.ilog2()))
}

/// How much to ask glibc for so that a block of `bytes` can serve all of its class.
pub(crate) fn rounded(bytes: usize) -> usize {
    if bytes <= LARGEST && known().is_some() { size_of_class(class_above(bytes)) } else { bytes }
}

/// A block of at least `bytes` that this thread has freed.
#[inline]
pub(crate) fn take(bytes: usize) -> Option<*mut c_void> {
    if bytes > LARGEST || lifecycle::serving().is_some() {
        return None;
    }
    let cache = known()?;
    let class = class_above(bytes);
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    let cache = unsafe { cache.as_mut().filter(|cache| !cache.is_busy)? };
    if cache.asked > COUNTED {
        count_asked(cache);
    }
    begin(&mut cache.is_busy);
    let block = cache.bins.get_mut(class).filter(|bin| bin.count > 0).map(|bin| {
        bin.count -= 1;
        bin.blocks[bin.count]
    });
    if block.is_some() {
        cache.bytes -= size_of_class(class);
        cache.asked += bytes;
    }
    end(&mut cache.is_busy);
    block
}

/// Has what was asked for counted.
#[cold]
fn count_asked(cache: &mut Cache) {
    evidence::add(std::mem::take(&mut cache.asked) as u64);
}

/// Keeps a block that the program frees, where it is one to be kept. What is not kept is the underlying allocator's.
///
/// # Safety
/// The block came from the underlying allocator, and nobody uses it any more.
#[inline]
pub(crate) unsafe fn put(block: *mut c_void) -> bool {
    if block.is_null() || !underlying::is_plain_glibc() {
        return false;
    }
    // SAFETY: all of glibc's blocks are preceded by their size.
    let header = unsafe { block.cast::<usize>().sub(1).read() };
    let bytes = (header & !FLAGS).wrapping_sub(OVERHEAD);
    let is_odd = header & (MAPPED | RESERVED) != 0 || !(block as usize).is_multiple_of(ALIGN);
    if is_odd || bytes < LARGE {
        return false;
    }
    // SAFETY: the caller's.
    unsafe { keep(block, bytes) }
}

/// As [`put`], of a block of `bytes`.
#[inline(never)]
unsafe fn keep(block: *mut c_void, bytes: usize) -> bool {
    if lifecycle::serving().is_some() {
        trim();
        // SAFETY: the caller's.
        unsafe { leave(block, bytes) };
        return false;
    }
    if bytes >= LARGEST {
        return false;
    }
    let Some(cache) = known().or_else(begin_cache) else { return false };
    let class = class_below(bytes);
    let size = size_of_class(class);
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    let Some(cache) = (unsafe { cache.as_mut().filter(|cache| !cache.is_busy) }) else { return false };
    begin(&mut cache.is_busy);
    let has_room = has_room(cache, size);
    let is_kept = cache.bins.get_mut(class).is_some_and(|bin| {
        if bin.blocks[..bin.count].contains(&block) {
            give_up(format_args!("free(): double free of the block at {block:p}"));
        }
        let is_kept = has_room && bin.count < SLOTS;
        if is_kept {
            bin.blocks[bin.count] = block;
            bin.count += 1;
        }
        is_kept
    });
    if is_kept {
        cache.bytes += size;
    }
    end(&mut cache.is_busy);
    is_kept
}

/// The arena has just been made: what glibc has handed out by now will not be needed again once it is freed.
pub(crate) fn begin_to_leave() {
    // Pages of 2 MiB and more are not given back in parts, and some systems round a part up.
    let has_huge = std::env::var_os("GLIBC_TUNABLES").is_some_and(|set| set.to_string_lossy().contains("hugetlb"));
    if underlying::is_plain_glibc() && !has_huge {
        LEFT.store(underlying::mallinfo2().uordblks, Ordering::Relaxed);
    }
}

/// New blocks come from glibc again.
pub(crate) fn stop_leaving() {
    LEFT.store(0, Ordering::Relaxed);
}

/// Whether a cache may have so many bytes more.
fn has_room(cache: &mut Cache, bytes: usize) -> bool {
    cache.freed += 1;
    if cache.bytes + bytes <= cache.shares * SHARE {
        return true;
    }
    let one_less = |free: usize| free.checked_sub(1);
    if cache.freed < SHORT_LIVED
        || cache.shares * SHARE >= MOST_BYTES
        || FREE_SHARES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
    {
        return false;
    }
    cache.shares += 1;
    cache.freed = 0;
    cache.bytes + bytes <= cache.shares * SHARE
}

/// In a forked child, the other threads are gone, and what they have kept is nobody's.
pub(crate) fn forget() {
    // SAFETY: it is this thread's.
    let own = known().map_or(0, |cache| unsafe { (*cache).shares });
    FREE_SHARES.store((MOST_OF_ALL / SHARE).saturating_sub(own), Ordering::Relaxed);
}

/// Gives the pages of a block back that is about to be freed and may be from before the arena: glibc would keep them for the next of its size,
/// and that comes from the arena.
///
/// # Safety
/// As of [`put`]. What glibc itself writes to a free block is at its ends.
#[cold]
unsafe fn leave(block: *mut c_void, bytes: usize) {
    if LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_err() {
        return;
    }
    let page = memory::page_size();
    let (start, end) = (block as usize + NOTES, block as usize + bytes - OVERHEAD);
    let pages = start.next_multiple_of(page)..end / page * page;
    if !pages.is_empty() {
        // SAFETY: the caller's: nobody uses what is in these pages any more.
        unsafe { memory::discard(pages) };
    }
}

/// The cache of this thread, where it has one and does not end.
#[inline]
fn known() -> Option<*mut Cache> {
    let cache = thread::cache();
    (cache.addr() > ENDED.addr()).then_some(cache)
}

/// Makes a cache for this thread; none where the C library would not say when it ends.
#[cold]
fn begin_cache() -> Option<*mut Cache> {
    let freed = thread::cache().addr();
    if freed < SHORT_LIVED {
        thread::set_cache(ptr::without_provenance_mut(freed + 1));
        return None;
    }
    if thread::cache() == ENDED || thread::is_inside() {
        return None;
    }
    if Settings::get().is_some_and(|settings| settings.arena_use == ArenaUse::Never) {
        thread::set_cache(ENDED);
        return None;
    }
    let kept = Errno::keep();
    let cache = make_cache();
    drop(kept);
    cache
}

fn make_cache() -> Option<*mut Cache> {
    if !HAS_KEY.load(Ordering::Acquire) {
        // Two threads may come here at once: then one key is of no use.
        KEY.store(threads::key(end_cache)?, Ordering::Relaxed);
        HAS_KEY.store(true, Ordering::Release);
    }
    let empty = Cache {
        is_busy: false,
        bytes: 0,
        shares: 0,
        freed: SHORT_LIVED,
        asked: 0,
        bins: [Bin { count: 0, blocks: [ptr::null_mut(); SLOTS] }; CLASSES],
    };
    // SAFETY: memory for one, which is written before it is read.
    let cache = unsafe { underlying::malloc(size_of::<Cache>()) }.cast::<Cache>();
    if cache.is_null() {
        return None;
    }
    // SAFETY: as above; what `malloc` gives is aligned for everything.
    unsafe { cache.write(empty) };
    thread::set_cache(cache);
    if !threads::set_for_key(KEY.load(Ordering::Relaxed), cache.cast()) {
        give_back(cache);
        thread::set_cache(ptr::null_mut());
        return None;
    }
    Some(cache)
}

/// The thread ends: what it has kept goes back.
extern "C" fn end_cache(cache: *mut c_void) {
    thread::set_cache(ENDED);
    give_back(cache.cast());
}

/// Gives back all that a cache has, and the cache.
fn give_back(cache: *mut Cache) {
    // SAFETY: the cache was made by `begin_cache`, and nobody knows of it any more.
    unsafe {
        empty(&mut *cache);
        FREE_SHARES.fetch_add((*cache).shares, Ordering::Relaxed);
        underlying::free(cache.cast());
    }
}

/// Gives back all that this thread keeps.
pub(crate) fn trim() {
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    if let Some(cache) = known().and_then(|cache| unsafe { cache.as_mut().filter(|cache| !cache.is_busy) }) {
        empty(cache);
    }
}

fn empty(cache: &mut Cache) {
    begin(&mut cache.is_busy);
    for bin in &mut cache.bins {
        for &block in &bin.blocks[..bin.count] {
            // SAFETY: a block of the underlying allocator that the program has freed.
            unsafe { underlying::free(block) };
        }
        bin.count = 0;
    }
    cache.bytes = 0;
    end(&mut cache.is_busy);
}

/// A change begins. The write may not move behind what follows, because a handler may look at it in between.
#[inline]
fn begin(is_busy: &mut bool) {
    // SAFETY: a place of this thread's own.
    unsafe { ptr::from_mut(is_busy).write_volatile(true) };
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// It is over.
#[inline]
fn end(is_busy: &mut bool) {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    // SAFETY: as in `begin`.
    unsafe { ptr::from_mut(is_busy).write_volatile(false) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_cover_all_sizes() {
        for class in 0..CLASSES {
            let size = size_of_class(class);
            assert_eq!((class_above(size), class_below(size)), (class, class), "{size}");
            assert_eq!((class_above(size + 1), class_below(size + 1)), (class + 1, class), "{size}");
            assert!(size_of_class(class + 1) > size);
            assert!((size_of_class(class + 1) - size) * STEPS <= size, "no more than an eighth is lost");
        }
        assert_eq!((size_of_class(0), size_of_class(CLASSES)), (LARGE, LARGEST));
        assert_eq!((class_above(LARGE), class_above(LARGEST), class_below(LARGEST - 1)), (0, CLASSES, CLASSES - 1));
    }
}
