//! Everything of a host arena that is behind its lock: the blocks, the free runs between them, and the pages under both.

mod plans;
mod resizing;

use std::ops::Range;
use std::time::Duration;

use lowtide_core::Bytes;
use lowtide_core::ranges::FreeRuns;
use lowtide_memory::{Error as MemoryError, Span};
use rustc_hash::FxHashMap;

use super::clock::Clock;
use super::pages::{HUGE, HostPages, Need};
use super::plan_range::PlanRange;
use super::step_boundary::StepBoundary;
use super::{HostArenaOptions, HostStats};
use crate::error::Error;
use crate::pool::{Address, Request, UNIT};
use crate::serving::{Found, Observer, PlanArena, PlanServer, Published, ServingPolicy};

/// How many runs are tried for one that a block fits into by its alignment.
const TRIES: usize = 16;

/// Of the memory that blocks leave to others, this part is kept for blocks to come; the rest of what is free the system may take.
const KEPT: u64 = 4;

/// How many different warnings are kept.
const MOST_WARNINGS: usize = 16;

/// A block that no plan serves.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// What it takes.
    size: u64,
    /// What was asked for.
    bytes: u64,
    /// The number of the plan that it was of when that was dropped.
    plan: Option<u64>,
    /// Whether a plan has a place for the next like it, so that nothing will come where it is.
    retires: bool,
}

impl Block {
    fn new(bytes: u64) -> Self {
        Self { size: bytes.next_multiple_of(UNIT), bytes, plan: None, retires: false }
    }
}

/// A block that was taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) address: u64,
    /// The parts of it that hold something, where zeros were asked for.
    pub(super) dirty: Vec<Range<u64>>,
}

/// What blocks hold that no plan serves.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    live: u64,
    peak_live: u64,
    allocations: u64,
}

impl Counts {
    fn take(&mut self, bytes: u64) {
        self.live += bytes;
        self.see(0);
    }

    fn give(&mut self, bytes: u64) {
        self.live -= bytes;
    }

    /// Blocks of the plan hold `planned` bytes beside the others.
    fn see(&mut self, planned: u64) {
        self.peak_live = self.peak_live.max(self.live + planned);
    }
}

/// The state of a host arena.
#[derive(Debug)]
pub(super) struct State {
    options: HostArenaOptions,
    pages: HostPages,
    free: FreeRuns,
    blocks: FxHashMap<u64, Block>,
    counts: Counts,
    plans: PlanServer,
    plan_range: PlanRange,
    /// The step in which a plan was served first.
    planned_from: Option<u64>,
    /// Whether the program closes its steps itself.
    marked: bool,
    boundary: StepBoundary,
    clock: Clock,
    /// What the arena could have in all, as far as is known.
    most: Option<u64>,
    warnings: Vec<String>,
}

impl State {
    pub(super) fn new(options: HostArenaOptions, published: Published) -> Result<Self, MemoryError> {
        Ok(Self {
            pages: HostPages::new(options.range, &options.pages)?,
            free: FreeRuns::default(),
            blocks: FxHashMap::default(),
            counts: Counts::default(),
            plans: PlanServer::new(ServingPolicy::HOST, observer(&options), published),
            plan_range: PlanRange::default(),
            planned_from: None,
            marked: false,
            boundary: StepBoundary::default(),
            clock: Clock::default(),
            most: None,
            warnings: Vec::new(),
            options,
        })
    }

    /// All addresses.
    pub(super) fn span(&self) -> Span {
        self.pages.span()
    }

