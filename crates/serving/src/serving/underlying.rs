//! The underlying allocator: whoever would serve the program without Lowtide, and served it until now. Which one it is, the library under the
//! program has settled long before, because a block must go back to whom it came from.

#![expect(unsafe_code, reason = "calls the underlying allocator through a table of functions")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use lowtide_core::preload::Underlying;

use crate::process::exit;
use crate::serving::{early, nested};
use crate::system::errno::Errno;
use crate::system::loader;

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
type Mallinfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
type Trim = unsafe extern "C" fn(usize) -> c_int;

/// The smallest pages that there are.
const PAGE: usize = 4 << 10;

/// A function of the underlying allocator; null before it is known, or where it has none.
struct Entry(AtomicPtr<c_void>);

impl Entry {
    const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, function: *mut c_void) {
        self.0.store(function, Ordering::Release);
    }
}

static MALLOC: Entry = Entry::new();
static FREE: Entry = Entry::new();
static CALLOC: Entry = Entry::new();
static REALLOC: Entry = Entry::new();
static MEMALIGN: Entry = Entry::new();

/// The real `free` and `realloc` where blocks of [`early`] or [`nested`] may come back through the table.
static REAL_FREE: Entry = Entry::new();
static REAL_REALLOC: Entry = Entry::new();
static USABLE: Entry = Entry::new();
static ALIGNED_ALLOC: Entry = Entry::new();
static MALLINFO2: Entry = Entry::new();
static TRIM: Entry = Entry::new();

/// Whether it is glibc.
static GLIBC: AtomicBool = AtomicBool::new(false);

/// Whether it is glibc, and only its own blocks come to it.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Lets it be known who it is. Nothing of this library allocates before.
pub(crate) fn enter(underlying: &Underlying) {
    GLIBC.store(underlying.is_glibc, Ordering::Relaxed);
    // Elsewhere glibc may tag addresses, so that what precedes a block is out of reach.
    PLAIN.store(cfg!(target_arch = "x86_64") && underlying.is_glibc, Ordering::Relaxed);
    loader::enter(underlying.next);
    early::enter(underlying.early..underlying.early + underlying.early_bytes);
    for (entry, function) in [
        (&REAL_FREE, underlying.free),
        (&FREE, underlying.free),
        (&REAL_REALLOC, underlying.realloc),
        (&REALLOC, underlying.realloc),
        (&CALLOC, underlying.calloc),
        (&MEMALIGN, underlying.memalign),
        (&MALLOC, underlying.malloc),
    ] {
        entry.set(function);
    }
    if underlying.early_bytes > 0 {
        look_out();
    }
}

/// From now on `free` and `realloc` look out for blocks that the underlying allocator does not know.
pub(crate) fn look_out() {
    PLAIN.store(false, Ordering::Relaxed);
    FREE.set(checked_free as Free as *mut c_void);
    REALLOC.set(checked_realloc as Realloc as *mut c_void);
}

/// `malloc` of the underlying allocator.
#[inline]
pub(crate) unsafe fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the table holds functions of these types alone; the rest is the caller's.
    unsafe { transmute::<*mut c_void, Malloc>(MALLOC.get())(bytes) }
}

/// `free` of the underlying allocator.
#[inline]
pub(crate) unsafe fn free(block: *mut c_void) {
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Free>(FREE.get())(block) }
}

/// `calloc` of the underlying allocator.
#[inline]
pub(crate) unsafe fn calloc(count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Calloc>(CALLOC.get())(count, bytes) }
}

/// `realloc` of the underlying allocator.
#[inline]
pub(crate) unsafe fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Realloc>(REALLOC.get())(block, bytes) }
}

/// `memalign` of the underlying allocator.
#[inline]
pub(crate) unsafe fn memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Memalign>(MEMALIGN.get())(align, bytes) }
}

/// `malloc_usable_size` of the underlying allocator; 0 where it has none.
pub(crate) unsafe fn usable(block: *mut c_void) -> usize {
    if early::owns(block) {
        // SAFETY: it is one.
        return unsafe { early::size(block) };
    }
    if nested::owns(block) {
        return nested::size();
    }
    let function = found(&USABLE, c"malloc_usable_size");
    if function.is_null() {
        return 0;
    }
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Usable>(function)(block) }
}

/// Whether it is glibc, and only its own blocks come to it.
#[inline]
pub(crate) fn is_plain_glibc() -> bool {
    PLAIN.load(Ordering::Relaxed)
}

