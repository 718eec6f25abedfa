//! Large blocks: the arena's where it serves, and otherwise the underlying allocator's. No call into the arena leaves a
//! panic or a changed `errno` behind, and none is made by a thread that is in such a call already.

#![expect(unsafe_code, reason = "moves the contents of blocks")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use lowtide_memory::Pages;
use lowtide_pool::{Error, HostArena};

use crate::process::{alterations, lifecycle};
use crate::report::notice::give_up;
use crate::service;
use crate::serving::thread::Inside;
use crate::serving::{cache, deferred, exports, nested, slabs, thread, underlying, zeroing};
use crate::settings::Settings;
use crate::system::errno::{Errno, set_errno};
use crate::system::memory;

pub(crate) use lowtide_core::preload::LARGE;

/// From here on `calloc` goes to the underlying allocator: glibc always maps such blocks from fresh pages, of which only
/// those that are touched ever become resident.
const SPARSE: usize = 32 << 20;

/// A block of this size that has to move to grow goes to the underlying allocator, and stays there as it grows on: glibc
/// maps it alone, and the system moves its pages without copying.
const MAPPED: usize = 1 << 20;

/// How much of such a block is copied at a time, and what the parts end at multiples of.
const AT_ONCE: usize = 32 << 20;
const HUGE: usize = 2 << 20;

/// What blocks of the arena begin at multiples of.
const ALIGN: usize = 64;

/// `malloc`.
#[inline(never)]
pub(crate) unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    if let Some(block) = cache::take(bytes) {
        return block;
    }
    match take(bytes, ALIGN) {
        Some(block) => block,
        // SAFETY: the caller's.
        None => unsafe { underlying::malloc(bytes) },
    }
}

/// `memalign`.
#[inline(never)]
pub(crate) unsafe extern "C" fn allocate_aligned(align: usize, bytes: usize) -> *mut c_void {
    if align.is_power_of_two()
        && align <= slabs::ALIGN
        && let Some(block) = cache::take(bytes)
    {
        return block;
    }
    match align.is_power_of_two().then(|| take(bytes, align.max(ALIGN))).flatten() {
        Some(block) => block,
        // SAFETY: the caller's.
        None => unsafe { underlying::memalign(align, bytes) },
    }
}

/// `calloc`.
#[inline(never)]
pub(crate) unsafe extern "C" fn allocate_zeroed(bytes: usize) -> *mut c_void {
    if bytes < SPARSE
        && let Some(block) = take_zeroed(bytes)
    {
        return block;
    }
    // SAFETY: the caller's.
    unsafe { underlying::calloc(1, bytes) }
}

/// `free` of a block of the arena.
#[inline(never)]
pub(crate) unsafe extern "C" fn release(block: *mut c_void) {
    let Some(arena) = lifecycle::serving() else { return };
    if alterations::exist()
        && let Some(bytes) = known_size(block)
    {
        // SAFETY: the caller's: the block is the arena's, and nobody uses it any more.
        unsafe { alterations::undo(block as usize..block as usize + bytes) };
    }
    let Some(freed) = call(Some(arena), |arena| arena.free(block as u64)) else {
        if thread::is_inside() {
            // SAFETY: the caller's: the block is the arena's, and nobody uses it any more.
            unsafe { deferred::ARENA.put(block) };
        }
        return;
    };
    service::handed(0);
    if let Err(error) = freed {
        accuse("free()", block, &error);
    }
}

