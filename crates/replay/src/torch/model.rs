//! What both models share: how a request becomes a block, in which order memory is looked for, what happens to a block
//! that is freed, and the counts. A [`Growth`] says where new memory comes from and which goes back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::Source;
use lowtide_pool::{Address, Error, Pool, Request, Stats};
use rustc_hash::FxHashMap;

use super::blocks::{Block, Blocks, Class, Index, State};
use super::marks::Marks;
use super::options::{TorchOptions, UNIT};
use super::supply::Supply;

/// A block that is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) bytes: u64,
    pub(super) stream: StreamId,
    pub(super) class: Class,
}

/// What a [`Growth`] works on.
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) options: TorchOptions,
    pub(super) supply: Supply,
    pub(super) blocks: Blocks,
}

/// Where memory comes from and how it goes back. Whatever fails leaves blocks and counts as they are in truth.
pub(super) trait Growth: Send + fmt::Debug {
    /// The free block that serves best.
    fn find(&self, backing: &Backing, want: &Want) -> Option<Index>;

    /// Whether what `want` leaves of a block is split off.
    fn splits(&self, backing: &Backing, block: &Block, want: &Want) -> bool;

    /// A free block out of new memory, shelved; none where the source has not enough.
    fn grow(&mut self, backing: &mut Backing, want: &Want) -> Result<Option<Index>, Error>;

    /// Gives back memory that was not used for long, where that is wished.
    fn collect_garbage(&mut self, backing: &mut Backing) -> Result<(), Error>;

    /// Gives back as many unsplittable blocks as `want` needs; whether there were enough.
    fn release_oversize(&mut self, backing: &mut Backing, want: &Want) -> Result<bool, Error>;

    /// Gives back all memory that is wholly free.
    fn release_free(&mut self, backing: &mut Backing) -> Result<(), Error>;

    /// Gives back everything: the end.
    fn close(&mut self, backing: &mut Backing);
}

/// What is known of an address that was handed out. Freed ones are remembered for good, to tell a block that is freed
/// twice from an address that was never given.
#[derive(Clone, Copy, Debug)]
enum Handed {
    Live(Index),
    Freed,
}

#[derive(Debug)]
struct Inner<G: Growth> {
    backing: Backing,
    growth: G,
    marks: Marks,
    handed: FxHashMap<u64, Handed>,
    live: u64,
    peak_live: u64,
}

/// A pool by PyTorch's rules.
#[derive(Debug)]
pub(super) struct Model<G: Growth> {
    inner: Mutex<Inner<G>>,
}