/// The mapping that is the block's alone; none where it shares one, or where only the underlying allocator knows.
///
/// # Safety
/// The block is null or came from there just now.
pub(crate) unsafe fn mapping(block: *mut c_void) -> Option<Range<usize>> {
    /// The size of a block and three flags precede it.
    const HEADER: usize = 2 * size_of::<usize>();
    const FLAGS: usize = 7;
    const MAPPED: usize = 2;
    if block.is_null() || !is_glibc() || early::owns(block) || nested::owns(block) {
        return None;
    }
    // SAFETY: glibc's blocks are preceded by these.
    let size = unsafe { block.cast::<usize>().sub(1).read() };
    let start = block as usize - HEADER;
    let whole = start.is_multiple_of(PAGE) && (size & !FLAGS).is_multiple_of(PAGE);
    (size & MAPPED != 0 && whole).then(|| start..start + (size & !FLAGS))
}

/// `aligned_alloc` of the underlying allocator.
///
/// # Safety
/// As of the C library.
pub(crate) unsafe fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    let function = found(&ALIGNED_ALLOC, c"aligned_alloc");
    if function.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Memalign>(function)(align, bytes) }
}

/// `mallinfo2` of glibc, part of which every process uses; zeros where it has none.
pub(crate) fn mallinfo2() -> libc::mallinfo2 {
    let function = found(&MALLINFO2, c"mallinfo2");
    if function.is_null() {
        // SAFETY: all zeros are counts.
        return unsafe { std::mem::zeroed() };
    }
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Mallinfo2>(function)() }
}

/// `malloc_trim` of the underlying allocator, or of glibc, part of which every process uses.
pub(crate) fn trim(keep: usize) -> c_int {
    let function = found(&TRIM, c"malloc_trim");
    if function.is_null() {
        return 0;
    }
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Trim>(function)(keep) }
}

fn found(entry: &Entry, name: &CStr) -> *mut c_void {
    if entry.get().is_null() {
        entry.set(loader::next(name));
    }
    entry.get()
}

/// Whether it is glibc.
pub(crate) fn is_glibc() -> bool {
    GLIBC.load(Ordering::Relaxed)
}

unsafe extern "C" fn checked_free(block: *mut c_void) {
    if nested::owns(block) {
        let kept = Errno::keep();
        // SAFETY: it is one.
        unsafe { nested::release(block) };
        drop(kept);
    } else if !early::owns(block) {
        // SAFETY: as in `malloc`.
        unsafe { transmute::<*mut c_void, Free>(REAL_FREE.get())(block) }
    }
}

unsafe extern "C" fn checked_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: as in `malloc`; and the block is one of the strange ones where that is said.
    unsafe {
        if early::owns(block) {
            moved(block, malloc(bytes), early::size(block).min(bytes))
        } else if nested::owns(block) {
            if bytes == 0 {
                checked_free(block);
                return ptr::null_mut();
            }
            if bytes <= nested::size() {
                return block;
            }
            let new = moved(block, malloc(bytes), nested::size());
            if !new.is_null() {
                checked_free(block);
            }
            new
        } else {
            transmute::<*mut c_void, Realloc>(REAL_REALLOC.get())(block, bytes)
        }
    }
}

/// `to`, with the first `bytes` of `from`, unless there is no `to`.
unsafe fn moved(from: *mut c_void, to: *mut c_void, bytes: usize) -> *mut c_void {
    if !to.is_null() {
        // SAFETY: the caller's: both have that many bytes.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes) };
    }
    to
}

/// Serves the library itself.
#[derive(Debug)]
pub(crate) struct Own;

/// What `malloc` aligns to by itself.
const ALIGNED: usize = 16;

// SAFETY: the underlying allocator has the same promises, in other words.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if exit::is_last() {
            return exit::allocate(layout);
        }
        // SAFETY: always.
        unsafe {
            if layout.align() <= ALIGNED { malloc(layout.size()) } else { memalign(layout.align(), layout.size()) }
                .cast()
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: always; and the block has that many bytes.
        unsafe {
            if layout.align() <= ALIGNED && !exit::is_last() {
                return calloc(1, layout.size()).cast();
            }
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        if exit::is_last() {
            return;
        }
        // SAFETY: the caller's: the block comes from here.
        unsafe { free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's: the block comes from here, with this layout.
        unsafe {
            if layout.align() <= ALIGNED && !exit::is_last() {
                return realloc(block.cast(), bytes).cast();
            }
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(block, new, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            new
        }
    }
}
