//! How a plan gets its memory: all of it is lent by the heaps, handles with blocks on them first, around which the plan is made
//! anew, and then whole free handles. They are mapped a few at a time, at the ends of steps or while the device is at work, and what the plan leaves over is given back once
//! queued work is done: nobody waits for either, unless plans are made while the program waits anyway.

use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::{Carried, Signature, StepPlan};
use lowtide_memory::Error as SourceError;
use rustc_hash::{FxHashMap, FxHashSet};

use super::State;
use super::blocks::{Block, Home};
use crate::arena::call_time::Reading;
use crate::arena::heap::Holder;
use crate::arena::plan_memory::{Loan, PlanMemory};
use crate::arena::sized_heaps::SizeClass;
use crate::serving::{Replanned, ServedPlan, SlotLayout, SlotTable};

/// A handle may be larger than what the plan needs of it by this part of the plan's height.
const LEFT_OVER: u64 = 4096;

/// A plan may need this part more than was ever reserved without it.
const MORE: u64 = 1000;

/// A plan that needs more handles than this would be long in coming.
const MOST_PIECES: usize = 4096;

/// A block that lies on memory that a plan would have.
#[derive(Clone, Copy, Debug)]
struct LentBlock {
    address: u64,
    /// The range of the plan's memory that it lies on.
    start: u64,
    end: u64,
}

/// The handles with blocks on them that a plan would have, from the start of its memory on.
#[derive(Debug, Default)]
struct Offer {
    loans: Vec<Loan>,
    blocks: Vec<LentBlock>,
    end: u64,
}

/// The free handles that there are, for a plan: those that it gets, behind the ones with blocks on them, and those that it does not need.
#[derive(Debug)]
struct Choice {
    loans: Vec<Loan>,
    left: Vec<Loan>,
}

/// What came of giving a plan its memory.
#[derive(Debug)]
pub(super) enum Built {
    Done(ServedPlan),
    /// The plan is being made around the blocks that stay, or its handles are being mapped.
    Working,
    /// The plan was begun around the blocks that stay: that is a try.
    NotNow,
    Impossible,
}

impl State {
    /// Gives `plan` memory, and makes the table of its slots.
    pub(super) fn build(&mut self, plan: &Arc<StepPlan>) -> Result<Built, SourceError> {
        let instances = self.plans.instances(plan);
        let offer = if self.abilities.aliases { self.offer(plan, &instances) } else { Offer::default() };
        let carried = |block: &LentBlock| Carried {
            slot: instances.get(&block.address).copied(),
            offset: Bytes::new(block.start),
            bytes: Bytes::new(block.end - block.start),
        };
        let carried = offer.blocks.iter().map(carried).collect();
        if offer.loans.len() > MOST_PIECES {
            return Ok(Built::Impossible);
        }
        // While memory waits for the plan that it was made for, that is made around no other place.
        self.plan_memories.give_up_others(plan.signature);
        let may_begin = !self.plan_memories.awaits_a_plan();
        let layout = match self.plans.plan_around(plan, carried, may_begin) {
            Replanned::Started => return Ok(Built::NotNow),
            Replanned::Working => return Ok(Built::Working),
            Replanned::Impossible => return Ok(Built::Impossible),
            Replanned::Ready(layout) => layout,
        };
        if !self.abilities.aliases {
            return self.build_apart(&layout);
        }
        let covers = self.accounting.covers(layout.plan().height.get());
        let Some(Choice { loans, left }) = self.choose(&offer, layout.plan().height.get())? else {
            return Ok(Built::Impossible);
        };
        let calls = self.plan_memories.calls_for(&loans) + if covers { 2 * left.len() as u64 } else { 0 };
        let may_spend = self.plan_memories.has_begun(&loans) || self.accounting.budget().may_spend(calls);
        if loans.len() > MOST_PIECES || !may_spend {
            return Ok(Built::Impossible);
        }
        let Some(memory) = self.borrow(plan.signature, &loans)? else { return Ok(Built::Working) };
        if let Err(error) = self.wait_for_lenders(&layout, &loans) {
            self.plan_memories.keep(memory.given_up());
            return Err(error);
        }
        for loan in &loans {
            self.heaps.of_mut(loan.size).heap.lend(&loan.holder);
        }
        let slots = SlotTable::of(layout);
        for &LentBlock { address, start, end } in &offer.blocks {
            slots.block(start, end, true);
            if let Some(Block { home: Home::Heap { lent, .. }, .. }) = self.blocks.get_mut(&address) {
                *lent = Some((start, end));
            }
        }
        let served = ServedPlan::new(slots, memory.base(), memory.end(), memory.number());
        self.take_over_owners(&memory, &loans);
        self.plan_memories.begin(memory, &loans);
        if covers {
            self.retire(left);
        }
        Ok(Built::Done(served))
    }

