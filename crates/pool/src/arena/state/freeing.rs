//! How blocks come back: now or when other streams are done with them, small ones into the list of those that were freed last, the
//! others to the free memory around them.

use lowtide_learn::Ticket;
use lowtide_memory::Error as SourceError;

use super::State;
use super::blocks::{Block, BlockState, Blocks, Home};
use crate::arena::sized_heaps::{SizeClass, SizedHeaps};
use crate::error::Error;
use crate::pool::{Address, Request};
use crate::serving::PlanServer;

impl State {
    /// Takes a block back, now or when the streams that use it are done.
    pub(in crate::arena) fn free(&mut self, address: Address) -> Result<(), Error> {
        self.adopt(address);
        let uses = live(&self.blocks, &self.plans, &self.heaps, address)?.uses.as_slice();
        if uses.is_empty() {
            self.release(address.0);
            return Ok(());
        }
        self.pending.push(address.0, uses, &*self.source).map_err(Error::Source)?;
        if let Some(block) = self.blocks.get_mut(&address.0) {
            block.state = BlockState::Pending;
        }
        Ok(())
    }

    /// Takes back blocks whose other streams are done, among the `most` that have waited longest.
    pub(super) fn poll(&mut self, most: usize) {
        for address in self.pending.poll(most, &*self.source) {
            self.release(address);
        }
    }

    /// Takes back all blocks whose other streams are done, and joins all free memory.
    pub(super) fn poll_all(&mut self) {
        self.poll(usize::MAX);
        self.coalesce_all();
    }

    /// Waits for the streams that use freed blocks. Blocks whose work never ends in a recording stay; those that could not
    /// be waited for stay too, and that is an error.
    pub(super) fn wait_for_pending(&mut self) -> Result<(), SourceError> {
        let outcome = self.pending.wait(&*self.source);
        self.poll_all();
        if self.pending.is_empty() { Ok(()) } else { outcome }
    }

    /// Takes a block back. A small one is kept as it is for a while.
    pub(super) fn release(&mut self, address: u64) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        self.accounting.give(block.bytes);
        if let Home::Plan(_) = block.home {
            self.plans.observe_free(address);
        } else {
            self.plans.note_free(block.ticket);
        }
        if self.queues.several() {
            block.freed = Some(self.queues.freed(block.stream, &*self.source));
        }
        if let Home::Heap { size: SizeClass::Small, lent: None } = block.home {
            block.state = BlockState::Cached;
            if let Some(oldest) = self.cached.push(address, block.size, block.stream) {
                self.coalesce(oldest);
            }
        } else {
            self.coalesce(address);
        }
    }

    /// Gives a block the memory of the last one of its size that its stream has freed.
    pub(super) fn take_cached(&mut self, taken: u64, align: u64, request: &Request) -> Option<Address> {
        let address = self.cached.take(taken, align, request.stream)?;
        let block = self.blocks.get_mut(&address)?;
        block.state = BlockState::InUse;
        block.bytes = request.bytes.get();
        block.ticket = Ticket::NONE;
        block.uses.clear();
        block.freed = None;
        self.accounting.take(block.bytes);
        Some(Address(address))
    }

    /// Joins all memory that is kept as it was freed with the free memory around it.
    pub(super) fn coalesce_all(&mut self) {
        while let Some(address) = self.cached.pop() {
            self.coalesce(address);
        }
    }

    /// Makes a block's memory free.
    pub(super) fn coalesce(&mut self, address: u64) {
        let Some(block) = self.blocks.remove(&address) else { return };
        if self.queues.several() {
            self.note_freed(address, &block);
        }
        match block.home {
            Home::Plan(number) => {
                self.has_freed_planned = true;
                self.release_planned(address, number);
            }
            Home::Heap { size, lent } => {
                self.heaps.of_mut(size).heap.give(block.offset, block.size);
                if let Some(((start, end), served)) = lent.zip(self.plans.current()) {
                    served.slots.block(start, end, false);
                }
            }
        }
    }

    /// Notes who freed the memory of a block.
    fn note_freed(&mut self, address: u64, block: &Block) {
        let position = block.freed.unwrap_or_else(|| self.queues.freed(block.stream, &*self.source));
        match block.home {
            Home::Plan(_) => self.plan_memories.freed(address, address + block.size, block.stream, position),
            Home::Heap { size, lent } => {
                let (start, end) = (block.offset, block.offset + block.size);
                self.heaps.of_mut(size).freed.insert(start, end, block.stream, position);
                if let Some(((start, end), served)) = lent.zip(self.plans.current()) {
                    let (start, end) = (served.address(start).0, served.address(end).0);
                    self.plan_memories.freed(start, end, block.stream, position);
                }
            }
        }
    }
}

/// The block at an address that was handed out and not freed.
pub(super) fn live<'a>(
    blocks: &'a Blocks,
    plans: &PlanServer,
    heaps: &SizedHeaps,
    address: Address,
) -> Result<&'a Block, Error> {
    match blocks.get(&address.0) {
        Some(block) if block.state == BlockState::InUse => Ok(block),
        Some(_) => Err(Error::DoubleFree { address }),
        None => {
            let planned = plans.current().and_then(|served| served.offset(address).zip(Some(served)));
            let planned = planned.is_some_and(|(offset, served)| served.slots.knows(offset));
            let freed = planned || heaps.was_freed(address.0);
            Err(if freed { Error::DoubleFree { address } } else { Error::ForeignAddress { address } })
        }
    }
}
