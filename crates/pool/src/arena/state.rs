//! Everything of an arena that is behind its lock: the blocks, the heaps they lie in, and the streams that use them.

mod blocks;
mod freeing;
mod placement;
mod plan_layout;
mod plans;
mod quick_list;
mod stats;

use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::Served;
use lowtide_memory::{Error as SourceError, Source};

use super::accounting::Accounting;
use super::call_time::{CallTime, Reading};
use super::churn::Churn;
use super::plan_memory::PlanMemories;
use super::retiring::Retiring;
use super::sized_heaps::{SizeClass, SizedHeaps};
use super::streams::Queues;
use super::{ArenaOptions, UNIT};
use crate::error::Error;
use crate::pending::PendingBlocks;
use crate::pool::{Address, Request};
use crate::serving::{Observer, PlanArena, PlanServer, Published, ServingPolicy};
use blocks::{Block, Blocks, Home};
use freeing::live;
use quick_list::QuickList;

/// After how much of a program that closes no steps free memory is defragmented where that is due: so many blocks, and so much time.
const BLOCKS_BETWEEN_TIDIES: u64 = 1 << 13;
const TIME_BETWEEN_TIDIES: Duration = Duration::from_secs(1);

/// After so many blocks that were placed online in a step, calls are rationed anew, and what was recorded of it is forgotten.
const LONGEST_STEP: u64 = 1 << 16;

/// How many blocks that wait for other streams are asked about at every allocation.
const FEW: usize = 8;

/// No device has this much; below it no sum of two sizes overflows.
const EXBIBYTE: u64 = 1 << 60;

/// What the source can do.
#[derive(Clone, Copy, Debug)]
struct Abilities {
    /// Whether work is queued on streams.
    queues: bool,
    /// The most memory there can be.
    limit: u64,
    granularity: u64,
    /// Whether a handle can have several addresses.
    aliases: bool,
}

/// The state of an arena.
#[derive(Debug)]
pub(super) struct State {
    source: Arc<dyn Source>,
    abilities: Abilities,
    heaps: SizedHeaps,
    blocks: Blocks,
    /// Small ones that were freed last.
    cached: QuickList,
    pending: PendingBlocks,
    queues: Queues,
    accounting: Accounting,
    plans: PlanServer,
    plan_memories: PlanMemories,
    retiring: Retiring,
    /// How many handles of a plan are mapped at once.
    handles_at_once: NonZeroUsize,
    /// Whether a block of a plan that is no longer served was freed since the heaps had back what was lent to it.
    has_freed_planned: bool,
    /// How many blocks were placed online since a step was closed, and since free memory was looked at.
    since_step: u64,
    since_tidy: u64,
    churn: Churn,
    /// Whether steps were found by their period since then.
    has_found_steps: bool,
}

impl State {
    pub(super) fn new(source: Arc<dyn Source>, options: ArenaOptions, published: Published) -> Result<Self, Error> {
        let description = source.describe();
        let policy = ServingPolicy::DEVICE;
        let accounting = Accounting::new(&options, Reading::new(&*source));
        let observer = options.learner.map(|learner| Observer::new(learner, options.find_steps, &policy));
        let heaps = SizedHeaps::new(&source).map_err(Error::Source)?;
        let mut state = Self {
            abilities: Abilities {
                queues: description.queued,
                limit: description.capacity.map_or(EXBIBYTE, Bytes::get).min(EXBIBYTE),
                granularity: description.granularity.get(),
                aliases: description.aliases,
            },
            blocks: Blocks::new(&heaps),
            cached: QuickList::new(),
            heaps,
            source,
            pending: PendingBlocks::default(),
            queues: Queues::default(),
            accounting,
            plans: PlanServer::new(policy, observer, published),
            plan_memories: PlanMemories::default(),
            retiring: Retiring::default(),
            handles_at_once: options.handles_at_once,
            has_freed_planned: false,
            since_step: 0,
            since_tidy: 0,
            churn: Churn::default(),
            has_found_steps: false,
        };
        state.serve_remembered();
        Ok(state)
    }

