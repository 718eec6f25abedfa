//! What every source promises. Each check gets a source that nothing was done with yet.

use std::sync::{Arc, Barrier};
use std::thread;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error, Source, Span};

/// A source whose bytes a test can reach.
pub trait Subject: Source {
    /// Writes bytes to committed addresses; `false` where this source has none.
    fn put(&self, address: u64, bytes: &[u8]) -> bool;

    /// Reads bytes from committed addresses.
    fn take(&self, address: u64, count: usize) -> Vec<u8>;
}

/// Calls `$macro` with the names of all checks.
#[macro_export]
macro_rules! checks {
    ($macro:ident $($more:tt)*) => {
        $macro! { $($more)*
            addresses_are_aligned_and_apart
            committed_memory_holds_what_is_written
            memory_comes_back_after_a_decommit
            a_decommit_takes_several_handles
            an_alias_is_the_same_memory
            memory_stays_while_it_has_an_address
            a_moved_handle_keeps_its_contents
            spans_that_are_no_granules_are_refused
            spans_of_nobody_are_refused
            memory_is_not_put_over_memory
            memory_is_not_taken_twice
            a_handle_is_not_taken_in_parts
            ranges_are_released_whole_and_once
            a_refused_call_changes_nothing
            releasing_takes_the_memory_along
            counts_add_up
            marks_pass_and_are_forgotten
            threads_use_spans_of_their_own
            more_than_there_can_be_is_an_error
        }
    };
}

fn granules(source: &dyn Subject, count: u64) -> Bytes {
    Bytes::new(source.describe().granularity.get() * count)
}

fn part(source: &dyn Subject, span: Span, first: u64, count: u64) -> Span {
    Span::new(span.start + granules(source, first).get(), granules(source, count))
}

fn is_bad_span(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::BadSpan { .. }))
}

macro_rules! assert_bad_span {
    ($call:expr) => {
        let result = $call;
        assert!(is_bad_span(&result), "{} was {result:?}", stringify!($call));
    };
}

/// Bytes at both ends of a span that no other `tag` has.
fn fill(source: &dyn Subject, span: Span, tag: u8) -> bool {
    let bytes = [tag, !tag, tag ^ 0x55, 0xa5];
    source.put(span.start, &bytes) && source.put(span.end() - 4, &bytes)
}

fn assert_filled(source: &dyn Subject, span: Span, tag: u8) {
    let bytes = [tag, !tag, tag ^ 0x55, 0xa5];
    assert_eq!(source.take(span.start, 4), bytes, "at the start of {span:?}");
    assert_eq!(source.take(span.end() - 4, 4), bytes, "at the end of {span:?}");
}

pub fn addresses_are_aligned_and_apart(source: &dyn Subject) {
    let granularity = source.describe().granularity;
    assert!(granularity.get().is_power_of_two());
    let mut spans: Vec<Span> = (1..6).map(|count| source.reserve(granules(source, count)).unwrap()).collect();
    let odd = source.reserve(Bytes::new(1)).unwrap();
    assert_eq!(odd.bytes, granularity, "a byte takes a granule");
    spans.push(odd);
    assert!(spans.iter().all(|span| span.start.is_multiple_of(granularity.get()) && span.start > 0));
    spans.sort();
    assert!(spans.windows(2).all(|pair| pair[0].end() <= pair[1].start), "{spans:?}");
    assert_eq!(source.calls().committed, Bytes::ZERO);
}

pub fn committed_memory_holds_what_is_written(source: &dyn Subject) {
    let span = source.reserve(granules(source, 8)).unwrap();
    let spans = [part(source, span, 0, 1), part(source, span, 1, 2), part(source, span, 5, 3)];
    for (tag, &span) in spans.iter().enumerate() {
        source.commit(span).unwrap();
        fill(source, span, tag as u8 + 1);
    }
    if source.put(span.start, &[]) {
        spans.iter().enumerate().for_each(|(tag, &span)| assert_filled(source, span, tag as u8 + 1));
    }
    assert_eq!(source.calls().committed, granules(source, 6));
}

