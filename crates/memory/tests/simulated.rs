//! The simulated device: its clock, its prices, its capacity, and what it accounts for against a model that is too simple to be
//! wrong.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error, Lag, Limited, Simulated, SimulatedOptions, Source, Span};
use proptest::prelude::*;

const GRANULE: u64 = 2 << 20;

fn granules(count: u64) -> Bytes {
    Bytes::new(count * GRANULE)
}

fn device(options: SimulatedOptions) -> Simulated {
    Simulated::new(options).unwrap()
}

#[test]
fn marks_pass_by_the_clock() {
    let device = device(SimulatedOptions { lag_ns: 50, ..SimulatedOptions::default() });
    let mark = device.mark(StreamId(1)).unwrap();
    device.advance(49);
    assert!(!device.passed(mark));
    device.advance(1);
    assert!(device.passed(mark));
    device.set_time(10);
    assert_eq!(device.now_ns(), 50, "time does not go back");
    device.set_time(60);
    assert_eq!(device.now_ns(), 60);
}

#[test]
fn real_time_passes_by_itself_also_behind_adaptors() {
    let still = device(SimulatedOptions::default());
    let running = device(SimulatedOptions { lag_ns: 1_000_000, real_time: true, ..SimulatedOptions::default() });
    let limited = Limited::new(Arc::new(running), None);
    let (before, mark) = (limited.now(), limited.mark(StreamId(1)).unwrap());
    sleep(Duration::from_millis(5));
    assert!(limited.now() >= before + Duration::from_millis(5));
    assert!(limited.passed(mark));
    assert_eq!(still.now(), Duration::ZERO);
    still.set_time(7);
    assert_eq!(
        Limited::new(Arc::new(still), None).now(),
        Duration::from_nanos(7),
        "a model's own time is that of its program"
    );
}

#[test]
fn a_lag_holds_for_the_marks_made_after_it() {
    let device = device(SimulatedOptions { lag_ns: 5, ..SimulatedOptions::default() });
    let first = device.mark(StreamId(0)).unwrap();
    device.set_lag(Lag::At(100));
    let second = device.mark(StreamId(0)).unwrap();
    device.set_lag(Lag::Never);
    let third = device.mark(StreamId(0)).unwrap();
    device.set_lag(Lag::At(1));
    device.set_time(5);
    let past = device.mark(StreamId(0)).unwrap();
    assert_eq!([first, second, third, past].map(|mark| device.passed(mark)), [true, false, false, true]);
    device.set_time(u64::MAX);
    assert_eq!([second, third].map(|mark| device.passed(mark)), [true, false]);
}

#[test]
fn waiting_moves_the_clock_and_is_counted_apart() {
    let device = device(SimulatedOptions { lag_ns: 70, ..SimulatedOptions::default() });
    let mark = device.mark(StreamId(0)).unwrap();
    device.advance(20);
    device.wait(mark).unwrap();
    device.wait(mark).unwrap();
    assert_eq!(device.now_ns(), 70);
    let calls = device.calls();
    assert_eq!((calls.waits, calls.waited_ns, calls.nanoseconds), (1, 50, 0));
    device.set_lag(Lag::Never);
    let never = device.mark(StreamId(0)).unwrap();
    let error = device.wait(never).unwrap_err();
    assert!(error.to_string().contains("never ends"), "{error}");
    assert_eq!((device.calls().waits, device.now_ns()), (1, 70));
    device.forget(never);
    assert!(device.passed(never));
}

#[test]
fn calls_are_charged_and_take_no_time() {
    let options =
        SimulatedOptions { create_ns: 1, map_ns: 10, unmap_ns: 100, destroy_ns: 1000, ..SimulatedOptions::default() };
    let device = device(options);
    let cost = |call: &dyn Fn()| {
        let before = device.calls().nanoseconds;
        call();
        device.calls().nanoseconds - before
    };
    let span = device.reserve(granules(8)).unwrap();
    let place = |first: u64| Span::new(span.start + first * GRANULE, granules(2));
    assert_eq!(cost(&|| device.commit(place(0)).unwrap()), 11);
    assert_eq!(cost(&|| device.alias(place(0), place(2).start).unwrap()), 10);
    assert_eq!(cost(&|| device.decommit(place(0)).unwrap()), 100);
    assert_eq!(cost(&|| device.relocate(place(2), place(4).start).unwrap()), 110);
    assert_eq!(cost(&|| device.decommit(place(4)).unwrap()), 1100);
    assert_eq!(cost(&|| assert!(device.decommit(place(4)).is_err())), 0);
    assert_eq!(cost(&|| device.release(span).unwrap()), 0);
    assert_eq!(device.now_ns(), 0);
}