    /// Serves a block from the plan where one is served, and online where not.
    pub(super) fn alloc(&mut self, request: &Request) -> Result<Address, Error> {
        if self.plans.ends_step(request) {
            self.has_found_steps = true;
            self.close_served_step();
        }
        let plannable = request.align.get() <= self.abilities.granularity;
        if let Some(address) = if plannable { self.take_planned(request) } else { None } {
            self.plans.observe_alloc(request, address.0);
            return Ok(address);
        }
        let address = self.place_online(request)?;
        if plannable && let Some(block) = self.blocks.get_mut(&address.0) {
            block.ticket = self.plans.note_alloc(request, address.0);
        }
        Ok(address)
    }

    /// Places a block in free memory, or in memory that is made for it.
    pub(super) fn place_online(&mut self, request: &Request) -> Result<Address, Error> {
        let (bytes, align) = (request.bytes.get(), request.align.get());
        let limit = self.abilities.limit;
        if bytes.max(align) > limit {
            return Err(Error::TooLarge { asked: Bytes::new(bytes.max(align)), capacity: Bytes::new(limit) });
        }
        self.since_step += 1;
        self.since_tidy += 1;
        if self.churn.is_due() {
            self.sample_blocks();
        }
        self.meet(request.stream);
        self.poll(FEW);
        let size = SizeClass::of(bytes, align);
        let taken = bytes.next_multiple_of(UNIT).max(size.smallest());
        if size == SizeClass::Small
            && let Some(address) = self.take_cached(taken, align, request)
        {
            return Ok(address);
        }
        let offset = self.place(size, taken, align, request)?;
        let sized = self.heaps.of_mut(size);
        sized.heap.take(offset, taken);
        let address = sized.heap.address(offset);
        self.accounting.take(bytes);
        let home = Home::Heap { size, lent: None };
        self.blocks.insert(address, Block::new(offset, bytes, home, request.stream));
        Ok(Address(address))
    }

    /// Notes that another stream uses a block.
    pub(super) fn record(&mut self, address: Address, stream: StreamId) -> Result<(), Error> {
        let queues = self.abilities.queues;
        if queues && self.planned_stream(address) != Some(stream) {
            self.adopt(address);
        } else if self.planned_stream(address).is_some() {
            return Ok(());
        }
        let block = live(&self.blocks, &self.plans, &self.heaps, address)?;
        if queues && block.stream != stream && !block.uses.contains(&stream) {
            self.meet(stream);
            if let Some(block) = self.blocks.get_mut(&address.0) {
                block.uses.push(stream);
            }
        }
        Ok(())
    }

    /// The time of the source.
    pub(super) fn now(&self) -> Duration {
        self.source.now()
    }

    /// The program closes a step.
    pub(super) fn step(&mut self) {
        self.plans.mark();
        self.accounting.budget_mut().mark();
        self.close_step();
    }

    /// Closes a step: a plan may come or go, and calls are rationed anew.
    fn close_step(&mut self) {
        self.since_step = 0;
        self.close_served_step();
        self.tidy();
        self.accounting.begin_cost();
    }

    /// A step may be so long that it is not one, and a program may turn out not to train.
    #[cold]
    fn sample_blocks(&mut self) {
        self.churn.sample(self.blocks.count());
        if !self.accounting.budget().is_marked() && self.churn.is_steady() {
            self.heaps.of_mut(SizeClass::Large).heap.keep_low();
        }
        if self.since_step >= LONGEST_STEP {
            self.close_long_step();
        } else if self.since_tidy >= BLOCKS_BETWEEN_TIDIES && self.is_time_to_tidy() {
            self.poll_all();
            self.tidy();
        }
    }

    /// Whether the program closes no steps and runs for long.
    fn is_time_to_tidy(&self) -> bool {
        let budget = self.accounting.budget();
        let time = budget.time().filter(|_| !budget.is_marked());
        time.is_some_and(|time| time.since_step(self.source.now()) >= TIME_BETWEEN_TIDIES)
    }

