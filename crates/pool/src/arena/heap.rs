//! A range of addresses, the handles mapped into it, and the free memory between blocks.
//!
//! The first part of the range is the *base*: there memory is taken and used again, and free memory in it is used
//! again at once. Where the base has enough free memory but no run of it is long enough, whole free handles get a
//! second address side by side in an *alias run*, and the block is placed there. Their first address stays: as soon as the
//! block is gone the base is whole again, without a call. A handle is in use through one of its addresses at a time.

mod aliases;
mod growth;
mod lending;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lowtide_core::ranges::FreeRuns;
use lowtide_memory::{Error as SourceError, Source, Span};
use rustc_hash::FxHashSet;

use crate::addresses;
use aliases::AliasRun;

pub(super) use growth::USUAL_HANDLES;
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
    /// Which handle begins at an address.
    places: BTreeMap<u64, HandleIndex>,
    /// The addresses of handles that have several.
    shared: BTreeMap<u64, HandleIndex>,
    free: FreeRuns,
    fit: Fit,
    base_end: u64,
    /// Where alias runs begin.
    aliases_from: u64,
    alias_runs: BTreeMap<u64, AliasRun>,
    alias_runs_end: u64,
    /// Addresses of alias runs that were given up.
    closed: FreeRuns,
    /// Ranges of handles that are lent: what is free in them is not this heap's to use.
    lent: BTreeMap<u64, u64>,
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
            places: BTreeMap::new(),
            shared: BTreeMap::new(),
            free: FreeRuns::default(),
            fit,
            base_end: 0,
            aliases_from,
            alias_runs: BTreeMap::new(),
            alias_runs_end: aliases_from,
            closed: FreeRuns::default(),
            lent: BTreeMap::new(),
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
        self.free.containing(offset).is_some()
    }

    /// How many addresses there are.
    pub(super) fn addresses(&self) -> u64 {
        self.span.bytes.get()
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
        for (place, index) in self.shared_over(at, bytes) {
            let Some(handle) = self.handles[index.0 as usize].as_mut() else { continue };
            handle.users += 1;
            if handle.users == 1 {
                handle.active = place;
                for &other in handle.places.iter().filter(|&&other| other != place) {
                    self.free.remove(other..other + handle.bytes);
                }
            }
        }
    }

    /// Marks used memory as free.
    pub(super) fn give(&mut self, at: u64, bytes: u64) {
        self.insert_free(at, at + bytes);
        for (place, index) in self.shared_over(at, bytes) {
            let Some(handle) = self.handles[index.0 as usize].as_mut() else { continue };
            handle.users -= 1;
            if handle.users == 0 && !self.lent.contains_key(&place) {
                for &other in handle.places.iter().filter(|&&other| other != place) {
                    self.free.insert(other..other + handle.bytes);
                }
            }
        }
    }

    /// The ranges under which the same memory may have been used before: the range itself, and the other addresses of
    /// handles in it.
    pub(super) fn footprint(&self, at: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut ranges = vec![(at, at + bytes)];
        for (place, index) in self.shared_over(at, bytes) {
            if let Some(handle) = &self.handles[index.0 as usize] {
                let others = handle.places.iter().filter(|&&other| other != place);
                ranges.extend(others.map(|&other| (other, other + handle.bytes)));
            }
        }
        ranges
    }

    fn shared_over(&self, at: u64, bytes: u64) -> Vec<(u64, HandleIndex)> {
        if self.shared.is_empty() {
            return Vec::new();
        }
        let before = self.shared.range(..at).next_back().filter(|(place, index)| {
            self.handles[index.0 as usize].as_ref().is_some_and(|handle| *place + handle.bytes > at)
        });
        before.into_iter().chain(self.shared.range(at..at + bytes)).map(|(&place, &index)| (place, index)).collect()
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
