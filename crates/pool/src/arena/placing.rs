//! Where a block goes that no plan has: in free memory, in memory that is made for it, and, when the source has none left,
//! in what can still be had.

use lowtide_core::StreamId;
use lowtide_memory::Error as SourceError;

use super::UNIT;
use super::state::{Home, State};
use super::streams::Position;
use crate::error::Error;
use crate::pool::Request;

impl State {
    /// Where to put a block; makes room where there is none.
    pub(super) fn place(&mut self, home: Home, size: u64, align: u64, request: &Request) -> Result<u64, Error> {
        if let Some(offset) = self.find(home, size, align, request.stream)? {
            return Ok(offset);
        }
        let wanted = size + align - UNIT;
        self.yield_stage();
        if !self.pending.is_empty() {
            self.poll();
            if let Some(offset) = self.find(home, size, align, request.stream)? {
                return Ok(offset);
            }
        }
        let Self { books, small, large, .. } = self;
        let zone = if home == Home::Small { small } else { large };
        match zone.heap.make_room(wanted, books) {
            Ok(()) => {}
            Err(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) => {
                return self.rescue(home, size, align, request);
            }
            Err(error) => return Err(Error::Source(error)),
        }
        match self.find(home, size, align, request.stream)? {
            Some(offset) => Ok(offset),
            None => Err(self.out_of_memory(request)),
        }
    }

    /// Tries what is left when the source has no more memory.
    fn rescue(&mut self, home: Home, size: u64, align: u64, request: &Request) -> Result<u64, Error> {
        let wanted = size + align - UNIT;
        if !self.pending.is_empty() {
            // Work that cannot be waited for leaves its memory in use.
            let _ = self.wait_for_pending();
            if let Some(offset) = self.find(home, size, align, request.stream)? {
                return Ok(offset);
            }
        }
        let Self { books, small, large, .. } = self;
        let zone = if home == Home::Small { small } else { large };
        let gathered = zone.heap.gather(wanted, books);
        if !matches!(gathered, Ok(true)) {
            self.lower_stage();
            let _ = self.dismantle();
            self.give_back().map_err(Error::Source)?;
            if let Some(offset) = self.find(home, size, align, request.stream)? {
                return Ok(offset);
            }
            let Self { books, small, large, .. } = self;
            let zone = if home == Home::Small { small } else { large };
            match zone.heap.grow(wanted, wanted, books) {
                Ok(()) => {}
                Err(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) => {
                    return Err(self.out_of_memory(request));
                }
                Err(error) => return Err(Error::Source(error)),
            }
        }
        match self.find(home, size, align, request.stream)? {
            Some(offset) => Ok(offset),
            None => Err(self.out_of_memory(request)),
        }
    }

    fn out_of_memory(&mut self, request: &Request) -> Error {
        let stats = self.stats();
        Error::OutOfMemory { asked: request.bytes, live: stats.live, reserved: stats.reserved }
    }

    /// A place in free memory that `stream` may use: at once where there is one, else behind other streams' work.
    fn find(&mut self, home: Home, size: u64, align: u64, stream: StreamId) -> Result<Option<u64>, Error> {
        const TRIES: usize = 8;
        let zone = if home == Home::Small { &self.small } else { &self.large };
        let Some(best) = zone.heap.best(size, align) else { return Ok(None) };
        if !self.queues.several() {
            return Ok(Some(best));
        }
        let others: Vec<u64> = zone.heap.fitting(size, align).map(|(at, _)| at).take(TRIES).collect();
        for at in std::iter::once(best).chain(others) {
            if self.waits(home, at, size, stream).is_empty() {
                self.zone(home).freed.cut(at, at + size);
                return Ok(Some(at));
            }
        }
        for (owner, position) in self.waits(home, best, size, stream) {
            self.queues.hold(stream, owner, position, &*self.source).map_err(Error::Source)?;
        }
        self.zone(home).freed.cut(best, best + size);
        Ok(Some(best))
    }

    /// For whom `stream` has to wait before it uses a range.
    fn waits(&mut self, home: Home, at: u64, size: u64, stream: StreamId) -> Vec<(StreamId, Position)> {
        let zone = if home == Home::Small { &self.small } else { &self.large };
        let ranges = zone.heap.footprint(at, size);
        let mut owners: Vec<_> = ranges.into_iter().flat_map(|(start, end)| zone.freed.owners(start, end)).collect();
        owners.retain(|&(owner, position)| self.queues.must_wait(stream, owner, position, &*self.source));
        owners
    }
}
