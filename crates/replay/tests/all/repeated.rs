//! Steps that are played again and again.

use std::num::NonZeroU64;

use lowtide_replay::{Replay, ReplayError, ReplayOptions};

use crate::support::{MIB, caching, expandable, limited, play, play_with, recording, recordings, trace};

fn times(rows: &str, repeat: u64) -> Replay {
    let repeat = NonZeroU64::new(repeat).unwrap();
    play_with(&trace(rows), &caching(), &ReplayOptions { repeat, ..ReplayOptions::default() }).unwrap()
}

/// Weights, an output of each step that the next replaces, and a tail that frees the last.
const RUN: &str = "alloc,w,20971520,0 alloc,x,20971520,0 alloc,out1,20971520,0 free,x,,0 step,1,,0 \
                   alloc,out2,20971520,0 free,out1,,0 step,2,,0 free,out2,,0 free,w,,0";

#[test]
fn what_stays_is_made_once_and_what_a_round_leaves_is_freed() {
    let once = times(RUN, 1);
    let often = times(RUN, 5);
    assert_eq!((once.steps, often.steps), (2, 10));
    assert_eq!(often.peak_requested, once.peak_requested);
    assert_eq!((often.peak_reserved.get(), often.bound.get()), (60 * MIB, 60 * MIB));
    assert_eq!(often.driver_calls_per_step, [6, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Three blocks a round, freed in it or before the next, and the weights.
    assert_eq!((once.operations, often.operations), (8, 5 * 6 + 2));
}

#[test]
fn once_is_the_run_as_it_is() {
    assert_eq!(times(RUN, 1).peak_reserved, play(&trace(RUN), &caching()).peak_reserved);
}

#[test]
fn the_device_is_done_with_a_round_before_the_next() {
    let rows = "alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0 free,b,,0 done,b,,0 step,1,,0 alloc,c,512,0 done,a,,0";
    let often = times(rows, 4);
    assert_eq!(often.peak_requested.get(), 40 * MIB);
    assert_eq!(often.peak_reserved.get(), 42 * MIB);
}

#[test]
fn a_later_round_may_be_the_one_that_does_not_fit() {
    // The block of the first stream is in the way of the second from the second round on, for it is kept.
    let rows = "alloc,keep,512,0 alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0 step,1,,0 free,b,,0 step,2,,0";
    let options = ReplayOptions { repeat: NonZeroU64::new(3).unwrap(), ..limited(22 * MIB) };
    let fits = play_with(&trace(rows), &caching(), &options).unwrap();
    assert_eq!((fits.out_of_memory, fits.steps), (None, 6));
    let refused = play_with(&trace(rows), &caching(), &ReplayOptions { ..limited(20 * MIB) }).unwrap();
    assert_eq!(refused.out_of_memory.unwrap().round, 1);
}

#[test]
fn a_run_without_steps_cannot_be_repeated() {
    let options = ReplayOptions { repeat: NonZeroU64::new(2).unwrap(), ..ReplayOptions::default() };
    assert_eq!(play_with(&trace("alloc,a,512,0"), &caching(), &options), Err(ReplayError::NoSteps));
}

#[test]
fn recorded_runs_need_no_more_when_they_go_on() {
    let Some(folder) = recordings() else { return };
    let options = ReplayOptions { repeat: NonZeroU64::new(3).unwrap(), ..ReplayOptions::default() };
    for name in ["resnet50", "llama_fixed", "offload"] {
        let run = recording(&folder, name);
        let (once, often) = (play(&run, &expandable()), play_with(&run, &expandable(), &options).unwrap());
        assert_eq!((often.steps, often.peak_requested), (3 * once.steps, once.peak_requested), "{name}");
    }
}
