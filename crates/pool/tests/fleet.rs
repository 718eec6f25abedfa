//! A fleet over simulated devices.

#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lowtide_core::{Action, Align, Bytes, StreamId, ThreadId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{Error as SourceError, Simulated, SimulatedOptions, Source};
use lowtide_pool::{Address, ArenaOptions, Capture, Error, Fleet, FleetOptions, Request};
use lowtide_replay::TorchOptions;

const MIB: u64 = 1 << 20;

fn fleet(memory: u64, options: FleetOptions) -> Fleet {
    let open = move |device| {
        if device > 3 {
            return Err(SourceError::Refused { call: "open", why: format!("there is no device {device}") });
        }
        let options = SimulatedOptions { capacity: Some(Bytes::new(memory * MIB)), ..SimulatedOptions::default() };
        Ok(Arc::new(Simulated::new(options)?) as Arc<dyn Source>)
    };
    Fleet::new(Box::new(open), |source| TorchOptions::default().pool(source), options)
}

fn small() -> Fleet {
    fleet(64, FleetOptions::default())
}

fn on(stream: u64, mebibytes: u64) -> Request {
    Request {
        bytes: Bytes::new(mebibytes * MIB),
        align: Align::ONE,
        stream: StreamId(stream),
        thread: ThreadId::default(),
    }
}

fn free(fleet: &Fleet, address: Address, mebibytes: u64) {
    fleet.free(0, address, Bytes::new(mebibytes * MIB)).unwrap();
}

#[test]
fn devices_are_opened_when_they_are_used_and_count_for_themselves() {
    let fleet = small();
    assert_eq!(fleet.stats(1), None);
    fleet.alloc(1, &on(0, 8)).unwrap();
    let stats = fleet.stats(1).unwrap();
    assert_eq!((stats.requested, stats.allocs, fleet.stats(0)), (Bytes::new(8 * MIB), 1, None));
    assert!(matches!(fleet.alloc(7, &on(0, 1)), Err(Error::Source(_))));
    assert!(matches!(fleet.alloc(99, &on(0, 1)), Err(Error::Source(_))));
}

#[test]
fn a_free_that_fails_is_counted_and_said_whoever_asked() {
    let fleet = small();
    let block = fleet.alloc(0, &on(0, 8)).unwrap();
    free(&fleet, block, 8);
    assert!(fleet.free(0, block, Bytes::new(8 * MIB)).is_err());
    assert!(fleet.free(3, block, Bytes::new(8 * MIB)).is_err());
    let stats = fleet.stats(0).unwrap();
    assert_eq!((stats.frees, stats.failed_frees, fleet.stats(3)), (1, 1, None));
    let warnings = fleet.warnings();
    assert!(warnings.len() == 2 && warnings[0].starts_with("device 0: 1 free failed"), "{warnings:?}");
    assert!(fleet.warnings().is_empty());
}

#[test]
fn peaks_are_exact_and_begin_anew_when_reset() {
    let fleet = small();
    let large = fleet.alloc(0, &on(0, 30)).unwrap();
    let odd = Request { bytes: Bytes::new(100), ..on(0, 0) };
    let tiny = fleet.alloc(0, &odd).unwrap();
    free(&fleet, large, 30);
    let stats = fleet.stats(0).unwrap();
    assert_eq!((stats.peak_requested.get(), stats.requested.get()), (30 * MIB + 100, 100));
    assert_eq!((stats.peak_allocated.get(), stats.allocated.get()), (30 * MIB + 512, 512));
    assert!(stats.peak_reserved >= stats.peak_allocated);
    fleet.reset_peaks(0);
    assert_eq!(fleet.stats(0).unwrap().peak_requested.get(), 100);
    fleet.free(0, tiny, odd.bytes).unwrap();
    assert_eq!(fleet.stats(0).unwrap().frees, 2);
}

