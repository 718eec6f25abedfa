//! Plans on device memory: blocks that come from one, and what becomes of them when it is dropped.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::{Slot, StepPlan};
use lowtide_memory::Error as SourceError;

use super::State;
use super::blocks::{Block, Blocks, Home};
use super::plan_layout::Built;
use crate::arena::accounting::Accounting;
use crate::arena::plan_memory::{Loan, PlanMemory};
use crate::pool::{Address, Request};
use crate::serving::{Found, LayOut, PlanArena, PlanServer, ServedPlan, SlotLayout, StepCost};

impl PlanArena for State {
    fn plans(&self) -> &PlanServer {
        &self.plans
    }

    fn plans_mut(&mut self) -> &mut PlanServer {
        &mut self.plans
    }

    /// Where many blocks wait for other streams the device decides when memory is free, and no plan of the program's order
    /// holds.
    fn is_worth_serving(&self, plan: &StepPlan) -> bool {
        100 * self.pending.added() <= plan.slots.len() as u64
    }

    fn cost(&self) -> Option<StepCost> {
        Some(self.accounting.cost())
    }

    fn lay_out(&mut self, plan: &Arc<StepPlan>) -> LayOut {
        for lane in plan.lanes() {
            self.meet(lane.stream);
        }
        self.poll_all();
        self.recall();
        if self.plan_memories.is_full() {
            return LayOut::NotNow;
        }
        let before = self.accounting.budget().calls();
        let built = self.build(plan);
        self.accounting.budget_mut().spent_on_plan(before);
        self.accounting.budget_mut().spent_between_steps(before);
        match built {
            Ok(Built::Done(served)) => {
                self.accounting.set_planned(served.slots.plan().height.get());
                LayOut::Done(Arc::new(served))
            }
            Ok(Built::Working) => LayOut::Begun,
            Ok(Built::NotNow) => LayOut::NotNow,
            Ok(Built::Impossible) | Err(_) => LayOut::Refused,
        }
    }

    fn reclaim_idle(&mut self) {
        self.end_loans();
        let before = self.accounting.budget().calls();
        self.map_more();
        self.finish_retiring();
        let (most, is_serving) = (self.handles_for_a_plan(), self.plans.current().is_some());
        self.plan_memories.forget_old(most, is_serving, &mut self.accounting);
        self.accounting.budget_mut().spent_on_plan(before);
        self.accounting.budget_mut().spent_between_steps(before);
    }

    fn reclaim(&mut self, served: &ServedPlan) {
        self.accounting.set_planned(0);
        for slot in served.slots.in_use() {
            let Some(offset) = slot.offset.map(Bytes::get) else { continue };
            keep_planned(served, slot, offset, &mut self.blocks, &mut self.accounting);
        }
        self.note_dropped(served);
        for block in self.blocks.values_mut() {
            if let Home::Heap { lent, .. } = &mut block.home {
                *lent = None;
            }
        }
        self.end_loans();
        if !self.abilities.aliases {
            // What the source does not take now is given up at a later step.
            let _ = self.unmap_plans();
        }
    }
}

impl State {
    /// A block from the plan, for a request that comes by the lock.
    pub(super) fn take_planned(&mut self, request: &Request) -> Option<Address> {
        let served = Arc::clone(self.plans.current()?);
        let Found::At(offset) = served.slots.take(request) else { return None };
        let address = served.address(offset);
        if self.wait_for_owners(address, request).is_err() {
            served.slots.give(offset);
            return None;
        }
        Some(address)
    }

    /// A block of the plan that is to be treated like any other becomes one.
    pub(super) fn adopt(&mut self, address: Address) {
        let Self { plans, blocks, accounting, .. } = self;
        let Some(served) = plans.current() else { return };
        let Some(offset) = served.offset(address).filter(|_| !blocks.contains_key(&address.0)) else { return };
        let Some(slot) = served.slots.at(offset) else { return };
        served.attend(true);
        keep_planned(served, slot, offset, blocks, accounting);
    }

    /// The stream of a block of the plan that is no block of the arena's own yet.
    pub(super) fn planned_stream(&self, address: Address) -> Option<StreamId> {
        let served = self.plans.current().filter(|_| !self.blocks.contains_key(&address.0))?;
        Some(served.slots.at(served.offset(address)?)?.lane.stream)
    }

    /// Makes the memory of a plan's block free, if that plan is still served.
    pub(super) fn release_planned(&mut self, address: u64, number: u64) {
        if let Some(served) = self.plans.current().filter(|served| served.number() == number)
            && let Some(offset) = served.offset(Address(address))
        {
            served.slots.give(offset);
            served.attend(false);
        }
    }

    /// Lets a stream that takes a block of the plan wait for others that had its memory.
    fn wait_for_owners(&mut self, address: Address, request: &Request) -> Result<(), SourceError> {
        if !self.queues.several() {
            return Ok(());
        }
        let (start, end) = (address.0, address.0 + request.bytes.get());
        for (owner, position) in self.plan_memories.owners(start, end) {
            if self.queues.must_wait(request.stream, owner, position, &*self.source) {
                self.queues.hold(request.stream, owner, position, &*self.source)?;
            }
        }
        self.plan_memories.take(start, end);
        Ok(())
    }

