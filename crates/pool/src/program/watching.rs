//! A source that sees everything a pool asks of it, and judges: memory is neither handed on nor given back while queued
//! work may still use it. What it knows of order is what the pool can know: marks that were seen to pass, and holds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Calls, Description, Error, Mark, Source, Span};

use super::books::Books;
use super::violation::Fault;
use crate::pool::Address;
use crate::raw;

/// Another source, watched.
#[derive(Debug)]
pub struct Watching {
    source: Arc<dyn Source>,
    books: Mutex<Books>,
}

impl Watching {
    /// Watches a source that nothing was done with yet.
    pub fn new(source: Arc<dyn Source>) -> Self {
        let books = Mutex::new(Books::new(&source.describe()));
        Self { source, books }
    }

    /// The first thing that went wrong.
    pub fn fault(&self) -> Option<Fault> {
        self.books().fault.clone()
    }

    /// A pool handed out a block of `bytes` for use on `stream`.
    pub fn hand_out(&self, block: Address, bytes: Bytes, stream: StreamId) {
        self.books().hand_out(block, bytes, stream);
    }

    /// A program lets go of a block that work on `streams` uses: to be called before the pool is told.
    pub fn let_go(&self, block: Address, bytes: Bytes, streams: &[StreamId]) {
        self.books().let_go(block, bytes, streams);
    }

    /// The pool did not take a block that the program [let go](Self::let_go) of.
    pub fn keep(&self, block: Address, bytes: Bytes) {
        self.books().keep(block, bytes);
    }

    /// Writes to memory; `false` where the processor cannot reach all of it.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        raw::write(&self.books(), address, bytes)
    }

    /// Reads memory; `false` where the processor cannot reach all of it.
    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        raw::read(&self.books(), address, bytes)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Watching {
    fn describe(&self) -> Description {
        self.source.describe()
    }

    fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        let _books = self.books();
        self.source.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        let mut books = self.books();
        books.judge_unmap(span);
        self.source.release(span)?;
        books.unmap(span);
        Ok(())
    }

    fn commit(&self, span: Span) -> Result<(), Error> {
        let mut books = self.books();
        self.source.commit(span)?;
        books.commit(span);
        Ok(())
    }

    fn decommit(&self, span: Span) -> Result<(), Error> {
        let mut books = self.books();
        books.judge_unmap(span);
        self.source.decommit(span)?;
        books.unmap(span);
        Ok(())
    }

    fn alias(&self, from: Span, to: u64) -> Result<(), Error> {
        let mut books = self.books();
        self.source.alias(from, to)?;
        books.alias(from, to);
        Ok(())
    }

    fn relocate(&self, from: Span, to: u64) -> Result<(), Error> {
        let mut books = self.books();
        books.judge_unmap(from);
        self.source.relocate(from, to)?;
        books.relocate(from, to);
        Ok(())
    }

    fn calls(&self) -> Calls {
        self.source.calls()
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, Error> {
        let mut books = self.books();
        let mark = self.source.mark(stream)?;
        books.clocks.mark(stream, mark);
        Ok(mark)
    }

    fn passed(&self, mark: Mark) -> bool {
        let mut books = self.books();
        let passed = self.source.passed(mark);
        if passed {
            books.clocks.passed(mark);
        }
        passed
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), Error> {
        let mut books = self.books();
        self.source.hold(stream, mark)?;
        books.clocks.hold(stream, mark);
        Ok(())
    }

    fn wait(&self, mark: Mark) -> Result<(), Error> {
        let clock = self.books().clocks.at(mark);
        self.source.wait(mark)?;
        self.books().clocks.see(&clock);
        Ok(())
    }

    fn forget(&self, mark: Mark) {
        self.books().clocks.forget(mark);
        self.source.forget(mark);
    }

    fn drain(&self) -> Result<(), Error> {
        self.source.drain()?;
        self.books().clocks.drain();
        Ok(())
    }
}
