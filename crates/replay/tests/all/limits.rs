//! Devices with too little memory.

use lowtide_core::{Bytes, StepIndex};
use lowtide_pool::Error;
use lowtide_replay::{ReplayError, ReplayOptions};

use crate::support::{MIB, caching, expandable, limited, play_with, trace};

fn run() -> lowtide_core::Trace {
    trace(
        "alloc,w,20971520,0 step,1,,0 alloc,a,20971520,0 free,a,,0 step,2,,0 \
         alloc,b,20971520,0 alloc,huge,20971520,0 alloc,never,512,0 free,huge,,0 step,3,,0",
    )
}

#[test]
fn the_first_block_that_does_not_fit_ends_it_and_is_named() {
    for strategy in [caching(), expandable()] {
        let run = run();
        let replay = play_with(&run, &strategy, &limited(40 * MIB)).unwrap();
        let refused = replay.out_of_memory.clone().unwrap();
        assert_eq!((refused.event, run.text(refused.block), refused.bytes.get()), (6, "huge", 20 * MIB));
        assert_eq!((refused.step, refused.round), (Some(StepIndex(3)), 1));
        assert_eq!((refused.requested.get(), refused.reserved.get()), (40 * MIB, 40 * MIB));
        assert!(matches!(refused.error, Error::OutOfMemory { .. }), "{:?}", refused.error);
        assert_eq!((replay.peak_requested.get(), replay.peak_reserved.get()), (40 * MIB, 40 * MIB));
        assert_eq!(replay.bound.get(), 60 * MIB + 512, "the bound is that of the whole run");
        assert_eq!(replay.steps, 2);
    }
}

#[test]
fn what_fits_just_so_fits() {
    for strategy in [caching(), expandable()] {
        assert_eq!(play_with(&run(), &strategy, &limited(62 * MIB)).unwrap().out_of_memory, None);
    }
}

#[test]
fn a_block_behind_the_last_step_belongs_to_none() {
    let run = trace("alloc,a,512,0 step,1,,0 alloc,b,99999999,0");
    let refused = play_with(&run, &caching(), &limited(2 * MIB)).unwrap().out_of_memory.unwrap();
    assert_eq!(refused.step, None);
    assert!(matches!(refused.error, Error::TooLarge { .. }), "{:?}", refused.error);
}

#[test]
fn a_device_without_memory_fits_nothing_but_nothing() {
    assert!(play_with(&trace("alloc,a,1,0"), &caching(), &limited(0)).unwrap().out_of_memory.is_some());
    assert!(play_with(&trace("alloc,a,0,0 free,a,,0"), &caching(), &limited(0)).unwrap().out_of_memory.is_none());
}

#[test]
fn pages_are_powers_of_two() {
    let with = |page| ReplayOptions { page: Bytes::new(page), ..ReplayOptions::default() };
    for page in [0, 1, 2048, 3 * MIB, u64::MAX] {
        let refused = play_with(&run(), &caching(), &with(page));
        assert!(matches!(refused, Err(ReplayError::BadPage { .. })), "{page}");
    }
    let replay = play_with(&run(), &caching(), &with(64 * MIB)).unwrap();
    assert_eq!(replay.peak_reserved.get() % (64 * MIB), 0, "what a device gives is whole pages");
}
