//! How a plan comes to be served and ceases to be: the part of an arena's state that raises and lowers the stage.
//!
//! When a plan is taken up, blocks of earlier steps are alive where they were placed online. The handles they lie in are
//! lent to the ground of the stage, and the plan is made anew around them: a block that the program frees and allocates
//! again at the same point of every step keeps its memory, and nothing has to be mapped later.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::{Advice, Served, StepPlan};
use lowtide_memory::Error as SourceError;

use super::ground::{Ground, Piece};
use super::stage::Found;
use super::state::{Block, Home, State};
use crate::pool::{Address, Request};

/// Plans of more slots are not served: every slot knows all that share its addresses.
const MOST_SLOTS: usize = 1 << 16;

/// How many allocations a step must miss before its plan can be called wrong.
const MISSES: u64 = 64;

/// How many steps a plan that could not be taken up is not tried again.
const REST: u64 = 32;

impl State {
    /// How plans did in all steps that were closed.
    pub(super) fn served(&self) -> Served {
        self.served
    }

    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.learning.as_mut().map(|learning| learning.learner.warnings()).unwrap_or_default()
    }

    /// A block from the plan, for a request that comes by the lock.
    pub(super) fn take_planned(&mut self, request: &Request) -> Option<Address> {
        let serving = self.serving.clone()?;
        let Found::At(offset) = serving.stage.take(request) else { return None };
        let address = serving.address(offset);
        if self.wait_on_ground(address, request).is_err() {
            serving.stage.give(offset);
            return None;
        }
        Some(address)
    }

    /// A block of the plan that is to be treated like any other becomes one.
    pub(super) fn adopt(&mut self, address: Address) {
        let Some(serving) = &self.serving else { return };
        let Some(offset) = serving.offset(address) else { return };
        if self.blocks.contains_key(&address.0) {
            return;
        }
        let Some(slot) = serving.stage.at(offset) else { return };
        let (bytes, stream) = (slot.bytes.get(), slot.lane.stream);
        serving.attend(true);
        self.books.take(bytes);
        let ground = serving.number();
        let block = Block { ground, ..Block::new(offset, bytes, Home::Ground, stream) };
        self.blocks.insert(address.0, block);
    }

    /// The stream of a block of the plan that is no block of the arena's own yet.
    pub(super) fn planned_stream(&self, address: Address) -> Option<StreamId> {
        let serving = self.serving.as_ref().filter(|_| !self.blocks.contains_key(&address.0))?;
        Some(serving.stage.at(serving.offset(address)?)?.lane.stream)
    }

    /// Makes the memory of a plan's block free, if its stage is still there.
    pub(super) fn release_planned(&mut self, address: u64, ground: u64) {
        if let Some(serving) = self.serving.as_ref().filter(|serving| serving.number() == ground)
            && let Some(offset) = serving.offset(Address(address))
        {
            serving.stage.give(offset);
            serving.attend(false);
        }
    }

    /// Lets a stream that takes a block of the plan wait for others that had its memory.
    fn wait_on_ground(&mut self, address: Address, request: &Request) -> Result<(), SourceError> {
        if !self.queues.several() {
            return Ok(());
        }
        let (start, end) = (address.0, address.0 + request.bytes.get());
        for (owner, position) in self.ground_freed.owners(start, end) {
            if self.queues.must_wait(request.stream, owner, position, &*self.source) {
                self.queues.hold(request.stream, owner, position, &*self.source)?;
            }
        }
        self.ground_freed.cut(start, end);
        Ok(())
    }

    /// A block of the stage on ground `number` was given back without the lock while the stage was closed.
    pub(super) fn forget(&mut self, address: Address, number: u64) {
        if self.blocks.get(&address.0).is_some_and(|block| block.home == Home::Ground && block.ground == number) {
            self.release(address.0);
        }
    }

    /// At the end of a step: hears what the learner advises and follows it.
    pub(super) fn turn_stage(&mut self) {
        let deferred = std::mem::take(&mut self.deferred);
        let mut served = std::mem::take(&mut self.served_before);
        if let Some(serving) = &self.serving {
            served += serving.stage.restart();
        }
        self.served += served;
        let before = self.serving.clone();
        let Some(learning) = &mut self.learning else { return };
        if let Some(origin) = self.origin.as_ref().filter(|_| served != Served::default()) {
            learning.judge(origin.signature, served);
        }
        let wanted = match learning.close(served) {
            Advice::Serve(plan) => Some(plan),
            Advice::Wait => learning.learner.likely_next(),
            Advice::Drop => {
                self.lower_stage();
                None
            }
        };
        if let Some(plan) = wanted.filter(|plan| self.is_worth_raising(plan, deferred)) {
            self.raise_stage(&plan);
        }
        self.clear_grounds();
        let Some(learning) = &mut self.learning else { return };
        if let Some(serving) = &self.serving {
            learning.attend(serving, before.as_ref(), served);
        }
    }

    /// Whether another plan than the one that is served is to be. What outlives its step is known after the second. Where
    /// many blocks wait for other streams the device decides when memory is free, and no plan of the program's order holds.
    fn is_worth_raising(&self, plan: &Arc<StepPlan>, deferred: u64) -> bool {
        if 100 * deferred > plan.slots.len() as u64 {
            return false;
        }
        let is_other = self.origin.as_ref().is_none_or(|origin| !Arc::ptr_eq(origin, plan));
        let recurs = self.learning.as_ref().is_some_and(|learning| learning.recurs(plan));
        recurs && self.books.closed_steps() > 0 && (self.serving.is_none() || is_other)
    }

    /// Serves a plan from the start where an earlier run has left one.
    pub(super) fn begin(&mut self) {
        let remembered = self.learning.as_ref().and_then(|learning| learning.learner.likely_next());
        if let Some(plan) = remembered {
            self.raise_stage(&plan);
            if let (Some(serving), Some(learning)) = (&self.serving, &self.learning) {
                serving.watch(learning.attends());
            }
        }
    }

    /// Gives the stage up where the step does not follow its plan, so that its memory serves what comes instead.
    pub(super) fn yield_stage(&mut self) {
        let astray = self.serving.as_ref().is_some_and(|serving| {
            let served = serving.stage.served();
            served.misses > MISSES && served.misses > served.hits
        });
        if astray {
            self.lower_stage();
            let _ = self.give_back();
        }
    }

    /// Serves `plan` from now on. Where memory or the source do not allow it, blocks go on being placed online.
    fn raise_stage(&mut self, plan: &Arc<StepPlan>) {
        if plan.slots.len() > MOST_SLOTS || plan.height == Bytes::ZERO {
            return;
        }
        let now = self.books.closed_steps();
        if self.refused.is_some_and(|(signature, until)| signature == plan.signature && now < until) {
            return;
        }
        for lane in plan.lanes() {
            self.meet(lane.stream);
        }
        self.lower_stage();
        if self.queues.finish(&*self.source).is_err() {
            return;
        }
        self.poll();
        if self.give_back().is_err() {
            return;
        }
        let Ok(serving) = self.build(plan) else {
            self.refused = Some((plan.signature, now + REST));
            // What the source does not take now is given up at a later step.
            let _ = self.dismantle();
            return;
        };
        let serving = Arc::new(serving);
        self.origin = Some(Arc::clone(plan));
        self.books.staged = serving.stage.plan().height.get();
        self.published.store(Some(Arc::clone(&serving)));
        self.serving = Some(serving);
    }

    /// Serves no plan any more. What the stage had in use stays where it is, and all else it had is given back.
    pub(super) fn lower_stage(&mut self) {
        let Some(serving) = self.serving.take() else { return };
        self.books.staged = 0;
        serving.stage.close();
        self.published.store(None);
        self.served_before += serving.stage.served();
        for slot in serving.stage.in_use() {
            let Some(offset) = slot.offset.map(Bytes::get) else { continue };
            let address = serving.address(offset).0;
            if !self.blocks.contains_key(&address) {
                let bytes = slot.bytes.get();
                self.books.take(bytes);
                let block = Block::new(offset, bytes, Home::Ground, slot.lane.stream);
                self.blocks.insert(address, Block { ground: serving.number(), ..block });
            }
        }
        for block in self.blocks.values_mut() {
            block.under = None;
        }
        // What the source does not take now is given up at a later step.
        let _ = self.dismantle();
    }

    /// The ranges of a ground on which blocks lie that are the arena's own.
    fn used_on(&self, ground: &Ground) -> Vec<(u64, u64)> {
        let blocks = self.blocks.values();
        let own = blocks.filter(|block| block.home == Home::Ground && block.ground == ground.number());
        own.map(|block| (block.offset, block.offset + block.size)).collect()
    }

    /// Gives up what is not in use of the memory under stages that are not served.
    pub(super) fn dismantle(&mut self) -> Result<(), SourceError> {
        if self.grounds.is_empty() {
            return Ok(());
        }
        self.queues.finish(&*self.source)?;
        let mut outcome = Ok(());
        let kept = usize::from(self.serving.is_some());
        let mut returned: Vec<Piece> = Vec::new();
        let idle = self.grounds.len() - kept;
        let used: Vec<Vec<(u64, u64)>> = self.grounds[..idle].iter().map(|ground| self.used_on(ground)).collect();
        for (ground, used) in self.grounds[..idle].iter_mut().zip(used) {
            let (pieces, result) = ground.dismantle(&used, &mut self.books);
            returned.extend(pieces);
            outcome = outcome.and(result);
        }
        let serving = self.serving.is_some();
        let last = self.grounds.len();
        let mut number = 0;
        self.grounds.retain(|ground| {
            number += 1;
            !ground.is_empty() || (serving && number == last)
        });
        for Piece { lender, .. } in returned {
            let Some((large, holder)) = lender else { continue };
            let home = if large { Home::Large } else { Home::Small };
            let blocks = self.blocks_in(home, &holder);
            self.zone(home).heap.take_back(&holder, &blocks);
        }
        outcome
    }

    /// Gives up the memory under earlier stages on which no block lies any more.
    fn clear_grounds(&mut self) {
        let earlier = self.grounds.len() - usize::from(self.serving.is_some()).min(self.grounds.len());
        let idle = |ground: &Ground| ground.has_idle(&self.used_on(ground));
        if self.grounds[..earlier].iter().any(idle) {
            let _ = self.dismantle();
        }
    }
}