    /// A block from the plan where one is served, and from free memory where not.
    pub(super) fn alloc(&mut self, request: &Request, zeroed: bool) -> Option<Taken> {
        if self.plans.learns() {
            let begins = self.plans.ends_step(request);
            let live = self.plans.current().is_none().then_some(self.counts.live);
            if self.boundary.passes(begins, live) {
                self.close_step();
            }
        }
        let plannable = request.align.get() <= HUGE;
        let planned = self.plans.current().filter(|_| plannable).and_then(|served| {
            let Found::At(offset) = served.slots.take(request) else { return None };
            Some(served.address(offset).0)
        });
        let taken = if let Some(address) = planned {
            self.counts.allocations += 1;
            let whole = zeroed.then(|| address..address + request.bytes.get());
            Taken { address, dirty: whole.into_iter().collect() }
        } else {
            self.place(request, zeroed)?
        };
        if plannable {
            self.plans.observe_alloc(request, taken.address);
        }
        Some(taken)
    }

    /// A block from free memory, or from memory that is opened for it.
    pub(super) fn place(&mut self, request: &Request, zeroed: bool) -> Option<Taken> {
        let (block, align) = (Block::new(request.bytes.get()), request.align.get());
        let mut found = self.find(block.size, align);
        if found.is_none() && self.yield_plan() {
            found = self.find(block.size, align);
        }
        let address = match found {
            Some(address) => address,
            None => self.pages.open_for(block.size, align, &mut self.free)?,
        };
        let dirty = if zeroed { self.pages.dirty(address..address + block.bytes) } else { Vec::new() };
        self.hold(address, block);
        Some(Taken { address, dirty })
    }

    /// A block at free addresses is in use from now on.
    fn hold(&mut self, address: u64, block: Block) {
        self.free.remove(address..address + block.size);
        self.pages.touch(address..address + block.size);
        self.blocks.insert(address, block);
        self.counts.allocations += 1;
        self.counts.take(block.bytes);
        self.purge_excess();
    }

    /// Gives free memory back where more is resident than was ever needed.
    fn purge_excess(&mut self) {
        let Counts { live, peak_live, .. } = self.counts;
        let need = Need { peak: peak_live, now: live + self.plan_range.bytes(), steps: self.plans.steps() };
        self.pages.purge_excess(&self.free, need);
    }

    /// Free addresses for a block: in the shortest run that is long enough.
    fn find(&self, size: u64, align: u64) -> Option<u64> {
        let fits = |run: Range<u64>| {
            let at = run.start.next_multiple_of(align);
            (at + size <= run.end).then_some(at)
        };
        let near = self.free.tightest(size).take(TRIES).find_map(fits);
        near.or_else(|| self.free.tightest(size + align).find_map(fits))
    }

    /// Gives all addresses back that are not open.
    pub(super) fn shrink_range(&mut self, announce: impl FnOnce(Range<u64>)) {
        self.pages.shrink(announce);
    }

    /// Gives all addresses back that no block lies on.
    pub(super) fn close(&mut self, announce: impl FnOnce(Range<u64>)) {
        self.drop_plan();
        self.pages.close(&mut self.free, announce);
    }

    /// Takes a block back.
    pub(super) fn free(&mut self, address: Address) -> Result<(), Error> {
        if self.blocks.contains_key(&address.0) {
            self.release(address.0);
            return Ok(());
        }
        let offset = self.plans.current().and_then(|served| Some((served, served.offset(address)?)));
        if offset.is_some_and(|(served, offset)| served.slots.give(offset)) {
            self.plans.observe_free(address.0);
            return Ok(());
        }
        let is_within = |(&start, block): (&u64, &Block)| start < address.0 && address.0 < start + block.size;
        Err(if self.blocks.iter().any(is_within) || address.0 >= self.pages.opened() {
            Error::ForeignAddress { address }
        } else {
            Error::DoubleFree { address }
        })
    }

    /// A block of the plan of a number was given back without the lock while the plan was dropped.
    pub(super) fn free_dropped(&mut self, address: Address, number: u64) {
        if self.blocks.get(&address.0).is_some_and(|block| block.plan == Some(number)) {
            self.release(address.0);
        }
    }

