//! Ends of a process that run no exit functions: `_exit`, `_Exit` and `quick_exit`. They leave a summary too, where
//! that can do no harm: a signal handler may call them while its thread is inside the underlying allocator, and a child
//! of `vfork` while it has its parent's memory. So the last thread asks nobody for memory, frees none, and waits for no
//! lock.

use std::alloc::Layout;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lowtide_memory::process::Uncancelled;

use crate::process::lifecycle;
use crate::report::summary;
use crate::serving::thread;
use crate::system::{memory, process, threads};

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

/// This process has its own memory, and nobody has ended it yet.
pub(crate) fn begin() {
    PROCESS.store(process::number(), Ordering::Relaxed);
    LAST.store(0, Ordering::Relaxed);
}

/// The process ends by `quick_exit`, and its own handlers for that have run.
pub(crate) extern "C" fn quick_finish() {
    leave();
}

/// Ends the process as the C library does, after its summary.
pub(crate) fn exit(status: c_int) -> ! {
    leave();
    process::exit(status)
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
    if let Some(memory) = memory::take(BYTES) {
        NEXT.store(memory, Ordering::Relaxed);
        END.store(memory + BYTES, Ordering::Relaxed);
        summary::write();
    }
}

/// Whether the memory is this process's own, and the stack is not the small one that some signals are handled on.
fn is_safe() -> bool {
    has_own_memory() && !threads::is_on_signal_stack()
}

/// Whether this process's memory is not another's too.
pub(crate) fn has_own_memory() -> bool {
    PROCESS.load(Ordering::Relaxed) == process::number()
}

/// Asks, and asks again while there is no answer, for a moment at most: who holds a lock may wait for what this thread
/// was interrupted in, or be this thread.
pub(crate) fn ask<R>(mut question: impl FnMut() -> Option<R>) -> Option<R> {
    let patience = if thread::is_inside() { Duration::ZERO } else { PATIENCE };
    let start = process::now();
    let answer = || loop {
        let answer = question();
        if answer.is_some() || process::now().saturating_sub(start) >= patience {
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
