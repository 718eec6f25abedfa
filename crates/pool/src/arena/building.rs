//! Lays the ground for a plan: handles that the heaps lend, the plan made anew around the blocks on them, and new memory
//! behind.

use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_learn::{Carried, StepPlan};
use lowtide_memory::Error as SourceError;
use rustc_hash::FxHashMap;

use super::ground::Ground;
use super::heap::Holder;
use super::serving::Serving;
use super::stage::Stage;
use super::state::{Home, State};

/// A grain of new memory under a stage. It moves no more, so that it is as large as is handy.
const GRAIN: u64 = 64 << 20;

impl State {
    /// Lays the ground for `plan` and makes its stage.
    pub(super) fn build(&mut self, plan: &Arc<StepPlan>) -> Result<Serving, SourceError> {
        let instances = self.learning.as_ref().map(|learning| learning.instances(plan)).unwrap_or_default();
        let addresses = 2 * (self.books.reserved + plan.height.get()).next_multiple_of(self.granularity);
        self.grounds_laid += 1;
        let number = self.grounds_laid;
        let mut ground = Ground::new(Arc::clone(&self.source), addresses, number)?;
        let lent = if self.aliases { self.lend(&mut ground, plan, &instances) } else { Ok(Vec::new()) };
        self.grounds.push(ground);
        let under = lent?;
        let carried: Vec<Carried> = under
            .iter()
            .map(|&(address, start, end)| Carried {
                slot: instances.get(&address).copied(),
                offset: Bytes::new(start),
                bytes: Bytes::new(end - start),
            })
            .collect();
        let plan = self.plan_around(plan, &carried)?;
        // Where nothing can be lent, what is alive and what is planned lie side by side.
        if !self.aliases && self.books.reserved + plan.height.get() > self.books.peak_reserved {
            return Err(SourceError::OutOfMemory { asked: plan.height });
        }
        let height = plan.height.get().next_multiple_of(self.granularity);
        let grain = GRAIN.max(self.granularity);
        let Some(ground) = self.grounds.last_mut() else { return Err(SourceError::OutOfMemory { asked: plan.height }) };
        ground.extend(height, grain, &mut self.books)?;
        let stage = Stage::new(plan);
        for &(address, start, end) in &under {
            stage.block(start, end, true);
            if let Some(block) = self.blocks.get_mut(&address) {
                block.under = Some((start, end));
            }
        }
        Ok(Serving::new(stage, ground.base(), ground.end(), number))
    }

    fn plan_around(&self, plan: &StepPlan, carried: &[Carried]) -> Result<Arc<StepPlan>, SourceError> {
        let around = self.learning.as_ref().and_then(|learning| learning.learner.plan_around(plan, carried));
        around.map(Arc::new).ok_or(SourceError::OutOfMemory { asked: plan.height })
    }

    /// Lends the ground the handles that a plan can make use of, and says on which ranges of it which blocks lie.
    fn lend(
        &mut self,
        ground: &mut Ground,
        plan: &StepPlan,
        instances: &FxHashMap<u64, u32>,
    ) -> Result<Vec<(u64, u64, u64)>, SourceError> {
        let mut under = Vec::new();
        let mut groups = self.groups(plan, instances, Home::Small);
        groups.extend(self.groups(plan, instances, Home::Large));
        // What comes and goes lies next to the new memory, so that both are one run while it is gone.
        groups.sort_by_key(|group| group.comes_and_goes);
        for group in groups {
            for holder in group.holders {
                let large = group.home == Home::Large;
                let zone = self.zone(group.home);
                let address = zone.heap.address(holder.place);
                zone.heap.lend(&holder);
                let at = match ground.borrow(address, large, holder, &mut self.books) {
                    Ok(at) => at,
                    Err(error) => {
                        let blocks = self.blocks_in(group.home, &holder);
                        self.zone(group.home).heap.take_back(&holder, &blocks);
                        return Err(error);
                    }
                };
                under.extend(group.blocks.iter().filter(|block| holder_of(&holder, block.1)).map(
                    |&(address, offset, size)| {
                        let start = at + offset - holder.place;
                        (address, start, start + size)
                    },
                ));
            }
        }
        Ok(under)
    }

    /// The handles of a heap that are worth lending, in groups that must stay side by side.
    fn groups(&self, plan: &StepPlan, instances: &FxHashMap<u64, u32>, home: Home) -> Vec<Group> {
        let zone = if home == Home::Small { &self.small } else { &self.large };
        let mut blocks: Vec<(u64, u64, u64)> = (self.blocks.iter())
            .filter(|(_, block)| block.home == home)
            .map(|(&address, block)| (address, block.offset, block.size))
            .collect();
        blocks.sort_unstable_by_key(|block| block.1);
        let goes = |address: &u64| instances.get(address).is_some_and(|&slot| plan.is_renewed(slot));
        let mut groups: Vec<Group> = Vec::new();
        for holder in zone.heap.holders() {
            let (start, end) = (holder.place, holder.place + holder.bytes);
            let first = blocks.partition_point(|&(_, offset, size)| offset + size <= start);
            let inside: Vec<_> = blocks[first..].iter().take_while(|block| block.1 < end).copied().collect();
            let crosses = inside.first().is_some_and(|block| block.1 < start);
            let follows = groups.last().is_some_and(|group| group.end() == start);
            if !crosses || !follows {
                groups.push(Group {
                    home,
                    holders: Vec::new(),
                    blocks: Vec::new(),
                    comes_and_goes: false,
                    worth: false,
                });
            }
            let Some(group) = groups.last_mut() else { continue };
            let going = inside.iter().any(|block| goes(&block.0));
            group.comes_and_goes |= going;
            group.worth |= going || holder.free > 0;
            group.holders.push(holder);
            group.blocks.extend(inside.iter().filter(|block| !crosses || !follows || block.1 >= start));
        }
        groups.retain(|group| group.worth && group.is_whole());
        groups
    }

    pub(super) fn blocks_in(&self, home: Home, holder: &Holder) -> Vec<(u64, u64)> {
        let (start, end) = (holder.place, holder.place + holder.bytes);
        let mut blocks: Vec<(u64, u64)> = (self.blocks.values())
            .filter(|block| block.home == home && block.offset < end && start < block.offset + block.size)
            .map(|block| (block.offset, block.size))
            .collect();
        blocks.sort_unstable();
        blocks
    }
}

fn holder_of(holder: &Holder, offset: u64) -> bool {
    (holder.place..holder.place + holder.bytes).contains(&offset)
}

impl Group {
    fn end(&self) -> u64 {
        self.holders.last().map_or(0, |holder| holder.place + holder.bytes)
    }

    /// Whether no block in it reaches out of it.
    fn is_whole(&self) -> bool {
        let start = self.holders.first().map_or(0, |holder| holder.place);
        self.blocks.iter().all(|&(_, offset, size)| offset >= start && offset + size <= self.end())
    }
}

/// Handles that blocks hold together.
#[derive(Debug)]
struct Group {
    home: Home,
    holders: Vec<Holder>,
    /// Address, offset and size of the blocks that begin in them.
    blocks: Vec<(u64, u64, u64)>,
    /// Whether a block in it is one that the plan frees and allocates again.
    comes_and_goes: bool,
    /// Whether a plan could use anything of it.
    worth: bool,
}
