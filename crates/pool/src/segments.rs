//! Blocks of host memory that devices copy from and to. They are cut at their exact size from segments that are never
//! joined: a driver knows such memory by the ranges in which it was registered, and a block must lie in one of them.

mod runs;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_core::ranges::RangeSet;
use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error as SourceError, Source, Span};
use rustc_hash::FxHashMap;

use crate::addresses;
use crate::error::Error;
use crate::pending::PendingBlocks;
use crate::pool::{Address, Pool, Request, Stats, UNIT};
use runs::{Class, SegmentRuns};

/// Blocks below this share segments of [`SHARED`].
const SMALL: u64 = 1 << 20;
const SHARED: u64 = 2 << 20;

/// The pool. Memory of blocks that were freed is kept and used again: to register it takes far longer than to copy it.
///
/// A block is the processor's, which uses it as soon as it gets it. So a freed one waits for the work of every stream
/// that was [recorded](Pool::record) for it, and the stream of a [`Request`] means nothing here.
#[derive(Debug)]
pub struct Segments {
    source: Arc<dyn Source>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// All addresses, and those under which there is no segment.
    reserved: Vec<Span>,
    vacant: RangeSet,
    runs: SegmentRuns,
    blocks: FxHashMap<u64, Block>,
    /// Freed blocks that streams still use.
    pending: PendingBlocks,
    stats: Stats,
}

#[derive(Debug)]
struct Block {
    /// What was asked for.
    bytes: Bytes,
    /// What it takes.
    size: u64,
    uses: Vec<StreamId>,
    /// Whether it was freed and waits for the streams that use it.
    is_pending: bool,
}

impl Segments {
    /// A pool over `source`. Takes nothing yet.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a segment in which a block of `size` fits.
    fn grow(&self, state: &mut State, size: u64, align: u64, class: Class) -> Result<(), SourceError> {
        let bytes = if class == Class::Small { SHARED } else { size + align - UNIT };
        let granularity = self.source.describe().granularity.get();
        let bytes = bytes.next_multiple_of(granularity);
        let start = if let Some(start) = state.vacant.take_lowest(bytes) {
            start
        } else {
            let more = addresses::reserve(&*self.source, bytes)?;
            state.reserved.push(more);
            state.vacant.insert(more.start..more.end());
            state.vacant.take_lowest(bytes).ok_or(SourceError::OutOfAddresses { asked: Bytes::new(bytes) })?
        };
        let span = Span::new(start, Bytes::new(bytes));
        if let Err(error) = self.source.commit(span) {
            state.vacant.insert(start..start + bytes);
            return Err(error);
        }
        state.runs.add(span, class);
        state.stats.reserved += span.bytes;
        state.stats.peak_reserved = state.stats.peak_reserved.max(state.stats.reserved);
        Ok(())
    }

    /// Takes back the blocks whose streams are done.
    fn poll(&self, state: &mut State) {
        for address in state.pending.poll(usize::MAX, &*self.source) {
            state.release(address);
        }
    }

    /// Waits for the streams of all freed blocks.
    fn wait(&self, state: &mut State) -> Result<(), SourceError> {
        state.pending.wait(&*self.source)?;
        self.poll(state);
        Ok(())
    }

    /// Gives back the segments in which no block lies.
    fn give_back(&self, state: &mut State) -> Result<Bytes, SourceError> {
        let mut given = Bytes::ZERO;
        for span in state.runs.idle() {
            self.source.decommit(span)?;
            state.runs.remove(span);
            state.vacant.insert(span.start..span.end());
            state.stats.reserved = state.stats.reserved.saturating_sub(span.bytes);
            given += span.bytes;
        }
        Ok(given)
    }