    /// Gives a plan memory of its own, where nothing can be lent: what is alive and what is planned lie side by side.
    fn build_apart(&mut self, layout: &Arc<SlotLayout>) -> Result<Built, SourceError> {
        self.give_back()?;
        let height = layout.plan().height.get().next_multiple_of(self.abilities.granularity);
        if self.accounting.reserved() + height > self.accounting.peak_reserved() {
            return Ok(Built::Impossible);
        }
        let mut memory = self.plan_memories.make_apart(Arc::clone(&self.source), height)?;
        memory.extend(height, &mut self.accounting)?;
        let slots = SlotTable::of(Arc::clone(layout));
        let served = ServedPlan::new(slots, memory.base(), memory.end(), memory.number());
        self.plan_memories.begin(memory, &[]);
        Ok(Built::Done(served))
    }

    /// Addresses for a plan under which `loans` lie: those that it had before, or new ones. None where the program would have to wait: then the
    /// handles are mapped later, for one plan at a time.
    fn borrow(&mut self, signature: Signature, loans: &[Loan]) -> Result<Option<PlanMemory>, SourceError> {
        let Self { plan_memories, heaps, accounting, source, .. } = self;
        let mut memory = match plan_memories.begun(loans) {
            Some(memory) => memory,
            None if plan_memories.awaits_a_plan() => return Ok(None),
            None => plan_memories.make(Arc::clone(source), signature, loans)?,
        };
        memory.await_loans(&loans[memory.pieces()..]);
        // Before the first step nobody waits for anything else.
        let may_wait = self.plans.may_wait() || self.plans.steps() == 0;
        let mapped = memory.map_awaited(if may_wait { loans.len() } else { 0 }, heaps, accounting);
        if mapped.is_err() || memory.awaits() {
            // Work on what was mapped for an earlier plan may still be queued.
            plan_memories.keep(if mapped.is_err() { memory.given_up() } else { memory });
            return mapped.map(|()| None);
        }
        Ok(Some(memory))
    }

    /// Maps some more handles for a plan that is to be served.
    pub(super) fn map_more(&mut self) {
        let most = self.handles_for_a_plan();
        if !self.plans.may_wait() {
            self.plan_memories.map_more(most, &self.heaps, &mut self.accounting);
        }
    }

    /// Maps some more handles for a plan that is to be served, if the device is at work: then the program does not wait for it. Says whether
    /// there are more.
    pub(in crate::arena) fn map_ahead(&mut self) -> bool {
        const AT_ONCE: usize = 8;
        if !self.plan_memories.is_mapping() || !self.queues.are_busy(&*self.source) {
            return false;
        }
        let (before, begun) = (self.accounting.budget().calls(), Reading::new(&*self.source));
        self.plan_memories.map_ahead(AT_ONCE, &self.heaps, &mut self.accounting);
        self.accounting.made_ahead(before, begun, Reading::new(&*self.source));
        self.plan_memories.is_mapping()
    }

    /// The handles that a plan of `height` gets, and those that are free and that it does not need; none where more would have to be
    /// reserved than ever was.
    fn choose(&mut self, offer: &Offer, height: u64) -> Result<Option<Choice>, SourceError> {
        let height = height.next_multiple_of(self.abilities.granularity);
        let mut missing = height.saturating_sub(offer.end);
        let mut loans = offer.loans.clone();
        let mut left = Vec::new();
        for loan in self.free_loans() {
            if loan.holder.bytes <= missing {
                missing -= loan.holder.bytes;
                loans.push(loan);
            } else {
                left.push(loan);
            }
        }
        if missing == 0 {
            return Ok(Some(Choice { loans, left }));
        }
        // The smallest that is enough comes last.
        let smallest = left.iter().rposition(|loan| loan.holder.bytes >= missing);
        let is_close = |place: usize| left[place].holder.bytes - missing <= height / LEFT_OVER;
        let makes_room = self.plans.may_wait()
            && self.accounting.covers(height)
            && self.accounting.budget().may_spend((loans.len() + 2 * left.len()) as u64);
        let would_exceed = self.accounting.reserved() + missing > self.accounting.peak_reserved();
        if let Some(place) = smallest.filter(|&place| is_close(place) || would_exceed && !makes_room) {
            loans.push(left.remove(place));
            return Ok(Some(Choice { loans, left }));
        }
        let leaves: u64 = if makes_room { left.iter().map(|loan| loan.holder.bytes).sum() } else { 0 };
        let most = self.accounting.peak_reserved();
        let is_too_much = most > 0 && self.accounting.reserved() - leaves + missing > most + most / MORE;
        let calls = (loans.len() + 2 * left.len()) as u64;
        if is_too_much || loans.len() >= MOST_PIECES || !self.accounting.budget().may_spend(calls) {
            return Ok(None);
        }
        if makes_room && !left.is_empty() {
            self.queues.finish(&*self.source)?;
            self.give_back_handles(&std::mem::take(&mut left))?;
        }
        self.heaps.of_mut(SizeClass::Large).heap.grow(missing, missing, &mut self.accounting)?;
        let known: FxHashSet<_> = loans.iter().chain(&left).map(Loan::handle).collect();
        let new: Vec<Loan> = self.free_loans().into_iter().filter(|loan| !known.contains(&loan.handle())).collect();
        loans.extend(new);
        Ok(Some(Choice { loans, left }))
    }