pub fn memory_comes_back_after_a_decommit(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    for round in 1..5 {
        for first in 0..4 {
            let place = part(source, span, first, 1);
            source.commit(place).unwrap();
            if fill(source, place, round * 16 + first as u8) {
                assert_filled(source, place, round * 16 + first as u8);
            }
        }
        source.decommit(span).unwrap();
        assert_eq!(source.calls().committed, Bytes::ZERO);
    }
    source.commit(span).unwrap();
    assert_eq!(source.calls().peak_committed, granules(source, 4));
}

pub fn a_decommit_takes_several_handles(source: &dyn Subject) {
    let span = source.reserve(granules(source, 6)).unwrap();
    for (first, count) in [(0, 1), (1, 2), (3, 1), (4, 2)] {
        source.commit(part(source, span, first, count)).unwrap();
    }
    source.decommit(part(source, span, 1, 3)).unwrap();
    assert_eq!(source.calls().committed, granules(source, 3));
    source.commit(part(source, span, 1, 3)).unwrap();
    source.decommit(span).unwrap();
}

pub fn an_alias_is_the_same_memory(source: &dyn Subject) {
    if !source.describe().aliases {
        return assert_refuses_aliases(source);
    }
    let span = source.reserve(granules(source, 8)).unwrap();
    let elsewhere = source.reserve(granules(source, 4)).unwrap();
    let (first, second, third) = (part(source, span, 0, 2), part(source, span, 4, 2), part(source, elsewhere, 1, 2));
    source.commit(first).unwrap();
    source.alias(first, second.start).unwrap();
    source.alias(second, third.start).unwrap();
    if fill(source, first, 7) {
        assert_filled(source, second, 7);
        fill(source, third, 8);
        assert_filled(source, first, 8);
    }
    assert_eq!(source.calls().committed, granules(source, 2), "memory is counted once");
    assert_bad_span!(source.alias(first, second.start));
    assert_bad_span!(source.alias(first, first.start));
    assert_bad_span!(source.alias(part(source, span, 0, 1), part(source, span, 6, 1).start));
    assert_bad_span!(source.alias(part(source, span, 2, 1), part(source, span, 6, 1).start));
    assert_bad_span!(source.alias(first, part(source, span, 7, 1).start));
    assert_bad_span!(source.alias(first, u64::MAX - 1));
}

pub fn memory_stays_while_it_has_an_address(source: &dyn Subject) {
    if !source.describe().aliases {
        return assert_refuses_aliases(source);
    }
    let span = source.reserve(granules(source, 3)).unwrap();
    let places: Vec<Span> = (0..3).map(|first| part(source, span, first, 1)).collect();
    source.commit(places[0]).unwrap();
    source.alias(places[0], places[1].start).unwrap();
    fill(source, places[0], 3);
    source.decommit(places[0]).unwrap();
    assert_eq!(source.calls().destroyed, 0);
    source.alias(places[1], places[2].start).unwrap();
    source.decommit(places[1]).unwrap();
    if source.put(places[2].start, &[]) {
        assert_filled(source, places[2], 3);
    }
    assert_eq!(source.calls().committed, granules(source, 1));
    source.decommit(places[2]).unwrap();
    assert_eq!((source.calls().committed, source.calls().destroyed), (Bytes::ZERO, 1));
}

pub fn a_moved_handle_keeps_its_contents(source: &dyn Subject) {
    if !source.describe().relocates {
        return assert_refuses_moves(source);
    }
    let span = source.reserve(granules(source, 8)).unwrap();
    let (from, to) = (part(source, span, 0, 2), part(source, span, 5, 2));
    source.commit(from).unwrap();
    fill(source, from, 9);
    assert_bad_span!(source.relocate(from, part(source, span, 1, 1).start));
    assert_bad_span!(source.relocate(part(source, span, 0, 1), to.start));
    assert_bad_span!(source.relocate(from, to.start + 1));
    source.relocate(from, to.start).unwrap();
    assert_eq!(source.calls().committed, granules(source, 2));
    if source.put(to.start, &[]) {
        assert_filled(source, to, 9);
    }
    assert_bad_span!(source.decommit(from));
    source.commit(from).unwrap();
    if fill(source, from, 10) {
        assert_filled(source, to, 9);
    }
    source.decommit(to).unwrap();
    source.decommit(from).unwrap();
    assert_eq!(source.calls().committed, Bytes::ZERO);
}

