//! Freed blocks that queued work still uses: `done` and `record` rows, times, and what is not told.

use crate::support::{MIB, caching, limited, play, play_with, trace, trace_with};

const TIMED: &str = "event,id,bytes,stream,time_ns";

/// What caching reserves, in segments of 20 MiB.
fn segments(rows: &str) -> u64 {
    play(&trace(rows), &caching()).peak_reserved.get() / (20 * MIB)
}

#[test]
fn without_done_rows_a_block_serves_its_stream_again_at_once() {
    assert_eq!(segments("alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0"), 1);
    assert_eq!(segments("alloc,a,20971520,0 free,a,,0 alloc,b,20971520,1"), 2, "streams do not share in PyTorch");
}

#[test]
fn a_block_that_is_done_before_the_next_is_asked_for_is_free_at_once() {
    assert_eq!(segments("alloc,a,20971520,0 free,a,,0 done,a,,0 alloc,b,20971520,0"), 1);
    let with_others_between =
        "alloc,a,20971520,0 alloc,x,512,0 free,a,,0 free,x,,0 done,x,,0 done,a,,0 alloc,b,20971520,0";
    assert_eq!(play(&trace(with_others_between), &caching()).peak_reserved.get(), 22 * MIB);
}

#[test]
fn a_block_that_is_done_later_is_in_use_until_its_row() {
    let late = "alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0 done,a,,0 alloc,c,20971520,0";
    assert_eq!(segments(late), 2, "`b` cannot have the place of `a`, `c` can");
    let never = "alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0 free,b,,0 done,b,,0 alloc,c,20971520,0 \
                 alloc,d,20971520,0";
    assert_eq!(segments(never), 3, "`a` is not done at the end");
}

#[test]
fn what_is_not_yet_done_counts_as_requested() {
    let late = play(&trace("alloc,a,100,0 free,a,,0 alloc,b,50,0 done,a,,0 alloc,c,60,0"), &caching());
    assert_eq!((late.peak_requested.get(), late.bound.get()), (150, 150));
    let untold = play(&trace("alloc,a,100,0 free,a,,0 alloc,b,50,0 alloc,c,60,0"), &caching());
    assert_eq!(untold.peak_requested.get(), 110);
}

#[test]
fn rows_of_one_time_keep_their_order() {
    let rows = "alloc,a,20971520,0,7 free,a,,0,7 alloc,b,20971520,0,7 done,a,,0,7 alloc,c,20971520,0,7";
    assert_eq!(play(&trace_with(TIMED, rows), &caching()).peak_reserved.get(), 40 * MIB);
    let backwards = "alloc,a,20971520,0,9 free,a,,0,8 alloc,b,20971520,0,7 done,a,,0,3 alloc,c,20971520,0,2";
    assert_eq!(play(&trace_with(TIMED, backwards), &caching()).peak_reserved.get(), 40 * MIB);
}

#[test]
fn a_recorded_use_holds_a_block_for_a_tenth_of_a_second() {
    let rows = |later: u64| format!("alloc,a,20971520,0,0 record,a,,1,1 free,a,,0,2 alloc,b,20971520,0,{later}");
    let reserved = |later| play(&trace_with(TIMED, &rows(later)), &caching()).peak_reserved.get();
    assert_eq!(reserved(100_000_001), 40 * MIB);
    assert_eq!(reserved(100_000_002), 20 * MIB);
}

#[test]
fn rows_without_times_are_twenty_microseconds_apart() {
    let between = |count: u32| {
        let others: String = (0..count).map(|_| "oom,,5,0 ").collect();
        format!("alloc,a,20971520,0 record,a,,1 free,a,,0 {others} alloc,b,20971520,0")
    };
    assert_eq!(segments(&between(4_998)), 2, "99,980 µs");
    assert_eq!(segments(&between(4_999)), 1, "100,000 µs");
}

#[test]
fn waiting_holds_up_all_that_follows() {
    // `b` has room only where `a` was; it waits for it, and the use of `c` that follows lasts as long from there on.
    let rows = "alloc,a,20971520,0,0 record,a,,1,0 free,a,,0,0 alloc,b,20971520,0,1000 free,b,,0,1001 \
                alloc,c,20971520,0,2000 record,c,,1,2000 free,c,,0,2000 alloc,d,20971520,0,3000";
    let replay = play_with(&trace_with(TIMED, rows), &caching(), &limited(20 * MIB)).unwrap();
    assert_eq!(replay.out_of_memory, None);
    assert!(replay.calls.waits >= 2, "{:?}", replay.calls);
    let waited = replay.calls.waited_ns;
    assert!((190_000_000..410_000_000).contains(&waited), "{waited}");
}

#[test]
fn rows_about_marks_and_the_recorded_allocator_are_left_out() {
    let with = "reserve,,41943040,0 alloc,a,512,0 event,m,,0 wait,m,,1 oom,,99999999999999,0 release,,41943040,0 \
                step,1,,0";
    let replay = play(&trace(with), &caching());
    assert_eq!((replay.peak_reserved.get(), replay.operations), (2 * MIB, 1));
}
