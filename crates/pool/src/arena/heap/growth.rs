//! How a heap takes memory from its source and gives it back.

use lowtide_core::Bytes;
use lowtide_memory::{Error as SourceError, Span};
use rustc_hash::FxHashSet;

use super::{Handle, HandleIndex, Heap};
use crate::arena::accounting::Accounting;

/// Into how many handles memory is divided, about, once it is defragmented.
const USUAL_HANDLES: u64 = 640;

/// Handles that are larger would strand too much memory.
const LARGEST_GRAIN: u64 = 64 << 20;

/// Without second addresses handles need not be small, and few calls are better than many.
const LEAST_GROWTH: u64 = 1 << 20;

impl Heap {
    /// Adds `need` bytes at the end of the base, or, where there are no addresses left, `whole` in a gap of it.
    pub(in crate::arena) fn grow(
        &mut self,
        need: u64,
        whole: u64,
        accounting: &mut Accounting,
    ) -> Result<(), SourceError> {
        match self.extend(need, accounting) {
            Err(SourceError::OutOfAddresses { .. }) => {
                let whole = whole.next_multiple_of(self.granularity);
                let start = self.base_addresses(whole)?;
                self.commit(start, whole, accounting)
            }
            other => other,
        }
    }

    /// Adds new memory at the end of the base.
    fn extend(&mut self, bytes: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let least = if self.aliases { self.granularity } else { self.granularity.max(LEAST_GROWTH) };
        let bytes = bytes.next_multiple_of(least);
        if self.base_end + bytes > self.aliases_from {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        let before = self.base_end;
        let result = self.commit(before, bytes, accounting);
        let committed = self.free.containing(before).map_or(0, |run| run.end - before);
        self.base_end = before + committed;
        result
    }

    /// Puts new handles under a range; what was committed before an error is kept as free memory.
    pub(super) fn commit(&mut self, mut at: u64, bytes: u64, accounting: &mut Accounting) -> Result<(), SourceError> {
        let end = at + bytes;
        while at < end {
            let length = self.grain(end - at, accounting);
            self.commit_handle(at, length, accounting)?;
            at += length;
        }
        Ok(())
    }

    pub(super) fn commit_handle(
        &mut self,
        at: u64,
        bytes: u64,
        accounting: &mut Accounting,
    ) -> Result<(), SourceError> {
        self.source.commit(Span::new(self.address(at), Bytes::new(bytes)))?;
        accounting.created(bytes);
        self.made += 1;
        let handle = Handle::new(bytes, at, self.made);
        let index = if let Some(index) = self.vacant.pop() {
            self.handles[index.0 as usize] = Some(handle);
            index
        } else {
            self.handles.push(Some(handle));
            HandleIndex(self.handles.len() as u32 - 1)
        };
        self.places.insert(at, index);
        self.map(at, bytes, Some(index));
        self.free.insert(at..at + bytes);
        Ok(())
    }

    /// How large the next new handle is, of `wanted` bytes. Small handles leave no memory stranded between blocks, large
    /// ones cost fewer calls: after the first steps, the fewer are left the larger they are.
    fn grain(&self, wanted: u64, accounting: &Accounting) -> u64 {
        if !self.aliases {
            return wanted;
        }
        if let Some(handles) = accounting.budget().handles() {
            let least = (accounting.reserved() / handles).max(1).next_power_of_two();
            let grain = least.max(power_below(wanted / 32)).clamp(self.granularity, self.largest_grain());
            return grain.min(wanted);
        }
        let usual = (accounting.reserved() / USUAL_HANDLES).max(1).next_power_of_two();
        let usual = usual.clamp(self.granularity, self.largest_grain());
        let grain = match accounting.left() {
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
    pub(in crate::arena) fn give_back(&mut self, accounting: &mut Accounting) -> Result<u64, SourceError> {
        let free: Vec<HandleIndex> = self.free_handles().into_iter().map(|(_, index)| index).collect();
        self.give_back_handles(&free, accounting)
    }

    /// Gives back these handles, in which no block lies, and says how many bytes that were. The caller knows that queued work is
    /// done.
    pub(in crate::arena) fn give_back_handles(
        &mut self,
        handles: &[HandleIndex],
        accounting: &mut Accounting,
    ) -> Result<u64, SourceError> {
        let mut returned = 0;
        let mut outcome = Ok(());
        for &index in handles {
            match self.give_back_handle(index, accounting) {
                Ok(bytes) => returned += bytes,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let last = self.base_places().next_back();
        self.base_end = last.map_or(0, |(place, bytes)| place + bytes);
        self.tidy_alias_runs();
        outcome.map(|()| returned)
    }

    fn give_back_handle(&mut self, index: HandleIndex, accounting: &mut Accounting) -> Result<u64, SourceError> {
        while let Some(last) = self.handles[index.0 as usize]
            .as_ref()
            .and_then(|handle| (handle.places.len() > 1).then(|| handle.places[handle.places.len() - 1]))
        {
            self.drop_alias(last, accounting)?;
        }
        let Some((place, bytes)) =
            self.handles[index.0 as usize].as_ref().map(|handle| (handle.places[0], handle.bytes))
        else {
            return Ok(0);
        };
        self.source.decommit(Span::new(self.address(place), Bytes::new(bytes)))?;
        accounting.destroyed(bytes);
        self.free.remove(place..place + bytes);
        self.places.remove(&place);
        self.map(place, bytes, None);
        self.handles[index.0 as usize] = None;
        self.vacant.push(index);
        Ok(bytes)
    }

    /// Brings together free memory that lies scattered, and gives up what is reserved beyond the allowance: free handles outside of long runs
    /// are given back, and as many bytes as may be are taken anew as one run. The caller knows that queued work is done.
    pub(in crate::arena) fn defragment(&mut self, accounting: &mut Accounting) -> Result<(), SourceError> {
        if !self.aliases {
            return Ok(());
        }
        self.keep_low();
        let scattered = self.scattered_handles(accounting);
        let returned = self.give_back_handles(&scattered, accounting)?;
        let wanted = accounting.allowance(0).saturating_sub(accounting.reserved());
        let bytes = returned.min(wanted.next_multiple_of(self.granularity));
        let grain =
            power_below(bytes.max(accounting.reserved()) / USUAL_HANDLES).clamp(self.granularity, self.largest_grain());
        let start = self.base_addresses(bytes)?;
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let length = grain.min(end - at);
            self.commit_handle(at, length, accounting)?;
            at += length;
            self.base_end = self.base_end.max(at);
        }
        Ok(())
    }

    /// About how many calls [`defragment`](Self::defragment) would make: it gives handles back and makes as many.
    pub(in crate::arena) fn defragment_calls(&self, accounting: &Accounting) -> u64 {
        if !self.aliases {
            return 0;
        }
        4 * self.scattered_handles(accounting).len() as u64
    }

    /// The free handles that are given back: those outside of long runs, and where those are less than what is reserved beyond the allowance,
    /// the highest of the others.
    fn scattered_handles(&self, accounting: &Accounting) -> Vec<HandleIndex> {
        let excess = accounting.reserved().saturating_sub(accounting.allowance(0));
        let mut chosen = self.handles_outside(accounting.budget().long_run());
        let known: FxHashSet<HandleIndex> = chosen.iter().copied().collect();
        let mut bytes: u64 =
            chosen.iter().filter_map(|index| self.handles[index.0 as usize].as_ref()).map(|handle| handle.bytes).sum();
        let mut others = self.free_handles();
        others.retain(|(_, index)| !known.contains(index));
        others.sort_by_key(|(_, index)| self.handles[index.0 as usize].as_ref().map(|handle| handle.places[0]));
        while bytes < excess
            && let Some((more, index)) = others.pop()
        {
            chosen.push(index);
            bytes += more;
        }
        chosen
    }

    /// The handles in which no block lies and that are in no run of the base that has `part` of all free handles.
    fn handles_outside(&self, part: f64) -> Vec<HandleIndex> {
        let free = self.free_handles();
        let long = free.iter().map(|(bytes, _)| bytes).sum::<u64>() as f64 * part;
        let is_scattered = |index: HandleIndex| {
            let first = self.handles[index.0 as usize].as_ref().map(|handle| handle.places[0]);
            let run = first.and_then(|place| self.free.containing(place));
            run.is_none_or(|run| ((run.end - run.start) as f64) < long)
        };
        free.into_iter().map(|(_, index)| index).filter(|&index| is_scattered(index)).collect()
    }

    /// Addresses in the base under which there is no memory: the lowest that are enough.
    fn base_addresses(&self, bytes: u64) -> Result<u64, SourceError> {
        let mut end = 0;
        for (place, length) in self.base_places() {
            if place - end >= bytes {
                return Ok(end);
            }
            end = place + length;
        }
        if end + bytes > self.aliases_from {
            return Err(SourceError::OutOfAddresses { asked: Bytes::new(bytes) });
        }
        Ok(end)
    }

    fn base_places(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let bytes = |index: HandleIndex| self.handles[index.0 as usize].as_ref().map_or(0, |handle| handle.bytes);
        self.places.range(..self.aliases_from).map(move |(&place, &index)| (place, bytes(index)))
    }
}

/// The largest power of two that is not above `bytes`, or one.
fn power_below(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}