impl<G: Growth> Model<G> {
    pub(super) fn new(source: Arc<dyn Source>, options: TorchOptions, growth: G) -> Self {
        let supply = Supply::new(source, options.per_process_memory_fraction());
        let backing = Backing { options, supply, blocks: Blocks::default() };
        let (marks, handed) = (Marks::default(), FxHashMap::default());
        Self { inner: Mutex::new(Inner { backing, growth, marks, handed, live: 0, peak_live: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<G>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn inspect<T>(&self, look: impl FnOnce(&Backing) -> T) -> T {
        look(&self.lock().backing)
    }
}

impl<G: Growth> Pool for Model<G> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        self.lock().alloc(request)
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        self.lock().free(address)
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.lock().record(address, stream)
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.lock().trim()
    }

    fn stats(&self) -> Stats {
        self.lock().stats()
    }
}

impl<G: Growth> Inner<G> {
    fn alloc(&mut self, request: &Request) -> Result<Address, Error> {
        let want = self.want(request)?;
        self.poll();
        let found = self.find(&want);
        let index = match found {
            Some(index) => index,
            None => self.obtain(&want)?.ok_or_else(|| self.out_of_memory(request.bytes))?,
        };
        self.backing.blocks.unshelve(index);
        let index = if self.growth.splits(&self.backing, &self.backing.blocks[index], &want) {
            let front = self.backing.blocks.cut_front(index, want.bytes);
            self.backing.blocks.shelve(index);
            front
        } else {
            index
        };
        Ok(self.hand_out(index, request))
    }

    /// What serves a request, however its block comes to lie.
    fn want(&self, request: &Request) -> Result<Want, Error> {
        let (asked, align) = (request.bytes.get(), request.align.get());
        if asked == 0 {
            return Err(Error::ZeroSize);
        }
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let needed = asked.saturating_add(align.saturating_sub(self.backing.supply.alignment(UNIT)));
        let limit = self.backing.supply.limit();
        match self.backing.options.block(needed) {
            Some(bytes) if needed <= limit => Ok(Want { bytes, stream: request.stream, class: Class::of(bytes) }),
            _ => Err(Error::TooLarge { asked: Bytes::new(needed), capacity: Bytes::new(limit) }),
        }
    }

    fn find(&mut self, want: &Want) -> Option<Index> {
        if self.collects_garbage() {
            self.backing.blocks.count_search(want.class);
        }
        self.growth.find(&self.backing, want)
    }

    /// Looks for new memory, by steps that cost more and more.
    fn obtain(&mut self, want: &Want) -> Result<Option<Index>, Error> {
        if self.collects_garbage() {
            self.growth.collect_garbage(&mut self.backing)?;
        }
        if let Some(index) = self.growth.grow(&mut self.backing, want)? {
            return Ok(Some(index));
        }
        if self.growth.release_oversize(&mut self.backing, want)?
            && let Some(index) = self.growth.grow(&mut self.backing, want)?
        {
            return Ok(Some(index));
        }
        self.release_free()?;
        self.growth.grow(&mut self.backing, want)
    }

    fn collects_garbage(&self) -> bool {
        self.backing.options.garbage_threshold.is_some() && self.backing.supply.allowed().is_some()
    }

    /// Waits for whatever is in use by queued work alone, and gives back all memory that is wholly free.
    fn release_free(&mut self) -> Result<(), Error> {
        let Self { backing, growth, marks, live, .. } = self;
        let settled = marks.settle(backing.supply.source(), |index| pass(&mut backing.blocks, live, index));
        settled.map_err(Error::Source)?;
        backing.supply.settle()?;
        growth.release_free(backing)
    }

    fn hand_out(&mut self, index: Index, request: &Request) -> Address {
        let block = &mut self.backing.blocks[index];
        block.state = State::Held;
        block.requested = request.bytes.get();
        let address = block.address.next_multiple_of(request.align.get());
        self.handed.insert(address, Handed::Live(index));
        self.live += request.bytes.get();
        self.peak_live = self.peak_live.max(self.live);
        Address(address)
    }

    fn free(&mut self, address: Address) -> Result<(), Error> {
        let index = self.live_block(address)?;
        let Self { backing, marks, handed, live, .. } = self;
        let block = &mut backing.blocks[index];
        if block.uses.is_empty() {
            put_back(&mut backing.blocks, live, index);
        } else {
            marks.set(backing.supply.source(), &block.uses, index).map_err(Error::Source)?;
            block.marks = block.uses.len() as u32;
            block.uses = Vec::new();
        }
        handed.insert(address.0, Handed::Freed);
        Ok(())
    }

    fn record(&mut self, address: Address, stream: StreamId) -> Result<(), Error> {
        let index = self.live_block(address)?;
        let block = &mut self.backing.blocks[index];
        if stream != block.stream && !block.uses.contains(&stream) {
            block.uses.push(stream);
        }
        Ok(())
    }

    fn live_block(&self, address: Address) -> Result<Index, Error> {
        match self.handed.get(&address.0) {
            Some(&Handed::Live(index)) => Ok(index),
            Some(Handed::Freed) => Err(Error::DoubleFree { address }),
            None => Err(Error::ForeignAddress { address }),
        }
    }

    /// Puts blocks back whose other streams are done with them.
    fn poll(&mut self) {
        let Self { backing, marks, live, .. } = self;
        marks.poll(backing.supply.source(), |index| pass(&mut backing.blocks, live, index));
    }

    fn trim(&mut self) -> Result<Bytes, Error> {
        let before = self.backing.supply.reserved;
        self.release_free()?;
        Ok(Bytes::new(before - self.backing.supply.reserved))
    }

    fn stats(&self) -> Stats {
        let Supply { reserved, peak_reserved, .. } = self.backing.supply;
        let [live, peak_live, reserved, peak_reserved] =
            [self.live, self.peak_live, reserved, peak_reserved].map(Bytes::new);
        Stats { live, peak_live, reserved, peak_reserved }
    }

    fn out_of_memory(&self, asked: Bytes) -> Error {
        let Stats { live, reserved, .. } = self.stats();
        Error::OutOfMemory { asked, live, reserved }
    }
}

impl<G: Growth> Drop for Inner<G> {
    fn drop(&mut self) {
        self.marks.forget(self.backing.supply.source());
        self.growth.close(&mut self.backing);
    }
}

/// One of a block's marks has passed.
fn pass(blocks: &mut Blocks, live: &mut u64, index: Index) {
    blocks[index].marks -= 1;
    if blocks[index].marks == 0 {
        put_back(blocks, live, index);
    }
}

/// Makes a block free that nobody uses any more.
fn put_back(blocks: &mut Blocks, live: &mut u64, index: Index) {
    let block = &mut blocks[index];
    *live -= block.requested;
    block.requested = 0;
    block.state = State::Free;
    blocks.merge(index);
    blocks.shelve(index);
}
