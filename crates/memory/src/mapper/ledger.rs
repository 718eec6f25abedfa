//! What a source accounts for: which addresses it holds and which handle lies under each. Every check of a caller's
//! span is made here, once for all sources; nothing in here speaks to a system.

use std::collections::BTreeMap;

use lowtide_core::Bytes;

use crate::error::Error;
use crate::source::Span;

/// A handle's place in the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HandleIndex(usize);

#[derive(Debug)]
struct Entry<H> {
    handle: H,
    bytes: Bytes,
    mappings: usize,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    bytes: Bytes,
    handle: HandleIndex,
}

/// Reserved ranges, mappings and handles. `H` is what the system knows a handle by.
#[derive(Debug)]
pub(crate) struct Ledger<H> {
    granularity: u64,
    reservations: BTreeMap<u64, Bytes>,
    mappings: BTreeMap<u64, Mapping>,
    handles: Vec<Option<Entry<H>>>,
    vacant: Vec<usize>,
}

impl<H: Copy> Ledger<H> {
    /// An empty ledger; spans are multiples of `granularity`.
    pub(crate) fn new(granularity: Bytes) -> Self {
        Self {
            granularity: granularity.get().max(1),
            reservations: BTreeMap::new(),
            mappings: BTreeMap::new(),
            handles: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// `bytes` as a whole number of granules, at least one.
    pub(crate) fn round_up(&self, bytes: Bytes) -> Result<Bytes, Error> {
        if bytes == Bytes::ZERO {
            return Err(Error::BadSpan { span: Span::new(0, bytes), why: "are none: nothing was asked for" });
        }
        let rounded = bytes.get().checked_next_multiple_of(self.granularity);
        rounded.map(Bytes::new).ok_or(Error::OutOfAddresses { asked: bytes })
    }

    /// Writes down a range that the system gave.
    pub(crate) fn reserve(&mut self, span: Span) {
        self.reservations.insert(span.start, span.bytes);
    }

    /// Strikes out a range that went back to the system.
    pub(crate) fn unreserve(&mut self, span: Span) {
        self.reservations.remove(&span.start);
    }

    /// Checks that `span` is one that was reserved.
    pub(crate) fn check_reservation(&self, span: Span) -> Result<(), Error> {
        if self.reservations.get(&span.start) == Some(&span.bytes) {
            Ok(())
        } else {
            Err(Error::BadSpan { span, why: "are not a range that was reserved" })
        }
    }

    /// Checks that nothing is mapped at `span`, which lies in one reserved range.
    pub(crate) fn check_vacant(&self, span: Span) -> Result<(), Error> {
        self.check_inside(span)?;
        let before = self.mappings.range(..span.end()).next_back();
        match before {
            Some((&start, mapping)) if start + mapping.bytes.get() > span.start => {
                Err(Error::BadSpan { span, why: "have memory already" })
            }
            _ => Ok(()),
        }
    }

    /// Checks that whole mappings cover `span` without a gap.
    pub(crate) fn check_covered(&self, span: Span) -> Result<(), Error> {
        self.check_inside(span)?;
        let mut next = span.start;
        while next < span.end() {
            match self.mappings.get(&next) {
                Some(mapping) if mapping.bytes.get() <= span.end() - next => next += mapping.bytes.get(),
                Some(_) => return Err(Error::BadSpan { span, why: "end inside a handle" }),
                None if self.is_backed(Span::new(next, Bytes::new(1))) => {
                    return Err(Error::BadSpan { span, why: "begin inside a handle" });
                }
                None => return Err(Error::BadSpan { span, why: "have no memory in some place" }),
            }
        }
        Ok(())
    }

    /// The handle whose mapping is exactly `span`.
    pub(crate) fn mapping(&self, span: Span) -> Result<(HandleIndex, H), Error> {
        self.check_inside(span)?;
        self.mappings
            .get(&span.start)
            .filter(|mapping| mapping.bytes == span.bytes)
            .and_then(|mapping| Some((mapping.handle, self.handles[mapping.handle.0].as_ref()?.handle)))
            .ok_or(Error::BadSpan { span, why: "are not where one handle lies" })
    }

    /// The first mapping that begins in `span`.
    pub(crate) fn first_in(&self, span: Span) -> Option<(Span, H)> {
        let (&start, mapping) = self.mappings.range(span.start..span.end()).next()?;
        Some((Span::new(start, mapping.bytes), self.handles[mapping.handle.0].as_ref()?.handle))
    }

    /// Writes down a new handle and its first mapping.
    pub(crate) fn create(&mut self, handle: H, span: Span) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.handles.push(None);
            self.handles.len() - 1
        });
        self.handles[index] = Some(Entry { handle, bytes: span.bytes, mappings: 1 });
        self.mappings.insert(span.start, Mapping { bytes: span.bytes, handle: HandleIndex(index) });
    }

    /// Writes down one more mapping of a handle.
    pub(crate) fn map(&mut self, handle: HandleIndex, to: Span) {
        if let Some(entry) = &mut self.handles[handle.0] {
            entry.mappings += 1;
            self.mappings.insert(to.start, Mapping { bytes: to.bytes, handle });
        }
    }

    /// Strikes out the mapping at `start`, and its handle where that was the last; the handle then comes back.
    pub(crate) fn unmap(&mut self, start: u64) -> Option<(H, Bytes)> {
        let mapping = self.mappings.remove(&start)?;
        let entry = self.handles[mapping.handle.0].as_mut()?;
        entry.mappings -= 1;
        if entry.mappings > 0 {
            return None;
        }
        self.vacant.push(mapping.handle.0);
        self.handles[mapping.handle.0].take().map(|entry| (entry.handle, entry.bytes))
    }

    /// Moves the mapping at `from` to `to`.
    pub(crate) fn relocate(&mut self, from: u64, to: u64) {
        if let Some(mapping) = self.mappings.remove(&from) {
            self.mappings.insert(to, mapping);
        }
    }

    /// Some range that is reserved.
    pub(crate) fn any_reservation(&self) -> Option<Span> {
        self.reservations.first_key_value().map(|(&start, &bytes)| Span::new(start, bytes))
    }

    /// Whether there is memory under every byte of `span`, wherever it begins.
    pub(crate) fn is_backed(&self, span: Span) -> bool {
        let mut next = span.start;
        while next < span.end() {
            match self.mappings.range(..=next).next_back() {
                Some((&start, mapping)) if next < start + mapping.bytes.get() => next = start + mapping.bytes.get(),
                _ => return false,
            }
        }
        true
    }

    fn check_inside(&self, span: Span) -> Result<(), Error> {
        let bad = |why| Err(Error::BadSpan { span, why });
        if span.bytes == Bytes::ZERO {
            return bad("are none");
        }
        if !span.start.is_multiple_of(self.granularity) || !span.bytes.get().is_multiple_of(self.granularity) {
            return bad("are no whole number of granules");
        }
        let Some(end) = span.start.checked_add(span.bytes.get()) else {
            return bad("pass the end of all addresses");
        };
        match self.reservations.range(..=span.start).next_back() {
            Some((&start, bytes)) if end <= start + bytes.get() => Ok(()),
            _ => bad("do not lie in one reserved range"),
        }
    }
}
