//! Everything of a host arena that is behind its lock: the blocks, the free runs between them, and what is resident.

use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use lowtide_core::Bytes;
use lowtide_learn::Served;
use lowtide_memory::{Expanse, Span};
use rustc_hash::FxHashMap;

use super::border::Border;
use super::giving::{Clock, Thrift};
use super::residency::Residency;
use super::steps::Trust;
use super::{HostArenaOptions, HostStats};
use crate::arena::UNIT;
use crate::arena::learning::Learning;
use crate::arena::runs::Runs;
use crate::arena::serving::Serving;
use crate::arena::stage::Found;
use crate::error::Error;
use crate::pool::{Address, Request};

/// How much is opened at least when more is needed, and what openings are multiples of.
const OPENING: u64 = 32 << 20;
pub(super) const HUGE: u64 = 2 << 20;

/// How many runs are tried for one that a block fits into by its alignment.
const TRIES: usize = 16;

/// How many different warnings are kept.
const MOST_WARNINGS: usize = 16;

/// A block that no plan serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// What it takes.
    pub(super) size: u64,
    /// What was asked for.
    pub(super) bytes: u64,
    /// The number of the stage that it was of when that was closed.
    pub(super) stage: u64,
    /// Whether a plan has a place for the next like it, so that nothing will come where it is.
    pub(super) retires: bool,
}

/// A block that was taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) address: u64,
    /// The parts of it that hold something, where zeros were asked for.
    pub(super) dirty: Vec<Range<u64>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) expanse: Expanse,
    pub(super) options: HostArenaOptions,
    /// Up to where addresses are open.
    pub(super) opened: u64,
    pub(super) free: Runs,
    pub(super) blocks: FxHashMap<u64, Block>,
    pub(super) residency: Residency,
    pub(super) learning: Option<Learning>,
    pub(super) published: Arc<ArcSwapOption<Serving>>,
    pub(super) serving: Option<Arc<Serving>>,
    /// The memory that the stage has: no free run, whether a block is there or not.
    pub(super) ground: Range<u64>,
    /// The blocks that lay there when the stage was raised.
    pub(super) in_the_way: Vec<u64>,
    /// Where the last stage was.
    pub(super) last_ground: u64,
    /// In which step that was laid on other memory than before.
    pub(super) moved: Option<u64>,
    /// How many stages there were.
    pub(super) stages: u64,
    pub(super) served: Served,
    /// How a plan did in the step that is open before it was given up.
    pub(super) served_before: Served,
    pub(super) steps: u64,
    pub(super) marked: bool,
    pub(super) planned_from: Option<u64>,
    pub(super) border: Border,
    pub(super) clock: Clock,
    pub(super) thrift: Thrift,
    pub(super) trust: Trust,
    pub(super) live: u64,
    pub(super) peak_live: u64,
    pub(super) allocations: u64,
    pub(super) warnings: Vec<String>,
}

impl State {
    pub(super) fn new(expanse: Expanse, options: HostArenaOptions, published: Arc<ArcSwapOption<Serving>>) -> Self {
        let (span, page) = (expanse.span(), expanse.page().get());
        Self {
            learning: learning(&options),
            opened: span.start,
            free: Runs::default(),
            blocks: FxHashMap::default(),
            residency: Residency::new(span.start, page),
            expanse,
            options,
            published,
            serving: None,
            ground: 0..0,
            in_the_way: Vec::new(),
            last_ground: 0,
            moved: None,
            stages: 0,
            served: Served::default(),
            served_before: Served::default(),
            steps: 0,
            marked: false,
            planned_from: None,
            border: Border::default(),
            clock: Clock::default(),
            thrift: Thrift::default(),
            trust: Trust::default(),
            live: 0,
            peak_live: 0,
            allocations: 0,
            warnings: Vec::new(),
        }
    }

