//! Traces that no program makes.

use lowtide_core::{Action, Block, BlockIndex, Bytes, Event, TextIndex, Trace};
use lowtide_pool::Error;
use lowtide_replay::{ReplayError, ReplayOptions};

use crate::support::{caching, expandable, play, play_with, trace, trace_with};

#[test]
fn nothing_at_all_takes_nothing() {
    for strategy in [caching(), expandable()] {
        let replay = play(&Trace::default(), &strategy);
        assert_eq!((replay.peak_requested, replay.peak_reserved, replay.operations), (Bytes::ZERO, Bytes::ZERO, 0));
        assert!(replay.fragmentation().abs() < 1e-12 && replay.ns_per_operation().abs() < 1e-12);
        assert!(replay.driver_calls_per_step.is_empty());
        let steps_alone = play(&trace("step,1,,0 step,7,,0"), &strategy);
        assert_eq!(steps_alone.driver_calls_per_step, [0, 0]);
    }
}

#[test]
fn blocks_of_no_bytes_are_left_out() {
    let replay = play(&trace("alloc,a,0,0 record,a,,1 alloc,b,512,0 free,a,,0 done,a,,0 step,1,,0"), &caching());
    assert_eq!((replay.operations, replay.peak_requested.get()), (1, 512));
}

#[test]
fn blocks_larger_than_any_device_do_not_fit_even_without_a_limit() {
    let rows = format!("alloc,a,{},0 alloc,b,{},0 free,a,,0 free,b,,0", u64::MAX, u64::MAX);
    for strategy in [caching(), expandable()] {
        let replay = play(&trace(&rows), &strategy);
        assert!(matches!(replay.out_of_memory.unwrap().error, Error::TooLarge { .. }));
        assert_eq!(replay.bound.get(), u64::MAX, "what does not fit 64 bits is the most there is");
    }
}

#[test]
fn times_at_the_end_of_the_scale_do_not_wrap() {
    let most = u64::MAX;
    let rows =
        format!("alloc,a,512,0,0 free,a,,0,{most} alloc,b,512,0,{most} done,a,,0,{most} alloc,c,512,0,1 step,1,,,");
    let run = trace_with("event,id,bytes,stream,time_ns", &rows);
    let options = ReplayOptions { repeat: std::num::NonZeroU64::new(3).unwrap(), ..ReplayOptions::default() };
    assert_eq!(play_with(&run, &caching(), &options).unwrap().out_of_memory, None);
}

#[test]
fn events_about_blocks_that_are_not_alive_are_named() {
    let blocks = vec![Block { name: TextIndex(0), bytes: Bytes::new(512), address: None }];
    let block = BlockIndex(0);
    let programs: [&[Action]; 6] = [
        &[Action::Free { block }],
        &[Action::Alloc { block }, Action::Alloc { block }],
        &[Action::Alloc { block }, Action::Done { block }],
        &[Action::Record { block }],
        &[Action::Alloc { block }, Action::Free { block }, Action::Free { block }],
        &[Action::Alloc { block: BlockIndex(7) }],
    ];
    for actions in programs {
        let events: Vec<Event> = actions.iter().map(|&action| Event::new(action)).collect();
        let last = events.len() - 1;
        let run = Trace { events, blocks: blocks.clone(), texts: vec!["a".into()], ..Trace::default() };
        let refused = play_with(&run, &caching(), &ReplayOptions::default());
        assert_eq!(refused, Err(ReplayError::NotAlive { event: last }), "{actions:?}");
    }
}