    /// Where a block goes: in free memory, or in memory that is made for it.
    fn place(&self, state: &mut State, size: u64, align: u64) -> Result<u64, SourceError> {
        let class = if size < SMALL && align <= SMALL { Class::Small } else { Class::Large };
        if let Some(start) = state.runs.take(size, align, class) {
            return Ok(start);
        }
        self.poll(state);
        if let Some(start) = state.runs.take(size, align, class) {
            return Ok(start);
        }
        if let Err(error) = self.grow(state, size, align, class) {
            if !matches!(error, SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. }) {
                return Err(error);
            }
            self.wait(state)?;
            if let Some(start) = state.runs.take(size, align, class) {
                return Ok(start);
            }
            self.give_back(state)?;
            self.grow(state, size, align, class)?;
        }
        state.runs.take(size, align, class).ok_or(SourceError::OutOfMemory { asked: Bytes::new(size) })
    }
}

impl State {
    /// Makes a block's memory free.
    fn release(&mut self, address: u64) {
        if let Some(block) = self.blocks.remove(&address) {
            self.stats.live = self.stats.live.saturating_sub(block.bytes);
            self.runs.give(address, block.size);
        }
    }
}

/// The block at an address that was handed out and not freed.
fn live<'a>(
    blocks: &'a mut FxHashMap<u64, Block>,
    runs: &SegmentRuns,
    address: Address,
) -> Result<&'a mut Block, Error> {
    match blocks.get_mut(&address.0) {
        Some(block) if !block.is_pending => Ok(block),
        Some(_) => Err(Error::DoubleFree { address }),
        None if runs.is_free(address.0) => Err(Error::DoubleFree { address }),
        None => Err(Error::ForeignAddress { address }),
    }
}

impl Pool for Segments {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let (bytes, align) = (request.bytes, request.align.get());
        if bytes == Bytes::ZERO {
            return Err(Error::ZeroSize);
        }
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let align = align.max(UNIT);
        let capacity = self.source.describe().capacity.unwrap_or(Bytes::new(1 << 60));
        if bytes.get().max(align) > capacity.get() {
            return Err(Error::TooLarge { asked: bytes, capacity });
        }
        let size = bytes.get().next_multiple_of(UNIT);
        let mut state = self.state();
        let start = self.place(&mut state, size, align).map_err(|error| match error {
            SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. } => {
                let Stats { live, reserved, .. } = state.stats;
                Error::OutOfMemory { asked: bytes, live, reserved }
            }
            other => Error::Source(other),
        })?;
        state.blocks.insert(start, Block { bytes, size, uses: Vec::new(), is_pending: false });
        state.stats.live += bytes;
        state.stats.peak_live = state.stats.peak_live.max(state.stats.live);
        Ok(Address(start))
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        let mut state = self.state();
        let State { blocks, pending, runs, .. } = &mut *state;
        let block = live(blocks, runs, address)?;
        if block.uses.is_empty() {
            state.release(address.0);
        } else {
            pending.push(address.0, &block.uses, &*self.source).map_err(Error::Source)?;
            block.is_pending = true;
        }
        Ok(())
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        let mut state = self.state();
        let State { blocks, runs, .. } = &mut *state;
        let block = live(blocks, runs, address)?;
        if !block.uses.contains(&stream) {
            block.uses.push(stream);
        }
        Ok(())
    }

    fn trim(&self) -> Result<Bytes, Error> {
        let mut state = self.state();
        self.wait(&mut state).and_then(|()| self.give_back(&mut state)).map_err(Error::Source)
    }

    fn stats(&self) -> Stats {
        let mut state = self.state();
        self.poll(&mut state);
        state.stats
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Streams may still use what was freed; a source that fails here has no work that could be waited for.
        let _ = self.wait(&mut state);
        state.pending.forget(&*self.source);
        for span in state.reserved.drain(..) {
            addresses::release(&*self.source, span);
        }
    }
}

#[cfg(test)]
mod tests {
    use lowtide_memory::{Host, HostOptions, Simulated, SimulatedOptions};

    use super::*;

    fn pool() -> Segments {
        Segments::new(Arc::new(Host::new(&HostOptions::default())))
    }

