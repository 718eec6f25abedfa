//! How steps end, and plans on host memory: a plan gets a run of free memory, and blocks that lie there stay.

use std::ops::Range;
use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::{Served, StepPlan};

use super::{Block, Counts, KEPT, State, observer};
use crate::host::pages::HUGE;
use crate::host::step_boundary::StepBoundary;
use crate::serving::{LayOut, PlanArena, PlanServer, ServedPlan, SlotTable};

/// A plan may need this part more than was ever alive.
const SLACK: u64 = 50;

/// Blocks in the way of a plan may take this part of its memory: slots under them are not served.
const FEW: u64 = 16;

impl State {
    /// The program has closed a step.
    pub(in crate::host) fn close_marked_step(&mut self) {
        self.marked = true;
        self.plans.mark();
        self.close_step();
    }

    /// Closes a step: a plan may come or go.
    pub(super) fn close_step(&mut self) {
        self.clock.close_step(self.plans.steps() == 0);
        self.close_plan_step();
    }

    /// Drops the plan where nothing has used it for as long as memory is kept.
    pub(super) fn drop_idle_plan(&mut self) {
        if self.plans.current().is_none() {
            return;
        }
        let served = self.plans.so_far();
        self.clock.see_plan(served.hits + served.misses);
        if self.clock.is_plan_idle(self.clock.kept(self.options.decay)) {
            self.drop_plan();
        }
    }

    /// In a forked child: no plan is served, and learning begins anew. The threads of both are the parent's.
    pub(in crate::host) fn start_anew(&mut self) {
        if let Some(served) = self.plans.start_anew(observer(&self.options)) {
            self.reclaim(&served);
        }
        self.plan_range.start_anew();
        let live = self.counts.live;
        self.counts = Counts { live, peak_live: live, allocations: 0 };
        (self.boundary, self.marked, self.planned_from) = (StepBoundary::default(), false, None);
    }

    /// Where a plan is to be served: where the last one was, if little or nothing lies there, or on the lowest run of free
    /// memory that is long enough.
    fn find_plan_range(&mut self, bytes: u64) -> Option<u64> {
        let last = self.plan_range.last().filter(|last| last + bytes <= self.pages.opened());
        let is_free = |at: u64| self.free.containing(at).is_some_and(|run| at + bytes <= run.end);
        if let Some(last) = last.filter(|&last| is_free(last)) {
            return Some(last);
        }
        let fits = |run: Range<u64>| {
            let at = run.start.next_multiple_of(HUGE);
            (at + bytes <= run.end).then_some(at)
        };
        if let Some(start) = self.free.iter().find_map(fits) {
            return Some(start);
        }
        if let Some(last) = last.filter(|&last| self.has_little_on(last, bytes)) {
            return Some(last);
        }
        if !self.plan_range.try_move(self.plans.steps()) {
            return None;
        }
        // Pages that lie elsewhere and are free make room for those that the plan will touch.
        self.pages.purge(&self.free, u32::MAX);
        self.pages.open_for(bytes, HUGE, &mut self.free)
    }

    /// Whether blocks on a range take little of it, and none reaches out of it.
    fn has_little_on(&self, start: u64, bytes: u64) -> bool {
        let (end, blocks) = (start + bytes, self.blocks_on(start, start + bytes));
        let taken: u64 = blocks.iter().map(|(from, to)| to - from).sum();
        taken <= bytes / FEW && blocks.iter().all(|&(from, to)| start <= from && to <= end)
    }

    /// The blocks that share addresses with a range, from the lowest on.
    fn blocks_on(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        // Where all is free there is no need to look at every block.
        if self.free.containing(start).is_some_and(|run| end <= run.end) {
            return Vec::new();
        }
        let ranges = self.blocks.iter().map(|(&address, block)| (address, address + block.size));
        let mut found: Vec<(u64, u64)> = ranges.filter(|&(from, to)| from < end && start < to).collect();
        found.sort_unstable();
        found
    }

    /// Takes what is free of a range for the plan.
    fn take_free(&mut self, start: u64, end: u64) {
        let runs: Vec<Range<u64>> = self.free.overlapping(&(start..end)).collect();
        for run in runs {
            self.free.remove(run.start.max(start)..run.end.min(end));
        }
    }
}

impl PlanArena for State {
    fn plans(&self) -> &PlanServer {
        &self.plans
    }

    fn plans_mut(&mut self) -> &mut PlanServer {
        &mut self.plans
    }

    /// Whether a plan leaves what stays alive its memory without that more is needed than ever was, and others enough of theirs: its memory is kept
    /// from step to step.
    fn is_worth_serving(&self, plan: &StepPlan) -> bool {
        if self.most.is_some_and(|most| plan.height.get() > most / KEPT) {
            return false;
        }
        // What the plan has a place for is soon freed, and the next like it comes from the plan.
        let renewed = self.plans.instances(plan).into_keys().filter_map(|address| self.blocks.get(&address));
        let renewed: u64 = renewed.map(|block| block.bytes).sum();
        let Counts { live, peak_live, .. } = self.counts;
        let stays = (live + self.plans.bytes_in_use()).saturating_sub(renewed);
        stays + plan.height.get() <= peak_live + peak_live / SLACK + HUGE
    }

    fn step_closed(&mut self, served: Served) {
        if served.hits > 0 && served.misses == 0 {
            self.pages.settle();
        }
    }

    fn lay_out(&mut self, plan: &Arc<StepPlan>) -> LayOut {
        let height = plan.height.get();
        let bytes = height.next_multiple_of(HUGE);
        let Some(start) = self.find_plan_range(bytes) else { return LayOut::NotNow };
        let in_the_way = self.blocks_on(start, start + bytes);
        self.take_free(start, start + bytes);
        let slots = SlotTable::new(Arc::clone(plan));
        for &(from, to) in &in_the_way {
            slots.block(from - start, to - start, true);
        }
        for address in self.plans.instances(plan).into_keys() {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.retires = true;
            }
        }
        let in_the_way = in_the_way.into_iter().map(|(from, _)| from).collect();
        let number = self.plan_range.set(start..start + bytes, in_the_way);
        self.pages.touch(start..start + height);
        self.planned_from.get_or_insert(self.plans.steps() + 1);
        self.clock.begin_plan();
        self.purge_excess();
        LayOut::Done(Arc::new(ServedPlan::new(slots, start, height, number)))
    }

    fn reclaim(&mut self, served: &ServedPlan) {
        let (range, in_the_way) = self.plan_range.clear();
        let mut there: Vec<u64> = in_the_way.into_iter().filter(|address| self.blocks.contains_key(address)).collect();
        for slot in served.slots.in_use() {
            let Some(offset) = slot.offset.map(Bytes::get) else { continue };
            let (address, bytes) = (served.address(offset).0, slot.bytes.get());
            self.blocks.insert(address, Block { plan: Some(served.number()), ..Block::new(bytes) });
            self.counts.take(bytes);
            there.push(address);
        }
        there.sort_unstable();
        self.pages.stamp(range.clone(), self.clock.now());
        let mut from = range.start;
        for start in there {
            let end = start + self.blocks.get(&start).map_or(0, |block| block.size);
            self.free.insert(from..start);
            from = from.max(end);
        }
        self.free.insert(from..range.end);
    }
}
