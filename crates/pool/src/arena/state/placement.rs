//! Where a block goes that no plan has: in free memory, in memory that is made for it, and, when the source has none left,
//! in what can still be had.

use std::mem;

use lowtide_core::StreamId;
use lowtide_memory::Error as SourceError;

use super::State;
use crate::arena::sized_heaps::SizeClass;
use crate::arena::streams::Position;
use crate::error::Error;
use crate::pool::{Request, UNIT};
use crate::serving::PlanArena;

impl State {
    /// Where to put a block; makes room where there is none.
    pub(super) fn place(&mut self, size: SizeClass, bytes: u64, align: u64, request: &Request) -> Result<u64, Error> {
        if let Some(offset) = self.find(size, bytes, align, request.stream)? {
            return Ok(offset);
        }
        self.coalesce_all();
        if let Some(offset) = self.find(size, bytes, align, request.stream)? {
            return Ok(offset);
        }
        let wanted = bytes + align - UNIT;
        self.yield_plan_to(bytes);
        if mem::take(&mut self.has_freed_planned) {
            self.end_loans();
        }
        self.recall();
        if !self.pending.is_empty() {
            self.poll_all();
        }
        if let Some(offset) = self.find(size, bytes, align, request.stream)? {
            return Ok(offset);
        }
        match self.heaps.of_mut(size).heap.make_room(wanted, &mut self.accounting) {
            Ok(()) => {}
            Err(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) => {
                return self.rescue(size, bytes, align, request);
            }
            Err(error) => return Err(Error::Source(error)),
        }
        match self.find(size, bytes, align, request.stream)? {
            Some(offset) => Ok(offset),
            None => Err(self.out_of_memory(request)),
        }
    }

    /// Drops the plan where the step does not follow it, or where more would have to be reserved because of it than without.
    fn yield_plan_to(&mut self, bytes: u64) {
        if self.plans.current().is_some() && !self.yield_plan() {
            let live = self.stats().live.get();
            if self.accounting.would_exceed(live, bytes.next_multiple_of(self.abilities.granularity)) {
                self.make_room();
            }
        }
    }

    /// Tries what is left when the source has no more memory.
    fn rescue(&mut self, size: SizeClass, bytes: u64, align: u64, request: &Request) -> Result<u64, Error> {
        let wanted = bytes + align - UNIT;
        if !self.pending.is_empty() {
            // Work that cannot be waited for leaves its memory in use.
            let _ = self.wait_for_pending();
            if let Some(offset) = self.find(size, bytes, align, request.stream)? {
                return Ok(offset);
            }
        }
        let gathered = self.heaps.of_mut(size).heap.gather(wanted, &mut self.accounting);
        if !matches!(gathered, Ok(true)) {
            self.drop_plan();
            self.give_back().map_err(Error::Source)?;
            if let Some(offset) = self.find(size, bytes, align, request.stream)? {
                return Ok(offset);
            }
            match self.heaps.of_mut(size).heap.grow(wanted, wanted, &mut self.accounting) {
                Ok(()) => {}
                Err(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) => {
                    return Err(self.out_of_memory(request));
                }
                Err(error) => return Err(Error::Source(error)),
            }
        }
        match self.find(size, bytes, align, request.stream)? {
            Some(offset) => Ok(offset),
            None => Err(self.out_of_memory(request)),
        }
    }

    fn out_of_memory(&mut self, request: &Request) -> Error {
        let stats = self.stats();
        Error::OutOfMemory { asked: request.bytes, live: stats.live, reserved: stats.reserved }
    }

    /// A place in free memory that `stream` may use: at once where there is one, else behind other streams' work.
    fn find(&mut self, size: SizeClass, bytes: u64, align: u64, stream: StreamId) -> Result<Option<u64>, Error> {
        const TRIES: usize = 8;
        let sized = self.heaps.of(size);
        let Some(best) = sized.heap.best(bytes, align) else { return Ok(None) };
        if !self.queues.several() {
            return Ok(Some(best));
        }
        let mut place = best;
        let waits = self.waits(size, best, bytes, stream);
        if !waits.is_empty() {
            let others: Vec<u64> =
                self.heaps.of(size).heap.fitting(bytes, align).map(|(at, _)| at).take(TRIES).collect();
            match others.into_iter().find(|&at| self.waits(size, at, bytes, stream).is_empty()) {
                Some(other) => place = other,
                None => {
                    for (owner, position) in waits {
                        self.queues.hold(stream, owner, position, &*self.source).map_err(Error::Source)?;
                    }
                }
            }
        }
        self.heaps.of_mut(size).freed.cut(place, place + bytes);
        Ok(Some(place))
    }

    /// For whom `stream` has to wait before it uses a range.
    fn waits(&mut self, size: SizeClass, at: u64, bytes: u64, stream: StreamId) -> Vec<(StreamId, Position)> {
        let sized = self.heaps.of(size);
        let ranges = sized.heap.footprint(at, bytes);
        let mut owners: Vec<_> = ranges.into_iter().flat_map(|(start, end)| sized.freed.owners(start, end)).collect();
        owners.retain(|&(owner, position)| self.queues.must_wait(stream, owner, position, &*self.source));
        owners
    }
}