fn assert_refuses_aliases(source: &dyn Subject) {
    let (from, to) = committed_and_free(source);
    assert!(matches!(source.alias(from, to.start), Err(Error::Unsupported { .. })));
    source.commit(to).unwrap();
}

fn assert_refuses_moves(source: &dyn Subject) {
    let (from, to) = committed_and_free(source);
    assert!(matches!(source.relocate(from, to.start), Err(Error::Unsupported { .. })));
    source.commit(to).unwrap();
}

/// A granule with memory, and one without.
fn committed_and_free(source: &dyn Subject) -> (Span, Span) {
    let span = source.reserve(granules(source, 2)).unwrap();
    source.commit(part(source, span, 0, 1)).unwrap();
    (part(source, span, 0, 1), part(source, span, 1, 1))
}

pub fn spans_that_are_no_granules_are_refused(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    let half = source.describe().granularity.get() / 2;
    for wrong in [
        Span::new(span.start + half, granules(source, 1)),
        Span::new(span.start, Bytes::new(half)),
        Span::new(span.start, Bytes::ZERO),
        Span::new(span.start + 1, granules(source, 1)),
    ] {
        assert_bad_span!(source.commit(wrong));
        assert_bad_span!(source.decommit(wrong));
    }
    assert_bad_span!(source.reserve(Bytes::ZERO).map(|_| ()));
}

pub fn spans_of_nobody_are_refused(source: &dyn Subject) {
    let span = source.reserve(granules(source, 2)).unwrap();
    let granularity = source.describe().granularity;
    let behind = Span::new(span.end(), granularity);
    let across = Span::new(span.start, granules(source, 3));
    let last = Span::new(u64::MAX - granularity.get() + 1, granularity);
    let local = 0u64;
    let own = Span::new(&raw const local as u64 / granularity.get() * granularity.get(), granularity);
    for wrong in [behind, across, last, own, Span::new(0, granularity)] {
        assert_bad_span!(source.commit(wrong));
        assert_bad_span!(source.decommit(wrong));
        assert_bad_span!(source.release(wrong));
    }
}

pub fn memory_is_not_put_over_memory(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    source.commit(part(source, span, 1, 2)).unwrap();
    for (first, count) in [(1, 2), (1, 1), (2, 1), (0, 2), (2, 2), (0, 4)] {
        assert_bad_span!(source.commit(part(source, span, first, count)));
    }
    source.commit(part(source, span, 0, 1)).unwrap();
    source.commit(part(source, span, 3, 1)).unwrap();
}

pub fn memory_is_not_taken_twice(source: &dyn Subject) {
    let span = source.reserve(granules(source, 2)).unwrap();
    assert_bad_span!(source.decommit(span));
    source.commit(span).unwrap();
    source.decommit(span).unwrap();
    assert_bad_span!(source.decommit(span));
}

pub fn a_handle_is_not_taken_in_parts(source: &dyn Subject) {
    let span = source.reserve(granules(source, 6)).unwrap();
    source.commit(part(source, span, 0, 2)).unwrap();
    source.commit(part(source, span, 2, 2)).unwrap();
    for (first, count) in [(0, 1), (1, 1), (1, 2), (0, 3), (1, 3), (0, 5), (3, 2), (4, 1)] {
        assert_bad_span!(source.decommit(part(source, span, first, count)));
    }
    assert_eq!(source.calls().committed, granules(source, 4));
    source.decommit(part(source, span, 0, 4)).unwrap();
}

pub fn ranges_are_released_whole_and_once(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    assert_bad_span!(source.release(part(source, span, 0, 2)));
    assert_bad_span!(source.release(part(source, span, 2, 2)));
    source.release(span).unwrap();
    assert_bad_span!(source.release(span));
    assert_bad_span!(source.commit(part(source, span, 0, 1)));
}

pub fn a_refused_call_changes_nothing(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    let place = part(source, span, 0, 2);
    source.commit(place).unwrap();
    let filled = fill(source, place, 21);
    let before = source.calls();
    let _ = source.commit(part(source, span, 1, 2));
    let _ = source.decommit(part(source, span, 0, 1));
    let _ = source.decommit(part(source, span, 0, 3));
    let _ = source.alias(part(source, span, 0, 1), part(source, span, 3, 1).start);
    let _ = source.relocate(part(source, span, 0, 1), part(source, span, 3, 1).start);
    let _ = source.release(place);
    assert_eq!(source.calls(), before);
    if filled {
        assert_filled(source, place, 21);
    }
}