    /// A block from the plan where one is served, and from free memory where not.
    pub(super) fn alloc(&mut self, request: &Request, zeroed: bool) -> Option<Taken> {
        if let Some(learning) = &mut self.learning {
            let begins = learning.ends_step(request);
            let live = self.serving.is_none().then_some(self.live);
            if self.border.passes(begins, live) {
                self.close_step();
            }
        }
        let plannable = request.align.get() <= HUGE;
        let planned = self.serving.as_ref().filter(|_| plannable).and_then(|serving| {
            let Found::At(offset) = serving.stage.take(request) else { return None };
            Some(serving.address(offset).0)
        });
        let taken = if let Some(address) = planned {
            self.allocations += 1;
            let whole = zeroed.then(|| address..address + request.bytes.get());
            Taken { address, dirty: whole.into_iter().collect() }
        } else {
            self.place(request, zeroed)?
        };
        if let Some(learning) = self.learning.as_mut().filter(|_| plannable) {
            learning.alloc(request, taken.address);
        }
        Some(taken)
    }

    /// A block from free memory, or from memory that is opened for it.
    pub(super) fn place(&mut self, request: &Request, zeroed: bool) -> Option<Taken> {
        let (bytes, align) = (request.bytes.get(), request.align.get());
        let size = bytes.next_multiple_of(UNIT);
        let mut found = self.find(size, align);
        if found.is_none() && self.yields_stage() {
            found = self.find(size, align);
        }
        let address = match found {
            Some(address) => address,
            None => self.open_for(size, align)?,
        };
        let dirty = if zeroed { self.residency.dirty(address..address + bytes) } else { Vec::new() };
        self.hold(address, size, bytes);
        Some(Taken { address, dirty })
    }

    /// A block at free addresses is in use from now on.
    fn hold(&mut self, address: u64, size: u64, bytes: u64) {
        self.free.remove(address, size);
        self.residency.touch(address..address + size);
        self.blocks.insert(address, Block { size, bytes, stage: 0, retires: false });
        self.allocations += 1;
        self.count(bytes);
        self.save();
    }

    pub(super) fn count(&mut self, bytes: u64) {
        self.live += bytes;
        self.peak_live = self.peak_live.max(self.live);
    }

    /// A block that had `before` bytes has `after`.
    pub(super) fn recount(&mut self, before: u64, after: u64) {
        self.live -= before;
        self.count(after);
    }

    /// Free addresses for a block: in the shortest run that is long enough.
    pub(super) fn find(&self, size: u64, align: u64) -> Option<u64> {
        let fits = |(start, length): (u64, u64)| {
            let at = start.next_multiple_of(align);
            (at + size <= start + length).then_some(at)
        };
        let near = self.free.tightest(size).take(TRIES).find_map(fits);
        near.or_else(|| self.free.tightest(size + align).find_map(fits))
    }

    /// Opens as many addresses as a block needs behind what is free at the end.
    pub(super) fn open_for(&mut self, size: u64, align: u64) -> Option<u64> {
        let start = self.free.ending_at(self.opened).map_or(self.opened, |(start, _)| start);
        let at = start.next_multiple_of(align);
        let end = self.expanse.span().end();
        let needed = (at.checked_add(size)?).checked_next_multiple_of(HUGE)?;
        let page = self.expanse.page().get().max(HUGE);
        [needed.max(self.opened + OPENING), needed].into_iter().find_map(|until| {
            let until = until.checked_next_multiple_of(page).filter(|&until| until <= end)?;
            let bytes = until - self.opened;
            let part = Span::new(self.opened, Bytes::new(bytes));
            self.expanse.open(part).ok()?;
            self.free.insert(part.start, bytes);
            self.opened = part.end();
            if self.is_prefaulted() {
                self.residency.touch(part.start..part.end());
            }
            Some(at)
        })
    }

    /// Whether pages are there before they are touched.
    pub(super) fn is_prefaulted(&self) -> bool {
        self.options.pages.prefault || self.options.pages.locked
    }

