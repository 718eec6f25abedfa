//! Guards where C++ calls: no panic unwinds into it. Whatever serves is called through a [`Guard`], by Python too; a part
//! of Lowtide that has panicked is in a state that nobody knows, so it is not asked again, and that is said. Whatever may
//! throw an exception of C++, or end its thread, stays outside: those must pass, and Rust may not catch them.

use std::any::Any;
use std::fmt::Display;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use lowtide_pool::FailedFrees;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

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
    /// Panics that were not said yet.
    panics: Mutex<Vec<String>>,
    failed_frees: FailedFrees,
}

impl Guard {
    const fn new(what: &'static str) -> Self {
        let broken = AtomicBool::new(false);
        Self { what, broken, panics: Mutex::new(Vec::new()), failed_frees: FailedFrees::new() }
    }

    /// Does some work; none where it panics, or something before it has.
    pub(crate) fn call<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.is_broken() {
            return None;
        }
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| self.note_panic(panic)).ok()
    }

    /// As [`call`](Self::call), for Python.
    pub(crate) fn ask<R>(&self, work: impl FnOnce() -> R) -> PyResult<R> {
        self.call(work).ok_or_else(|| PyRuntimeError::new_err(self.refusal()))
    }

    /// Takes a block back. Who frees has nobody to give an error to: it is counted and said.
    pub(crate) fn free<E: Display>(&self, work: impl FnOnce() -> Result<(), E>) {
        if let Some(Err(error)) = self.call(work) {
            self.failed_frees.note(&error);
        }
    }

    /// Whether it has panicked.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// What whoever asks is told where it has panicked.
    pub(crate) fn refusal(&self) -> String {
        format!("{} failed by a defect of Lowtide and is no longer served", self.what)
    }

    /// How many frees failed.
    pub(crate) fn failed_frees(&self) -> u64 {
        self.failed_frees.count()
    }

    /// What went wrong since the last call, a sentence each.
    fn warnings(&self) -> Vec<String> {
        let mut sentences = mem::take(&mut *self.panics.lock().unwrap_or_else(PoisonError::into_inner));
        sentences.extend(self.failed_frees.warning().map(|failed| format!("{}: {failed}", self.what)));
        sentences
    }

    #[cold]
    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        self.broken.store(true, Ordering::Relaxed);
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let sentence = format!("{}: {}", self.refusal(), text.unwrap_or("a panic without words"));
        self.panics.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
        // Dropping what a panic carries may panic again.
        mem::forget(panic);
    }
}

/// What went wrong behind all guards since the last call, a sentence each.
pub(crate) fn warnings() -> Vec<String> {
    [&DEVICES, &CPU, &PINNED, &RECORDER].into_iter().flat_map(Guard::warnings).collect()
}
