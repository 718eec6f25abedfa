//! A range of addresses, the handles mapped into it, and the free memory between blocks.
//!
//! The first part of the range is the *base*: there memory is taken and used again, and free memory in it is used
//! again at once. Where the base has enough free memory but no run of it is long enough, whole free handles get a
//! second address side by side in an *alias run*, and the block is placed there. Their first address stays: as soon as the
//! block is gone the base is whole again, without a call. A handle is in use through one of its addresses at a time; while
//! it is free, it is listed under its first address and the latest others.

mod aliases;
mod growth;
mod lending;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lowtide_core::ranges::FreeRuns;
use lowtide_memory::{Error as SourceError, Source, Span};
use rustc_hash::FxHashSet;

use super::address_set::AddressSet;
use super::address_table::AddressTable;
use crate::addresses;
use aliases::AliasRun;

pub(super) use lending::Holder;

/// A handle's place in its heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct HandleIndex(u32);

#[derive(Debug)]
struct Handle {
    bytes: u64,
    /// Its addresses, the first one first.
    places: Vec<u64>,
    /// How many blocks lie in it, and through which address; counted where there are several.
    users: u32,
    active: u64,
    /// Whether what is free in it is not this heap's to use.
    is_lent: bool,
    /// What tells it from all others of its heap, also from those that had its place.
    serial: u64,
}

/// Under how many addresses beside the first a free handle is listed. Older ones are rarely of use, and each is two changes of
/// the free runs for every block.
const LISTED: usize = 6;

impl Handle {
    fn new(bytes: u64, place: u64, serial: u64) -> Self {
        Self { bytes, places: vec![place], users: 0, active: place, is_lent: false, serial }
    }

    /// Whether it has several addresses.
    fn is_shared(&self) -> bool {
        self.places.len() > 1
    }

    /// Whether it has several addresses and all of it is free.
    fn is_idle(&self) -> bool {
        self.is_shared() && self.users == 0 && !self.is_lent
    }

    /// The addresses under which it is listed while it is free.
    fn listed(&self) -> impl Iterator<Item = u64> + '_ {
        let latest = self.places.len().saturating_sub(LISTED).max(1);
        self.places[..1].iter().chain(&self.places[latest..]).copied()
    }

    /// Those but one, as ranges.
    fn listed_beside(&self, place: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.listed().filter(move |&other| other != place).map(|other| other..other + self.bytes)
    }

    /// Which of its addresses `at` belongs to.
    fn place_over(&self, at: u64) -> Option<u64> {
        self.places.iter().copied().find(|&place| (place..place + self.bytes).contains(&at))
    }
}

/// How a run is chosen among those that are long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// The shortest.
    Tightest,
    /// One that fits almost exactly, or else the lowest: free memory stays together at the upper end.
    Lowest,
}

/// A run counts as fitting exactly where at most this part of the block would be left over.
const ALMOST: u64 = 64;

/// How many runs are asked whether they are aligned by chance.
const TRIES: usize = 16;

#[derive(Debug)]
pub(super) struct Heap {
    source: Arc<dyn Source>,
    span: Span,
    granularity: u64,
    aliases: bool,
    handles: Vec<Option<Handle>>,
    vacant: Vec<HandleIndex>,
    /// How many handles there ever were.
    made: u64,
    /// Which handle begins at an address.
    places: BTreeMap<u64, HandleIndex>,
    /// Which handle is under an address.
    table: AddressTable,
    /// How many addresses the handles have that have several, and which.
    shared: usize,
    shared_places: AddressSet,
    free: FreeRuns,
    fit: Fit,
    base_end: u64,
    /// Where alias runs begin.
    aliases_from: u64,
    alias_runs: BTreeMap<u64, AliasRun>,
    alias_runs_end: u64,
    /// Addresses of alias runs that were given up.
    closed: FreeRuns,
    /// Ranges of handles that are lent.
    lent: BTreeMap<u64, u64>,
    /// Ranges that are listed or no more because of a block; empty between calls.
    relisted: Vec<Range<u64>>,
}

