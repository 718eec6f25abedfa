//! Who used free memory last, and whether that work is done.
//!
//! A stream may use what it freed itself at once: its work is done in order. What another stream freed is behind that
//! stream's queue: it is free to take once a mark in the queue has passed, or if the taker's stream is told to wait for
//! the mark. Nothing of this is kept as long as there is only one stream.

use std::collections::{BTreeMap, VecDeque};

use lowtide_core::StreamId;
use lowtide_core::ranges::RangeMap;
use lowtide_memory::{Error as SourceError, Mark, Source};
use rustc_hash::FxHashMap;

use crate::pending;

/// A stream's queue is marked once in so many frees.
const MARK_EVERY: u64 = 16;

/// No more marks than this are kept in a queue.
const MOST_MARKS: usize = 256;

/// How far a stream had come when it freed something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Position(u64);

#[derive(Debug, Default)]
struct Queue {
    freed: u64,
    marks: VecDeque<(Position, Mark)>,
    passed: u64,
}

impl Queue {
    /// Forgets marks that have passed.
    fn pass(&mut self, source: &dyn Source) {
        while let Some((at, mark)) = self.marks.pop_front_if(|(_, mark)| source.passed(*mark)) {
            self.passed = at.0;
            source.forget(mark);
        }
    }
}

/// The queues of all streams.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_stream: BTreeMap<StreamId, Queue>,
    /// The stream that was met last.
    last: Option<StreamId>,
    /// How far in the second's queue the first waits.
    held: FxHashMap<(StreamId, StreamId), Position>,
}

impl Queues {
    /// Notes that `stream` is used. Says whether it is the second: from then on frees are kept.
    pub(super) fn meet(&mut self, stream: StreamId) -> bool {
        if self.last == Some(stream) {
            return false;
        }
        self.last = Some(stream);
        if self.by_stream.contains_key(&stream) {
            return false;
        }
        self.by_stream.insert(stream, Queue::default());
        self.by_stream.len() == 2
    }

    /// Whether there is more than one stream.
    pub(super) fn several(&self) -> bool {
        self.by_stream.len() > 1
    }

    /// The streams that were used.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        self.by_stream.keys().copied().collect()
    }

    /// Notes a free on `stream` and says where in its queue that is.
    pub(super) fn freed(&mut self, stream: StreamId, source: &dyn Source) -> Position {
        let queue = self.by_stream.entry(stream).or_default();
        queue.freed += 1;
        let position = Position(queue.freed);
        if queue.freed.is_multiple_of(MARK_EVERY) {
            queue.pass(source);
        }
        if queue.freed.is_multiple_of(MARK_EVERY) && queue.marks.len() < MOST_MARKS {
            // Without this mark a later one serves.
            if let Ok(mark) = source.mark(stream) {
                queue.marks.push_back((position, mark));
            }
        }
        position
    }

    /// Whether `taker` must wait before it uses what `owner` freed at `position`.
    pub(super) fn must_wait(
        &mut self,
        taker: StreamId,
        owner: StreamId,
        position: Position,
        source: &dyn Source,
    ) -> bool {
        if taker == owner || self.held.get(&(taker, owner)).is_some_and(|&held| held >= position) {
            return false;
        }
        let Some(queue) = self.by_stream.get_mut(&owner) else { return false };
        queue.pass(source);
        queue.passed < position.0
    }

    /// Lets `taker` wait for what `owner` has queued up to `position`.
    pub(super) fn hold(
        &mut self,
        taker: StreamId,
        owner: StreamId,
        position: Position,
        source: &dyn Source,
    ) -> Result<(), SourceError> {
        let Some(queue) = self.by_stream.get_mut(&owner) else { return Ok(()) };
        if queue.marks.back().is_none_or(|&(last, _)| last < position) {
            queue.marks.push_back((Position(queue.freed), source.mark(owner)?));
        }
        let reached = queue.marks.iter().find(|(at, _)| *at >= position).copied();
        if let Some((at, mark)) = reached {
            source.hold(taker, mark)?;
            self.held.insert((taker, owner), at);
        }
        Ok(())
    }

    /// A mark behind all that is queued now, on every stream; the caller forgets them.
    pub(super) fn mark_all(&self, source: &dyn Source) -> Result<Vec<Mark>, SourceError> {
        pending::mark_all(self.by_stream.keys().copied(), source)
    }

    /// Whether work is queued that is not done.
    pub(super) fn are_busy(&self, source: &dyn Source) -> bool {
        self.by_stream.keys().any(|&stream| {
            source.mark(stream).is_ok_and(|mark| {
                let is_busy = !source.passed(mark);
                source.forget(mark);
                is_busy
            })
        })
    }

    /// Waits until all queued work is done.
    pub(super) fn finish(&mut self, source: &dyn Source) -> Result<(), SourceError> {
        for (&stream, queue) in &mut self.by_stream {
            let mark = source.mark(stream)?;
            let waited = source.wait(mark);
            source.forget(mark);
            waited?;
            queue.passed = queue.freed;
            for (_, mark) in queue.marks.drain(..) {
                source.forget(mark);
            }
        }
        Ok(())
    }

    /// Asks no more about any mark.
    pub(super) fn forget(&mut self, source: &dyn Source) {
        for queue in self.by_stream.values_mut() {
            for (_, mark) in queue.marks.drain(..) {
                source.forget(mark);
            }
        }
    }
}

/// Which ranges were freed by whom, and how far that stream had come.
#[derive(Debug, Default)]
pub(super) struct Freed {
    ranges: RangeMap<(StreamId, Position)>,
}

impl Freed {
    /// Notes that `stream` freed a range, whoever freed parts of it before.
    pub(super) fn insert(&mut self, start: u64, end: u64, stream: StreamId, position: Position) {
        self.ranges.insert(start..end, (stream, position));
    }

    /// Forgets who freed a range.
    pub(super) fn cut(&mut self, start: u64, end: u64) {
        self.ranges.remove(start..end);
    }

    /// The parts of a range that were freed, by whom and when.
    pub(super) fn within(&self, start: u64, end: u64) -> Vec<(u64, u64, StreamId, Position)> {
        let clip = |(range, &(stream, position)): (std::ops::Range<u64>, &(StreamId, Position))| {
            (range.start.max(start), range.end.min(end), stream, position)
        };
        self.ranges.overlapping(&(start..end)).map(clip).collect()
    }

    /// Who freed parts of a range, and when.
    pub(super) fn owners(&self, start: u64, end: u64) -> Vec<(StreamId, Position)> {
        self.ranges.overlapping(&(start..end)).map(|(_, &owner)| owner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_freed_again_belongs_to_the_last() {
        let mut freed = Freed::default();
        freed.insert(0, 100, StreamId(1), Position(1));
        freed.insert(40, 60, StreamId(2), Position(2));
        assert_eq!(
            freed.owners(30, 70),
            [(StreamId(1), Position(1)), (StreamId(2), Position(2)), (StreamId(1), Position(1))]
        );
        freed.cut(0, 50);
        assert_eq!(freed.owners(0, 60), [(StreamId(2), Position(2))]);
    }
}
