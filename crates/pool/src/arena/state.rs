//! Everything of an arena that is behind its lock: two heaps, the blocks in them, and the streams that use them.

use std::collections::VecDeque;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use lowtide_core::{Bytes, StreamId};
use lowtide_learn::{Served, Signature, StepPlan};
use lowtide_memory::{Error as SourceError, Mark, Source};
use rustc_hash::FxHashMap;

use super::books::Books;
use super::ground::Ground;
use super::heap::{Fit, Heap};
use super::learning::Learning;
use super::serving::Serving;
use super::streams::{Freed, Queues};
use super::{ArenaOptions, UNIT};
use crate::error::Error;
use crate::pool::{Address, Request};

/// Blocks from this size on have a heap of their own, so that small ones do not lie between them.
const LARGE: u64 = 1 << 20;

/// After so many allocations without a step the arena closes one itself.
const LONGEST_STEP: u64 = 1 << 16;

/// How many steps are remembered to see whether one recurs.
const REMEMBERED: usize = 4;

/// How many blocks that wait for other streams are asked about at every allocation.
const FEW: usize = 8;

/// No device has this much; below it no sum of two sizes overflows.
const EXBIBYTE: u64 = 1 << 60;

#[derive(Debug)]
pub(super) struct Zone {
    pub(super) heap: Heap,
    pub(super) freed: Freed,
}

/// Where a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    Small,
    Large,
    /// Where a stage is, or was.
    Ground,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) offset: u64,
    /// What it takes.
    pub(super) size: u64,
    /// What was asked for.
    pub(super) bytes: u64,
    pub(super) home: Home,
    pub(super) stream: StreamId,
    /// Other streams that use it.
    pub(super) uses: Vec<StreamId>,
    /// Whether it was freed and waits for the work of those streams.
    pub(super) pending: bool,
    /// The number of the ground it lies on, where it does.
    pub(super) ground: u64,
    /// The range of the stage that it lies on, where its handle is lent.
    pub(super) under: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) source: Arc<dyn Source>,
    queued: bool,
    pub(super) limit: u64,
    pub(super) granularity: u64,
    pub(super) small: Zone,
    pub(super) large: Zone,
    pub(super) blocks: FxHashMap<u64, Block>,
    /// Freed blocks that other streams still use, each with its marks.
    pub(super) pending: VecDeque<(u64, Vec<Mark>)>,
    pub(super) queues: Queues,
    pub(super) books: Books,
    since_step: u64,
    /// How many blocks of the step had to wait for other streams when they were freed.
    pub(super) deferred: u64,
    pub(super) learning: Option<Learning>,
    /// What all threads see of the stage.
    pub(super) published: Arc<ArcSwapOption<Serving>>,
    pub(super) serving: Option<Arc<Serving>>,
    /// The memory under the stage, last, and under earlier ones on which blocks still lie.
    pub(super) grounds: Vec<Ground>,
    pub(super) served: Served,
    /// How a plan did in the step that is open before it was given up.
    pub(super) served_before: Served,
    /// The plan that is served as the learner gave it.
    pub(super) origin: Option<Arc<StepPlan>>,
    /// Who freed which addresses of stages.
    pub(super) ground_freed: Freed,
    /// How many grounds were laid.
    pub(super) grounds_laid: u64,
    /// The most that was seen in use.
    pub(super) peak_seen: Bytes,
    /// A plan that could not be taken up, and up to which step it is not tried again.
    pub(super) refused: Option<(Signature, u64)>,
    pub(super) aliases: bool,
}

impl State {
    pub(super) fn new(
        source: Arc<dyn Source>,
        options: ArenaOptions,
        published: Arc<ArcSwapOption<Serving>>,
    ) -> Result<Self, Error> {
        let description = source.describe();
        let zone = |fit| -> Result<Zone, Error> {
            let heap = Heap::new(Arc::clone(&source), fit).map_err(Error::Source)?;
            Ok(Zone { heap, freed: Freed::default() })
        };
        let mut state = Self {
            queued: description.queued,
            limit: description.capacity.map_or(EXBIBYTE, Bytes::get).min(EXBIBYTE),
            small: zone(Fit::Tightest)?,
            large: zone(Fit::Tightest)?,
            source,
            blocks: FxHashMap::default(),
            pending: VecDeque::new(),
            queues: Queues::default(),
            books: Books::new(&options),
            since_step: 0,
            deferred: 0,
            granularity: description.granularity.get(),
            learning: options.learner.map(|learner| Learning::new(learner, options.find_steps, REMEMBERED)),
            published,
            serving: None,
            grounds: Vec::new(),
            served: Served::default(),
            served_before: Served::default(),
            origin: None,
            ground_freed: Freed::default(),
            grounds_laid: 0,
            peak_seen: Bytes::ZERO,
            refused: None,
            aliases: description.aliases,
        };
        state.begin();
        Ok(state)
    }

