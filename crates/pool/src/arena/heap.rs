//! A range of addresses, the handles mapped into it, and the free memory between blocks.
//!
//! The first part of the range is the *ground*: every handle has its first address there, and free memory in it is used
//! again at once. Where the ground has enough free memory but no run of it is long enough, whole free handles get a
//! second address side by side in a *window*, and the block is placed there. Their first address stays: as soon as the
//! block is gone the ground is whole again, without a call. A handle is in use through one of its addresses at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_memory::{Error as SourceError, Source, Span};
use rustc_hash::FxHashSet;

use super::books::Books;
use super::runs::Runs;

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

/// How much larger than its memory a heap's range of addresses is.
const ADDRESSES_PER_BYTE: u64 = 16;

/// The memory that is assumed where a source does not know its own.
const UNKNOWN_CAPACITY: u64 = 1 << 40;

/// Into how many handles memory is divided once it is settled, about; many more are made only while calls are free.
const USUAL_HANDLES: u64 = 512;
const MOST_HANDLES: u64 = 16_384;

/// Handles that are larger would strand too much memory.
const LARGEST_GRAIN: u64 = 64 << 20;

/// At most this many second addresses are kept over a step's end.
const KEPT_ALIASES: usize = 4096;

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
    free: Runs,
    fit: Fit,
    ground_end: u64,
    /// Where windows begin.
    border: u64,
    windows: BTreeMap<u64, Window>,
    windows_end: u64,
    /// Addresses of windows that were given up.
    closed: Runs,
    /// Ranges of handles that are lent: what is free in them is not this heap's to use.
    lent: BTreeMap<u64, u64>,
}

/// A handle in which blocks lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) index: HandleIndex,
    /// Where its blocks lie.
    pub(super) place: u64,
    pub(super) bytes: u64,
    /// How much of it is free.
    pub(super) free: u64,
}

/// Handles side by side at second addresses.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Up to where there is memory.
    end: u64,
    /// Up to where there may be. A gap behind it keeps runs from going on into the next window.
    limit: u64,
}

