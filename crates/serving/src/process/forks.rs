//! Forks: the arena and slabs are frozen while the process is copied, so that the child finds it whole. The library under the program has registered
//! handlers before any that the program or its libraries register, and calls these from there: so the arena is frozen after the program's
//! handlers have prepared, which may wait for threads that allocate. The underlying allocator's handlers come later still.

#![expect(unsafe_code, reason = "keeps the frozen arena between two handlers")]

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_pool::Frozen;

use crate::process::{evidence, exit, lifecycle, start};
use crate::report::{faults, marks, summary};
use crate::service;
use crate::serving::{cache, slabs, thread};
use crate::system::errno::Errno;

struct Slot(UnsafeCell<Option<Frozen>>);

// SAFETY: only the thread in `OWNER` looks at it, and it becomes the owner only while it holds the arena.
unsafe impl Sync for Slot {}

static FROZEN: Slot = Slot(UnsafeCell::new(None));
/// The number of the thread that has frozen the arena; zero for none.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// Until the fork is over, what this thread asks for in other handlers comes from the underlying allocator. A thread
/// that forks inside the arena, in a signal handler, may have its lock, or wait for another thread that has it: nothing
/// can be frozen.
pub(crate) extern "C" fn prepare() {
    let kept = Errno::keep();
    let was_inside = thread::is_inside();
    thread::enter();
    if !was_inside {
        service::pause();
    }
    if !was_inside && let Some(arena) = lifecycle::arena() {
        let frozen = arena.freeze();
        // SAFETY: the arena is held now, so nobody else is the owner.
        unsafe { *FROZEN.0.get() = Some(frozen) };
        OWNER.store(thread::number().0, Ordering::Relaxed);
    }
    if !was_inside {
        slabs::freeze();
    }
    drop(kept);
}

fn taken() -> Option<Frozen> {
    if OWNER.load(Ordering::Relaxed) != thread::number().0 {
        return None;
    }
    OWNER.store(0, Ordering::Relaxed);
    // SAFETY: this thread was the owner until just now, and still holds the arena.
    unsafe { (*FROZEN.0.get()).take() }
}

pub(crate) extern "C" fn parent() {
    if !thread::is_inside() {
        // The arena came when this fork was underway.
        return;
    }
    let kept = Errno::keep();
    if let Some(frozen) = taken() {
        frozen.thaw();
    }
    if !thread::was_inside() {
        slabs::thaw();
    }
    evidence::forked();
    service::resume();
    thread::leave();
    drop(kept);
}

pub(crate) extern "C" fn child() {
    let kept = Errno::keep();
    let is_prepared = thread::is_inside();
    if !is_prepared {
        // As in `parent`. What nobody has frozen is given up below.
        thread::enter();
    }
    if !is_prepared || thread::was_inside() {
        slabs::abandon();
    } else {
        slabs::thaw();
    }
    let frozen = taken();
    // An arena that was made while the process was copied was not frozen: another thread may have been in it.
    if thread::was_inside() || frozen.is_none() && lifecycle::arena().is_some() {
        lifecycle::abandon();
    }
    let thawed = frozen.map(|frozen| catch_unwind(AssertUnwindSafe(|| frozen.thaw_in_child())));
    if let Some(Err(panic)) = thawed {
        lifecycle::broken(panic);
    }
    lifecycle::forget_maker();
    service::forget();
    evidence::forget();
    cache::forget();
    faults::forget();
    marks::forget();
    summary::forget();
    exit::begin();
    start::begin();
    thread::leave();
    drop(kept);
}
