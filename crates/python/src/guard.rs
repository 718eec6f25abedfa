//! Guards where C++ calls: no panic unwinds into it. What serves is called through a [`Guard`]; a part of Lowtide that has
//! panicked is in a state that nobody knows, so it is not asked again, and that is said. Whatever throws C++'s own
//! exceptions stays outside, because those must pass.

use std::any::Any;
use std::fmt::Display;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Device memory.
pub(crate) static DEVICES: Guard = Guard::new("device memory");
/// The arena of CPU tensors.
pub(crate) static CPU: Guard = Guard::new("the arena of CPU tensors");
/// The pools of pinned memory.
pub(crate) static PINNED: Guard = Guard::new("pinned memory");
/// What writes allocations down.
pub(crate) static RECORDER: Guard = Guard::new("the recording");

/// Stands before a part of Lowtide that C++ calls.
pub(crate) struct Guard {
    what: &'static str,
    broken: AtomicBool,
    failed_frees: AtomicU64,
    /// What was not said yet.
    unsaid: Mutex<Vec<String>>,
}

impl Guard {
    const fn new(what: &'static str) -> Self {
        Self { what, broken: AtomicBool::new(false), failed_frees: AtomicU64::new(0), unsaid: Mutex::new(Vec::new()) }
    }

    /// Does some work; none where it panics, or something before it has.
    pub(crate) fn call<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.is_broken() {
            return None;
        }
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| self.note_panic(panic)).ok()
    }

    /// Takes a block back. Who frees has nobody to give an error to: it is counted and said.
    pub(crate) fn free<E: Display>(&self, work: impl FnOnce() -> Result<(), E>) {
        if let Some(Err(error)) = self.call(work) {
            self.note_failure(&error);
        }
    }

    /// Whether it has panicked.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// How many frees failed.
    pub(crate) fn failed_frees(&self) -> u64 {
        self.failed_frees.load(Ordering::Relaxed)
    }

    #[cold]
    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        self.broken.store(true, Ordering::Relaxed);
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let why = text.unwrap_or("a panic without words");
        self.say(format!("{} failed by a defect of Lowtide and is no longer served: {why}", self.what));
        // Dropping what a panic carries may panic again.
        mem::forget(panic);
    }

    #[cold]
    fn note_failure(&self, error: &dyn Display) {
        // One sentence stands for all: a program that frees wrongly once does so again.
        if self.failed_frees.fetch_add(1, Ordering::Relaxed) == 0 {
            self.say(format!("{}: a free failed: {error}", self.what));
        }
    }

    fn say(&self, sentence: String) {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }
}

/// What went wrong since the last call, a sentence each.
pub(crate) fn warnings() -> Vec<String> {
    let guards = [&DEVICES, &CPU, &PINNED, &RECORDER];
    let unsaid = |guard: &Guard| mem::take(&mut *guard.unsaid.lock().unwrap_or_else(PoisonError::into_inner));
    guards.into_iter().flat_map(unsaid).collect()
}
