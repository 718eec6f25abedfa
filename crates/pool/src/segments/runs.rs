//! The free memory between blocks, in segments that stay apart: runs of two segments are not joined, which is why these are not
//! `core`'s free runs.

use std::collections::{BTreeMap, BTreeSet};

use lowtide_core::Bytes;
use lowtide_memory::Span;

/// Which blocks a segment is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    Small,
    Large,
}

/// The free runs in all segments.
#[derive(Debug, Default)]
pub(super) struct SegmentRuns {
    /// The segments by their start: their bytes and class.
    segments: BTreeMap<u64, (u64, Class)>,
    /// Free runs by their start.
    free: BTreeMap<u64, u64>,
    /// The same by class and length.
    sized: BTreeSet<(Class, u64, u64)>,
}

impl SegmentRuns {
    /// Adds a segment, all of it free.
    pub(super) fn add(&mut self, span: Span, class: Class) {
        self.segments.insert(span.start, (span.bytes.get(), class));
        self.insert(span.start, span.bytes.get());
    }

    /// Removes a segment that is all free.
    pub(super) fn remove(&mut self, span: Span) {
        self.cut(span.start);
        self.segments.remove(&span.start);
    }

    /// Takes the shortest run that is long enough, or a part of it.
    pub(super) fn take(&mut self, size: u64, align: u64, class: Class) -> Option<u64> {
        let end = |start: u64| start.next_multiple_of(align).saturating_add(size);
        let fitting = self.sized.range((class, size, 0)..).take_while(|&&(own, ..)| own == class);
        let (length, start) =
            fitting.map(|&(_, length, start)| (length, start)).find(|&(length, start)| end(start) <= start + length)?;
        let at = start.next_multiple_of(align);
        self.cut(start);
        for (from, to) in [(start, at), (at + size, start + length)] {
            if from < to {
                self.insert(from, to - from);
            }
        }
        Some(at)
    }

    /// Makes a range free again that [`take`](Self::take) gave.
    pub(super) fn give(&mut self, start: u64, size: u64) {
        let (mut from, mut to) = (start, start + size);
        if let Some((&before, &length)) = self.free.range(..from).next_back()
            && before + length == from
            && !self.segments.contains_key(&from)
        {
            self.cut(before);
            from = before;
        }
        if let Some(&length) = self.free.get(&to)
            && !self.segments.contains_key(&to)
        {
            self.cut(to);
            to += length;
        }
        self.insert(from, to - from);
    }

    /// Whether an address lies in free memory of a segment.
    pub(super) fn is_free(&self, address: u64) -> bool {
        self.free.range(..=address).next_back().is_some_and(|(&start, &length)| address - start < length)
    }

    /// The segments.
    pub(super) fn segments(&self) -> Vec<Span> {
        self.segments.iter().map(|(&start, &(bytes, _))| Span::new(start, Bytes::new(bytes))).collect()
    }

    /// The segments that are all free.
    pub(super) fn idle(&self) -> Vec<Span> {
        let mut idle = self.segments();
        idle.retain(|span| self.free.get(&span.start) == Some(&span.bytes.get()));
        idle
    }

    fn class(&self, address: u64) -> Class {
        self.segments.range(..=address).next_back().map_or(Class::Large, |(_, &(_, class))| class)
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.free.insert(start, length);
        self.sized.insert((self.class(start), length, start));
    }

    fn cut(&mut self, start: u64) {
        if let Some(length) = self.free.remove(&start) {
            self.sized.remove(&(self.class(start), length, start));
        }
    }
}
