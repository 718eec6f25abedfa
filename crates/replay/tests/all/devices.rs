//! Runs on several devices.

use crate::support::{MIB, caching, limited, play, play_with, trace_with};

const HEADER: &str = "event,id,bytes,stream,device";

#[test]
fn every_device_has_a_pool_of_its_own_and_sums_are_told() {
    let run = trace_with(
        HEADER,
        "alloc,a,20971520,0,1 free,a,,0, alloc,b,20971520,0,0 alloc,c,1048576,0,0 step,1,,, free,b,,,0 alloc,d,512,0,1",
    );
    let replay = play(&run, &caching());
    let each: Vec<_> = replay
        .devices
        .iter()
        .map(|device| (device.device, device.peak_requested.get(), device.peak_reserved.get(), device.calls.handles()))
        .collect();
    assert_eq!(each, [(Some(0), 21 * MIB, 22 * MIB, 4), (Some(1), 20 * MIB, 22 * MIB, 4)]);
    assert_eq!((replay.peak_requested.get(), replay.peak_reserved.get()), (41 * MIB, 44 * MIB));
    assert_eq!((&*replay.driver_calls_per_step, replay.driver_calls_behind), (&[6][..], 2));
    assert_eq!(replay.calls.handles(), 8);
}

#[test]
fn each_device_has_the_memory_that_is_given() {
    let rows = "alloc,a,20971520,0,0 alloc,b,20971520,0,3 alloc,c,20971520,0,3";
    let replay = play_with(&trace_with(HEADER, rows), &caching(), &limited(20 * MIB)).unwrap();
    let refused = replay.out_of_memory.unwrap();
    assert_eq!((refused.event, refused.device), (2, Some(3)));
}
