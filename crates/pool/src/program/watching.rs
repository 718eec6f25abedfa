//! A source that sees everything a pool asks of it, and judges: memory is neither handed on nor given back while queued
//! work may still use it. What it knows of order is what the pool can know: marks that were seen to pass, and holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Calls, Description, Error, Mark, Source, Span};

use super::memory_model::MemoryModel;
use super::violation::Fault;
use crate::pool::Address;
use crate::raw;

/// Another source, watched.
#[derive(Debug)]
pub struct Watching {
    source: Arc<dyn Source>,
    model: Mutex<MemoryModel>,
    included: AtomicU64,
}

impl Watching {
    /// Watches a source that nothing was done with yet.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let model = Mutex::new(MemoryModel::new(&source.describe()));
        Self { source, model, included: AtomicU64::new(0) }
    }

    /// The first thing that went wrong.
    pub fn fault(&self) -> Option<Fault> {
        self.model().fault.clone()
    }

    /// Memory that a pool has from elsewhere: blocks may lie in it too.
    pub fn include(&self, span: Span) {
        self.model().commit(span);
        self.included.fetch_add(span.bytes.get(), Ordering::Relaxed);
    }

    /// The most that a pool can have reserved: what the source gave, and what was [included](Self::include).
    pub(super) fn given(&self) -> Bytes {
        self.source.calls().committed + Bytes::new(self.included.load(Ordering::Relaxed))
    }

    /// A pool handed out a block of `bytes` for use on `stream`.
    pub fn hand_out(&self, block: Address, bytes: Bytes, stream: StreamId) {
        self.model().hand_out(block, bytes, stream);
    }

    /// A program lets go of a block that work on `streams` uses: to be called before the pool is told.
    pub fn let_go(&self, block: Address, bytes: Bytes, streams: &[StreamId]) {
        self.model().let_go(block, bytes, streams);
    }

    /// The pool did not take a block that the program [let go](Self::let_go) of.
    pub fn keep(&self, block: Address, bytes: Bytes) {
        self.model().keep(block, bytes);
    }

    /// Writes to memory; `false` where the processor cannot reach all of it.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        raw::write(&self.model(), address, bytes)
    }

    /// Reads memory; `false` where the processor cannot reach all of it.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        raw::read(&self.model(), address, bytes)
    }

    fn model(&self) -> MutexGuard<'_, MemoryModel> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Watching {
    fn describe(&self) -> Description {
        self.source.describe()
    }

    fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        let _model = self.model();
        self.source.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        let mut model = self.model();
        model.judge_unmap(span);
        self.source.release(span)?;
        model.unmap(span);
        Ok(())
    }

    fn commit(&self, span: Span) -> Result<(), Error> {
        let mut model = self.model();
        self.source.commit(span)?;
        model.commit(span);
        Ok(())
    }

    fn decommit(&self, span: Span) -> Result<(), Error> {
        let mut model = self.model();
        model.judge_unmap(span);
        self.source.decommit(span)?;
        model.unmap(span);
        Ok(())
    }

    fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        let mut model = self.model();
        self.source.alias(from, to)?;
        model.alias(from, to);
        Ok(())
    }

    fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        let mut model = self.model();
        model.judge_unmap(from);
        self.source.relocate(from, to)?;
        model.relocate(from, to);
        Ok(())
    }

    fn calls(&self) -> Calls {
        self.source.calls()
    }

    fn now(&self) -> Duration {
        self.source.now()
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        let mut model = self.model();
        let mark = self.source.mark(stream)?;
        model.clocks.mark(stream, mark);
        Ok(mark)
    }

    fn passed(&self, mark: Mark) -> bool {
        let mut model = self.model();
        let passed = self.source.passed(mark);
        if passed {
            model.clocks.passed(mark);
        }
        passed
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        let mut model = self.model();
        self.source.hold(stream, mark)?;
        model.clocks.hold(stream, mark);
        Ok(())
    }

    fn wait(&self, mark: Mark) -> Result<(), Error> {
        let clock = self.model().clocks.at(mark);
        self.source.wait(mark)?;
        self.model().clocks.see(&clock);
        Ok(())
    }

    fn forget(&self, mark: Mark) {
        self.model().clocks.forget(mark);
        self.source.forget(mark);
    }

    fn drain(&self) -> Result<(), Error> {
        self.source.drain()?;
        self.model().clocks.drain();
        Ok(())
    }
}
