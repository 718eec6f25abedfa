//! How a plan gets its memory: handles that the heaps lend, the plan made anew around the blocks on them, and new memory
//! behind. A block that the program frees and allocates again at the same point of every step keeps its memory, and nothing
//! has to be mapped later.

use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::{Carried, StepPlan};
use lowtide_memory::Error as SourceError;
use rustc_hash::FxHashMap;

use super::State;
use super::blocks::{Block, Home};
use crate::arena::heap::Holder;
use crate::arena::plan_memory::PlanMemory;
use crate::arena::sized_heaps::SizeClass;
use crate::serving::{ServedPlan, SlotTable};

/// A grain of new memory of a plan. It moves no more, so that it is as large as is handy.
const GRAIN: u64 = 64 << 20;

/// A block that lies on memory that is lent to a plan.
#[derive(Clone, Copy, Debug)]
struct LentBlock {
    address: u64,
    /// The range of the plan's memory that it lies on.
    start: u64,
    end: u64,
}

impl State {
    /// Gives `plan` memory, and makes the table of its slots.
    pub(super) fn build(&mut self, plan: &Arc<StepPlan>) -> Result<ServedPlan, SourceError> {
        let granularity = self.abilities.granularity;
        let instances = self.plans.instances(plan);
        let addresses = 2 * (self.accounting.reserved() + plan.height.get()).next_multiple_of(granularity);
        let mut memory = self.plan_memories.make(Arc::clone(&self.source), addresses)?;
        let lent = if self.abilities.aliases { self.lend(&mut memory, plan, &instances) } else { Ok(Vec::new()) };
        self.plan_memories.push(memory);
        let lent = lent?;
        let carried = |block: &LentBlock| Carried {
            slot: instances.get(&block.address).copied(),
            offset: Bytes::new(block.start),
            bytes: Bytes::new(block.end - block.start),
        };
        let carried: Vec<Carried> = lent.iter().map(carried).collect();
        let no_room = SourceError::OutOfMemory { asked: plan.height };
        let Some(plan) = self.plans.plan_around(plan, &carried).map(Arc::new) else { return Err(no_room) };
        // Where nothing can be lent, what is alive and what is planned lie side by side.
        let needed = self.accounting.reserved() + plan.height.get();
        if !self.abilities.aliases && needed > self.accounting.peak_reserved() {
            return Err(SourceError::OutOfMemory { asked: plan.height });
        }
        let height = plan.height.get().next_multiple_of(granularity);
        let Some(memory) = self.plan_memories.last_mut() else { return Err(no_room) };
        memory.extend(height, GRAIN.max(granularity), &mut self.accounting)?;
        let slots = SlotTable::new(plan);
        for &LentBlock { address, start, end } in &lent {
            slots.block(start, end, true);
            if let Some(Block { home: Home::Heap { lent, .. }, .. }) = self.blocks.get_mut(&address) {
                *lent = Some((start, end));
            }
        }
        Ok(ServedPlan::new(slots, memory.base(), memory.end(), memory.number()))
    }

    /// Lends a plan the handles that it can make use of, and says which blocks lie on which ranges of its memory.
    fn lend(
        &mut self,
        memory: &mut PlanMemory,
        plan: &StepPlan,
        instances: &FxHashMap<u64, u32>,
    ) -> Result<Vec<LentBlock>, SourceError> {
        let mut lent = Vec::new();
        let mut groups = self.groups(plan, instances, SizeClass::Small);
        groups.extend(self.groups(plan, instances, SizeClass::Large));
        // What comes and goes lies next to the new memory, so that both are one run while it is gone.
        groups.sort_by_key(|group| group.comes_and_goes);
        for group in groups {
            for holder in group.holders {
                let heap = &mut self.heaps.of_mut(group.size).heap;
                let address = heap.address(holder.place);
                heap.lend(&holder);
                let at = match memory.borrow(address, group.size, holder, &mut self.accounting) {
                    Ok(at) => at,
                    Err(error) => {
                        let blocks = self.blocks_in(group.size, &holder);
                        self.heaps.of_mut(group.size).heap.take_back(&holder, &blocks);
                        return Err(error);
                    }
                };
                let inside = group.blocks.iter().filter(|block| begins_in(&holder, block.1));
                lent.extend(inside.map(|&(address, offset, size)| {
                    let start = at + offset - holder.place;
                    LentBlock { address, start, end: start + size }
                }));
            }
        }
        Ok(lent)
    }

