//! How a program starts on a device: with few driver calls in its first steps, and from then on with little more memory than it uses.

use std::num::NonZeroU64;

use lowtide_core::random::Random;
use lowtide_core::{Bytes, Trace};
use lowtide_pool::ArenaOptions;
use lowtide_replay::{Replay, ReplayOptions, Strategy};
use lowtide_testing::thorough;

use crate::mixture::{mixture, random_order};
use crate::support::{caching, expandable, play_with, recording, recordings};

const SINGLE_STREAM: [&str; 6] =
    ["llama_fixed", "llama_generate", "llama_varlen", "maskrcnn", "mixtral_moe", "resnet50"];

/// In how many steps a program has started.
const FIRST: usize = 10;

/// What all driver calls may take; with a tight start they take up to 700 ms.
const MOST_MILLISECONDS: u64 = 250;

/// How many calls a late step may make, and how many on average: a hundredth of a step of a quarter of a second.
const MOST_LATE_CALLS: u64 = 400;
const USUAL_LATE_CALLS: u64 = 60;

struct Played {
    ours: Replay,
    /// What PyTorch's better allocator reserves.
    theirs: Bytes,
}

fn played(run: &Trace, repeat: u64) -> Played {
    let options = ReplayOptions { repeat: NonZeroU64::new(repeat).unwrap(), ..ReplayOptions::default() };
    let play = |strategy: Strategy| play_with(run, &strategy, &options).unwrap();
    let theirs = play(caching()).peak_reserved.min(play(expandable()).peak_reserved);
    Played { ours: play(Strategy::Arena(ArenaOptions::on_device())), theirs }
}

impl Played {
    /// The most that was reserved after the first steps, above the most that was ever requested.
    fn late(&self) -> f64 {
        let reserved = self.ours.reserved_per_step.iter().skip(FIRST).max().copied().unwrap_or_default();
        reserved.ratio(self.ours.peak_requested) - 1.0
    }

    fn milliseconds(&self) -> u64 {
        self.ours.calls.nanoseconds / 1_000_000
    }
}

#[test]
fn recorded_runs_start_fast_and_are_tight_from_the_eleventh_step_on() {
    let Some(folder) = recordings() else { return };
    for name in SINGLE_STREAM {
        let run = recording(&folder, name);
        let repeat = 20_u64.div_ceil(run.steps().count() as u64);
        let played = played(&run, repeat);
        let Replay { peak_reserved, driver_calls_per_step, .. } = &played.ours;
        assert!(*peak_reserved <= played.theirs, "{name}: {peak_reserved} and not {}", played.theirs);
        assert!(played.late() <= 0.01, "{name}: {:.2}% above", 100.0 * played.late());
        let late: Vec<u64> = driver_calls_per_step.iter().skip(FIRST).copied().collect();
        let (most, all) = (late.iter().max().unwrap(), late.iter().sum::<u64>());
        assert!(*most <= MOST_LATE_CALLS, "{name}: {most} calls in a late step");
        assert!(all <= USUAL_LATE_CALLS * late.len() as u64, "{name}: {all} calls in {} late steps", late.len());
        let milliseconds = played.milliseconds();
        assert!(milliseconds <= MOST_MILLISECONDS, "{name}: {milliseconds} ms in the driver");
    }
}

#[test]
fn steps_in_any_order_start_fast_too() {
    let Some(folder) = recordings() else { return };
    let seeds = if thorough() { 8 } else { 2 };
    for name in SINGLE_STREAM {
        let run = recording(&folder, name);
        for seed in 0..seeds {
            let order = random_order(&run, &mut Random::new(seed));
            let played = played(&mixture(&run, &order), 1);
            let above = played.ours.peak_reserved.ratio(played.theirs) - 1.0;
            let name = format!("{name} in the order {order:?}");
            assert!(above <= 0.005, "{name}: {:.2}% above PyTorch's better allocator", 100.0 * above);
            let milliseconds = played.milliseconds();
            assert!(milliseconds <= MOST_MILLISECONDS, "{name}: {milliseconds} ms in the driver");
        }
    }
}