    fn release(&mut self, address: u64) {
        let Some(block) = self.blocks.remove(&address) else { return };
        self.counts.give(block.bytes);
        self.plans.observe_free(address);
        self.vacate(address..address + block.size);
        if block.retires && self.plans.current().is_some() && !self.plan_range.contains(address) {
            self.pages.purge_range(address..address + block.size, u32::MAX);
        }
    }

    /// Memory of a block is free, unless it is the plan's.
    fn vacate(&mut self, range: Range<u64>) {
        self.pages.stamp(range.clone(), self.clock.now());
        let bytes = range.end - range.start;
        if self.options.decay.is_zero() && !self.plan_range.contains(range.start) {
            self.pages.purge_freed(range.clone());
        }
        match self.plan_range.offset(range.start).zip(self.plans.current()) {
            Some((offset, served)) => served.slots.block(offset, offset + bytes, false),
            None => self.free.insert(range.clone()),
        }
        if self.keeps_much() {
            self.pages.offer(&self.free, range);
        }
    }

    /// The system would give `room` bytes more.
    pub(super) fn set_room(&mut self, room: Option<Bytes>) {
        self.most = room.map(|room| room.get() + self.pages.resident());
    }

    /// Whether more is kept for blocks to come than a part of what else there is.
    fn keeps_much(&self) -> bool {
        let Some(most) = self.most else { return false };
        let Counts { live, .. } = self.counts;
        self.pages.resident().saturating_sub(live) > most.saturating_sub(live) / KEPT
    }

    /// How many bytes of a block can be used.
    pub(super) fn usable(&self, address: Address) -> Option<u64> {
        if let Some(block) = self.blocks.get(&address.0) {
            return Some(block.size);
        }
        let served = self.plans.current()?;
        served.slots.at(served.offset(address)?).map(|slot| slot.bytes.get())
    }

    /// Gives all memory back that no block holds.
    pub(super) fn trim(&mut self) -> Bytes {
        self.drop_plan();
        Bytes::new(self.pages.trim(&self.free))
    }

    /// Time goes on: a plan that nothing uses is dropped, and memory that nothing has used for long goes back.
    pub(super) fn tick(&mut self, now: Duration) {
        self.clock.set(now);
        self.drop_idle_plan();
        if let Some(since) = self.clock.purge_before(self.options.decay) {
            self.pages.purge_idle(&self.free, since);
        }
    }

    /// Serves no plan until [`resume`](Self::resume), so that nothing changes without the lock.
    pub(super) fn pause(&self) {
        self.plans.pause();
    }

    /// Serves again.
    pub(super) fn resume(&self) {
        self.plans.resume();
    }

    /// What it holds and has done.
    pub(super) fn stats(&mut self) -> HostStats {
        let planned = self.plans.bytes_in_use();
        self.counts.see(planned);
        for warning in self.plans.warnings() {
            if self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        let mut warnings = self.pages.fallbacks();
        warnings.extend(self.warnings.iter().cloned());
        let served = self.plans.so_far();
        HostStats {
            live: Bytes::new(self.counts.live + planned),
            blocks: (self.blocks.len() + self.plans.current().map_or(0, |served| served.slots.in_use().count())) as u64,
            peak_live: Bytes::new(self.counts.peak_live),
            resident: Bytes::new(self.pages.resident()),
            allocations: self.counts.allocations,
            hits: served.hits,
            misses: served.misses,
            steps: self.plans.steps(),
            marked: self.marked,
            planned_from: self.planned_from,
            warnings,
        }
    }

    /// Learns no more, and serves no plan.
    #[cfg(test)]
    pub(super) fn stop_learning(&mut self) {
        self.plans.stop_learning();
        self.drop_plan();
    }
}

/// A learner that has seen nothing, where the options ask for one.
fn observer(options: &HostArenaOptions) -> Option<Observer> {
    let learner = options.learner.clone()?;
    Some(Observer::new(learner, options.find_steps, &ServingPolicy::HOST))
}