    /// The handles of a heap that are worth lending, in groups that must stay side by side.
    fn groups(&self, plan: &StepPlan, instances: &FxHashMap<u64, u32>, size: SizeClass) -> Vec<Group> {
        let mut blocks: Vec<(u64, u64, u64)> = (self.blocks.iter())
            .filter(|(_, block)| block.is_in(size))
            .map(|(&address, block)| (address, block.offset, block.size))
            .collect();
        blocks.sort_unstable_by_key(|block| block.1);
        let goes = |address: &u64| instances.get(address).is_some_and(|&slot| plan.is_renewed(slot));
        let mut groups: Vec<Group> = Vec::new();
        for holder in self.heaps.of(size).heap.holders() {
            let (start, end) = (holder.place, holder.place + holder.bytes);
            let first = blocks.partition_point(|&(_, offset, size)| offset + size <= start);
            let inside: Vec<_> = blocks[first..].iter().take_while(|block| block.1 < end).copied().collect();
            let crosses = inside.first().is_some_and(|block| block.1 < start);
            let follows = groups.last().is_some_and(|group| group.end() == start);
            if !crosses || !follows {
                groups.push(Group::new(size));
            }
            let Some(group) = groups.last_mut() else { continue };
            let going = inside.iter().any(|block| goes(&block.0));
            group.comes_and_goes |= going;
            group.is_worth_it |= going || holder.free > 0;
            group.holders.push(holder);
            group.blocks.extend(inside.iter().filter(|block| !crosses || !follows || block.1 >= start));
        }
        groups.retain(|group| group.is_worth_it && group.is_whole());
        groups
    }

    /// The offsets and sizes of the blocks that share memory with a handle, from the lowest on.
    pub(super) fn blocks_in(&self, size: SizeClass, holder: &Holder) -> Vec<(u64, u64)> {
        let (start, end) = (holder.place, holder.place + holder.bytes);
        let mut blocks: Vec<(u64, u64)> = (self.blocks.values())
            .filter(|block| block.is_in(size) && block.offset < end && start < block.offset + block.size)
            .map(|block| (block.offset, block.size))
            .collect();
        blocks.sort_unstable();
        blocks
    }
}

impl Block {
    /// Whether it lies in the heap for blocks of a size.
    fn is_in(&self, wanted: SizeClass) -> bool {
        matches!(self.home, Home::Heap { size, .. } if size == wanted)
    }
}

fn begins_in(holder: &Holder, offset: u64) -> bool {
    (holder.place..holder.place + holder.bytes).contains(&offset)
}

/// Handles that blocks hold together.
#[derive(Debug)]
struct Group {
    size: SizeClass,
    holders: Vec<Holder>,
    /// Address, offset and size of the blocks that begin in them.
    blocks: Vec<(u64, u64, u64)>,
    /// Whether a block in it is one that the plan frees and allocates again.
    comes_and_goes: bool,
    /// Whether a plan could use anything of it.
    is_worth_it: bool,
}

impl Group {
    fn new(size: SizeClass) -> Self {
        Self { size, holders: Vec::new(), blocks: Vec::new(), comes_and_goes: false, is_worth_it: false }
    }

    fn end(&self) -> u64 {
        self.holders.last().map_or(0, |holder| holder.place + holder.bytes)
    }

    /// Whether no block in it reaches out of it.
    fn is_whole(&self) -> bool {
        let start = self.holders.first().map_or(0, |holder| holder.place);
        self.blocks.iter().all(|&(_, offset, size)| offset >= start && offset + size <= self.end())
    }
}