    /// Gives all addresses back that are not open.
    pub(super) fn shrink_range(&mut self, announce: impl FnOnce(Range<u64>)) {
        announce(self.expanse.span().start..self.opened);
        // Where the system does not take them, they are lost.
        let _ = self.expanse.cut(self.opened);
    }

    /// Takes a block back.
    pub(super) fn free(&mut self, address: Address) -> Result<(), Error> {
        if self.blocks.contains_key(&address.0) {
            self.release(address.0);
            return Ok(());
        }
        let given = self
            .serving
            .as_ref()
            .is_some_and(|serving| serving.offset(address).is_some_and(|offset| serving.stage.give(offset)));
        if given {
            if let Some(learning) = &mut self.learning {
                learning.free(address.0);
            }
            return Ok(());
        }
        let is_within = |(&start, block): (&u64, &Block)| start < address.0 && address.0 < start + block.size;
        Err(if self.blocks.iter().any(is_within) || address.0 >= self.opened {
            Error::ForeignAddress { address }
        } else {
            Error::DoubleFree { address }
        })
    }

    /// A block of a stage was given back without the lock while the stage was closed.
    pub(super) fn forget(&mut self, address: Address, stage: u64) {
        if self.blocks.get(&address.0).is_some_and(|block| block.stage == stage) {
            self.release(address.0);
        }
    }

    fn release(&mut self, address: u64) {
        let Some(block) = self.blocks.remove(&address) else { return };
        self.live -= block.bytes;
        if let Some(learning) = &mut self.learning {
            learning.free(address);
        }
        self.vacate(address..address + block.size);
        if block.retires && self.serving.is_some() && !self.ground.contains(&address) {
            self.discard_idle(address..address + block.size, u32::MAX);
        }
    }

    /// Memory of a block is free, unless it is the stage's.
    pub(super) fn vacate(&mut self, range: Range<u64>) {
        self.residency.stamp(range.clone(), self.clock.now);
        if let Some(serving) = self.serving.as_ref().filter(|_| self.ground.contains(&range.start)) {
            let offset = range.start - self.ground.start;
            serving.stage.block(offset, offset + (range.end - range.start), false);
        } else {
            self.free.insert(range.start, range.end - range.start);
        }
    }

    pub(super) fn usable(&self, address: Address) -> Option<u64> {
        if let Some(block) = self.blocks.get(&address.0) {
            return Some(block.size);
        }
        let serving = self.serving.as_ref()?;
        serving.stage.at(serving.offset(address)?).map(|slot| slot.bytes.get())
    }

    pub(super) fn stats(&mut self) -> HostStats {
        let planned: u64 =
            self.serving.as_ref().map_or(0, |serving| serving.stage.in_use().map(|slot| slot.bytes.get()).sum());
        self.peak_live = self.peak_live.max(self.live + planned);
        let open = self.serving.as_ref().map_or(Served::default(), |serving| serving.stage.served());
        let mut warnings = self.expanse.fallbacks();
        if let Some(learning) = &mut self.learning {
            for warning in learning.learner.warnings() {
                if self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
        }
        warnings.extend(self.warnings.iter().cloned());
        HostStats {
            live: Bytes::new(self.live + planned),
            peak_live: Bytes::new(self.peak_live),
            held: Bytes::new(self.residency.held()),
            allocations: self.allocations,
            hits: self.served.hits + self.served_before.hits + open.hits,
            misses: self.served.misses + self.served_before.misses + open.misses,
            steps: self.steps,
            marked: self.marked,
            planned_from: self.planned_from,
            warnings,
        }
    }
}

/// A learner that has seen nothing.
pub(super) fn learning(options: &HostArenaOptions) -> Option<Learning> {
    /// Programs go round in several kinds of step, one after the other.
    const REMEMBERED: usize = 64;
    let learner = options.learner.clone()?;
    Some(Learning::new(learner, options.find_steps, REMEMBERED).counting_frees())
}
