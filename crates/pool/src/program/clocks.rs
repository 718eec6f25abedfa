//! The order of queued work as far as a pool can know it: what the host has seen done, and what each stream waits for.
//! Whoever knows of a mark knows of all work before it, and of all that this work waited for.

use std::collections::BTreeMap;

use lowtide_core::StreamId;
use lowtide_memory::Mark;
use rustc_hash::FxHashMap;

/// For each stream, up to when its work is known of.
pub(super) type Clock = BTreeMap<StreamId, u64>;

/// Work that is queued on a stream up to some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub(super) stream: StreamId,
    pub(super) until: u64,
}

#[derive(Debug, Default)]
pub(super) struct Clocks {
    now: u64,
    /// What the host has seen done.
    done: Clock,
    /// Up to when it has seen the work of every stream done.
    drained: u64,
    /// What the work that is queued on a stream from now on comes after.
    behind: FxHashMap<StreamId, Clock>,
    /// What is done when a mark has passed.
    marks: FxHashMap<Mark, Clock>,
}

impl Clocks {
    /// All work of `stream` up to now.
    pub(super) fn up_to_now(&mut self, stream: StreamId) -> Use {
        self.now += 1;
        Use { stream, until: self.now }
    }

    pub(super) fn mark(&mut self, stream: StreamId, mark: Mark) {
        let Use { until, .. } = self.up_to_now(stream);
        let mut clock = self.behind.get(&stream).cloned().unwrap_or_default();
        clock.insert(stream, until);
        self.marks.insert(mark, clock);
    }

    /// The host saw a mark pass. Of one that was forgotten it learns nothing.
    pub(super) fn passed(&mut self, mark: Mark) {
        let clock = self.at(mark);
        self.see(&clock);
    }

    /// What is done when a mark has passed: nothing that is known, where it was forgotten.
    pub(super) fn at(&self, mark: Mark) -> Clock {
        self.marks.get(&mark).cloned().unwrap_or_default()
    }

    /// The host saw that all this is done.
    pub(super) fn see(&mut self, clock: &Clock) {
        advance(&mut self.done, clock);
    }

    /// The host waited for the work of all streams.
    pub(super) fn drain(&mut self) {
        self.drained = self.now;
    }

    pub(super) fn hold(&mut self, stream: StreamId, mark: Mark) {
        if let Some(clock) = self.marks.get(&mark) {
            advance(self.behind.entry(stream).or_default(), clock);
        }
    }

    pub(super) fn forget(&mut self, mark: Mark) {
        self.marks.remove(&mark);
    }

    /// Whether the host knows that work is done.
    pub(super) fn is_done(&self, work: Use) -> bool {
        work.until <= self.drained || reaches(&self.done, work)
    }

    /// Whether what is queued on `stream` from now on comes after work.
    pub(super) fn is_before(&self, work: Use, stream: StreamId) -> bool {
        work.stream == stream
            || self.is_done(work)
            || self.behind.get(&stream).is_some_and(|clock| reaches(clock, work))
    }
}

fn advance(clock: &mut Clock, by: &Clock) {
    for (&stream, &until) in by {
        let known = clock.entry(stream).or_default();
        *known = until.max(*known);
    }
}

fn reaches(clock: &Clock, work: Use) -> bool {
    clock.get(&work.stream).is_some_and(|&until| until >= work.until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(0);
    const B: StreamId = StreamId(1);
    const C: StreamId = StreamId(2);

    #[test]
    fn a_mark_covers_the_work_before_it_alone() {
        let mut clocks = Clocks::default();
        let before = clocks.up_to_now(A);
        clocks.mark(A, Mark(1));
        let after = clocks.up_to_now(A);
        assert!(!clocks.is_before(before, B));
        clocks.passed(Mark(1));
        assert!(clocks.is_before(before, B) && !clocks.is_before(after, B));
        assert!(clocks.is_before(after, A), "a stream keeps its own order");
    }

    #[test]
    fn a_hold_orders_its_stream_and_whoever_waits_for_that() {
        let mut clocks = Clocks::default();
        let work = clocks.up_to_now(A);
        clocks.mark(A, Mark(1));
        clocks.hold(B, Mark(1));
        assert!(clocks.is_before(work, B) && !clocks.is_before(work, C) && !clocks.is_done(work));
        clocks.mark(B, Mark(2));
        clocks.hold(C, Mark(2));
        assert!(clocks.is_before(work, C));
        clocks.passed(Mark(2));
        assert!(clocks.is_done(work), "the work on B came after it");
    }

    #[test]
    fn whoever_waited_for_all_knows_of_all_that_was_queued() {
        let mut clocks = Clocks::default();
        let before = clocks.up_to_now(A);
        clocks.drain();
        let after = clocks.up_to_now(B);
        assert!(clocks.is_before(before, C) && !clocks.is_before(after, C));
    }

    #[test]
    fn a_forgotten_mark_tells_nothing() {
        let mut clocks = Clocks::default();
        let work = clocks.up_to_now(A);
        clocks.mark(A, Mark(1));
        clocks.forget(Mark(1));
        clocks.passed(Mark(1));
        clocks.hold(B, Mark(1));
        assert!(!clocks.is_before(work, B));
    }
}