#[test]
fn a_step_is_closed_by_the_allocation_behind_it() {
    let fleet = small();
    let block = fleet.alloc(0, &on(0, 4)).unwrap();
    fleet.step();
    free(&fleet, block, 4);
    assert_eq!(fleet.steps(), 0);
    fleet.alloc(0, &on(0, 4)).unwrap();
    assert_eq!(fleet.steps(), 1);
    let actions: Vec<Action> = fleet.history().events.iter().map(|event| event.action).collect();
    assert!(matches!(
        actions[..],
        [Action::Alloc { .. }, Action::Free { .. }, Action::Step { .. }, Action::Alloc { .. }]
    ));
}

#[test]
fn a_shortage_gives_back_first_and_then_says_who_holds_what() {
    let fleet = small();
    let kept: Vec<Address> = (0..6).map(|_| fleet.alloc(0, &on(0, 9)).unwrap()).collect();
    let error = fleet.alloc(0, &on(0, 20)).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    let text = fleet.shortage(0, Bytes::new(20 * MIB)).unwrap().to_string();
    for part in ["no room for 20.0 MiB more", "in use 54.0 MiB", "54.0 MiB in 6 of 9.0 MiB", "fragmentation", "hint:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(fleet.stats(0).unwrap().shortages, 1);
    free(&fleet, kept[0], 9);
    free(&fleet, kept[3], 9);
    fleet.alloc(0, &on(0, 18)).unwrap();
    assert!(matches!(fleet.alloc(0, &on(0, 100)), Err(Error::TooLarge { .. })));
}

#[test]
fn a_limit_can_be_raised_while_the_device_is_used() {
    let fleet = fleet(64, FleetOptions { limit: Some(Bytes::new(16 * MIB)), ..FleetOptions::default() });
    fleet.alloc(0, &on(0, 12)).unwrap();
    assert!(fleet.alloc(0, &on(0, 12)).is_err());
    let text = fleet.shortage(0, Bytes::new(12 * MIB)).unwrap().to_string();
    assert!(text.contains("a limit of 24.0 MiB would hold"), "{text}");
    fleet.set_limit(0, Some(Bytes::new(32 * MIB))).unwrap();
    fleet.alloc(0, &on(0, 12)).unwrap();
    assert!(fleet.stats(0).unwrap().peak_reserved <= Bytes::new(32 * MIB));
}

#[test]
fn what_a_capture_uses_is_nobody_elses_until_its_graphs_are_gone() {
    let fleet = small();
    let capture = Capture(0, 7);
    fleet.begin_capture(0, capture, |stream| stream == StreamId(5)).unwrap();
    let first = fleet.alloc(0, &on(5, 4)).unwrap();
    free(&fleet, first, 4);
    assert_eq!(fleet.alloc(0, &on(5, 4)).unwrap(), first, "the capture itself may use it again");
    let shared = fleet.alloc(0, &on(5, 4)).unwrap();
    fleet.record(shared, StreamId(6)).unwrap();
    free(&fleet, shared, 4);
    assert_ne!(fleet.alloc(0, &on(5, 4)).unwrap(), shared, "another stream of the graph may still use it");
    free(&fleet, first, 4);
    let outside = fleet.alloc(0, &on(0, 4)).unwrap();
    fleet.end_capture(0, capture);
    let after = fleet.alloc(0, &on(5, 4)).unwrap();
    fleet.trim().unwrap();
    let taken = [outside, after];
    assert!(taken.iter().all(|other| ![first, shared].contains(other)), "a graph may be launched again");
    let with_graph = fleet.stats(0).unwrap().reserved;
    fleet.release_capture(0, capture);
    fleet.trim().unwrap();
    assert_eq!(fleet.stats(0).unwrap().reserved, with_graph, "one block of the capture is still in use");
    let last = Address(shared.0.max(first.0));
    let living = (0..16).map(|step| Address(last.0 + step * 2 * MIB));
    let freed = living.filter(|&address| fleet.free(0, address, Bytes::new(4 * MIB)).is_ok()).count();
    assert_eq!(freed, 1);
    assert!(fleet.stats(0).unwrap().reserved < with_graph);
}

#[test]
fn a_filter_is_asked_apart_from_the_allocation() {
    let fleet = small();
    let asked = Arc::new(AtomicU32::new(0));
    let (capture, counted) = (Capture(0, 7), Arc::clone(&asked));
    let belongs = move |stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        stream == StreamId(5)
    };
    fleet.begin_capture(0, capture, belongs).unwrap();
    assert_eq!([5, 6].map(|stream| fleet.capture_of(0, StreamId(stream))), [Some(capture), None]);
    assert_eq!((fleet.capture_of(1, StreamId(5)), asked.load(Ordering::Relaxed)), (None, 2));
    let inside = fleet.alloc_in(0, &on(5, 4), Some(capture)).unwrap();
    fleet.alloc_in(0, &on(5, 4), None).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2, "who allocates asks no filter");
    assert_eq!((fleet.block_at(inside), fleet.stats(0).unwrap().allocs), (None, 2), "it is in the capture's pool");
    fleet.end_capture(0, capture);
    assert_eq!(fleet.capture_of(0, StreamId(5)), None);
    let late = fleet.alloc_in(0, &on(5, 4), Some(capture)).unwrap();
    assert!(fleet.block_at(late).is_some(), "the capture is over");
}