impl Heap {
    pub(super) fn new(source: Arc<dyn Source>, fit: Fit) -> Result<Self, SourceError> {
        let description = source.describe();
        let capacity = addresses::capacity(&*source);
        let granularity = description.granularity.get();
        let least = if description.aliases { capacity.saturating_mul(2) } else { capacity };
        let span = addresses::reserve(&*source, least)?;
        let whole = span.bytes.get();
        let aliases_from = if description.aliases { (whole / 2).next_multiple_of(granularity) } else { whole };
        Ok(Self {
            aliases: description.aliases,
            source,
            span,
            granularity,
            handles: Vec::new(),
            vacant: Vec::new(),
            made: 0,
            places: BTreeMap::new(),
            table: AddressTable::new(granularity),
            shared: 0,
            shared_places: AddressSet::new(granularity),
            free: FreeRuns::default(),
            fit,
            base_end: 0,
            aliases_from,
            alias_runs: BTreeMap::new(),
            // A gap: no free run goes on from the base into an alias run, whose handles may be those of the base.
            alias_runs_end: aliases_from + granularity,
            closed: FreeRuns::default(),
            lent: BTreeMap::new(),
            relisted: Vec::new(),
        })
    }

    /// The address at an offset.
    pub(super) fn address(&self, offset: u64) -> u64 {
        self.span.start + offset
    }

