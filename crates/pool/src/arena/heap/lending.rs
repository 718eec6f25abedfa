//! Handles that a heap lends: to the memory of a plan, which uses what is free around blocks that stay and whole free handles, or to
//! nobody, while they wait to be given back.

use lowtide_core::ranges::FreeRuns;
use rustc_hash::FxHashSet;

use super::{HandleIndex, Heap};

/// A handle that can be lent.
#[derive(Clone, Copy, Debug)]
pub(in crate::arena) struct Holder {
    pub(in crate::arena) index: HandleIndex,
    /// What tells the handle from all others of its heap.
    pub(in crate::arena) serial: u64,
    /// Where its blocks lie, if there are any.
    pub(in crate::arena) place: u64,
    pub(in crate::arena) bytes: u64,
    /// How much of it is free.
    pub(in crate::arena) free: u64,
}

impl Heap {
    /// Adds a range to the free memory, but for what is lent.
    pub(super) fn insert_free(&mut self, mut at: u64, end: u64) {
        if !self.lent.is_empty() {
            let before = self.lent.range(..=at).next_back().filter(|(_, lent_end)| **lent_end > at);
            let over: Vec<(u64, u64)> =
                before.into_iter().chain(self.lent.range(at + 1..end)).map(|(&start, &end)| (start, end)).collect();
            for (start, lent_end) in over {
                self.free.insert(at..start);
                at = lent_end.min(end);
            }
        }
        self.free.insert(at..end);
    }

    /// The handles in which blocks lie and that are not lent, by their place.
    pub(in crate::arena) fn holders(&self) -> Vec<Holder> {
        let free_handles: FxHashSet<HandleIndex> = self.free_handles().into_iter().map(|(_, index)| index).collect();
        let mut holders: Vec<Holder> = (self.handles.iter().enumerate())
            .filter_map(|(number, handle)| {
                let (index, handle) = (HandleIndex(number as u32), handle.as_ref()?);
                let place = if handle.places.len() > 1 { handle.active } else { handle.places[0] };
                let held = !free_handles.contains(&index) && !handle.is_lent;
                held.then(|| Holder {
                    index,
                    serial: handle.serial,
                    place,
                    bytes: handle.bytes,
                    free: self.free_within(place, handle.bytes),
                })
            })
            .collect();
        holders.sort_unstable_by_key(|holder| holder.place);
        holders
    }

    /// The first address of a handle, if there still is one.
    pub(in crate::arena) fn first_address(&self, holder: &Holder) -> Option<u64> {
        let handle = self.handles.get(holder.index.0 as usize)?.as_ref()?;
        (handle.serial == holder.serial).then(|| self.address(handle.places[0]))
    }

    fn free_within(&self, place: u64, bytes: u64) -> u64 {
        self.free_parts(place, place + bytes).iter().map(|(start, end)| end - start).sum()
    }

    fn free_parts(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        self.free.overlapping(&(start..end)).map(|run| (run.start.max(start), run.end.min(end))).collect()
    }

    /// The handles in which no block lies.
    pub(in crate::arena) fn free_holders(&self) -> Vec<Holder> {
        let holder = |(bytes, index): (u64, HandleIndex)| {
            let handle = self.handles[index.0 as usize].as_ref()?;
            Some(Holder { index, serial: handle.serial, place: handle.places[0], bytes, free: bytes })
        };
        self.free_handles().into_iter().filter_map(holder).collect()
    }

    /// Lends a handle: what is free in it, and what its blocks leave, is the borrower's.
    pub(in crate::arena) fn lend(&mut self, holder: &Holder) {
        let (start, end) = (holder.place, holder.place + holder.bytes);
        for (from, to) in self.free_parts(start, end) {
            self.free.remove(from..to);
        }
        self.lent.insert(start, end);
        let Some(handle) = &mut self.handles[holder.index.0 as usize] else { return };
        if handle.is_idle() {
            self.relisted.extend(handle.listed_beside(start));
        }
        handle.is_lent = true;
        self.relist(FreeRuns::remove);
    }

    /// Takes a lent handle back. `blocks` are those that lie in it.
    pub(in crate::arena) fn take_back(&mut self, holder: &Holder, blocks: &[(u64, u64)]) {
        let (mut at, end) = (holder.place, holder.place + holder.bytes);
        self.lent.remove(&at);
        for &(start, bytes) in blocks {
            self.free.insert(at..start);
            at = at.max(start + bytes);
        }
        self.free.insert(at..end);
        let Some(handle) = &mut self.handles[holder.index.0 as usize] else { return };
        handle.is_lent = false;
        if handle.is_idle() {
            self.relisted.extend(handle.listed_beside(holder.place));
            self.relist(FreeRuns::insert);
        }
    }
}
