//! What is counted in which step.

use std::ops::ControlFlow;

use lowtide_core::Bytes;
use lowtide_replay::{ReplayError, ReplayOptions, replay};

use crate::support::{MIB, caching, play, trace};

/// Set-up, three steps of which the last asks for more, and a tail.
fn run() -> lowtide_core::Trace {
    trace(
        "alloc,w,20971520,0 \
         alloc,a,20971520,0 free,a,,0 step,1,,0 \
         alloc,b,20971520,0 free,b,,0 step,2,,0 \
         alloc,c,41943040,0 free,c,,0 step,3,,0 \
         alloc,d,1048577,0",
    )
}

#[test]
fn the_set_up_counts_into_the_first_step_and_a_tail_is_one_more() {
    let replay = play(&run(), &caching());
    // A segment is created and mapped. The tail finds room in what the steps left.
    assert_eq!(replay.driver_calls_per_step, [4, 0, 2]);
    assert_eq!(replay.steps, 3);
    let with_call = play(&trace("alloc,a,20971520,0 step,1,,0 alloc,b,20971520,0"), &caching());
    assert_eq!((with_call.driver_calls_per_step, with_call.driver_calls_behind, with_call.steps), (vec![2], 2, 1));
    assert_eq!(with_call.calls.nanoseconds, 2 * (9_000 + 24_000));
}

#[test]
fn every_step_has_its_own_peaks() {
    let replay = play(&run(), &caching());
    let mebibytes = |amounts: &[Bytes]| amounts.iter().map(|bytes| bytes.get() / MIB).collect::<Vec<u64>>();
    assert_eq!(mebibytes(&replay.reserved_per_step), [40, 40, 80]);
    assert_eq!(mebibytes(&replay.requested_per_step), [40, 40, 60]);
    assert_eq!((replay.peak_reserved.get(), replay.peak_requested.get()), (80 * MIB, 60 * MIB));
    assert!((replay.fragmentation() - 0.25).abs() < 1e-9);
    let warm = replay.warm.unwrap();
    assert_eq!((warm.peak_reserved.get(), warm.peak_requested.get(), warm.most_driver_calls), (80 * MIB, 60 * MIB, 2));
}

#[test]
fn two_steps_are_all_warm_up() {
    let replay = play(&trace("alloc,a,512,0 step,1,,0 step,2,,0 alloc,b,512,0"), &caching());
    assert_eq!(replay.warm, None);
}

#[test]
fn a_run_without_steps_is_all_tail() {
    let replay = play(&trace("alloc,a,512,0"), &caching());
    assert_eq!((replay.steps, replay.driver_calls_per_step.len(), replay.driver_calls_behind), (0, 0, 2));
    assert_eq!(replay.operations, 1);
}

#[test]
fn a_replay_can_be_watched_and_stopped() {
    let rows: Vec<String> = (0..3000).map(|id| format!("alloc,{id},512,0")).collect();
    let run = trace(&rows.join("\n"));
    let mut looks = Vec::new();
    let mut watch = |progress: lowtide_replay::ReplayProgress| {
        looks.push((progress.played, progress.of));
        if looks.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = replay(&run, &caching(), &ReplayOptions::default(), &mut watch);
    assert_eq!(stopped, Err(ReplayError::Stopped));
    assert_eq!(looks, [(0, 3000), (1024, 3000)]);
}
