//! The source as the models use it: memory that is lacking is told apart from calls that fail, what is taken is counted
//! as PyTorch would count it, and memory goes back only behind the work of its stream.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error as SourceError, Source, Span};

use lowtide_pool::Error;

/// What no device has; PyTorch refuses it, and below it no sum of two sizes overflows.
const EXBIBYTE: u64 = 1 << 60;

#[derive(Debug)]
pub(super) struct Supply {
    source: Arc<dyn Source>,
    granularity: u64,
    capacity: Option<u64>,
    /// The part of the capacity that may be taken, where that is not all of it.
    allowed: Option<u64>,
    queued: bool,
    /// Addresses that should have been given back and could not.
    owed: Vec<Span>,
    pub(super) reserved: u64,
    pub(super) peak_reserved: u64,
}

impl Supply {
    /// Over `source`, of which `fraction` may be taken.
    pub(super) fn new(source: Arc<dyn Source>, fraction: f64) -> Self {
        let description = source.describe();
        let capacity = description.capacity.map(Bytes::get);
        let allowed = capacity.filter(|_| fraction < 1.0).map(|capacity| (fraction * capacity as f64) as u64);
        let (granularity, queued) = (description.granularity.get().max(1), description.queued);
        Self { source, granularity, capacity, allowed, queued, owed: Vec::new(), reserved: 0, peak_reserved: 0 }
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    pub(super) fn allowed(&self) -> Option<u64> {
        self.allowed
    }

    /// The largest block there can ever be.
    pub(super) fn limit(&self) -> u64 {
        self.allowed.or(self.capacity).unwrap_or(EXBIBYTE).min(EXBIBYTE)
    }

    /// What every address of a multiple of 512 bytes in a span is aligned to.
    pub(super) fn alignment(&self, unit: u64) -> u64 {
        unit.min(1 << self.granularity.trailing_zeros())
    }

    /// `bytes` in whole grains of the source.
    pub(super) fn grains(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.granularity)
    }

    /// Whether `bytes` more may be taken.
    pub(super) fn allows(&self, bytes: u64) -> bool {
        self.allowed.is_none_or(|allowed| self.reserved + bytes <= allowed)
    }

    /// Addresses, or none where the source has none left.
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<Option<Span>, Error> {
        or_lack(self.source.reserve(Bytes::new(bytes)))
    }

    /// Gives addresses back, now or, where that fails, later.
    pub(super) fn release(&mut self, span: Span) -> Result<(), Error> {
        self.source.release(span).map_err(|error| {
            self.owed.push(span);
            Error::Source(error)
        })
    }

    /// Puts memory under `span`, one handle, or says no where the source has none left.
    pub(super) fn commit(&mut self, span: Span) -> Result<bool, Error> {
        or_lack(self.source.commit(span)).map(|done| done.is_some())
    }

    /// Waits until the work of `stream` so far is done: only then may memory that it used be [taken](Self::decommit).
    pub(super) fn wait_for(&self, stream: StreamId) -> Result<(), Error> {
        if !self.queued {
            return Ok(());
        }
        let mark = self.source.mark(stream).map_err(Error::Source)?;
        let waited = self.source.wait(mark);
        self.source.forget(mark);
        waited.map_err(Error::Source)
    }

    /// Takes the memory from under `span`: one handle.
    pub(super) fn decommit(&mut self, span: Span) -> Result<(), Error> {
        self.source.decommit(span).map_err(Error::Source)
    }

    /// Counts memory that was committed.
    pub(super) fn count(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Counts memory that was taken back.
    pub(super) fn discount(&mut self, bytes: u64) {
        self.reserved -= bytes;
    }

    /// Gives back what could not be given back before.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        while let Some(span) = self.owed.pop() {
            self.release(span)?;
        }
        Ok(())
    }

    /// Gives back `spans`, with the memory under them, and all that is owed, as far as the source lets it: the end.
    pub(super) fn close(&mut self, spans: impl Iterator<Item = Span>) {
        for span in spans.chain(self.owed.drain(..)) {
            // A call that fails once is tried again: a driver may refuse while other work is under way. Nobody is left
            // to be told.
            _ = self.source.release(span).or_else(|_| self.source.release(span));
        }
    }
}

/// None where the source lacks memory or addresses: giving some back may help.
fn or_lack<T>(result: Result<T, SourceError>) -> Result<Option<T>, Error> {
    match result {
        Ok(given) => Ok(Some(given)),
        Err(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) => Ok(None),
        Err(error) => Err(Error::Source(error)),
    }
}
