//! Blocks that this thread has freed last, for its next ones of about their size. While the arena does not serve they are of [`slabs`], and go back
//! there when the thread ends, when memory is trimmed and when the thread has more than its share. A thread that replaces many blocks of 32 KiB to
//! 8 MiB has such a cache, and its blocks are glibc's until then.
//!
//! While the arena serves, they are small [aligned](super::aligned) ones of glibc's.
//!
//! A thread's blocks are its own: nothing here is shared, and nothing waits.

#![expect(
    unsafe_code,
    reason = "keeps its lists in memory of the thread's own, and reads how large glibc's blocks are"
)]
#![expect(clippy::inline_always, reason = "a block of a few nanoseconds is taken and put in one function each")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use lowtide_core::options::ArenaUse;

use crate::process::{evidence, lifecycle};
use crate::report::notice::give_up;
use crate::serving::aligned::{self, Aligned};
use crate::serving::classes::{Kind, LARGE_CLASSES, LARGEST, class_of, size_of_class};
use crate::serving::large::LARGE;
use crate::serving::slabs::{Address, HIGHER, Phase};
use crate::serving::{leaving, slabs, thread, underlying};
use crate::settings::Settings;
use crate::system::errno::Errno;
use crate::system::threads;

/// How many blocks of a class a thread keeps: as many as lie in a line of the processor's cache, beside their count.
const SLOTS: usize = 15;
/// How many bytes a thread and all threads keep, and the same where blocks are sparse, of which little is resident.
const DENSE: Most = Most { of_thread: 1 << 20, of_all: 4 << 20 };
const SPARSE: Most = Most { of_thread: 16 << 20, of_all: 48 << 20 };
/// A thread may keep so much more at a time. Who comes late gets none.
const SHARE: usize = 256 << 10;
/// How many shares the threads have.
static SHARES: AtomicUsize = AtomicUsize::new(0);

struct Most {
    of_thread: usize,
    of_all: usize,
}

/// What a thread has asked for is counted after so many bytes.
const COUNTED: usize = 1 << 20;

/// Before a block of glibc lie its size and three flags; one of them says that it has a mapping of its own.
const FLAGS: usize = 7;
const MAPPED: usize = 2;
/// What no size has; blocks begin at multiples of [`ALIGN`]. Anything else is not glibc's, which says so itself.
const RESERVED: usize = 8;
const ALIGN: usize = 16;
/// How much of that size is not the program's.
pub(super) const OVERHEAD: usize = 8;

/// Free blocks of a class; none behind the last.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bin {
    count: u32,
    blocks: [Address; SLOTS],
}

const _: () = assert!(size_of::<Bin>() == 64);

/// What a thread keeps.
pub(crate) struct Cache {
    /// Whether it is being changed: a signal handler that finds it so leaves it alone.
    is_busy: bool,
    bytes: usize,
    /// What it may have, which is so many shares of what all threads may keep, and how many blocks it has freed since it had the last.
    may_have: usize,
    shares: usize,
    freed: usize,
    /// How often a block of each kind was asked for while slabs were on trial.
    tried: [usize; Kind::ALL.len()],
    /// What was asked for since it was last counted.
    asked: usize,
    /// Which bins have a block, a bit each.
    filled: u64,
    bins: [Bin; LARGE_CLASSES],
    aligned: Aligned,
}

const _: () = assert!(LARGE_CLASSES + HIGHER <= u64::BITS as usize);

/// Stands for a thread that keeps nothing: it ends, or nobody wants it to.
const ENDED: *mut Cache = ptr::without_provenance_mut(SHORT_LIVED + 1);

/// How many blocks a thread frees before it keeps any, and again before it keeps a share more: glibc would hand out the same memory over and over,
/// and to touch other memory beside it costs faults. One that does little ends before that pays. At first the thread's word counts them.
const SHORT_LIVED: usize = 1024;

/// The key by which the C library ends a thread's cache; none before one was needed, or where there is none to be had.
static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);