    /// The offset of an address that lies in this heap's range.
    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        (self.span.start..self.span.end()).contains(&address).then(|| address - self.span.start)
    }

    /// Whether an offset lies in memory that is free, so that a block at it was freed before.
    pub(super) fn was_used(&self, offset: u64) -> bool {
        let is_idle = || self.handle_over(offset).is_some_and(|(_, handle)| handle.is_idle());
        self.free.containing(offset).is_some() || is_idle()
    }

    /// How many addresses there are.
    pub(super) fn addresses(&self) -> u64 {
        self.span.bytes.get()
    }

    /// From now on free memory is kept together at the upper end.
    pub(super) fn keep_low(&mut self) {
        self.fit = Fit::Lowest;
    }

    /// The best place for `bytes` in free memory.
    pub(super) fn best(&self, bytes: u64, align: u64) -> Option<u64> {
        let (at, left_over) = self.fitting(bytes, align).next()?;
        if self.fit == Fit::Tightest || left_over <= bytes / ALMOST {
            return Some(at);
        }
        let lowest = self.free.lowest(surely(bytes, align)).map(|run| self.aligned(run.start, align));
        self.fitting_by_chance(bytes, align).map(|(at, _)| at).chain(lowest).min()
    }

    /// Places where `bytes` fit and what would be left over of their runs, the tightest first.
    pub(super) fn fitting(&self, bytes: u64, align: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let sure = self.free.tightest(surely(bytes, align));
        self.fitting_by_chance(bytes, align).chain(sure.filter_map(move |run| self.fit_into(run, bytes, align)))
    }

    /// The same in runs that are just long enough and may begin at the right address.
    fn fitting_by_chance(&self, bytes: u64, align: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let sure = surely(bytes, align);
        let tight = (sure > bytes).then(|| self.free.tightest(bytes)).into_iter().flatten();
        let tight = tight.take_while(move |run| run.end - run.start < sure).take(TRIES);
        tight.filter_map(move |run| self.fit_into(run, bytes, align))
    }

    fn fit_into(&self, run: Range<u64>, bytes: u64, align: u64) -> Option<(u64, u64)> {
        let at = self.aligned(run.start, align);
        (at + bytes <= run.end).then_some((at, run.end - run.start - bytes))
    }

    /// The first offset from `start` on whose address is a multiple of `align`.
    fn aligned(&self, start: u64, align: u64) -> u64 {
        (self.span.start + start).next_multiple_of(align) - self.span.start
    }

    /// Marks free memory as used.
    pub(super) fn take(&mut self, at: u64, bytes: u64) {
        self.free.remove(at..at + bytes);
        self.each_shared(at..at + bytes, |handle, place, relisted| {
            handle.users += 1;
            if handle.users == 1 {
                handle.active = place;
                relisted.extend(handle.listed_beside(place));
            }
        });
        self.relist(FreeRuns::remove);
    }

    /// Marks used memory as free.
    pub(super) fn give(&mut self, at: u64, bytes: u64) {
        self.insert_free(at, at + bytes);
        self.each_shared(at..at + bytes, |handle, place, relisted| {
            handle.users -= 1;
            if handle.is_idle() {
                relisted.extend(handle.listed_beside(place));
            }
        });
        self.relist(FreeRuns::insert);
    }

    /// Visits the handles under a block that have several addresses, with the one that the block has.
    fn each_shared(&mut self, block: Range<u64>, mut visit: impl FnMut(&mut Handle, u64, &mut Vec<Range<u64>>)) {
        let mut from = block.start;
        while let Some(at) = self.shared_places.first_in(from..block.end) {
            let handle = self.table.get(at).and_then(|index| self.handles[index as usize].as_mut());
            let Some((handle, place)) = handle.and_then(|handle| handle.place_over(at).map(|place| (handle, place)))
            else {
                break;
            };
            visit(handle, place, &mut self.relisted);
            from = place + handle.bytes;
        }
    }

    /// Changes the free runs by what is to be listed or no more. Handles that lie side by side often do so under other
    /// addresses too: what touches is one change.
    fn relist(&mut self, change: impl Fn(&mut FreeRuns, Range<u64>)) {
        self.relisted.sort_unstable_by_key(|range| range.start);
        let mut joined = 0..0;
        for range in self.relisted.drain(..) {
            if range.start == joined.end {
                joined.end = range.end;
            } else {
                let before = std::mem::replace(&mut joined, range);
                if !before.is_empty() {
                    change(&mut self.free, before);
                }
            }
        }
        if !joined.is_empty() {
            change(&mut self.free, joined);
        }
    }

    /// The ranges under which the same memory may have been used before: the range itself, and the other addresses of
    /// handles in it.
    pub(super) fn footprint(&self, at: u64, bytes: u64) -> Vec<(u64, u64)> {
        let (mut ranges, mut from) = (vec![(at, at + bytes)], at);
        while let Some(shared) = self.shared_places.first_in(from..at + bytes) {
            let Some((place, handle)) = self.handle_over(shared) else { break };
            let others = handle.places.iter().filter(|&&other| other != place);
            ranges.extend(others.map(|&other| (other, other + handle.bytes)));
            from = place + handle.bytes;
        }
        ranges
    }

    /// The handle under an address, and which of its addresses that belongs to.
    fn handle_over(&self, at: u64) -> Option<(u64, &Handle)> {
        let handle = self.handles[self.table.get(at)? as usize].as_ref()?;
        Some((handle.place_over(at)?, handle))
    }

    /// Notes which handle is under a range, or that none is.
    fn map(&mut self, place: u64, bytes: u64, index: Option<HandleIndex>) {
        for at in (place..place + bytes).step_by(self.table.entry_bytes() as usize) {
            self.table.set(at, index.map(|index| index.0));
        }
    }

    /// The handles in which no block lies.
    fn free_handles(&self) -> Vec<(u64, HandleIndex)> {
        let mut seen = FxHashSet::default();
        let mut free = Vec::new();
        for run in self.free.iter() {
            for (&place, &index) in self.places.range(run.clone()) {
                let Some(handle) = &self.handles[index.0 as usize] else { continue };
                if place + handle.bytes <= run.end && seen.insert(index) {
                    free.push((handle.bytes, index));
                }
            }
        }
        free
    }
}

/// A run of this length has room for `bytes` wherever it begins.
fn surely(bytes: u64, align: u64) -> u64 {
    bytes + align.saturating_sub(super::UNIT)
}

impl Drop for Heap {
    fn drop(&mut self) {
        addresses::release(&*self.source, self.span);
    }
}