    /// Nobody has closed a step for long. What was asked of the source is counted as if one had been closed, also where steps are found by
    /// their period; where they are not, there is nothing to learn.
    fn close_long_step(&mut self) {
        self.since_step = 0;
        self.coalesce_all();
        if !mem::take(&mut self.has_found_steps) {
            self.stats();
            self.plans.forget_step();
            // Nobody has followed it for long.
            self.drop_plan();
            self.reclaim_idle();
        }
        self.tidy();
        self.accounting.begin_cost();
    }

    /// Closes a step of the plan that is served, if one is.
    fn close_served_step(&mut self) {
        self.coalesce_all();
        self.stats();
        self.close_plan_step();
        self.pending.reset_added();
        self.accounting.begin_cost();
    }

    /// Defragments free memory where that is due, and rations calls anew.
    fn tidy(&mut self) {
        self.since_tidy = 0;
        let before = self.accounting.budget().calls();
        // A source that fails here costs order, nothing else: what was not done is done at need.
        let has_plan = self.plans.current().is_some() || self.plan_memories.is_mapping();
        let large = &self.heaps.of(SizeClass::Large).heap;
        let is_due = !has_plan && self.accounting.is_defragmented(|| large.defragment_calls(&self.accounting));
        if is_due && self.queues.finish(&*self.source).is_ok() {
            self.poll_all();
            let unmapped = self.unmap_plans();
            self.accounting.budget_mut().spent_on_plan(before);
            if unmapped.is_ok() {
                let _ = self.heaps.of_mut(SizeClass::Large).heap.defragment(&mut self.accounting);
            }
        }
        let has_too_many_aliases =
            self.heaps.of(SizeClass::Large).heap.has_too_many_aliases() && self.accounting.left() > 0;
        if has_too_many_aliases && self.queues.finish(&*self.source).is_ok() {
            let _ = self.heaps.of_mut(SizeClass::Large).heap.close_old_aliases(&mut self.accounting);
        }
        self.accounting.budget_mut().spent_between_steps(before);
        self.accounting.close(Reading::new(&*self.source));
    }

    /// How many handles may be mapped for a plan when a step is closed.
    fn handles_for_a_plan(&self) -> usize {
        let in_time = self.accounting.budget().time().map_or(u64::MAX, CallTime::calls_for_a_plan);
        self.handles_at_once.get().min(usize::try_from(in_time).unwrap_or(usize::MAX)).max(1)
    }

    /// Gives back what can be given back.
    pub(super) fn trim(&mut self) -> Result<Bytes, Error> {
        self.wait_for_pending().map_err(Error::Source)?;
        let before = self.accounting.reserved();
        self.drop_plan();
        self.give_back().map_err(Error::Source)?;
        Ok(Bytes::new(before.saturating_sub(self.accounting.reserved())))
    }

    /// How plans did in all steps that were closed.
    pub(super) fn served(&self) -> Served {
        self.plans.closed()
    }

    /// What the learner has to say since the last call.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        self.plans.warnings()
    }

    /// Notes the use of a stream. What was freed before the second stream came belongs to the first.
    fn meet(&mut self, stream: StreamId) {
        if !self.abilities.queues || !self.queues.meet(stream) {
            return;
        }
        self.coalesce_all();
        for first in self.queues.streams().into_iter().filter(|&other| other != stream) {
            let position = self.queues.freed(first, &*self.source);
            self.heaps.belong_to(first, position);
            self.plan_memories.belong_to(first, position);
        }
    }

    /// Gives every handle back in which no block lies, once queued work is done.
    fn give_back(&mut self) -> Result<u64, SourceError> {
        self.coalesce_all();
        self.end_loans();
        self.recall();
        self.queues.finish(&*self.source)?;
        self.plan_memories.unmap(self.plans.current().is_some(), &mut self.accounting)?;
        self.heaps.give_back(&mut self.accounting)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Queued work may use what was freed; a source that fails here has none that could be waited for.
        let _ = self.queues.finish(&*self.source);
        self.retiring.take(&*self.source);
        self.queues.forget(&*self.source);
        self.pending.forget(&*self.source);
    }
}
