//! A plan is served only while it is better than none: whatever a program does, the strategy that learns reserves no more than the
//! one that does not, and asks the driver no more often.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

use lowtide_core::random::Random;
use lowtide_core::{Action, Block, BlockIndex, Event, StepIndex, Trace};
use lowtide_learn::LearnerOptions;
use lowtide_pool::ArenaOptions;
use lowtide_replay::{Replay, ReplayOptions, Strategy};
use lowtide_testing::thorough;

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
        let mut random = Random::new(seed);
        let steps = run.steps().count() as u64;
        // Some steps in a row are the same, so that plans come and are then not followed.
        let mut order = Vec::new();
        while order.len() < 14 {
            let step = 1 + random.below(steps - 1) as usize;
            order.extend(std::iter::repeat_n(step, 1 + random.below(4) as usize));
        }
        let mixed = mixture(&run, &order);
        for unmarked in [false, true] {
            let options = ReplayOptions { unmarked, ..ReplayOptions::default() };
            assert_no_worse(&format!("{name} in the order {order:?}, unmarked: {unmarked}"), &mixed, &options);
        }
    }
}

/// The first step of a run, and then its steps of these numbers, counted from zero. What a step leaves alive that it did not find
/// is freed when the next begins.
fn mixture(run: &Trace, order: &[usize]) -> Trace {
    let steps: Vec<Range<usize>> = run.steps().map(|(_, range)| range).collect();
    let mut mixed = Mixed { run, trace: Trace { texts: run.texts.clone(), ..Trace::default() }, alive: HashMap::new() };
    mixed.play(steps[0].clone());
    let found = mixed.alive.clone();
    for (number, &step) in (2..).zip(order) {
        mixed.play(steps[step].clone());
        mixed.leave(&found);
        mixed.trace.events.push(Event::new(Action::Step { step: StepIndex(number) }));
    }
    mixed.trace
}

struct Mixed<'a> {
    run: &'a Trace,
    trace: Trace,
    /// The block of the mixture that each block of the run is now.
    alive: HashMap<BlockIndex, BlockIndex>,
}

impl Mixed<'_> {
    fn play(&mut self, events: Range<usize>) {
        for event in &self.run.events[events] {
            match event.action {
                Action::Alloc { block } if !self.alive.contains_key(&block) => {
                    let new = BlockIndex(self.trace.blocks.len() as u32);
                    self.trace.blocks.push(Block { ..self.run.blocks[block.0 as usize] });
                    self.trace.events.push(Event { action: Action::Alloc { block: new }, ..*event });
                    self.alive.insert(block, new);
                }
                Action::Free { block } => {
                    if let Some(block) = self.alive.remove(&block) {
                        self.trace.events.push(Event { action: Action::Free { block }, ..*event });
                    }
                }
                Action::Step { step: StepIndex(1) } => self.trace.events.push(*event),
                _ => {}
            }
        }
    }

    /// Frees what is alive and was not found.
    fn leave(&mut self, found: &HashMap<BlockIndex, BlockIndex>) {
        let mut left: Vec<BlockIndex> = self.alive.keys().filter(|block| !found.contains_key(block)).copied().collect();
        left.sort_unstable();
        for block in left {
            if let Some(block) = self.alive.remove(&block) {
                self.trace.events.push(Event::new(Action::Free { block }));
            }
        }
    }
}