    /// A block of the plan of a number was given back without the lock while the plan was dropped.
    pub(in crate::arena) fn free_dropped(&mut self, address: Address, number: u64) {
        if self.blocks.get(&address.0).is_some_and(|block| block.home == Home::Plan(number)) {
            self.release(address.0);
        }
    }

    /// The heaps have the handles back that are under no block of plans that are not served.
    pub(super) fn end_loans(&mut self) {
        let Self { plan_memories, blocks, plans, .. } = self;
        let used = |number| ranges_on(blocks.values(), number);
        let is_serving = plans.current().is_some();
        let ended = plan_memories.end_loans(is_serving, used, || self.queues.mark_all(&*self.source));
        let loans: Vec<Loan> = ended.iter().map(|&(_, loan)| loan).collect();
        self.take_back(&loans);
        if self.queues.several() {
            for (start, Loan { size, holder }) in ended {
                for (from, to, stream, position) in self.plan_memories.freed_within(start, start + holder.bytes) {
                    let at = |address: u64| holder.place + address - start;
                    self.heaps.of_mut(size).freed.insert(at(from), at(to), stream, position);
                }
            }
        }
    }

    /// Takes away the addresses that no plan has any more, once queued work is done.
    pub(super) fn unmap_plans(&mut self) -> Result<(), SourceError> {
        if self.plan_memories.is_empty() {
            return Ok(());
        }
        self.queues.finish(&*self.source)?;
        self.plan_memories.unmap(self.plans.current().is_some(), &mut self.accounting)
    }

    /// Lets the streams of a plan wait for those who freed what is lent to it: for all of them where the plan has one stream, because
    /// its blocks come without being looked at; where it has several, for those who used the memory at other addresses than the
    /// heap's, because only one owner of a range is known.
    pub(super) fn wait_for_lenders(&mut self, layout: &SlotLayout, loans: &[Loan]) -> Result<(), SourceError> {
        if !self.queues.several() {
            return Ok(());
        }
        let streams = layout.plan().streams();
        for &Loan { size, holder } in loans {
            let sized = self.heaps.of(size);
            let ranges = sized.heap.footprint(holder.place, holder.bytes).into_iter();
            let looked_at = usize::from(streams.len() > 1);
            let owners: Vec<_> =
                ranges.skip(looked_at).flat_map(|(start, end)| sized.freed.owners(start, end)).collect();
            for &stream in &streams {
                for &(owner, position) in &owners {
                    if self.queues.must_wait(stream, owner, position, &*self.source) {
                        self.queues.hold(stream, owner, position, &*self.source)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Who freed the memory that a plan takes over: whoever takes it from the plan waits for them.
    pub(super) fn take_over_owners(&mut self, memory: &PlanMemory, loans: &[Loan]) {
        if !self.queues.several() {
            return;
        }
        self.plan_memories.take(memory.base(), memory.base() + memory.end());
        let mut start = memory.base();
        for &Loan { size, holder } in loans {
            for (from, to, stream, position) in
                self.heaps.of(size).freed.within(holder.place, holder.place + holder.bytes)
            {
                let at = |offset: u64| start + offset - holder.place;
                self.plan_memories.freed(at(from), at(to), stream, position);
            }
            start += holder.bytes;
        }
        self.cut_lent_blocks(memory.base());
    }

    /// Nobody has freed what is under blocks that are alive on lent memory of the plan at `base`; who frees them is noted then.
    fn cut_lent_blocks(&mut self, base: u64) {
        if !self.queues.several() {
            return;
        }
        for block in self.blocks.values() {
            if let Home::Heap { lent: Some((start, end)), .. } = block.home {
                self.plan_memories.take(base + start, base + end);
            }
        }
    }

    /// Notes that what the plan's threads freed without the lock was freed by its stream.
    fn note_dropped(&mut self, served: &ServedPlan) {
        if let Some(stream) = served.only_stream().filter(|_| self.queues.several()) {
            let (start, end) = (served.address(0).0, served.end().0);
            // Blocks that lay there and that the plan kept clear of; for all others its stream has waited.
            let mut apart = self.plan_memories.freed_within(start, end);
            apart.retain(|&(_, _, owner, position)| self.queues.must_wait(stream, owner, position, &*self.source));
            let position = self.queues.freed(stream, &*self.source);
            self.plan_memories.freed(start, end, stream, position);
            for (start, end, owner, position) in apart {
                self.plan_memories.freed(start, end, owner, position);
            }
        }
        self.cut_lent_blocks(served.address(0).0);
    }
}

/// A slot that is in use becomes a block, unless it is one already.
fn keep_planned(served: &ServedPlan, slot: &Slot, offset: u64, blocks: &mut Blocks, accounting: &mut Accounting) {
    let address = served.address(offset).0;
    if !blocks.contains_key(&address) {
        accounting.take(slot.bytes.get());
        let home = Home::Plan(served.number());
        blocks.insert(address, Block::new(offset, slot.bytes.get(), home, slot.lane.stream));
    }
}

/// The ranges on the memory of the plan of a number on which blocks lie that are the arena's own, in order.
fn ranges_on<'a>(blocks: impl Iterator<Item = &'a Block>, number: u64) -> Vec<(u64, u64)> {
    let own = blocks.filter(|block| block.home == Home::Plan(number));
    let mut ranges: Vec<(u64, u64)> = own.map(|block| (block.offset, block.offset + block.size)).collect();
    ranges.sort_unstable();
    ranges
}
