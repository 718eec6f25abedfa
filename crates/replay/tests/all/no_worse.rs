//! A plan is served only while it is better than none: whatever a program does, the strategy that learns reserves no more than the
//! one that does not, and asks the driver no more often.

use std::num::NonZeroU64;
use std::time::Duration;

use lowtide_core::Trace;
use lowtide_core::random::Random;
use lowtide_learn::LearnerOptions;
use lowtide_pool::{ArenaOptions, Start};
use lowtide_replay::{Replay, ReplayOptions, Strategy};
use lowtide_testing::thorough;

use crate::mixture::{mixture, random_order};
use crate::support::{play_with, recording, recordings};

const RECORDINGS: [&str; 7] =
    ["llama_fixed", "llama_generate", "llama_varlen", "maskrcnn", "mixtral_moe", "offload", "resnet50"];

/// The strategy that learns, with little time for a solve.
fn learning() -> Strategy {
    let learner =
        LearnerOptions { background: false, time_limit: Duration::from_millis(300), ..LearnerOptions::default() };
    Strategy::Planned(ArenaOptions { learner: Some(learner), ..ArenaOptions::default() })
}

/// Plays `trace` with and without a plan, and holds the one against the other.
fn assert_no_worse(name: &str, trace: &Trace, options: &ReplayOptions) {
    let play = |strategy| play_with(trace, &strategy, options).unwrap();
    let (arena, planned) = (play(Strategy::arena()), play(learning()));
    let calls = |replay: &Replay| replay.driver_calls_per_step.iter().sum::<u64>();
    let above = planned.peak_reserved.ratio(arena.peak_reserved) - 1.0;
    assert!(above <= 0.002, "{name}: {:.2}% more is reserved than without a plan", 100.0 * above);
    let (with, without) = (calls(&planned), calls(&arena));
    assert!(with <= without + without / 20, "{name}: {with} calls of the driver instead of {without}");
    // With the start that a program has on a device there are few calls, beside which those that map a plan once and unmap it count.
    let (arena, planned) = (play(Strategy::arena().starting(Start::Fast)), play(learning().starting(Start::Fast)));
    let above = planned.peak_reserved.ratio(arena.peak_reserved) - 1.0;
    assert!(above <= 0.002, "{name}, fast: {:.2}% more is reserved than without a plan", 100.0 * above);
    let (with, without) = (calls(&planned), calls(&arena));
    assert!(with <= without + without / 20 + 5000, "{name}, fast: {with} calls of the driver instead of {without}");
}

#[test]
fn a_plan_is_no_worse_than_none_on_recorded_runs() {
    let Some(folder) = recordings() else { return };
    for name in RECORDINGS {
        let run = recording(&folder, name);
        for unmarked in [false, true] {
            let repeat = NonZeroU64::new(if thorough() { 3 } else { 2 }).unwrap();
            let options = ReplayOptions { repeat, unmarked, ..ReplayOptions::default() };
            let marks = if unmarked { ", whose steps nobody marks" } else { "" };
            assert_no_worse(&format!("{name}{marks}"), &run, &options);
        }
    }
}

#[test]
fn a_plan_is_no_worse_than_none_where_steps_come_in_any_order() {
    let Some(folder) = recordings() else { return };
    let names = if thorough() { &RECORDINGS[..] } else { &["llama_varlen", "maskrcnn", "resnet50"] };
    for (seed, name) in (0..).zip(names.iter().filter(|name| **name != "offload")) {
        let run = recording(&folder, name);
        let order = random_order(&run, &mut Random::new(seed));
        let mixed = mixture(&run, &order);
        for unmarked in [false, true] {
            let options = ReplayOptions { unmarked, ..ReplayOptions::default() };
            assert_no_worse(&format!("{name} in the order {order:?}, unmarked: {unmarked}"), &mixed, &options);
        }
    }
}