/// A block of at least `bytes` for a thread that has a cache: one that it has freed, or another of a slab.
#[inline(always)]
pub(crate) fn take(bytes: usize) -> Option<*mut c_void> {
    if bytes > LARGEST {
        return None;
    }
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    let cache = unsafe { known()?.as_mut().filter(|cache| !cache.is_busy)? };
    let class = class_of(bytes);
    match slabs::phase(class) {
        Phase::Serving => {}
        Phase::OnTrial if is_tried(cache, class) => {}
        Phase::OnTrial => return None,
        Phase::Closed => {
            if Kind::of(class) == Kind::Large {
                forsake(cache);
            }
            return None;
        }
    }
    begin(&mut cache.is_busy);
    // As a rule its own class has a block.
    let found = if cache.filled >> class & 1 != 0 { class } else { higher(cache, class) };
    let kept = cache.bins.get_mut(found).map_or(Address::NONE, |bin| {
        bin.count -= 1;
        cache.filled &= !(u64::from(bin.count == 0) << found);
        cache.bytes -= size_of_class(found);
        let place = bin.blocks.get_mut(bin.count as usize);
        place.map_or(Address::NONE, |place| std::mem::replace(place, Address::NONE))
    });
    end(&mut cache.is_busy);
    let block = if kept == Address::NONE { slabs::take(class)? } else { kept.block() };
    cache.asked += bytes;
    if cache.asked > COUNTED {
        count_asked(cache);
    }
    Some(block)
}

/// The next larger class that has a block; none that there is where it would be much larger.
#[inline]
fn higher(cache: &Cache, class: usize) -> usize {
    let filled = cache.filled >> class & ((1 << (HIGHER + 1)) - 1);
    class + filled.trailing_zeros() as usize
}

/// Whether this is one of the few blocks that slabs are asked for while they are on trial.
#[cold]
fn is_tried(cache: &mut Cache, class: usize) -> bool {
    let tried = &mut cache.tried[Kind::of(class) as usize];
    *tried = tried.wrapping_add(1);
    tried.is_multiple_of(slabs::TRIED)
}

/// Blocks do not come from slabs any more: gives back what is kept for nothing.
#[inline]
fn forsake(cache: &mut Cache) {
    if cache.bytes > 0 {
        empty(cache);
    }
}

/// Has what was asked for counted, of which the arena may be worth making. A cache that became large while blocks were sparse becomes smaller again
/// where they are not any more.
#[cold]
fn count_asked(cache: &mut Cache) {
    evidence::add(std::mem::take(&mut cache.asked) as u64);
    if cache.shares > DENSE.of_thread / SHARE && !slabs::are_sparse(Kind::Large) {
        empty(cache);
        begin(&mut cache.is_busy);
        let too_many = cache.shares.saturating_sub(DENSE.of_thread / SHARE);
        cache.shares -= too_many;
        cache.may_have = cache.shares * SHARE;
        end(&mut cache.is_busy);
        SHARES.fetch_sub(too_many, Ordering::Relaxed);
    }
}

/// Takes a block of a slab back.
///
/// # Safety
/// It is one, and nobody uses it any more.
#[inline(never)]
pub(crate) unsafe extern "C" fn put(block: *mut c_void) {
    // SAFETY: the caller's; the cache is this thread's, and no handler that has interrupted it is changing it.
    unsafe {
        slabs::make_usual(block);
        let cache = known().and_then(|cache| cache.as_mut().filter(|cache| !cache.is_busy));
        if !cache.is_some_and(|cache| keep(cache, block)) {
            put_back(block);
        }
    }
}

/// A block that is not kept goes back, and the thread may have a cache next time.
#[cold]
#[inline(never)]
unsafe fn put_back(block: *mut c_void) {
    if known().is_none() {
        begin_cache();
    }
    // SAFETY: the caller's.
    unsafe { slabs::put(block) };
}

