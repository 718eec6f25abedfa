//! How steps end, and how plans come to be served and cease to be.

use std::mem;
use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::{Advice, Served, StepPlan};

use super::border::Border;
use super::state::{Block, HUGE, State, learning};
use crate::arena::UNIT;
use crate::arena::serving::Serving;
use crate::arena::stage::Stage;

/// Plans of more slots are not served: every slot knows all that share its addresses.
const MOST_SLOTS: usize = 1 << 16;

/// How many allocations a step must miss before its plan can be called wrong.
const MISSES: u64 = 8;

/// How many steps lie between two times that the ground is laid elsewhere: all of it is touched anew.
const REST: u64 = 32;

/// A plan may need this part more than was ever alive.
const SLACK: u64 = 50;

/// Blocks in the way of a plan may take this part of its ground: slots under them are not served.
const FEW: u64 = 16;

/// Whether plans are worth trying: a program may repeat itself for a while, and then not as its plans say.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// How many steps in a row have not followed their plan.
    astray: u32,
    /// From which step on a plan is served again.
    again_at: u64,
}

impl Trust {
    /// How many such steps are taken as they come; each one more doubles the time without a plan.
    const TRIES: u32 = 4;
    const LONGEST: u32 = 20;

    fn judge(&mut self, served: Served, step: u64) {
        if is_astray(served) {
            self.astray += 1;
            if self.astray >= Self::TRIES {
                self.again_at = step + (1 << self.astray.min(Self::LONGEST));
            }
        } else if served.hits > 0 {
            self.astray = 0;
        }
    }
}

impl State {
    /// The program has closed a step.
    pub(super) fn close_marked_step(&mut self) {
        self.marked = true;
        if let Some(learning) = &mut self.learning {
            learning.mark();
        }
        self.close_step();
    }

    /// Closes a step: hears what the learner advises and follows it.
    pub(super) fn close_step(&mut self) {
        self.steps += 1;
        let took = self.clock.now - self.clock.step_closed.min(self.clock.now);
        self.clock.step_closed = self.clock.now;
        // A first step has the set-up before it. A pause is no step: what takes ever longer is forgotten again.
        let took = if self.steps > 1 { took } else { 0 };
        self.clock.longest_step = took.max(self.clock.longest_step.saturating_sub(self.clock.longest_step / 8));
        let mut served = mem::take(&mut self.served_before);
        if let Some(serving) = &self.serving {
            served += serving.stage.restart();
        }
        self.served += served;
        if served.hits > 0 && served.misses == 0 {
            self.thrift.settle();
        }
        self.trust.judge(served, self.steps);
        let before = self.serving.clone();
        let Some(learning) = &mut self.learning else { return };
        if let Some(serving) = before.as_ref().filter(|_| served != Served::default()) {
            learning.judge(serving.stage.plan().signature, served);
        }
        let wanted = match learning.close(served) {
            Advice::Serve(plan) => Some(plan),
            // What the last step did not follow, the next one hardly will.
            Advice::Wait => learning.learner.likely_next().filter(|_| !is_astray(served)),
            Advice::Drop => {
                self.lower_stage();
                None
            }
        };
        if let Some(plan) = wanted.filter(|plan| self.is_worth_raising(plan)) {
            self.raise_stage(&plan);
        }
        let Some(learning) = &mut self.learning else { return };
        if let Some(serving) = &self.serving {
            learning.attend(serving, before.as_ref(), served);
        }
    }

    /// Whether a plan is another than the one that is served, is for a step that recurs, and leaves what stays alive its
    /// memory without that more is needed than ever was.
    fn is_worth_raising(&self, plan: &Arc<StepPlan>) -> bool {
        let is_other = self.serving.as_ref().is_none_or(|serving| !Arc::ptr_eq(serving.stage.plan(), plan));
        let is_trusted = self.steps >= self.trust.again_at;
        let Some(learning) = self.learning.as_ref().filter(|learning| is_other && is_trusted && learning.recurs(plan))
        else {
            return false;
        };
        let planned =
            self.serving.as_ref().map_or(0, |serving| serving.stage.in_use().map(|slot| slot.bytes.get()).sum::<u64>());
        // What the plan has a place for is soon freed, and the next like it comes from the plan.
        let renewed = learning.instances(plan).into_keys().filter_map(|address| self.blocks.get(&address));
        let renewed: u64 = renewed.map(|block| block.bytes).sum();
        let stays = (self.live + planned).saturating_sub(renewed);
        stays + plan.height.get() <= self.peak_live + self.peak_live / SLACK + HUGE
    }

