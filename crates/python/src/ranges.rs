//! Which addresses a source has reserved, so that a pointer can be told from others without a lock: frees come from all
//! threads, and in a forked child nobody may be there to release one. That is why it is no `RangeSet`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lowtide_core::Bytes;
use lowtide_memory::{Error, Source, Span, forward_to_source};

/// How many ranges there may be at once.
const MOST: usize = 64;

/// Ranges of addresses. Any thread may ask; those who change them wait for each other.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Starts and ends; a start of zero is none.
    ranges: [(AtomicU64, AtomicU64); MOST],
    changing: Mutex<()>,
}

impl Ranges {
    pub(crate) const fn new() -> Self {
        Self { ranges: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MOST], changing: Mutex::new(()) }
    }

    /// Whether an address lies in one of them.
    pub(crate) fn contain(&self, address: u64) -> bool {
        self.ranges.iter().any(|(start, end)| {
            loop {
                let first = start.load(Ordering::SeqCst);
                if first == 0 || address < first {
                    return false;
                }
                let inside = address < end.load(Ordering::SeqCst);
                if start.load(Ordering::SeqCst) == first {
                    return inside;
                }
            }
        })
    }

    fn insert(&self, span: Span) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((start, end)) = self.ranges.iter().find(|(start, _)| start.load(Ordering::SeqCst) == 0) else {
            return false;
        };
        end.store(span.end(), Ordering::SeqCst);
        start.store(span.start, Ordering::SeqCst);
        true
    }

    fn remove(&self, span: Span) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((start, _)) = self.ranges.iter().find(|(start, _)| start.load(Ordering::SeqCst) == span.start) {
            start.store(0, Ordering::SeqCst);
        }
    }
}

/// A source whose reserved addresses are in [`Ranges`].
#[derive(Debug)]
pub(crate) struct Ranged<S: 'static> {
    source: Arc<S>,
    ranges: &'static Ranges,
}

impl<S> Ranged<S> {
    pub(crate) fn new(source: Arc<S>, ranges: &'static Ranges) -> Self {
        Self { source, ranges }
    }
}

impl<S: Source> Source for Ranged<S> {
    forward_to_source!(
        describe, commit, decommit, alias, relocate, calls, now, mark, passed, hold, wait, forget, drain
    );

    fn reserve(&self, bytes: Bytes) -> Result<Span, Error> {
        let span = self.source.reserve(bytes)?;
        if self.ranges.insert(span) {
            return Ok(span);
        }
        self.source.release(span)?;
        Err(Error::OutOfAddresses { asked: bytes })
    }

    fn release(&self, span: Span) -> Result<(), Error> {
        self.ranges.remove(span);
        self.source.release(span)
    }
}