#[test]
fn the_capacity_counts_memory_once() {
    let device = device(SimulatedOptions { capacity: Some(granules(4)), ..SimulatedOptions::default() });
    let span = device.reserve(granules(64)).unwrap();
    let place = |first: u64, count| Span::new(span.start + first * GRANULE, granules(count));
    device.commit(place(0, 3)).unwrap();
    device.alias(place(0, 3), place(10, 1).start).unwrap();
    device.alias(place(0, 3), place(20, 1).start).unwrap();
    assert_eq!(device.commit(place(3, 2)), Err(Error::OutOfMemory { asked: granules(2) }));
    device.commit(place(3, 1)).unwrap();
    device.decommit(place(0, 3)).unwrap();
    device.decommit(place(10, 3)).unwrap();
    assert!(device.commit(place(0, 1)).is_err());
    device.decommit(place(20, 3)).unwrap();
    device.commit(place(0, 3)).unwrap();
    assert_eq!(device.calls().peak_committed, granules(4));
}

#[test]
fn released_addresses_are_not_given_again() {
    let device = device(SimulatedOptions::default());
    let first = device.reserve(granules(4)).unwrap();
    device.release(first).unwrap();
    assert!(device.reserve(granules(4)).unwrap().start >= first.end());
}

#[test]
fn a_granularity_that_is_none_is_refused() {
    for (granularity, contents) in [(0, false), (3 << 20, false), (512, true)] {
        let granularity = Bytes::new(granularity);
        let options = SimulatedOptions { granularity, contents, ..SimulatedOptions::default() };
        assert!(matches!(Simulated::new(options), Err(Error::Refused { .. })));
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Reserve(u64),
    Release(usize),
    Commit(Place),
    Decommit(Place),
    Alias(Place, Place),
    Relocate(Place, Place),
}

/// A place in one of the ranges reserved so far, by granules; `skew` spoils it.
#[derive(Clone, Copy, Debug)]
struct Place {
    range: usize,
    first: u64,
    count: u64,
    skew: u64,
}

fn places() -> impl Strategy<Value = Place> {
    let skew = prop_oneof![20 => Just(0_u64), 1 => Just(4096)];
    (0..4_usize, 0..8_u64, 0..4_u64, skew).prop_map(|(range, first, count, skew)| Place { range, first, count, skew })
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        2 => (1..9_u64).prop_map(Operation::Reserve),
        1 => (0..4_usize).prop_map(Operation::Release),
        8 => places().prop_map(Operation::Commit),
        6 => places().prop_map(Operation::Decommit),
        5 => (places(), places()).prop_map(|(from, to)| Operation::Alias(from, to)),
        5 => (places(), places()).prop_map(|(from, to)| Operation::Relocate(from, to)),
    ];
    prop::collection::vec(operation, 1..120)
}

/// Every granule by itself: its handle, its place in it, and the number of its mapping.
#[derive(Default, Debug)]
struct Model {
    ranges: Vec<(Span, bool)>,
    granules: BTreeMap<u64, (u64, u64, u64)>,
    next: u64,
}

const CAPACITY: u64 = 12;

impl Model {
    fn span(&self, place: Place) -> Span {
        let start = self.ranges.get(place.range).map_or(0x1000_0000, |(span, _)| span.start);
        Span::new(start + place.first * GRANULE + place.skew, granules(place.count))
    }

    fn inside(&self, span: Span) -> bool {
        span.start.is_multiple_of(GRANULE)
            && span.bytes > Bytes::ZERO
            && self.ranges.iter().any(|(range, here)| *here && range.start <= span.start && span.end() <= range.end())
    }

    fn under(&self, span: Span) -> Vec<Option<(u64, u64, u64)>> {
        (span.start..span.end()).step_by(GRANULE as usize).map(|at| self.granules.get(&at).copied()).collect()
    }

    fn vacant(&self, span: Span) -> bool {
        self.inside(span) && self.under(span).iter().all(Option::is_none)
    }

    /// Whole mappings and nothing else.
    fn covered(&self, span: Span) -> bool {
        let under = self.under(span);
        let whole = |mapping| {
            let everywhere = self.granules.values().filter(|granule| granule.2 == mapping).count();
            under.iter().flatten().filter(|granule| granule.2 == mapping).count() == everywhere
        };
        self.inside(span) && under.iter().all(|granule| granule.is_some_and(|(.., mapping)| whole(mapping)))
    }

