//! Lowtide's own strategies: what they are to reach on recorded runs, and that every rule holds for them too.

use lowtide_core::Trace;
use lowtide_replay::{Replay, Strategy, is_repeating};
use lowtide_testing::thorough;

use crate::support::{MIB, caching, limited, play, play_with, recording, recordings, trace, trace_with};

const SINGLE_STREAM: [&str; 7] =
    ["llama_fixed", "llama_generate", "llama_sites", "llama_varlen", "maskrcnn", "mixtral_moe", "resnet50"];
const REPEATING: [&str; 3] = ["llama_fixed", "llama_sites", "resnet50"];

fn own() -> [Strategy; 2] {
    [Strategy::arena(), Strategy::planned()]
}

fn most_calls(replay: &Replay) -> u64 {
    replay.warm.unwrap().most_driver_calls
}

#[test]
fn the_arena_wastes_a_hundredth_with_few_driver_calls() {
    let Some(folder) = recordings() else { return };
    for name in SINGLE_STREAM {
        let replay = play(&recording(&folder, name), &Strategy::arena());
        let (waste, calls) = (replay.fragmentation(), most_calls(&replay));
        assert!(waste <= 0.01 && calls <= 250, "{name}: {:.2}%, {calls} calls", 100.0 * waste);
    }
}

#[test]
fn streams_that_lag_cost_the_arena_two_hundredths() {
    let Some(folder) = recordings() else { return };
    let replay = play(&recording(&folder, "offload"), &Strategy::arena());
    assert_eq!(replay.peak_requested.get(), 21_602_365_800);
    assert!(replay.fragmentation() <= 0.02, "{:.2}%", 100.0 * replay.fragmentation());
}

#[test]
fn steps_that_repeat_are_served_at_the_bound_and_without_the_driver() {
    if !thorough() {
        return;
    }
    let Some(folder) = recordings() else { return };
    for name in REPEATING {
        let run = recording(&folder, name);
        assert!(is_repeating(&run), "{name}");
        let replay = play(&run, &Strategy::planned());
        let warm = replay.warm.unwrap();
        let above = warm.peak_reserved.ratio(warm.peak_requested) - 1.0;
        assert!(above <= 0.001, "{name}: {:.3}% above the bound", 100.0 * above);
        assert_eq!(warm.most_driver_calls, 0, "{name}: {:?}", replay.driver_calls_per_step);
        assert!(replay.plan.unwrap().hits > 0, "{name}");
    }
}

#[test]
fn a_plan_is_no_worse_than_none() {
    if !thorough() {
        return;
    }
    let Some(folder) = recordings() else { return };
    for name in SINGLE_STREAM {
        let run = recording(&folder, name);
        let planned = play(&run, &Strategy::planned());
        assert!(planned.fragmentation() <= 0.01, "{name}: {:.2}%", 100.0 * planned.fragmentation());
    }
}

#[test]
fn runs_repeat_where_steps_after_the_first_ask_for_the_same() {
    let repeating = |rows: &str| is_repeating(&trace(rows));
    let first = "alloc,w,9,0 alloc,a,5,0 free,a,,0 step,1,,0 ";
    let step = |id: u64, bytes: u64| format!("alloc,x{id},{bytes},0 free,x{id},,0 step,{id},,0 ");
    assert!(repeating(&format!("{first}{}{}", step(2, 5), step(3, 5))));
    assert!(!repeating(&format!("{first}{}{}", step(2, 5), step(3, 6))));
    assert!(!repeating(&format!("{first}{}", step(2, 5))), "one step repeats nothing");
    assert!(!is_repeating(&Trace::default()));
}

#[test]
fn scattered_pages_are_brought_together() {
    let run = trace(
        "alloc,a,31457280,0 alloc,k,2097152,0 alloc,b,31457280,0 free,a,,0 free,b,,0 alloc,c,62914560,0 step,1,,0",
    );
    for strategy in own() {
        let replay = play(&run, &strategy);
        assert_eq!(replay.peak_reserved.get(), 62 * MIB, "{}", strategy.name());
    }
    assert!(play(&run, &caching()).peak_reserved.get() > 100 * MIB);
}

#[test]
fn what_lags_is_not_overwritten_and_counts_as_requested() {
    let late = trace("alloc,a,20971520,0 free,a,,0 alloc,b,20971520,0 done,a,,0 alloc,c,20971520,0 step,1,,0");
    for strategy in own() {
        let replay = play(&late, &strategy);
        let reserved = replay.peak_reserved.get();
        assert_eq!((replay.peak_requested.get(), reserved), (40 * MIB, 40 * MIB), "{}", strategy.name());
    }
}

#[test]
fn the_first_block_that_does_not_fit_ends_it() {
    let run = trace("alloc,a,20971520,0 step,1,,0 alloc,b,20971520,0 alloc,huge,20971520,0 step,2,,0");
    for strategy in own() {
        let replay = play_with(&run, &strategy, &limited(40 * MIB)).unwrap();
        let refused = replay.out_of_memory.unwrap();
        assert_eq!((refused.event, run.text(refused.block)), (3, "huge"), "{}", strategy.name());
        assert_eq!(replay.peak_reserved.get(), 40 * MIB);
    }
}

#[test]
fn odd_runs_are_played_all_the_same() {
    let most = u64::MAX;
    let runs = [
        trace(""),
        trace("step,1,,0 step,2,,0 step,3,,0"),
        trace("alloc,a,0,0 record,a,,1 free,a,,0 step,1,,0"),
        trace(&format!("alloc,a,{most},0 step,1,,0")),
        trace_with("event,id,bytes,stream,time_ns", &format!("alloc,a,512,0,{most} free,a,,0,{most} step,1,,,")),
        trace_with("event,id,bytes,stream,device", "alloc,a,512,0,0 alloc,b,512,0,3 free,a,,0,0 step,1,,,"),
    ];
    for (place, run) in runs.iter().enumerate() {
        for strategy in own() {
            assert_eq!(play(run, &strategy).out_of_memory.is_some(), place == 3, "{place} on {}", strategy.name());
        }
    }
}