    /// Serves a block from the plan where one is served, and online where not.
    pub(super) fn alloc(&mut self, request: &Request) -> Result<Address, Error> {
        if self.learning.as_mut().is_some_and(|learning| learning.ends_step(request)) {
            self.close_step();
        }
        let plannable = request.align.get() <= self.granularity;
        let planned = if plannable { self.take_planned(request) } else { None };
        let address = match planned {
            Some(address) => address,
            None => self.place_online(request)?,
        };
        if let Some(learning) = self.learning.as_mut().filter(|_| plannable) {
            learning.alloc(request, address.0);
        }
        Ok(address)
    }

    /// Places a block in free memory, or in memory that is made for it.
    pub(super) fn place_online(&mut self, request: &Request) -> Result<Address, Error> {
        let (bytes, align) = (request.bytes.get(), request.align.get());
        if bytes.max(align) > self.limit {
            return Err(Error::TooLarge { asked: Bytes::new(bytes.max(align)), capacity: Bytes::new(self.limit) });
        }
        self.since_step += 1;
        if self.since_step > LONGEST_STEP {
            self.close_step();
        }
        self.meet(request.stream);
        self.poll_some(FEW);
        let size = bytes.next_multiple_of(UNIT);
        let home = if size >= LARGE || align > LARGE { Home::Large } else { Home::Small };
        let offset = self.place(home, size, align, request)?;
        let zone = self.zone(home);
        zone.heap.take(offset, size);
        let address = zone.heap.address(offset);
        self.books.take(bytes);
        self.blocks.insert(address, Block::new(offset, bytes, home, request.stream));
        Ok(Address(address))
    }

    /// Takes a block back, now or when the streams that use it are done.
    pub(super) fn free(&mut self, address: Address) -> Result<(), Error> {
        self.adopt(address);
        let block = self.live(address)?;
        let mut marks = Vec::with_capacity(block.uses.len());
        for &stream in &block.uses {
            match self.source.mark(stream) {
                Ok(mark) => marks.push(mark),
                Err(error) => {
                    for mark in marks {
                        self.source.forget(mark);
                    }
                    return Err(Error::Source(error));
                }
            }
        }
        if marks.is_empty() {
            self.release(address.0);
        } else {
            if let Some(block) = self.blocks.get_mut(&address.0) {
                block.pending = true;
            }
            self.pending.push_back((address.0, marks));
            self.deferred += 1;
        }
        Ok(())
    }

    /// Notes that another stream uses a block.
    pub(super) fn record(&mut self, address: Address, stream: StreamId) -> Result<(), Error> {
        if self.queued && self.planned_stream(address) != Some(stream) {
            self.adopt(address);
        } else if self.planned_stream(address).is_some() {
            return Ok(());
        }
        let block = self.live(address)?;
        if self.queued && block.stream != stream && !block.uses.contains(&stream) {
            self.meet(stream);
            if let Some(block) = self.blocks.get_mut(&address.0) {
                block.uses.push(stream);
            }
        }
        Ok(())
    }

    /// The program closes a step.
    pub(super) fn step(&mut self) {
        if let Some(learning) = &mut self.learning {
            learning.mark();
        }
        self.close_step();
    }

    /// Closes a step: calls are rationed by it, a plan may come or go, and as long as calls are not rationed the free
    /// memory is made one run.
    fn close_step(&mut self) {
        self.since_step = 0;
        self.stats();
        self.turn_stage();
        // A source that fails here costs order, nothing else: what was not done is done at need.
        if self.books.warming_up() && self.serving.is_none() && self.queues.finish(&*self.source).is_ok() {
            self.poll();
            let _ = self.large.heap.settle(&mut self.books);
        }
        if self.large.heap.has_too_many_windows() && self.queues.finish(&*self.source).is_ok() {
            let _ = self.large.heap.close_old_windows(&mut self.books);
        }
        self.books.close();
    }

    /// Gives back what can be given back.
    pub(super) fn trim(&mut self) -> Result<Bytes, Error> {
        self.wait_for_pending().map_err(Error::Source)?;
        let before = self.books.reserved;
        self.lower_stage();
        self.dismantle().map_err(Error::Source)?;
        self.give_back().map_err(Error::Source)?;
        Ok(Bytes::new(before.saturating_sub(self.books.reserved)))
    }

    pub(super) fn zone(&mut self, home: Home) -> &mut Zone {
        if home == Home::Small { &mut self.small } else { &mut self.large }
    }

