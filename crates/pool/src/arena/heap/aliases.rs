//! Alias runs: whole free handles side by side at second addresses, where no run of the base is long enough for a block.

use std::ops::Range;

use lowtide_core::Bytes;
use lowtide_memory::{Error as SourceError, Span};
use rustc_hash::FxHashSet;

use super::{HandleIndex, Heap, LISTED};
use crate::arena::accounting::Accounting;

/// At most this many second addresses are kept over a step's end.
const KEPT_ALIASES: usize = 4096;

/// Handles side by side at second addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct AliasRun {
    /// Up to where there is memory.
    pub(super) end: u64,
    /// Up to where there may be. A gap behind it keeps runs from going on into the next alias run.
    pub(super) limit: u64,
}

impl Heap {
    /// Whether more second addresses are kept than are worth it.
    pub(in crate::arena) fn has_too_many_aliases(&self) -> bool {
        self.shared > 2 * KEPT_ALIASES
    }

    /// Makes a run of at least `bytes`: by new handles as far as the allowance goes, by aliases
    /// over free handles beyond it, and by new handles after all where those do not suffice.
    pub(in crate::arena) fn make_room(&mut self, bytes: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let bytes = bytes.next_multiple_of(self.granularity);
        let tail = self.free.ending_at(self.base_end).map_or(0, |run| run.end - run.start);
        let need = bytes.saturating_sub(tail).next_multiple_of(self.granularity);
        if !self.aliases || accounting.reserved() + need <= accounting.allowance(bytes) {
            return self.grow(need, bytes, accounting);
        }
        let way = self.cheapest_alias_run(bytes, accounting.left());
        if way.missing >= need {
            return self.grow(need, bytes, accounting);
        }
        match self.widen(&way, accounting) {
            Err(SourceError::OutOfAddresses { .. }) => self.grow(need, bytes, accounting),
            other => other,
        }
    }

    /// Makes a run of at least `bytes` out of free handles alone, whatever it costs in calls.
    pub(in crate::arena) fn gather(&mut self, bytes: u64, accounting: &mut Accounting) -> Result<bool, SourceError> {
        if !self.aliases {
            return Ok(false);
        }
        let bytes = bytes.next_multiple_of(self.granularity);
        let way = self.cheapest_alias_run(bytes, u64::MAX);
        if way.missing > 0 {
            return Ok(false);
        }
        self.widen(&way, accounting).map(|()| true)
    }

    /// The alias run that can hold `bytes` with the least new memory, and then with the fewest calls: a new one, or one whose
    /// end is free.
    fn cheapest_alias_run(&self, bytes: u64, calls: u64) -> Way {
        if calls == 0 {
            return Way { run: None, chosen: Vec::new(), missing: bytes };
        }
        let mut free = self.free_handles();
        free.sort_unstable();
        let fresh = Way::of(None, bytes, free.clone(), calls);
        let mut best = fresh;
        for (&start, alias_run) in &self.alias_runs {
            let Some(run) = self.free.ending_at(alias_run.end) else { continue };
            let length = run.end - run.start;
            if run.start < start || length >= bytes {
                continue;
            }
            let inside: FxHashSet<HandleIndex> =
                self.places.range(start..alias_run.end).map(|(_, &index)| index).collect();
            let others = free.iter().filter(|(_, index)| !inside.contains(index)).copied().collect();
            let more = (bytes - length).next_multiple_of(self.granularity);
            let way = Way::of(Some(start), more, others, calls);
            let fits = alias_run.end + way.bytes() + way.missing <= alias_run.limit;
            if fits && (way.missing, way.chosen.len()) < (best.missing, best.chosen.len()) {
                best = way;
            }
        }
        best
    }

    /// Makes an alias run, or makes one longer.
    fn widen(&mut self, way: &Way, accounting: &mut Accounting) -> Result<(), SourceError> {
        let start = match way.run {
            Some(start) => start,
            None => self.new_alias_run(way.bytes() + way.missing)?,
        };
        let Some(AliasRun { end: mut at, limit }) = self.alias_runs.get(&start).copied() else { return Ok(()) };
        for &(length, index) in &way.chosen {
            let Some(from) = self.handles[index.0 as usize].as_ref().map(|handle| handle.places[0]) else { continue };
            let span = Span::new(self.address(from), Bytes::new(length));
            if let Err(error) = self.source.alias(span, self.address(at)) {
                self.tidy_alias_runs();
                return Err(error);
            }
            accounting.mapped();
            self.add_place(index, at);
            at += length;
            self.alias_runs.insert(start, AliasRun { end: at, limit });
        }
        let result = self.commit(at, way.missing, accounting);
        let end = self.free.containing(at).map_or(at, |run| run.end);
        self.alias_runs.insert(start, AliasRun { end, limit });
        result
    }