#[test]
fn a_filter_that_unwinds_leaves_the_fleet_as_it_was() {
    let fleet = small();
    let capture = Capture(0, 7);
    fleet
        .begin_capture(0, capture, |stream| if stream == StreamId(6) { resume_unwind(Box::new(())) } else { true })
        .unwrap();
    for _ in 0..2 {
        assert!(catch_unwind(AssertUnwindSafe(|| fleet.capture_of(0, StreamId(6)))).is_err());
        assert_eq!(fleet.capture_of(0, StreamId(5)), Some(capture));
        assert!(fleet.alloc(0, &on(5, 4)).is_ok());
    }
    fleet.end_capture(0, capture);
    assert!(fleet.alloc(0, &on(6, 4)).is_ok());
}

#[test]
fn a_history_begins_with_what_was_in_use_before_it() {
    let fleet = small();
    let long = fleet.alloc(0, &on(0, 3)).unwrap();
    for _ in 0..10 {
        let block = fleet.alloc(0, &on(0, 5)).unwrap();
        free(&fleet, block, 5);
        fleet.step();
    }
    fleet.alloc(2, &on(0, 1)).unwrap();
    let trace = fleet.history();
    assert_eq!((trace.block(lowtide_core::BlockIndex(0)).bytes, trace.steps().count()), (Bytes::new(3 * MIB), 4));
    let frees = trace.events.iter().filter(|event| matches!(event.action, Action::Free { .. })).count();
    assert_eq!((frees, trace.blocks.len()), (4, 6));
    assert!(trace.events.iter().any(|event| event.device == Some(2)));
    free(&fleet, long, 3);
}

#[test]
fn a_block_is_recorded_and_freed_on_whichever_device_it_is() {
    let fleet = small();
    let [zero, two] = [0, 2].map(|device| fleet.alloc(device, &on(1, 4)).unwrap());
    let outcome = fleet.record(two, StreamId(9));
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(matches!(fleet.record(Address(12), StreamId(9)), Err(Error::ForeignAddress { .. })));
    fleet.free(2, two, Bytes::new(4 * MIB)).unwrap();
    free(&fleet, zero, 4);
}

#[test]
fn a_training_program_is_planned_and_makes_no_more_calls() {
    let learner = Some(LearnerOptions { background: false, ..LearnerOptions::default() });
    let arena = ArenaOptions { learner, ..ArenaOptions::on_device() };
    let fleet = fleet(1024, FleetOptions { arena, ..FleetOptions::default() });
    let step = |fleet: &Fleet| {
        let blocks: Vec<(Address, u64)> =
            [40, 8, 24, 16, 60].map(|size| (fleet.alloc(0, &on(0, size)).unwrap(), size)).into();
        fleet.step();
        for (address, size) in blocks {
            free(fleet, address, size);
        }
    };
    for _ in 0..8 {
        step(&fleet);
    }
    let before = fleet.stats(0).unwrap();
    step(&fleet);
    step(&fleet);
    let after = fleet.stats(0).unwrap();
    assert_eq!(before.calls.handles(), after.calls.handles());
    assert!(after.served.hits > before.served.hits && after.served.misses == before.served.misses);
}
