//! Runs that are made of the steps of a recorded one, in another order.

use std::collections::HashMap;
use std::ops::Range;

use lowtide_core::random::Random;
use lowtide_core::{Action, Block, BlockIndex, Event, StepIndex, Trace};

/// At least 14 steps of a run after its first. Some in a row are the same, so that plans come and are then not followed.
pub fn random_order(run: &Trace, random: &mut Random) -> Vec<usize> {
    let steps = run.steps().count() as u64;
    let mut order = Vec::new();
    while order.len() < 14 {
        let step = 1 + random.below(steps - 1) as usize;
        order.extend(std::iter::repeat_n(step, 1 + random.below(4) as usize));
    }
    order
}

/// The first step of a run, and then its steps of these numbers, counted from zero. What a step leaves alive that it did not find
/// is freed when the next begins.
pub fn mixture(run: &Trace, order: &[usize]) -> Trace {
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
