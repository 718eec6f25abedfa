//! What a recording holds.

use lowtide_core::{Action, BlockIndex, StepIndex, Trace};
use lowtide_formats::{Input, write_trace};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::adaptors::Record;

fn recorded(pool: Caching) -> Record<Caching> {
    let now = AtomicU64::new(0);
    Record::new(pool, move || now.fetch_add(10, Ordering::Relaxed))
}

/// A run with two streams, two threads, a step, a use on another stream and a request that does not fit.
fn run(pool: &impl Pool) {
    let weight = pool.alloc(&request(3 * MIB, 0, 1)).unwrap();
    let input = pool.alloc(&request(700, 2, 2)).unwrap();
    pool.record(input, StreamId(0)).unwrap();
    assert!(pool.alloc(&request(60 * MIB, 0, 1)).is_err());
    pool.free(input).unwrap();
    pool.step();
    let again = pool.alloc(&request(700, 2, 2)).unwrap();
    pool.free(again).unwrap();
    pool.step();
    pool.free(weight).unwrap();
}

#[test]
fn rows_are_what_was_done_in_its_order_with_time_stream_and_thread() {
    let pool = recorded(pool(Some(50 * MIB)));
    run(&pool);
    let trace = pool.into_trace();
    let [weight, input, again] = [0, 1, 2].map(BlockIndex);
    let actions: Vec<Action> = trace.events.iter().map(|event| event.action).collect();
    assert_eq!(
        actions,
        [
            Action::Alloc { block: weight },
            Action::Alloc { block: input },
            Action::Record { block: input },
            Action::OutOfMemory { bytes: Bytes::new(60 * MIB) },
            Action::Free { block: input },
            Action::Step { step: StepIndex(1) },
            Action::Alloc { block: again },
            Action::Free { block: again },
            Action::Step { step: StepIndex(2) },
            Action::Free { block: weight },
        ]
    );
    assert_eq!((trace.events[1].stream, trace.events[1].thread), (StreamId(2), Some(2)));
    assert_eq!(trace.events[2].stream, StreamId(0));
    assert!(trace.events.iter().map(|event| event.time_ns.unwrap()).is_sorted());
    assert!(!trace.has_done_rows());
}

#[test]
fn calls_that_are_mistakes_are_not_in_the_recording() {
    let pool = recorded(pool(None));
    assert_eq!(pool.alloc(&request(0, 0, 0)), Err(Error::ZeroSize));
    assert!(pool.free(Address(12)).is_err());
    assert!(pool.record(Address(12), StreamId(1)).is_err());
    assert_eq!(pool.trace(), Trace::default());
}

#[test]
fn blocks_from_before_the_recording_are_left_out() {
    let inner = pool(None);
    let before = take(&inner, 100);
    let pool = recorded(inner);
    pool.record(before, StreamId(1)).unwrap();
    pool.free(before).unwrap();
    assert_eq!(pool.trace(), Trace::default());
}

#[test]
fn a_recording_is_read_again_and_its_replay_gives_the_same_blocks() {
    let first = recorded(pool(Some(50 * MIB)));
    run(&first);
    let trace = first.into_trace();
    let mut file = Vec::new();
    write_trace(&trace, &mut file).unwrap();
    let Ok(Input::Trace(read)) = Input::read(file.as_slice()) else { panic!("not a trace") };
    assert_eq!(read, trace);
    let second = recorded(pool(Some(50 * MIB)));
    replay(&read, &second);
    assert_eq!(second.into_trace(), trace);
}

fn replay(trace: &Trace, pool: &impl Pool) {
    let mut addresses = HashMap::new();
    for event in &trace.events {
        match event.action {
            Action::Alloc { block } => {
                let bytes = trace.block(block).bytes.get();
                let address = pool.alloc(&request(bytes, event.stream.0, event.thread.unwrap())).unwrap();
                assert_eq!(Some(address.0), trace.block(block).address);
                addresses.insert(block, address);
            }
            Action::Free { block } => pool.free(addresses[&block]).unwrap(),
            Action::Record { block } => pool.record(addresses[&block], event.stream).unwrap(),
            Action::Step { .. } => pool.step(),
            Action::OutOfMemory { bytes } => {
                assert!(pool.alloc(&request(bytes.get(), event.stream.0, event.thread.unwrap())).is_err());
            }
            other => panic!("{other:?} was not recorded by a pool"),
        }
    }
}