    fn one_mapping(&self, span: Span) -> bool {
        self.covered(span) && self.under(span).windows(2).all(|pair| pair[0].map(|g| g.2) == pair[1].map(|g| g.2))
    }

    fn committed(&self) -> u64 {
        let pairs = self.granules.values().map(|&(handle, place, _)| (handle, place));
        pairs.collect::<std::collections::BTreeSet<_>>().len() as u64
    }

    fn clear(&mut self, span: Span) {
        self.granules.retain(|&at, _| at < span.start || at >= span.end());
    }

    fn map(&mut self, from: Span, to: u64) {
        self.next += 1;
        for (index, granule) in self.under(from).into_iter().enumerate() {
            if let Some((handle, place, _)) = granule {
                self.granules.insert(to + index as u64 * GRANULE, (handle, place, self.next));
            }
        }
    }

    /// What the device should say.
    fn apply(&mut self, operation: Operation) -> &'static str {
        match operation {
            Operation::Reserve(_) => "ok",
            Operation::Release(index) => {
                // The system may have given the same addresses again.
                let span = self.ranges.get(index).map(|(span, _)| *span);
                match self.ranges.iter_mut().find(|(other, here)| *here && Some(*other) == span) {
                    Some((span, here)) => {
                        *here = false;
                        let span = *span;
                        self.clear(span);
                        "ok"
                    }
                    None => "bad span",
                }
            }
            Operation::Commit(place) => {
                let span = self.span(place);
                if !self.vacant(span) {
                    return "bad span";
                }
                if self.committed() + place.count > CAPACITY {
                    return "out of memory";
                }
                self.next += 1;
                for index in 0..place.count {
                    self.granules.insert(span.start + index * GRANULE, (self.next, index, self.next));
                }
                "ok"
            }
            Operation::Decommit(place) => {
                let span = self.span(place);
                if !self.covered(span) {
                    return "bad span";
                }
                self.clear(span);
                "ok"
            }
            Operation::Alias(from, to) | Operation::Relocate(from, to) => {
                let (from, to) = (self.span(from), self.span(to).start);
                if !self.one_mapping(from) || !self.vacant(Span::new(to, from.bytes)) {
                    return "bad span";
                }
                self.map(from, to);
                if matches!(operation, Operation::Relocate(..)) {
                    self.clear(from);
                }
                "ok"
            }
        }
    }
}

fn run(operations: &[Operation], contents: bool) {
    let capacity = Some(granules(CAPACITY));
    let device = device(SimulatedOptions { capacity, contents, ..SimulatedOptions::default() });
    let mut model = Model::default();
    for &operation in operations {
        let result = match operation {
            Operation::Reserve(count) => device.reserve(granules(count)).map(|span| model.ranges.push((span, true))),
            Operation::Release(index) => {
                device.release(model.ranges.get(index).map_or(Span::new(0, Bytes::ZERO), |(span, _)| *span))
            }
            Operation::Commit(place) => device.commit(model.span(place)),
            Operation::Decommit(place) => device.decommit(model.span(place)),
            Operation::Alias(from, to) => device.alias(model.span(from), model.span(to).start),
            Operation::Relocate(from, to) => device.relocate(model.span(from), model.span(to).start),
        };
        let said = match &result {
            Ok(()) => "ok",
            Err(Error::BadSpan { .. }) => "bad span",
            Err(Error::OutOfMemory { .. }) => "out of memory",
            Err(_) => "something else",
        };
        assert_eq!(said, model.apply(operation), "{operation:?}: {result:?}");
        assert_eq!(device.calls().committed, granules(model.committed()), "after {operation:?}");
        if contents && said == "ok" {
            check_contents(&model, operation);
        }
    }
}

/// A new handle is filled with its numbers; whatever is mapped has to show them.
#[expect(unsafe_code, reason = "reads and writes memory that the device committed")]
fn check_contents(model: &Model, operation: Operation) {
    for (&address, &(handle, place, mapping)) in &model.granules {
        let value = std::ptr::with_exposed_provenance_mut::<[u64; 2]>(address as usize);
        // SAFETY: the model says that the granule is mapped, and the device agreed.
        unsafe {
            if matches!(operation, Operation::Commit(_)) && mapping == model.next {
                assert_eq!(value.read(), [0, 0], "new memory is empty");
                value.write([handle, place]);
            }
            assert_eq!(value.read(), [handle, place], "at {address:#x} after {operation:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn its_books_agree_with_the_model(operations in operations()) {
        run(&operations, false);
    }

    #[test]
    fn its_contents_agree_with_the_model(operations in operations()) {
        run(&operations, true);
    }
}