pub fn releasing_takes_the_memory_along(source: &dyn Subject) {
    let span = source.reserve(granules(source, 4)).unwrap();
    source.commit(part(source, span, 0, 1)).unwrap();
    source.commit(part(source, span, 2, 2)).unwrap();
    source.release(span).unwrap();
    let calls = source.calls();
    assert_eq!((calls.committed, calls.destroyed, calls.unmapped, calls.released), (Bytes::ZERO, 2, 2, 1));
}

pub fn counts_add_up(source: &dyn Subject) {
    let can = source.describe();
    let span = source.reserve(granules(source, 8)).unwrap();
    let first = part(source, span, 0, 2);
    source.commit(first).unwrap();
    source.commit(part(source, span, 2, 1)).unwrap();
    let mut extra = 0;
    if can.aliases {
        source.alias(first, part(source, span, 4, 2).start).unwrap();
        source.decommit(part(source, span, 4, 2)).unwrap();
        extra += 1;
    }
    if can.relocates {
        source.relocate(first, part(source, span, 4, 2).start).unwrap();
        source.relocate(part(source, span, 4, 2), first.start).unwrap();
        extra += 2;
    }
    let calls = source.calls();
    assert_eq!((calls.reserved, calls.created, calls.mapped, calls.unmapped), (1, 2, 2 + extra, extra));
    assert_eq!((calls.committed, calls.peak_committed), (granules(source, 3), granules(source, 3)));
    source.decommit(part(source, span, 0, 3)).unwrap();
    source.release(span).unwrap();
    let calls = source.calls();
    assert_eq!((calls.released, calls.destroyed, calls.unmapped), (1, 2, 2 + extra));
    assert_eq!((calls.committed, calls.handles()), (Bytes::ZERO, 8 + 2 * extra));
    assert!(calls.nanoseconds > 0);
}

pub fn marks_pass_and_are_forgotten(source: &dyn Subject) {
    let (here, there) = (StreamId(0), StreamId(0));
    let marks: Vec<_> = (0..20).map(|_| source.mark(here).unwrap()).collect();
    for &mark in &marks {
        source.hold(there, mark).unwrap();
        source.wait(mark).unwrap();
        assert!(source.passed(mark));
        source.forget(mark);
        source.forget(mark);
        assert!(source.passed(mark));
        source.wait(mark).unwrap();
        source.hold(there, mark).unwrap();
    }
    assert_eq!(source.calls().holds, 40);
}

pub fn threads_use_spans_of_their_own(source: &dyn Subject) {
    let threads = 4;
    let span = source.reserve(granules(source, 16)).unwrap();
    let start = Arc::new(Barrier::new(threads));
    thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let start = Arc::clone(&start);
            scope.spawn(move || {
                start.wait();
                let mine = part(source, span, thread * 4, 4);
                for round in 0..25_u8 {
                    let (low, high) = (part(source, mine, 0, 2), part(source, mine, 2, 2));
                    let tag = thread as u8 * 32 + round;
                    source.commit(low).unwrap();
                    let filled = fill(source, low, tag);
                    let place = if source.describe().relocates {
                        source.relocate(low, high.start).unwrap();
                        high
                    } else {
                        low
                    };
                    if filled {
                        assert_filled(source, place, tag);
                    }
                    let own = source.reserve(granules(source, 1)).unwrap();
                    source.commit(own).unwrap();
                    source.decommit(place).unwrap();
                    source.release(own).unwrap();
                }
            });
        }
    });
    let calls = source.calls();
    assert_eq!((calls.committed, calls.created, calls.destroyed), (Bytes::ZERO, 200, 200));
    assert_eq!((calls.reserved, calls.released, calls.mapped), (101, 100, calls.unmapped));
}

pub fn more_than_there_can_be_is_an_error(source: &dyn Subject) {
    for bytes in [u64::MAX, u64::MAX / 2] {
        let result = source.reserve(Bytes::new(bytes));
        assert!(matches!(result, Err(Error::OutOfAddresses { .. } | Error::Refused { .. })), "{result:?}");
    }
    assert_eq!(source.calls().reserved, 0);
}
