//! Sources that refuse: when, how, and that nothing happens then.

#![allow(clippy::unwrap_used)]

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{
    CallKind, Error, FailPlan, FailWhen, Failing, Failure, Simulated, SimulatedOptions, Source, Span,
};

const GRANULE: Bytes = Bytes::new(2 << 20);

fn failing(plan: FailPlan) -> Failing<Simulated> {
    Failing::new(Simulated::new(SimulatedOptions::default()).unwrap(), plan)
}

#[test]
fn the_call_of_the_given_number_fails_and_does_nothing() {
    let source = failing(FailPlan::new(FailWhen::Nth(2)));
    let span = source.reserve(GRANULE).unwrap();
    assert_eq!(source.commit(span), Err(Error::OutOfMemory { asked: GRANULE }));
    assert_eq!(source.calls().created, 0);
    source.commit(span).unwrap();
    source.decommit(span).unwrap();
    assert_eq!((source.calls_made(), source.calls_failed()), (4, 1));
    assert_eq!(source.source().calls(), source.calls());
}

#[test]
fn only_the_given_kinds_are_counted_and_fail() {
    let plan = FailPlan::new(FailWhen::From(2)).only(&[CallKind::Alias, CallKind::Mark]).with(Failure::Refused);
    let source = failing(plan);
    let span = source.reserve(Bytes::new(4 * GRANULE.get())).unwrap();
    let first = Span::new(span.start, GRANULE);
    source.commit(first).unwrap();
    source.alias(first, first.end()).unwrap();
    assert!(matches!(source.alias(first, first.end() + GRANULE.get()), Err(Error::Refused { .. })));
    assert!(matches!(source.mark(StreamId(0)), Err(Error::Refused { .. })));
    source.relocate(first, first.end() + GRANULE.get()).unwrap();
    source.release(span).unwrap();
    assert_eq!((source.calls_made(), source.calls_failed()), (3, 2));
}

#[test]
fn chance_is_the_same_for_the_same_seed() {
    let draw = |seed, probability| -> Vec<bool> {
        let source = failing(FailPlan::new(FailWhen::Randomly { probability, seed }));
        (0..1000).map(|_| source.reserve(GRANULE).is_err()).collect()
    };
    assert_eq!(draw(1, 0.3), draw(1, 0.3));
    assert_ne!(draw(1, 0.3), draw(2, 0.3));
    let failed = draw(1, 0.3).iter().filter(|&&failed| failed).count();
    assert!((250..350).contains(&failed), "{failed} of 1000");
    assert!(draw(1, 0.0).iter().all(|&failed| !failed));
    assert!(draw(1, 1.0).iter().all(|&failed| failed));
}
