//! Plans on device memory: blocks that come from one, and what becomes of them when it is dropped.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::{Slot, StepPlan};
use lowtide_memory::Error as SourceError;

use super::State;
use super::blocks::{Block, Blocks, Home};
use crate::arena::accounting::Accounting;
use crate::arena::plan_memory::Piece;
use crate::pool::{Address, Request};
use crate::serving::{Found, LayOut, PlanArena, PlanServer, ServedPlan};

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

    fn lay_out(&mut self, plan: &Arc<StepPlan>) -> LayOut {
        for lane in plan.lanes() {
            self.meet(lane.stream);
        }
        if self.queues.finish(&*self.source).is_err() {
            return LayOut::NotNow;
        }
        self.poll(usize::MAX);
        if self.give_back().is_err() {
            return LayOut::NotNow;
        }
        let Ok(served) = self.build(plan) else {
            // What the source does not take now is given up at a later step.
            let _ = self.dismantle();
            return LayOut::Refused;
        };
        self.accounting.set_planned(served.slots.plan().height.get());
        LayOut::Done(Arc::new(served))
    }

    fn reclaim_idle(&mut self) {
        let used = |number| ranges_on(self.blocks.values(), number);
        if self.plan_memories.has_idle(self.plans.current().is_some(), used) {
            // What the source does not take now is given up at a later step.
            let _ = self.dismantle();
        }
    }

    fn reclaim(&mut self, served: &ServedPlan) {
        self.accounting.set_planned(0);
        for slot in served.slots.in_use() {
            let Some(offset) = slot.offset.map(Bytes::get) else { continue };
            keep_planned(served, slot, offset, &mut self.blocks, &mut self.accounting);
        }
        for block in self.blocks.values_mut() {
            if let Home::Heap { lent, .. } = &mut block.home {
                *lent = None;
            }
        }
        // What the source does not take now is given up at a later step.
        let _ = self.dismantle();
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

    /// Gives up what is not in use of the memory of plans that are not served.
    pub(super) fn dismantle(&mut self) -> Result<(), SourceError> {
        if self.plan_memories.is_empty() {
            return Ok(());
        }
        self.queues.finish(&*self.source)?;
        let Self { plan_memories, blocks, accounting, plans, .. } = self;
        let used = |number| ranges_on(blocks.values(), number);
        let (returned, outcome) = plan_memories.dismantle(plans.current().is_some(), used, accounting);
        for Piece { lender, .. } in returned {
            let Some((size, holder)) = lender else { continue };
            let blocks = self.blocks_in(size, &holder);
            self.heaps.of_mut(size).heap.take_back(&holder, &blocks);
        }
        outcome
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

/// The ranges on the memory of the plan of a number on which blocks lie that are the arena's own.
fn ranges_on<'a>(blocks: impl Iterator<Item = &'a Block>, number: u64) -> Vec<(u64, u64)> {
    let own = blocks.filter(|block| block.home == Home::Plan(number));
    own.map(|block| (block.offset, block.offset + block.size)).collect()
}