/// Keeps a block of a slab, where there is room for it. Those above 1 MiB are few, and go back at once.
#[inline(always)]
fn keep(cache: &mut Cache, block: *mut c_void) -> bool {
    let class = slabs::class(block);
    let Some(address) = Address::of(block).filter(|_| Kind::of(class) == Kind::Large) else { return false };
    if slabs::phase(class) != Phase::Serving {
        forsake(cache);
        return false;
    }
    let Some(bin) = cache.bins.get_mut(class) else { return false };
    begin(&mut cache.is_busy);
    // All are compared at once, because how many there are cannot be predicted.
    if bin.blocks.iter().fold(0, |same, &kept| same | u32::from(kept == address)) != 0 {
        accuse(block);
    }
    let size = size_of_class(class);
    cache.freed += 1;
    if cache.bytes + size > cache.may_have {
        grow(&mut cache.shares, &mut cache.freed, &mut cache.may_have);
    }
    let has_room = cache.bytes + size <= cache.may_have;
    let place = bin.blocks.get_mut(bin.count as usize).filter(|_| has_room);
    let is_kept = place.is_some();
    if let Some(place) = place {
        *place = address;
        bin.count += 1;
        cache.filled |= 1 << class;
        cache.bytes += size;
    }
    end(&mut cache.is_busy);
    is_kept
}

#[cold]
fn accuse(block: *mut c_void) {
    give_up(format_args!("free(): double free of the block at {block:p}"));
}

/// A small block at a multiple of [`aligned::ALIGN`], for a thread that asks for many, where the arena serves.
///
/// # Safety
/// As of the C library; `bytes` are fewer than of a large block.
#[inline]
pub(crate) unsafe fn take_aligned(bytes: usize) -> Option<*mut c_void> {
    if lifecycle::serving().is_none() || !underlying::is_plain_glibc() {
        return None;
    }
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    let cache = unsafe { known().or_else(begin_cache)?.as_mut().filter(|cache| !cache.is_busy)? };
    begin(&mut cache.is_busy);
    let kept = cache.aligned.take(bytes);
    end(&mut cache.is_busy);
    // SAFETY: the caller's.
    Some(kept.unwrap_or_else(|| unsafe { aligned::new(bytes) }))
}

/// Whether [`put_other`] has anything to do with a block that is neither the arena's nor of a slab: a large one, or a small one that a thread may keep.
///
/// # Safety
/// The block came from the underlying allocator, and nobody uses it any more.
#[inline]
pub(crate) unsafe fn concerns(block: *mut c_void) -> bool {
    if block.is_null() || !underlying::is_plain_glibc() {
        return false;
    }
    // SAFETY: all of glibc's blocks are preceded by their size.
    let header = unsafe { block.cast::<usize>().sub(1).read() };
    header >= LARGE + OVERHEAD || (block as usize).is_multiple_of(aligned::ALIGN) && lifecycle::serving().is_some()
}

/// Frees such a block, unless it is kept instead. Where it is one of glibc's large ones, this thread may need a cache soon, and what is from before
/// the cache or the arena goes back to the system.
///
/// # Safety
/// As of [`concerns`].
#[inline(never)]
pub(crate) unsafe extern "C" fn put_other(block: *mut c_void) {
    // SAFETY: the caller's; all of glibc's blocks are preceded by their size.
    unsafe {
        let header = block.cast::<usize>().sub(1).read();
        let bytes = (header & !FLAGS).wrapping_sub(OVERHEAD);
        let is_odd = header & (MAPPED | RESERVED) != 0 || !(block as usize).is_multiple_of(ALIGN);
        if !is_odd && bytes >= LARGE {
            leaves_large(block, bytes);
        } else if !is_odd && keep_aligned(block, bytes) {
            return;
        }
        underlying::free(block);
    }
}

/// Keeps a small block of glibc's, where there is room for it.
#[inline]
unsafe fn keep_aligned(block: *mut c_void, bytes: usize) -> bool {
    // SAFETY: the cache is this thread's, and no handler that has interrupted it is changing it.
    let Some(cache) = known().and_then(|cache| unsafe { cache.as_mut().filter(|cache| !cache.is_busy) }) else {
        return false;
    };
    begin(&mut cache.is_busy);
    // SAFETY: the caller's.
    let is_kept = unsafe { cache.aligned.keep(block, bytes) };
    end(&mut cache.is_busy);
    is_kept
}