    /// The block at an address that was handed out and not freed.
    fn live(&self, address: Address) -> Result<&Block, Error> {
        match self.blocks.get(&address.0) {
            Some(block) if !block.pending => Ok(block),
            Some(_) => Err(Error::DoubleFree { address }),
            None => {
                let planned = self.serving.as_ref().and_then(|serving| serving.offset(address).zip(Some(serving)));
                let planned = planned.is_some_and(|(offset, serving)| serving.stage.knows(offset));
                let freed = planned
                    || [&self.small, &self.large].into_iter().any(|zone| {
                        let offset = zone.heap.offset(address.0);
                        offset.is_some_and(|offset| offset.is_multiple_of(UNIT) && zone.heap.was_used(offset))
                    });
                Err(if freed { Error::DoubleFree { address } } else { Error::ForeignAddress { address } })
            }
        }
    }

    /// Notes the use of a stream. What was freed before the second stream came belongs to the first.
    pub(super) fn meet(&mut self, stream: StreamId) {
        if !self.queued || !self.queues.meet(stream) {
            return;
        }
        for first in self.queues.streams().into_iter().filter(|&other| other != stream) {
            let position = self.queues.freed(first, &*self.source);
            for zone in [&mut self.small, &mut self.large] {
                zone.freed.insert(0, zone.heap.addresses(), first, position);
            }
            for ground in &self.grounds {
                self.ground_freed.insert(ground.base(), ground.base() + ground.end(), first, position);
            }
        }
    }

    /// Takes back the blocks whose other streams are done.
    pub(super) fn poll(&mut self) {
        self.poll_some(usize::MAX);
    }

    /// Takes back blocks among the `most` that have waited longest.
    fn poll_some(&mut self, most: usize) {
        let mut index = 0;
        while index < self.pending.len().min(most) {
            let (_, marks) = &mut self.pending[index];
            while let Some(&mark) = marks.last() {
                if !self.source.passed(mark) {
                    break;
                }
                self.source.forget(mark);
                marks.pop();
            }
            if marks.is_empty() {
                if let Some((address, _)) = self.pending.remove(index) {
                    self.release(address);
                }
            } else {
                index += 1;
            }
        }
    }

    /// Waits for the streams that use freed blocks. Blocks whose work never ends in a recording stay; those that could not
    /// be waited for stay too, and that is an error.
    pub(super) fn wait_for_pending(&mut self) -> Result<(), SourceError> {
        let marks: Vec<Mark> = self.pending.iter().flat_map(|(_, marks)| marks.iter().copied()).collect();
        let mut outcome = Ok(());
        for mark in marks {
            if let Err(error) = self.source.wait(mark) {
                outcome = Err(error);
            }
        }
        self.poll();
        if self.pending.is_empty() { Ok(()) } else { outcome }
    }

    /// Makes a block's memory free.
    pub(super) fn release(&mut self, address: u64) {
        let Some(block) = self.blocks.remove(&address) else { return };
        self.books.give(block.bytes);
        if let Some(learning) = &mut self.learning {
            learning.free(address);
        }
        if self.queues.several() {
            let position = self.queues.freed(block.stream, &*self.source);
            if block.home == Home::Ground {
                self.ground_freed.insert(address, address + block.size, block.stream, position);
            } else {
                let range = (block.offset, block.offset + block.size);
                self.zone(block.home).freed.insert(range.0, range.1, block.stream, position);
                if let Some(((start, end), serving)) = block.under.zip(self.serving.as_ref()) {
                    let (start, end) = (serving.address(start).0, serving.address(end).0);
                    self.ground_freed.insert(start, end, block.stream, position);
                }
            }
        }
        if block.home == Home::Ground {
            self.release_planned(address, block.ground);
            return;
        }
        self.zone(block.home).heap.give(block.offset, block.size);
        if let Some((start, end)) = block.under
            && let Some(serving) = &self.serving
        {
            serving.stage.block(start, end, false);
        }
    }

    /// Gives every handle back in which no block lies, once queued work is done.
    pub(super) fn give_back(&mut self) -> Result<u64, SourceError> {
        self.queues.finish(&*self.source)?;
        let small = self.small.heap.give_back(&mut self.books)?;
        Ok(small + self.large.heap.give_back(&mut self.books)?)
    }
}

impl Block {
    pub(super) fn new(offset: u64, bytes: u64, home: Home, stream: StreamId) -> Self {
        let size = bytes.next_multiple_of(UNIT);
        Self { offset, size, bytes, home, stream, uses: Vec::new(), pending: false, ground: 0, under: None }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Queued work may use what was freed; a source that fails here has none that could be waited for.
        let _ = self.queues.finish(&*self.source);
        self.queues.forget(&*self.source);
        for (_, marks) in self.pending.drain(..) {
            for mark in marks {
                self.source.forget(mark);
            }
        }
    }
}