    /// Addresses for an alias run, with room to grow.
    fn new_alias_run(&mut self, bytes: u64) -> Result<u64, SourceError> {
        let limit = (2 * bytes).next_multiple_of(self.granularity);
        let wanted = limit + self.granularity;
        let again = self.closed.tightest(wanted).next();
        let start = if let Some(Range { start, .. }) = again {
            self.closed.remove(start..start + wanted);
            start
        } else if self.alias_runs_end + wanted <= self.span.bytes.get() {
            self.alias_runs_end += wanted;
            self.alias_runs_end - wanted
        } else {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(wanted) });
        };
        self.alias_runs.insert(start, AliasRun { end: start, limit: start + limit });
        Ok(start)
    }

    /// Gives a handle that is free another address.
    fn add_place(&mut self, index: HandleIndex, at: u64) {
        let Some(handle) = self.handles[index.0 as usize].as_mut() else { return };
        let bytes = handle.bytes;
        if let Some(oldest) = handle.places.len().checked_sub(LISTED).filter(|&oldest| oldest > 0) {
            let place = handle.places[oldest];
            self.free.remove(place..place + bytes);
        }
        handle.places.push(at);
        self.shared += 1;
        self.shared_places.insert(at..at + bytes);
        if let [first, _] = handle.places[..] {
            self.shared += 1;
            self.shared_places.insert(first..first + bytes);
        }
        self.free.insert(at..at + bytes);
        self.places.insert(at, index);
        self.map(at, bytes, Some(index));
    }

    /// Takes a second address from a handle that is not in use through it. The caller knows that queued work is done.
    pub(super) fn drop_alias(&mut self, at: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let Some(&index) = self.places.get(&at) else { return Ok(()) };
        let Some(handle) = self.handles[index.0 as usize].as_mut() else { return Ok(()) };
        if (handle.users > 0 && handle.active == at) || self.lent.contains_key(&at) {
            return Ok(());
        }
        self.source.decommit(Span::new(self.span.start + at, Bytes::new(handle.bytes)))?;
        accounting.unmapped();
        let bytes = handle.bytes;
        let was_listed = handle.is_idle() && handle.listed().any(|place| place == at);
        handle.places.retain(|&place| place != at);
        if was_listed {
            self.free.remove(at..at + bytes);
            if let Some(oldest) = handle.places.len().checked_sub(LISTED).filter(|&oldest| oldest > 0) {
                let place = handle.places[oldest];
                self.free.insert(place..place + bytes);
            }
        }
        self.shared -= 1;
        self.shared_places.remove(at..at + bytes);
        if let [only] = handle.places[..] {
            handle.users = 0;
            self.shared -= 1;
            self.shared_places.remove(only..only + bytes);
        }
        self.places.remove(&at);
        self.map(at, bytes, None);
        Ok(())
    }

    /// Gives up alias runs while there are too many second addresses, as far as the step's calls go. The caller
    /// knows that queued work is done.
    pub(in crate::arena) fn close_old_aliases(&mut self, accounting: &mut Accounting) -> Result<(), SourceError> {
        let oldest: Vec<u64> = self.alias_runs.keys().copied().collect();
        for start in oldest {
            if !self.has_too_many_aliases() || accounting.left() == 0 {
                break;
            }
            self.close_alias_run(start, accounting)?;
        }
        Ok(())
    }

    /// Forgets alias runs under which there is nothing any more, and how far the others reach.
    pub(super) fn tidy_alias_runs(&mut self) {
        let starts: Vec<u64> = self.alias_runs.keys().copied().collect();
        for start in starts {
            let Some(&AliasRun { end, limit }) = self.alias_runs.get(&start) else { continue };
            let last = self.places.range(start..end).next_back().and_then(|(&place, &index)| {
                self.handles[index.0 as usize].as_ref().map(|handle| place + handle.bytes)
            });
            if let Some(end) = last {
                self.alias_runs.insert(start, AliasRun { end, limit });
            } else {
                self.alias_runs.remove(&start);
                self.closed.insert(start..limit + self.granularity);
            }
        }
    }

    /// Takes the second addresses in an alias run away, unless one of them is in use.
    fn close_alias_run(&mut self, start: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let Some(&AliasRun { end, limit }) = self.alias_runs.get(&start) else { return Ok(()) };
        let places: Vec<(u64, HandleIndex)> =
            self.places.range(start..end).map(|(&place, &index)| (place, index)).collect();
        let idle = places.iter().all(|&(place, index)| {
            !self.lent.contains_key(&place)
                && self.handles[index.0 as usize]
                    .as_ref()
                    .is_some_and(|handle| handle.places[0] != place && (handle.users == 0 || handle.active != place))
        });
        if !idle {
            return Ok(());
        }
        for (place, _) in places {
            self.drop_alias(place, accounting)?;
        }
        self.alias_runs.remove(&start);
        self.closed.insert(start..limit + self.granularity);
        Ok(())
    }
}

/// A way to a run that is long enough: free handles at the end of an alias run, and new memory behind them.
#[derive(Debug)]
struct Way {
    run: Option<u64>,
    chosen: Vec<(u64, HandleIndex)>,
    missing: u64,
}

impl Way {
    /// Chooses among `free` handles, sorted by size, so that together they have `bytes`: the largest that fit first, and
    /// for the rest one that is larger; as many as three quarters of `calls` allow to map.
    fn of(run: Option<u64>, bytes: u64, mut free: Vec<(u64, HandleIndex)>, calls: u64) -> Self {
        let (mut chosen, mut wanted) = (Vec::new(), bytes);
        let most = calls - calls / 4;
        while wanted > 0 && (chosen.len() as u64) < most {
            let fitting = free.partition_point(|&(bytes, _)| bytes <= wanted);
            let larger = free.get(fitting).is_some_and(|&(larger, _)| larger <= 4 * wanted || fitting == 0);
            let take = if larger { fitting } else { fitting.saturating_sub(1) };
            if free.get(take).is_none() {
                break;
            }
            let handle = free.remove(take);
            chosen.push(handle);
            wanted = wanted.saturating_sub(handle.0);
        }
        Self { run, chosen, missing: wanted }
    }

    fn bytes(&self) -> u64 {
        self.chosen.iter().map(|&(bytes, _)| bytes).sum()
    }
}