unsafe fn leaves_large(block: *mut c_void, bytes: usize) {
    if lifecycle::serving().is_some() {
        // SAFETY: as in `keep_aligned`.
        let cache = known().and_then(|cache| unsafe { cache.as_mut().filter(|cache| !cache.is_busy) });
        if let Some(cache) = cache {
            forsake(cache);
        }
    } else if bytes > LARGEST || known().or_else(begin_cache).is_none() {
        return;
    }
    // SAFETY: the caller's.
    unsafe { leaving::give_pages_back(block, bytes) };
}

/// Lets a cache that is full have a share more, unless it has all that it may have by now.
#[cold]
fn grow(shares: &mut usize, freed: &mut usize, may_have: &mut usize) {
    let most = if slabs::are_sparse(Kind::Large) { SPARSE } else { DENSE };
    let one_more = |shares: usize| (shares < most.of_all / SHARE).then_some(shares + 1);
    if *freed < SHORT_LIVED
        || *shares >= most.of_thread / SHARE
        || SHARES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err()
    {
        return;
    }
    *shares += 1;
    *may_have = *shares * SHARE;
    *freed = 0;
}

/// In a forked child, the other threads are gone, and what they have kept is nobody's.
pub(crate) fn forget() {
    // SAFETY: it is this thread's.
    let own = known().and_then(|cache| unsafe { cache.as_ref() });
    SHARES.store(own.map_or(0, |cache| cache.shares), Ordering::Relaxed);
    aligned::forget(own.map(|cache| &cache.aligned));
}

/// The cache of this thread, where it has one and does not end.
#[inline(always)]
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
    if Settings::get().is_none_or(|settings| settings.arena_use == ArenaUse::Never || settings.is_heap_huge) {
        thread::set_cache(ENDED);
        return None;
    }
    let kept = Errno::keep();
    // A handler that comes in between makes none of its own.
    thread::set_cache(ENDED);
    let cache = make_cache();
    if cache.is_none() {
        thread::set_cache(ptr::null_mut());
    }
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
        may_have: 0,
        shares: 0,
        freed: SHORT_LIVED,
        tried: [0; Kind::ALL.len()],
        asked: 0,
        filled: 0,
        bins: [Bin { count: 0, blocks: [Address::NONE; SLOTS] }; LARGE_CLASSES],
        aligned: Aligned::new(),
    };
    // SAFETY: memory for one, which is written before it is read.
    let cache = unsafe { underlying::memalign(align_of::<Cache>(), size_of::<Cache>()) }.cast::<Cache>();
    if cache.is_null() {
        return None;
    }
    // SAFETY: as above.
    unsafe { cache.write(empty) };
    thread::set_cache(cache);
    if !threads::set_for_key(KEY.load(Ordering::Relaxed), cache.cast()) {
        thread::set_cache(ENDED);
        give_back(cache);
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
    // SAFETY: the cache was made by `make_cache`, and nobody knows of it any more.
    unsafe {
        empty(&mut *cache);
        empty_aligned(&mut *cache);
        (*cache).aligned.end();
        SHARES.fetch_sub((*cache).shares, Ordering::Relaxed);
        underlying::free(cache.cast());
    }
}

/// Gives back all that this thread keeps.
pub(crate) fn trim() {
    // SAFETY: it is this thread's, and no handler that has interrupted it is changing it.
    if let Some(cache) = known().and_then(|cache| unsafe { cache.as_mut().filter(|cache| !cache.is_busy) }) {
        empty(cache);
        empty_aligned(cache);
    }
}

fn empty_aligned(cache: &mut Cache) {
    begin(&mut cache.is_busy);
    cache.aligned.empty();
    end(&mut cache.is_busy);
}

/// Gives back all blocks of slabs.
fn empty(cache: &mut Cache) {
    begin(&mut cache.is_busy);
    for bin in &mut cache.bins {
        for address in bin.blocks.iter_mut().take(bin.count as usize) {
            // SAFETY: a block of a slab that the program has freed.
            unsafe { slabs::put(std::mem::replace(address, Address::NONE).block()) };
        }
        bin.count = 0;
    }
    cache.filled = 0;
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