/// `realloc` of a block of the arena.
#[inline(never)]
pub(crate) unsafe extern "C" fn resize(block: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 {
        // SAFETY: the caller's.
        unsafe { release(block) };
        return ptr::null_mut();
    }
    if isize::try_from(bytes).is_err() {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    }
    if bytes < LARGE {
        // SAFETY: the caller's; the old block has at least `LARGE` bytes.
        return unsafe { moved(block, underlying::malloc(bytes), bytes) };
    }
    if alterations::exist()
        && let Some(old) = known_size(block).filter(|&old| bytes < old)
    {
        // SAFETY: the caller's: what is behind the new end is no longer in use.
        unsafe { alterations::undo(block as usize + bytes..block as usize + old) };
    }
    match call(lifecycle::serving(), |arena| arena.resize(block as u64, bytes as u64)) {
        Some(Ok(true)) => return block,
        Some(Err(error)) => accuse("realloc()", block, &error),
        Some(Ok(false)) | None => {}
    }
    // SAFETY: the caller's.
    unsafe {
        match known_size(block) {
            Some(old) if old >= MAPPED && bytes > old => moved_out(block, old, bytes),
            Some(old) => moved(block, allocate(bytes), old.min(bytes)),
            None => salvaged(block, allocate(bytes), bytes),
        }
    }
}

/// `realloc` of a block of a slab. One that has to move to grow goes to the underlying allocator, and stays there as it grows on.
#[inline(never)]
pub(crate) unsafe extern "C" fn resize_in_slab(block: *mut c_void, bytes: usize) -> *mut c_void {
    let old = slabs::size(block);
    // SAFETY: the caller's.
    unsafe {
        if bytes == 0 {
            cache::put(block);
            return ptr::null_mut();
        }
        if bytes > old / 2 && bytes <= old {
            return block;
        }
        let new = if bytes < old { exports::malloc(bytes) } else { underlying::malloc(bytes) };
        if new.is_null() && bytes < old {
            return block;
        }
        if !new.is_null() {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old.min(bytes));
            cache::put(block);
        }
        new
    }
}

/// `realloc`, to a large size, of a block that is neither the arena's nor of a slab.
#[inline(never)]
pub(crate) unsafe extern "C" fn grow(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        if block.is_null() {
            return allocate(bytes);
        }
        let old = underlying::usable(block);
        if old == 0 || old >= LARGE {
            return underlying::realloc(block, bytes);
        }
        let Some(new) = take(bytes, ALIGN) else { return underlying::realloc(block, bytes) };
        ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), old.min(bytes));
        underlying::free(block);
        new
    }
}

/// `malloc_usable_size` of a block of the arena: where that cannot be asked now, the least it can be.
pub(crate) unsafe extern "C" fn usable(block: *mut c_void) -> usize {
    known_size(block).unwrap_or(LARGE)
}

/// Gives all free pages back, and says how many bytes they have.
pub(crate) fn trim() -> usize {
    call(lifecycle::serving(), HostArena::trim).map_or(0, |given| given.get() as usize)
}

/// Calls the arena, after it was given what came back late; none where this thread must not, or where that broke it.
pub(crate) fn call<R>(arena: Option<&'static HostArena>, work: impl FnOnce(&'static HostArena) -> R) -> Option<R> {
    let arena = arena?;
    let inside = Inside::enter()?;
    let kept = Errno::keep();
    let result = catch_unwind(AssertUnwindSafe(|| take_back_deferred(arena).then(|| work(arena))));
    drop(kept);
    drop(inside);
    result.map_err(lifecycle::broken).ok().flatten()
}

/// Gives the arena what came back late. False where it was given up for that. The word of an arena that was given up
/// before accuses nobody.
#[inline]
fn take_back_deferred(arena: &HostArena) -> bool {
    let mut stays = true;
    deferred::ARENA.take(|block| {
        if let Err(error) = arena.free(block as u64)
            && lifecycle::serving().is_some()
        {
            accuse("free()", block, &error);
            stays = lifecycle::serving().is_some();
        }
    });
    stays
}

fn take(bytes: usize, align: usize) -> Option<*mut c_void> {
    if thread::is_inside() {
        return nested::allocate(bytes, align);
    }
    let number = thread::number();
    let address = call(lifecycle::begun(bytes), |arena| arena.alloc(bytes as u64, align as u64, number))??;
    service::handed(bytes);
    Some(address as *mut c_void)
}