    fn alloc(pool: &Segments, bytes: u64) -> Address {
        pool.alloc(&Request::new(Bytes::new(bytes))).unwrap()
    }

    #[test]
    fn a_block_takes_what_it_asks_for_and_not_a_power_of_two() {
        let pool = pool();
        let bytes = (9 << 20) + 1;
        alloc(&pool, bytes);
        let stats = pool.stats();
        assert_eq!(stats.live, Bytes::new(bytes));
        assert!(stats.reserved.get() - bytes <= 2 << 20, "{stats:?}");
    }

    #[test]
    fn freed_memory_is_split_and_used_again() {
        let pool = pool();
        let large = alloc(&pool, 8 << 20);
        pool.free(large).unwrap();
        let halves = [alloc(&pool, 4 << 20), alloc(&pool, 4 << 20)];
        assert_eq!(pool.stats().reserved, Bytes::new(8 << 20));
        for half in halves {
            pool.free(half).unwrap();
        }
        assert_eq!(alloc(&pool, 8 << 20), large);
    }

    #[test]
    fn small_blocks_share_a_segment() {
        let pool = pool();
        let blocks: Vec<Address> = (0..100).map(|_| alloc(&pool, 1000)).collect();
        assert_eq!(pool.stats().reserved, Bytes::new(SHARED));
        for block in blocks {
            assert!(block.0.is_multiple_of(UNIT));
            pool.free(block).unwrap();
        }
        assert_eq!(pool.trim().unwrap(), Bytes::new(SHARED));
        assert_eq!(pool.stats().reserved, Bytes::ZERO);
    }

    #[test]
    fn a_block_lies_in_one_segment() {
        let pool = pool();
        let blocks: Vec<Address> = (0..8).map(|_| alloc(&pool, 2 << 20)).collect();
        for &block in &blocks {
            pool.free(block).unwrap();
        }
        let whole = alloc(&pool, 4 << 20);
        assert!(!blocks.contains(&whole));
        assert_eq!(pool.stats().reserved, Bytes::new(20 << 20));
    }

    #[test]
    fn a_freed_block_waits_for_copies_on_any_stream() {
        let device = Arc::new(Simulated::new(SimulatedOptions::default()).unwrap());
        let pool = Segments::new(device.clone());
        let block = alloc(&pool, 2 << 20);
        pool.record(block, StreamId(0)).unwrap();
        pool.record(block, StreamId(7)).unwrap();
        pool.free(block).unwrap();
        assert_eq!(pool.stats().live, Bytes::new(2 << 20));
        assert_ne!(alloc(&pool, 2 << 20), block);
        device.advance(1_000_000_000);
        assert_eq!(alloc(&pool, 2 << 20), block);
    }

    #[test]
    fn a_shortage_waits_for_copies_and_gives_back_what_is_idle() {
        let capacity = Some(Bytes::new(8 << 20));
        let device = Simulated::new(SimulatedOptions { capacity, ..SimulatedOptions::default() }).unwrap();
        let pool = Segments::new(Arc::new(device));
        let blocks = [alloc(&pool, 4 << 20), alloc(&pool, 4 << 20)];
        assert!(matches!(pool.alloc(&Request::new(Bytes::new(2 << 20))), Err(Error::OutOfMemory { .. })));
        for block in blocks {
            pool.record(block, StreamId(1)).unwrap();
            pool.free(block).unwrap();
        }
        alloc(&pool, 8 << 20);
        assert_eq!(pool.stats().reserved, Bytes::new(8 << 20));
    }

    #[test]
    fn what_is_not_a_live_block_is_refused() {
        let pool = pool();
        let block = alloc(&pool, 4096);
        pool.free(block).unwrap();
        assert_eq!(pool.free(block), Err(Error::DoubleFree { address: block }));
        assert_eq!(pool.free(Address(64)), Err(Error::ForeignAddress { address: Address(64) }));
        assert_eq!(pool.alloc(&Request::new(Bytes::ZERO)), Err(Error::ZeroSize));
    }
}