impl Heap {
    pub(super) fn new(source: Arc<dyn Source>, fit: Fit) -> Result<Self, SourceError> {
        let description = source.describe();
        let capacity = description.capacity.map_or(UNKNOWN_CAPACITY, Bytes::get);
        let granularity = description.granularity.get();
        let span = reserve(&*source, capacity)?;
        let border = (span.bytes.get() / 2).next_multiple_of(granularity);
        Ok(Self {
            aliases: description.aliases,
            source,
            span,
            granularity,
            handles: Vec::new(),
            vacant: Vec::new(),
            places: BTreeMap::new(),
            shared: BTreeMap::new(),
            free: Runs::default(),
            fit,
            ground_end: 0,
            border,
            windows: BTreeMap::new(),
            windows_end: border,
            closed: Runs::default(),
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
        self.free.around(offset).is_some()
    }

    /// How many addresses there are.
    pub(super) fn addresses(&self) -> u64 {
        self.span.bytes.get()
    }

    /// Whether more second addresses are kept than are worth it.
    pub(super) fn has_too_many_windows(&self) -> bool {
        self.shared.len() > 2 * KEPT_ALIASES
    }

    /// The best place for `bytes` in free memory.
    pub(super) fn best(&self, bytes: u64, align: u64) -> Option<u64> {
        let mut fitting = self.fitting(bytes, align);
        match self.fit {
            Fit::Tightest => fitting.next().map(|(at, _)| at),
            Fit::Lowest => {
                let (at, left_over) = fitting.next()?;
                if left_over <= bytes / ALMOST {
                    return Some(at);
                }
                Some(fitting.fold(at, |lowest, (at, _)| lowest.min(at)))
            }
        }
    }

    /// Places where `bytes` fit and what would be left over of their runs, the tightest first.
    pub(super) fn fitting(&self, bytes: u64, align: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let base = self.span.start;
        self.free.tightest(bytes + align.saturating_sub(super::UNIT)).filter_map(move |(start, length)| {
            let at = (base + start).next_multiple_of(align) - base;
            (at + bytes <= start + length).then_some((at, length - bytes))
        })
    }

    /// Marks free memory as used.
    pub(super) fn take(&mut self, at: u64, bytes: u64) {
        self.free.remove(at, bytes);
        for (place, index) in self.shared_over(at, bytes) {
            let Some(handle) = self.handles[index.0 as usize].as_mut() else { continue };
            handle.users += 1;
            if handle.users == 1 {
                handle.active = place;
                for &other in handle.places.iter().filter(|&&other| other != place) {
                    self.free.remove(other, handle.bytes);
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
                    self.free.insert(other, handle.bytes);
                }
            }
        }
    }

    /// Adds a range to the free memory, but for what is lent.
    fn insert_free(&mut self, mut at: u64, end: u64) {
        if !self.lent.is_empty() {
            let before = self.lent.range(..=at).next_back().filter(|(_, lent_end)| **lent_end > at);
            let over: Vec<(u64, u64)> =
                before.into_iter().chain(self.lent.range(at + 1..end)).map(|(&start, &end)| (start, end)).collect();
            for (start, lent_end) in over {
                self.free.insert(at, start.saturating_sub(at));
                at = lent_end.min(end);
            }
        }
        self.free.insert(at, end - at);
    }

    /// The handles in which blocks lie and that are not lent, by their place.
    pub(super) fn holders(&self) -> Vec<Holder> {
        let free_handles: FxHashSet<HandleIndex> = self.free_handles().into_iter().map(|(_, index)| index).collect();
        let mut holders: Vec<Holder> = (self.handles.iter().enumerate())
            .filter_map(|(number, handle)| {
                let (index, handle) = (HandleIndex(number as u32), handle.as_ref()?);
                let place = if handle.places.len() > 1 { handle.active } else { handle.places[0] };
                let held = !free_handles.contains(&index) && !self.lent.contains_key(&place);
                held.then(|| Holder { index, place, bytes: handle.bytes, free: self.free_within(place, handle.bytes) })
            })
            .collect();
        holders.sort_unstable_by_key(|holder| holder.place);
        holders
    }

    fn free_within(&self, place: u64, bytes: u64) -> u64 {
        self.free_parts(place, place + bytes).iter().map(|(start, end)| end - start).sum()
    }

    fn free_parts(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        self.free.over(start, end).map(|(run, length)| (run.max(start), (run + length).min(end))).collect()
    }

    /// Lends a handle in which blocks lie: what is free in it, and what its blocks leave, is the borrower's.
    pub(super) fn lend(&mut self, holder: &Holder) {
        let (start, end) = (holder.place, holder.place + holder.bytes);
        for (from, to) in self.free_parts(start, end) {
            self.free.remove(from, to - from);
        }
        self.lent.insert(start, end);
    }

    /// Takes a lent handle back. `blocks` are those that lie in it.
    pub(super) fn take_back(&mut self, holder: &Holder, blocks: &[(u64, u64)]) {
        let (mut at, end) = (holder.place, holder.place + holder.bytes);
        self.lent.remove(&at);
        for &(start, bytes) in blocks {
            self.free.insert(at, start.saturating_sub(at));
            at = at.max(start + bytes);
        }
        self.free.insert(at, end.saturating_sub(at));
        if !blocks.is_empty() {
            return;
        }
        let Some(handle) = &self.handles[holder.index.0 as usize] else { return };
        for &other in handle.places.iter().filter(|&&other| other != holder.place) {
            self.free.insert(other, handle.bytes);
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

    /// Makes a run of at least `bytes`: by new handles as far as the allowance goes, by a window
    /// over free handles beyond it, and by new handles after all where those do not suffice.
    pub(super) fn make_room(&mut self, bytes: u64, books: &mut Books) -> Result<(), SourceError> {
        let bytes = bytes.next_multiple_of(self.granularity);
        let tail = self.free.ending_at(self.ground_end).map_or(0, |(_, length)| length);
        let need = bytes.saturating_sub(tail).next_multiple_of(self.granularity);
        if !self.aliases || books.reserved + need <= books.allowance(bytes) {
            return self.extend(need, books);
        }
        let way = self.cheapest_window(bytes, books.left());
        if way.missing >= need {
            return self.extend(need, books);
        }
        match self.widen(&way, books) {
            Err(SourceError::OutOfAddresses { .. }) => self.extend(need, books),
            other => other,
        }
    }

    /// Makes a run of at least `bytes` out of free handles alone, whatever it costs in calls.
    pub(super) fn gather(&mut self, bytes: u64, books: &mut Books) -> Result<bool, SourceError> {
        if !self.aliases {
            return Ok(false);
        }
        let bytes = bytes.next_multiple_of(self.granularity);
        let way = self.cheapest_window(bytes, u64::MAX);
        if way.missing > 0 {
            return Ok(false);
        }
        self.widen(&way, books).map(|()| true)
    }

    /// The window that can hold `bytes` with the least new memory, and then with the fewest calls: a new one, or one whose
    /// end is free.
    fn cheapest_window(&self, bytes: u64, calls: u64) -> Way {
        let mut free = self.free_handles();
        free.sort_unstable();
        let fresh = Way::of(None, bytes, free.clone(), calls);
        let mut best = fresh;
        for (&start, window) in &self.windows {
            let Some((run, length)) = self.free.ending_at(window.end) else { continue };
            if run < start || length >= bytes {
                continue;
            }
            let inside: FxHashSet<HandleIndex> = self.places.range(start..window.end).map(|(_, &index)| index).collect();
            let others = free.iter().filter(|(_, index)| !inside.contains(index)).copied().collect();
            let more = (bytes - length).next_multiple_of(self.granularity);
            let way = Way::of(Some(start), more, others, calls);
            let fits = window.end + way.bytes() + way.missing <= window.limit;
            if fits && (way.missing, way.chosen.len()) < (best.missing, best.chosen.len()) {
                best = way;
            }
        }
        best
    }

    /// The handles in which no block lies.
    fn free_handles(&self) -> Vec<(u64, HandleIndex)> {
        let mut seen = FxHashSet::default();
        let mut free = Vec::new();
        for (start, length) in self.free.iter() {
            for (&place, &index) in self.places.range(start..start + length) {
                let Some(handle) = &self.handles[index.0 as usize] else { continue };
                if place + handle.bytes <= start + length && seen.insert(index) {
                    free.push((handle.bytes, index));
                }
            }
        }
        free
    }

    /// Makes a window, or makes one longer.
    fn widen(&mut self, way: &Way, books: &mut Books) -> Result<(), SourceError> {
        let start = match way.window {
            Some(start) => start,
            None => self.new_window(way.bytes() + way.missing)?,
        };
        let Some(Window { end: mut at, limit }) = self.windows.get(&start).copied() else { return Ok(()) };
        for &(length, index) in &way.chosen {
            let Some(from) = self.handles[index.0 as usize].as_ref().map(|handle| handle.places[0]) else { continue };
            let span = Span::new(self.address(from), Bytes::new(length));
            self.source.alias(span, self.address(at))?;
            books.mapped();
            self.add_place(index, at);
            self.free.insert(at, length);
            at += length;
            self.windows.insert(start, Window { end: at, limit });
        }
        let result = self.commit(at, way.missing, books);
        let end = self.free.around(at).map_or(at, |(run, length)| run + length);
        self.windows.insert(start, Window { end, limit });
        result
    }

    /// Addresses for a window, with room to grow.
    fn new_window(&mut self, bytes: u64) -> Result<u64, SourceError> {
        let limit = (2 * bytes).next_multiple_of(self.granularity);
        let wanted = limit + self.granularity;
        let again = self.closed.tightest(wanted).next();
        let start = if let Some((start, _)) = again {
            self.closed.remove(start, wanted);
            start
        } else if self.windows_end + wanted <= self.span.bytes.get() {
            self.windows_end += wanted;
            self.windows_end - wanted
        } else {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(wanted) });
        };
        self.windows.insert(start, Window { end: start, limit: start + limit });
        Ok(start)
    }

    fn add_place(&mut self, index: HandleIndex, at: u64) {
        let Some(handle) = self.handles[index.0 as usize].as_mut() else { return };
        handle.places.push(at);
        if handle.places.len() == 2 {
            self.shared.insert(handle.places[0], index);
        }
        self.shared.insert(at, index);
        self.places.insert(at, index);
    }

    /// Takes a second address from a handle that is not in use through it. The caller knows that queued work is done.
    fn drop_alias(&mut self, at: u64, books: &mut Books) -> Result<(), SourceError> {
        let Some(&index) = self.places.get(&at) else { return Ok(()) };
        let Some(handle) = self.handles[index.0 as usize].as_mut() else { return Ok(()) };
        if handle.users > 0 && handle.active == at {
            return Ok(());
        }
        self.source.decommit(Span::new(self.span.start + at, Bytes::new(handle.bytes)))?;
        books.unmapped();
        if handle.users == 0 {
            self.free.remove(at, handle.bytes);
        }
        handle.places.retain(|&place| place != at);
        self.places.remove(&at);
        self.shared.remove(&at);
        if handle.places.len() == 1 {
            self.shared.remove(&handle.places[0]);
            handle.users = 0;
        }
        Ok(())
    }

    /// Adds new memory at the end of the ground.
    pub(super) fn extend(&mut self, bytes: u64, books: &mut Books) -> Result<(), SourceError> {
        let bytes = bytes.next_multiple_of(self.granularity);
        if self.ground_end + bytes > self.border {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        let before = self.ground_end;
        let result = self.commit(before, bytes, books);
        let committed = self.free.around(before).map_or(0, |(start, length)| start + length - before);
        self.ground_end = before + committed;
        result
    }

    /// Puts new handles under a range; what was committed before an error is kept as free memory.
    fn commit(&mut self, mut at: u64, bytes: u64, books: &mut Books) -> Result<(), SourceError> {
        let end = at + bytes;
        while at < end {
            let length = self.grain(end - at, books);
            self.commit_handle(at, length, books)?;
            at += length;
        }
        Ok(())
    }

    fn commit_handle(&mut self, at: u64, bytes: u64, books: &mut Books) -> Result<(), SourceError> {
        self.source.commit(Span::new(self.address(at), Bytes::new(bytes)))?;
        books.created(bytes);
        let handle = Handle { bytes, places: vec![at], users: 0, active: at };
        let index = if let Some(index) = self.vacant.pop() {
            self.handles[index.0 as usize] = Some(handle);
            index
        } else {
            self.handles.push(Some(handle));
            HandleIndex(self.handles.len() as u32 - 1)
        };
        self.places.insert(at, index);
        self.free.insert(at, bytes);
        Ok(())
    }

    /// How large the next new handle is, of `wanted` bytes. Small handles leave no memory stranded between blocks, large
    /// ones cost fewer calls: as long as calls are not rationed they are small, later the larger the fewer are left.
    fn grain(&self, wanted: u64, books: &Books) -> u64 {
        if !self.aliases {
            return wanted;
        }
        if books.warming_up() {
            let least = (books.reserved / MOST_HANDLES).max(1).next_power_of_two();
            let grain = least.max(power_below(wanted / 32)).clamp(self.granularity, self.largest_grain());
            return grain.min(wanted);
        }
        let usual = (books.reserved / USUAL_HANDLES).max(1).next_power_of_two();
        let usual = usual.clamp(self.granularity, self.largest_grain());
        let grain = match books.left() {
            150.. => usual,
            80.. => 2 * usual,
            40.. => 4 * usual,
            _ => wanted,
        };
        if wanted <= grain + grain / 2 { wanted } else { grain }
    }

    fn largest_grain(&self) -> u64 {
        LARGEST_GRAIN.max(self.granularity)
    }

    /// Gives back every handle in which no block lies, and says how many bytes that were. The caller knows that queued
    /// work is done.
    pub(super) fn give_back(&mut self, books: &mut Books) -> Result<u64, SourceError> {
        let mut returned = 0;
        for (bytes, index) in self.free_handles() {
            while let Some(last) = self.handles[index.0 as usize].as_ref().and_then(|handle| {
                (handle.places.len() > 1).then(|| handle.places[handle.places.len() - 1])
            }) {
                self.drop_alias(last, books)?;
            }
            let Some(place) = self.handles[index.0 as usize].as_ref().map(|handle| handle.places[0]) else { continue };
            self.source.decommit(Span::new(self.address(place), Bytes::new(bytes)))?;
            books.destroyed(bytes);
            self.free.remove(place, bytes);
            self.places.remove(&place);
            self.handles[index.0 as usize] = None;
            self.vacant.push(index);
            returned += bytes;
        }
        let last = self.ground_places().next_back();
        self.ground_end = last.map_or(0, |(place, bytes)| place + bytes);
        Ok(returned)
    }

    /// Makes the free memory one run again, of large handles: it is given back and taken anew. The caller knows that
    /// queued work is done.
    pub(super) fn settle(&mut self, books: &mut Books) -> Result<(), SourceError> {
        if !self.aliases {
            return Ok(());
        }
        self.fit = Fit::Lowest;
        let bytes = self.give_back(books)?;
        let grain = power_below(bytes.max(books.reserved) / USUAL_HANDLES).clamp(self.granularity, self.largest_grain());
        let start = self.ground_addresses(bytes)?;
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let length = grain.min(end - at);
            self.commit_handle(at, length, books)?;
            at += length;
            self.ground_end = self.ground_end.max(at);
        }
        Ok(())
    }

    /// Addresses in the ground under which there is no memory: the lowest that are enough.
    fn ground_addresses(&self, bytes: u64) -> Result<u64, SourceError> {
        let mut end = 0;
        for (place, length) in self.ground_places() {
            if place - end >= bytes {
                return Ok(end);
            }
            end = place + length;
        }
        if end + bytes > self.border {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        Ok(end)
    }

    fn ground_places(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let bytes = |index: HandleIndex| self.handles[index.0 as usize].as_ref().map_or(0, |handle| handle.bytes);
        self.places.range(..self.border).map(move |(&place, &index)| (place, bytes(index)))
    }

    /// Gives up the oldest windows while there are too many second addresses, as far as the step's calls go. The caller
    /// knows that queued work is done.
    pub(super) fn close_old_windows(&mut self, books: &mut Books) -> Result<(), SourceError> {
        let oldest: Vec<u64> = self.windows.keys().copied().collect();
        for start in oldest {
            if !self.has_too_many_windows() || books.left() == 0 {
                break;
            }
            self.close_window(start, books)?;
        }
        Ok(())
    }

    /// Takes the second addresses in a window away, unless one of them is in use.
    fn close_window(&mut self, start: u64, books: &mut Books) -> Result<(), SourceError> {
        let Some(&Window { end, limit }) = self.windows.get(&start) else { return Ok(()) };
        let places: Vec<(u64, HandleIndex)> =
            self.places.range(start..end).map(|(&place, &index)| (place, index)).collect();
        let idle = places.iter().all(|&(place, index)| {
            self.handles[index.0 as usize]
                .as_ref()
                .is_some_and(|handle| handle.places[0] != place && (handle.users == 0 || handle.active != place))
        });
        if !idle {
            return Ok(());
        }
        for (place, _) in places {
            self.drop_alias(place, books)?;
        }
        self.windows.remove(&start);
        self.closed.insert(start, limit + self.granularity - start);
        Ok(())
    }
}

/// A way to a run that is long enough: free handles at the end of a window, and new memory behind them.
#[derive(Debug)]
struct Way {
    window: Option<u64>,
    chosen: Vec<(u64, HandleIndex)>,
    missing: u64,
}

impl Way {
    /// Chooses among `free` handles, sorted by size, so that together they have `bytes`: the largest that fit first, and
    /// for the rest one that is larger; as many as three quarters of `calls` allow to map.
    fn of(window: Option<u64>, bytes: u64, mut free: Vec<(u64, HandleIndex)>, calls: u64) -> Self {
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
        Self { window, chosen, missing: wanted }
    }

    fn bytes(&self) -> u64 {
        self.chosen.iter().map(|&(bytes, _)| bytes).sum()
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // A source that fails here keeps the range until it is dropped itself.
        let _ = self.source.release(self.span);
    }
}

/// The largest power of two that is not above `bytes`, or one.
fn power_below(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

/// Addresses for a heap over `capacity` bytes of memory: many times as many, or fewer where there are not so many.
fn reserve(source: &dyn Source, capacity: u64) -> Result<Span, SourceError> {
    let mut wanted = capacity.saturating_mul(ADDRESSES_PER_BYTE);
    loop {
        match source.reserve(Bytes::new(wanted)) {
            Err(_) if wanted / 2 >= capacity => wanted /= 2,
            other => return other,
        }
    }
}