fn take_zeroed(bytes: usize) -> Option<*mut c_void> {
    if thread::is_inside() {
        return nested::allocate(bytes, ALIGN);
    }
    let number = thread::number();
    let mut zero = |part: std::ops::Range<u64>| {
        // SAFETY: the arena's word: it is inside the block that is about to be handed out.
        unsafe { zeroing::clear(part) };
    };
    let address =
        call(lifecycle::begun(bytes), |arena| arena.alloc_zeroed(bytes as u64, ALIGN as u64, number, &mut zero))??;
    service::handed(bytes);
    Some(address as *mut c_void)
}

/// A block that is freed twice is the program's fault, and ends it as glibc would. An address that is nobody's may be
/// Lowtide's own fault.
#[cold]
fn accuse(function: &str, block: *mut c_void, error: &Error) {
    match error {
        Error::DoubleFree { .. } => give_up(format_args!("{function}: double free of the block at {block:p}")),
        other => lifecycle::step_aside(format_args!("{function}: {other}")),
    }
}

fn known_size(block: *mut c_void) -> Option<usize> {
    call(lifecycle::arena(), |arena| arena.usable(block as u64)).flatten().map(|bytes| bytes as usize)
}

/// `to`, with the first `bytes` of `from`, which is freed; where there is no `to`, nothing happens.
unsafe fn moved(from: *mut c_void, to: *mut c_void, bytes: usize) -> *mut c_void {
    if !to.is_null() {
        // SAFETY: the caller's: both have that many bytes, and `from` is the arena's.
        unsafe {
            ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes);
            release(from);
        }
    }
    to
}

/// A block of the arena moves to the underlying allocator, because it grows from `old` bytes to `bytes`. One that has a
/// mapping of its own there gets huge pages if the arena has them, and its old pages go back as they are copied: it is
/// never there twice.
unsafe fn moved_out(from: *mut c_void, old: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let to = unsafe { underlying::malloc(bytes) };
    let pages = Settings::get().map_or(Pages::Base, |settings| settings.pages);
    let mut copied = 0;
    // SAFETY: the block is from there.
    if let Some(mapping) = unsafe { underlying::mapping(to) }.filter(|_| bytes >= SPARSE) {
        let kept = Errno::keep();
        if pages == Pages::Transparent {
            // SAFETY: the mapping is the block's alone, and what is in it stays the same. Were it a part of the
            // mapping, the system could no longer move it whole.
            unsafe { memory::join(mapping) };
        }
        while matches!(pages, Pages::Base | Pages::Transparent) && copied < old {
            let start = from as usize + copied;
            let end = ((start + AT_ONCE) / HUGE * HUGE).min(from as usize + old);
            // SAFETY: both blocks have these bytes; whole pages of the old one are dropped once all in them was copied.
            unsafe {
                ptr::copy_nonoverlapping(start as *const u8, to.cast::<u8>().add(copied), end - start);
                let whole = start.next_multiple_of(HUGE)..end / HUGE * HUGE;
                if !whole.is_empty() {
                    memory::discard(whole);
                }
            }
            copied = end - from as usize;
        }
        drop(kept);
    }
    if to.is_null() {
        return to;
    }
    // SAFETY: the caller's: both have that many bytes, and `from` is the arena's.
    unsafe {
        ptr::copy_nonoverlapping(from.cast::<u8>().add(copied), to.cast::<u8>().add(copied), old - copied);
        release(from);
    }
    to
}

/// As [`moved`], of a block whose size nobody knows: as much as can be read, which is at least what is in it.
#[cold]
unsafe fn salvaged(from: *mut c_void, to: *mut c_void, bytes: usize) -> *mut c_void {
    if to.is_null() {
        return to;
    }
    let kept = Errno::keep();
    // SAFETY: the block that is copied to has that size.
    let copied = unsafe { memory::copy_readable(from, to, bytes) };
    drop(kept);
    if copied < LARGE {
        give_up(format_args!("realloc(): invalid pointer {from:p}"));
    }
    // SAFETY: the caller's.
    unsafe { release(from) };
    to
}
