//! The underlying allocator: whoever would serve the program without this library. That is glibc, called by its own
//! names, or another that follows in `LD_PRELOAD` or that the program is linked with. Which one it is, is settled by
//! the first call that any part of the process makes, because a block must go back to whom it came from.

#![expect(unsafe_code, reason = "calls the underlying allocator through a table of functions")]

mod early;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use lowtide_core::preload::Underlying;

use crate::entries::TABLE;
use crate::{dlopen, first, loader};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
type Mallinfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
type Trim = unsafe extern "C" fn(usize) -> c_int;

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void;
    static environ: *const *const c_char;
}

/// A function of the underlying allocator. Until the allocator is settled, a function that settles it.
struct Entry(AtomicPtr<c_void>);

impl Entry {
    const fn new(function: *mut c_void) -> Self {
        Self(AtomicPtr::new(function))
    }

    #[inline]
    fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, function: *mut c_void) {
        self.0.store(function, Ordering::Release);
    }
}

static MALLOC: Entry = Entry::new(first_malloc as Malloc as *mut c_void);
static FREE: Entry = Entry::new(first_free as Free as *mut c_void);
static CALLOC: Entry = Entry::new(first_calloc as Calloc as *mut c_void);
static REALLOC: Entry = Entry::new(first_realloc as Realloc as *mut c_void);
static MEMALIGN: Entry = Entry::new(first_memalign as Memalign as *mut c_void);

/// The real `free` and `realloc` where blocks of [`early`] may come back through the table.
static REAL_FREE: Entry = Entry::new(ptr::null_mut());
static REAL_REALLOC: Entry = Entry::new(ptr::null_mut());
static USABLE: Entry = Entry::new(ptr::null_mut());
static ALIGNED_ALLOC: Entry = Entry::new(ptr::null_mut());
static MALLINFO2: Entry = Entry::new(ptr::null_mut());
static TRIM: Entry = Entry::new(ptr::null_mut());

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
    let function = found(&USABLE, c"malloc_usable_size");
    if function.is_null() {
        return 0;
    }
    // SAFETY: as in `malloc`.
    unsafe { transmute::<*mut c_void, Usable>(function)(block) }
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

const UNSETTLED: u8 = 0;
const SETTLING: u8 = 1;
const SETTLED: u8 = 2;
static PHASE: AtomicU8 = AtomicU8::new(UNSETTLED);
/// Whether it was settled that it is glibc.
static GLIBC: AtomicBool = AtomicBool::new(false);

/// Settles which allocator it is; false while that cannot be known or is being found out: the caller is then served from
/// [`early`]. The first call comes long before there is a second thread.
fn settle() -> bool {
    // SAFETY: a pointer, which is null until the C library has begun, and where the program has cleared its variables.
    if unsafe { environ }.is_null() && PHASE.load(Ordering::Acquire) == UNSETTLED {
        return false;
    }
    match PHASE.compare_exchange(UNSETTLED, SETTLING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {}
        Err(phase) => return phase == SETTLED,
    }
    let follows = loader::next(c"malloc");
    if follows.is_null() || loader::is_in_c_library(follows) {
        GLIBC.store(true, Ordering::Relaxed);
        enter_table(
            __libc_malloc as Malloc as *mut c_void,
            __libc_free as Free as *mut c_void,
            __libc_calloc as Calloc as *mut c_void,
            __libc_realloc as Realloc as *mut c_void,
            __libc_memalign as Memalign as *mut c_void,
        );
    } else {
        let [free, calloc, realloc, memalign] = [c"free", c"calloc", c"realloc", c"memalign"].map(loader::next);
        enter_table(follows, free, calloc, realloc, memalign);
        dlopen::strip_deep_binding();
    }
    PHASE.store(SETTLED, Ordering::Release);
    true
}

fn enter_table(
    malloc: *mut c_void,
    free: *mut c_void,
    calloc: *mut c_void,
    realloc: *mut c_void,
    memalign: *mut c_void,
) {
    REAL_FREE.set(free);
    REAL_REALLOC.set(realloc);
    FREE.set(free);
    REALLOC.set(realloc);
    if !early::range().is_empty() {
        FREE.set(checked_free as Free as *mut c_void);
        REALLOC.set(checked_realloc as Realloc as *mut c_void);
    }
    CALLOC.set(calloc);
    MEMALIGN.set(memalign);
    MALLOC.set(malloc);
    // Nothing of this library's is done in between. Who has the place by now keeps it.
    let first = first::free as Free as *mut c_void;
    let _ = TABLE.free.compare_exchange(first, FREE.get(), Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether the function is one of the underlying allocator's.
pub(crate) fn has(function: *mut c_void) -> bool {
    settle() && !GLIBC.load(Ordering::Relaxed) && loader::lie_together(function, MALLOC.get())
}

/// Has it begin, if it has not.
pub(crate) fn begin() {
    // SAFETY: a block that nobody uses.
    unsafe { free(malloc(1)) };
}

/// Who it is, once that is settled.
pub(crate) fn known() -> Option<Underlying> {
    let early = early::range();
    settle().then(|| Underlying {
        is_glibc: GLIBC.load(Ordering::Relaxed),
        malloc: MALLOC.get(),
        free: REAL_FREE.get(),
        calloc: CALLOC.get(),
        realloc: REAL_REALLOC.get(),
        memalign: MEMALIGN.get(),
        next: loader::next_of,
        early: early.start,
        early_bytes: early.end - early.start,
    })
}

unsafe extern "C" fn first_malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    if settle() { unsafe { malloc(bytes) } } else { early::allocate(bytes, 1) }
}

unsafe extern "C" fn first_calloc(count: usize, bytes: usize) -> *mut c_void {
    if settle() {
        // SAFETY: the caller's.
        return unsafe { calloc(count, bytes) };
    }
    count.checked_mul(bytes).map_or(ptr::null_mut(), |bytes| early::allocate(bytes, 1))
}

unsafe extern "C" fn first_memalign(align: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    if settle() { unsafe { memalign(align, bytes) } } else { early::allocate(bytes, align) }
}

unsafe extern "C" fn first_free(block: *mut c_void) {
    if !block.is_null() && !early::owns(block) && settle() {
        // SAFETY: the caller's.
        unsafe { free(block) }
    }
}

unsafe extern "C" fn first_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if settle() {
        // SAFETY: the caller's.
        return unsafe { realloc(block, bytes) };
    }
    let new = early::allocate(bytes, 1);
    if block.is_null() {
        return new;
    }
    // SAFETY: whatever was handed out before the allocator was settled is of this kind.
    unsafe { moved(block, new, early::size(block).min(bytes)) }
}

unsafe extern "C" fn checked_free(block: *mut c_void) {
    if !early::owns(block) {
        // SAFETY: as in `malloc`.
        unsafe { transmute::<*mut c_void, Free>(REAL_FREE.get())(block) }
    }
}

unsafe extern "C" fn checked_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: as in `malloc`; and the block is one of the early ones where that is said.
    unsafe {
        if early::owns(block) {
            moved(block, malloc(bytes), early::size(block).min(bytes))
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