    /// Serves `plan` from now on.
    fn raise_stage(&mut self, plan: &Arc<StepPlan>) {
        let height = plan.height.get();
        if plan.slots.len() > MOST_SLOTS || height == 0 {
            return;
        }
        self.lower_stage();
        let bytes = height.next_multiple_of(HUGE);
        let Some(start) = self.find_ground(bytes) else { return };
        self.last_ground = start;
        self.ground = start..start + bytes;
        let in_the_way = self.blocks_on(start, start + bytes);
        let runs: Vec<(u64, u64)> = self.free.over(start, start + bytes).collect();
        for (run, length) in runs {
            let from = run.max(start);
            self.free.remove(from, (run + length).min(start + bytes) - from);
        }
        let stage = Stage::new(Arc::clone(plan));
        for &(from, to) in &in_the_way {
            stage.block(from - start, to - start, true);
        }
        self.in_the_way = in_the_way.into_iter().map(|(from, _)| from).collect();
        let renewed = self.learning.as_ref().map(|learning| learning.instances(plan)).unwrap_or_default();
        for address in renewed.into_keys() {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.retires = true;
            }
        }
        self.residency.touch(start..start + height);
        self.stages += 1;
        let serving = Arc::new(Serving::new(stage, start, height, self.stages));
        self.published.store(Some(Arc::clone(&serving)));
        self.serving = Some(serving);
        self.planned_from.get_or_insert(self.steps + 1);
        (self.clock.stage_seen, self.clock.stage_served) = (self.clock.now, 0);
        self.save();
    }

    /// Where a plan is to be served: where the last one was, if little or nothing lies there, or on the lowest run of free
    /// memory that is long enough.
    fn find_ground(&mut self, bytes: u64) -> Option<u64> {
        let last = self.last_ground;
        let fits = |(start, length): (u64, u64)| {
            let at = start.next_multiple_of(HUGE);
            (at + bytes <= start + length).then_some(at)
        };
        let is_there = last > 0 && last + bytes <= self.opened;
        if is_there && self.free.around(last).is_some_and(|(start, length)| last + bytes <= start + length) {
            return Some(last);
        }
        if let Some(start) = self.free.iter().find_map(fits) {
            return Some(start);
        }
        let in_the_way = self.blocks_on(last, last + bytes);
        let taken: u64 = in_the_way.iter().map(|(from, to)| to - from).sum();
        let are_within = in_the_way.iter().all(|&(from, to)| last <= from && to <= last + bytes);
        if is_there && are_within && taken <= bytes / FEW {
            return Some(last);
        }
        if self.moved.is_some_and(|moved| self.steps < moved + REST) {
            return None;
        }
        self.moved = Some(self.steps);
        // Pages that lie elsewhere and are free make room for those that the plan will touch.
        self.give_back(u32::MAX);
        self.open_for(bytes, HUGE)
    }

    /// The blocks that share addresses with a range, from the lowest on.
    fn blocks_on(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        // Where all is free there is no need to look at every block.
        if self.free.around(start).is_some_and(|(run, length)| end <= run + length) {
            return Vec::new();
        }
        let ranges = self.blocks.iter().map(|(&address, block)| (address, address + block.size));
        let mut found: Vec<(u64, u64)> = ranges.filter(|&(from, to)| from < end && start < to).collect();
        found.sort_unstable();
        found
    }

    /// Serves no plan any more. What the stage had in use stays where it is, and the rest of its ground is free.
    pub(super) fn lower_stage(&mut self) {
        let Some(serving) = self.serving.take() else { return };
        serving.stage.close();
        self.served_before += serving.stage.served();
        self.clear_stage(&serving);
    }

    fn clear_stage(&mut self, serving: &Serving) {
        self.published.store(None);
        let others = mem::take(&mut self.in_the_way);
        let mut there: Vec<u64> = others.into_iter().filter(|address| self.blocks.contains_key(address)).collect();
        for slot in serving.stage.in_use() {
            let Some(offset) = slot.offset.map(Bytes::get) else { continue };
            let (address, bytes) = (serving.address(offset).0, slot.bytes.get());
            let size = bytes.next_multiple_of(UNIT);
            self.blocks.insert(address, Block { size, bytes, stage: serving.number(), retires: false });
            self.count(bytes);
            there.push(address);
        }
        there.sort_unstable();
        let ground = mem::replace(&mut self.ground, 0..0);
        self.residency.stamp(ground.clone(), self.clock.now);
        let mut from = ground.start;
        for start in there {
            let end = start + self.blocks.get(&start).map_or(0, |block| block.size);
            self.free.insert(from, start.saturating_sub(from));
            from = from.max(end);
        }
        self.free.insert(from, ground.end.saturating_sub(from));
    }

    /// Gives the stage up where the step does not follow its plan, so that its memory serves what comes instead; says
    /// whether it did.
    pub(super) fn yields_stage(&mut self) -> bool {
        let astray = self.serving.as_ref().is_some_and(|serving| is_astray(serving.stage.served()));
        if astray {
            self.lower_stage();
        }
        astray
    }

    /// Gives the stage up where nothing has used it for `window`.
    pub(super) fn rest_idle_stage(&mut self, window: u32) {
        let Some(serving) = &self.serving else { return };
        let served = serving.stage.served();
        let count = self.served.hits + self.served.misses + served.hits + served.misses;
        if count != self.clock.stage_served {
            (self.clock.stage_seen, self.clock.stage_served) = (self.clock.now, count);
        } else if self.clock.now.saturating_sub(self.clock.stage_seen) > window {
            self.lower_stage();
        }
    }

    /// In a forked child: the plan is given up, and the learner begins anew. The threads of both are the parent's.
    pub(super) fn start_anew(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.stage.close_alone();
            self.clear_stage(&serving);
            // Whoever was about to look at it has its locks, and is not here.
            mem::forget(serving);
        }
        mem::forget(mem::replace(&mut self.learning, learning(&self.options)));
        (self.served, self.served_before) = (Served::default(), Served::default());
        (self.allocations, self.steps, self.planned_from, self.moved) = (0, 0, None, None);
        (self.border, self.marked, self.peak_live) = (Border::default(), false, self.live);
        self.trust = Trust::default();
    }
}

/// Whether a step does not follow the plan that is served.
fn is_astray(served: Served) -> bool {
    served.misses > MISSES && served.misses * 4 > served.hits
}