    /// The handles in which no block lies, the largest first.
    fn free_loans(&self) -> Vec<Loan> {
        let of = |size: SizeClass| {
            let holders = self.heaps.of(size).heap.free_holders();
            holders.into_iter().map(move |holder| Loan { size, holder })
        };
        let mut loans: Vec<Loan> = of(SizeClass::Large).chain(of(SizeClass::Small)).collect();
        loans.sort_by_key(|loan| (std::cmp::Reverse(loan.holder.bytes), loan.holder.place));
        loans
    }

    /// The handles with blocks on them that a plan could make use of, and which blocks would lie where.
    fn offer(&self, plan: &StepPlan, instances: &FxHashMap<u64, u32>) -> Offer {
        let mut groups = self.groups(plan, instances, SizeClass::Small);
        groups.extend(self.groups(plan, instances, SizeClass::Large));
        // What comes and goes lies next to the free handles, so that both are one run while it is gone.
        groups.sort_by_key(|group| group.comes_and_goes);
        let mut offer = Offer::default();
        for group in groups {
            for holder in group.holders {
                let at = offer.end;
                let inside = group.blocks.iter().filter(|block| begins_in(&holder, block.1));
                offer.blocks.extend(inside.map(|&(address, offset, size)| {
                    let start = at + offset - holder.place;
                    LentBlock { address, start, end: start + size }
                }));
                offer.loans.push(Loan { size: group.size, holder });
                offer.end += holder.bytes;
            }
        }
        offer
    }

    /// The handles of a heap that are worth lending, in groups that must stay side by side.
    fn groups(&self, plan: &StepPlan, instances: &FxHashMap<u64, u32>, size: SizeClass) -> Vec<Group> {
        let blocks = self.blocks_of(size);
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

    /// The blocks of a heap by their place: address, offset and size.
    fn blocks_of(&self, size: SizeClass) -> Vec<(u64, u64, u64)> {
        let mut blocks: Vec<(u64, u64, u64)> = (self.blocks.iter())
            .filter(|(_, block)| block.is_in(size))
            .map(|(&address, block)| (address, block.offset, block.size))
            .collect();
        blocks.sort_unstable_by_key(|block| block.1);
        blocks
    }

    /// The heaps have the handles of loans back that have ended.
    pub(super) fn take_back(&mut self, loans: &[Loan]) {
        if loans.is_empty() {
            return;
        }
        for size in [SizeClass::Small, SizeClass::Large] {
            let blocks: Vec<(u64, u64)> =
                self.blocks_of(size).into_iter().map(|(_, offset, size)| (offset, size)).collect();
            let heap = &mut self.heaps.of_mut(size).heap;
            for Loan { holder, .. } in loans.iter().filter(|loan| loan.size == size) {
                let (start, end) = (holder.place, holder.place + holder.bytes);
                let first = blocks.partition_point(|&(offset, size)| offset + size <= start);
                let last = blocks.partition_point(|&(offset, _)| offset < end);
                heap.take_back(holder, &blocks[first..last.max(first)]);
            }
        }
    }

    /// Takes free handles out of use, and gives them back once queued work is done: now, where the program may be kept waiting.
    fn retire(&mut self, loans: Vec<Loan>) {
        let bytes: u64 = loans.iter().map(|loan| loan.holder.bytes).sum();
        if bytes == 0 {
            return;
        }
        if self.plans.may_wait() && self.queues.finish(&*self.source).is_ok() {
            // What the source does not take now stays free.
            let _ = self.give_back_handles(&loans);
            return;
        }
        for loan in &loans {
            self.heaps.of_mut(loan.size).heap.lend(&loan.holder);
        }
        match self.queues.mark_all(&*self.source) {
            Ok(marks) => self.retiring.begin(loans, marks),
            Err(_) => self.take_back(&loans),
        }
    }

    /// Gives back the handles that were taken out of use, where queued work is done.
    pub(super) fn finish_retiring(&mut self) {
        let is_serving = self.plans.current().is_some();
        let is_done =
            self.retiring.is_done(&*self.source) && self.plan_memories.is_done_over(self.retiring.loans(), is_serving);
        if !self.retiring.is_empty() && is_done {
            let loans = self.recall();
            // What the source does not take now stays free.
            let _ = self.give_back_handles(&loans);
        }
    }

    /// Takes handles that were taken out of use into use again; says which they were.
    pub(super) fn recall(&mut self) -> Vec<Loan> {
        let loans = self.retiring.take(&*self.source);
        self.take_back(&loans);
        loans
    }

    /// Gives back handles that are free. The caller knows that queued work is done.
    fn give_back_handles(&mut self, loans: &[Loan]) -> Result<(), SourceError> {
        let is_serving = self.plans.current().is_some();
        self.plan_memories.unmap_over(loans, is_serving, &mut self.accounting)?;
        for size in [SizeClass::Small, SizeClass::Large] {
            let indices: Vec<_> = loans.iter().filter(|loan| loan.size == size).map(|loan| loan.holder.index).collect();
            self.heaps.of_mut(size).heap.give_back_handles(&indices, &mut self.accounting)?;
        }
        Ok(())
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
