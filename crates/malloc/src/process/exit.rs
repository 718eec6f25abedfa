//! Ends of a process that run no exit functions: `_exit`, `_Exit` and `quick_exit`. They leave a summary too, where that can
//! do no harm: a signal handler may call them while its thread is inside the allocator below, and a child of `vfork` while it
//! has its parent's memory. So the last thread asks nobody for memory, frees none, and waits for no lock.

#![expect(unsafe_code, reason = "ends the process, and hands out the last memory that it uses")]

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lowtide_memory::process::Uncancelled;

use crate::process::{lifecycle, start};
use crate::report::summary;
use crate::serving::thread;

/// How much the last thread may use; what it does not touch is never there.
const BYTES: usize = 64 << 20;

/// How long the last thread asks for what a lock is in the way of, and how long it sleeps in between.
const PATIENCE: Duration = Duration::from_millis(50);
const NAP: Duration = Duration::from_micros(100);

/// The process that this memory belongs to.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The number of the thread that ends the process; zero for none.
static LAST: AtomicU64 = AtomicU64::new(0);
/// What is left of its memory.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void), library: *mut c_void) -> c_int;
}

/// Asks to be told of `quick_exit`.
pub(crate) fn watch() {
    begin();
    // SAFETY: the function lives as long as the program.
    unsafe { __cxa_at_quick_exit(at_quick_exit, ptr::null_mut()) };
}

/// This process has its own memory, and nobody has ended it yet.
pub(crate) fn begin() {
    // SAFETY: always.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    LAST.store(0, Ordering::Relaxed);
}

extern "C" fn at_quick_exit(_: *mut c_void) {
    leave();
}

/// Ends the process as the C library does, after its summary.
pub(crate) fn exit(status: c_int) -> ! {
    leave();
    loop {
        // SAFETY: always; it does not come back.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

fn leave() {
    let uncancelled = Uncancelled::begin();
    if summary::is_wanted() && is_safe() {
        leave_summary();
    }
    drop(uncancelled);
}

fn leave_summary() {
    let number = thread::number().0;
    if LAST.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: takes new addresses.
    let memory = unsafe { libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if memory != libc::MAP_FAILED {
        NEXT.store(memory as usize, Ordering::Relaxed);
        END.store(memory as usize + BYTES, Ordering::Relaxed);
        summary::write();
    }
}

/// Whether the memory is this process's own, and the stack is not the small one that some signals are handled on.
fn is_safe() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: writes there what the thread has; all zeros are a stack too.
    let stack = unsafe {
        libc::sigaltstack(ptr::null(), stack.as_mut_ptr());
        stack.assume_init()
    };
    has_own_memory() && stack.ss_flags & libc::SS_ONSTACK == 0
}

/// Whether this process's memory is not another's too.
pub(crate) fn has_own_memory() -> bool {
    // SAFETY: always.
    PROCESS.load(Ordering::Relaxed) == unsafe { libc::getpid() }
}

/// Asks, and asks again while there is no answer, for a moment at most: who holds a lock may wait for what this thread was
/// interrupted in, or be this thread.
pub(crate) fn ask<R>(mut question: impl FnMut() -> Option<R>) -> Option<R> {
    let patience = if thread::is_inside() { Duration::ZERO } else { PATIENCE };
    let start = start::now();
    let answer = || loop {
        let answer = question();
        if answer.is_some() || start::now().saturating_sub(start) >= patience {
            return answer;
        }
        std::thread::sleep(NAP);
    };
    catch_unwind(AssertUnwindSafe(answer)).map_err(lifecycle::broken).ok().flatten()
}

/// Whether this thread ends the process.
#[inline]
pub(crate) fn is_last() -> bool {
    let last = LAST.load(Ordering::Relaxed);
    last != 0 && last == thread::number().0
}

/// Memory for the last thread; null where there is no more.
#[cold]
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    let start = NEXT.load(Ordering::Relaxed).next_multiple_of(layout.align());
    let end = start.saturating_add(layout.size());
    if start == 0 || end > END.load(Ordering::Relaxed) {
        return ptr::null_mut();
    }
    NEXT.store(end, Ordering::Relaxed);
    start as *mut u8
}
