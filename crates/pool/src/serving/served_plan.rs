//! A plan at the addresses where it is served, as every thread sees it. As long as the plan has one stream, nobody watches and
//! no block is used by other streams, blocks come and go without the arena's lock.

use lowtide_core::StreamId;

use super::slot_table::{Found, SlotTable};
use crate::pool::{Address, Request};
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::{AtomicBool, AtomicUsize};

#[derive(Debug)]
pub(crate) struct ServedPlan {
    pub(crate) slots: SlotTable,
    base: u64,
    bytes: u64,
    /// What tells the memory it lies on from others.
    number: u64,
    /// The stream of the plan's blocks, where they are all of one.
    only_stream: Option<StreamId>,
    /// How many blocks have to be given back by the lock.
    attention: AtomicUsize,
    /// Whether somebody wants to see every block.
    watched: AtomicBool,
}

impl ServedPlan {
    /// `slots` at the addresses from `base` on.
    pub(crate) fn new(slots: SlotTable, base: u64, bytes: u64, number: u64) -> Self {
        let streams = slots.plan().streams();
        Self {
            only_stream: streams.first().copied().filter(|_| streams.len() == 1),
            slots,
            base,
            bytes,
            number,
            attention: AtomicUsize::new(0),
            watched: AtomicBool::new(true),
        }
    }

    /// What tells the memory it lies on from others.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The offset of an address that is served here.
    pub(crate) fn offset(&self, address: Address) -> Option<u64> {
        (self.base..self.base + self.bytes).contains(&address.0).then(|| address.0 - self.base)
    }

    /// The stream of the plan's blocks, where they are all of one.
    pub(crate) fn only_stream(&self) -> Option<StreamId> {
        self.only_stream
    }

    /// Where its addresses end.
    pub(crate) fn end(&self) -> Address {
        Address(self.base + self.bytes)
    }

    pub(crate) fn address(&self, offset: u64) -> Address {
        Address(self.base + offset)
    }

    /// Whether every block has to come by the lock.
    pub(crate) fn is_attended(&self) -> bool {
        self.only_stream.is_none() || self.attention.load(SeqCst) > 0 || self.watched.load(SeqCst)
    }

    /// Lets every block come by the lock, until as many calls say that it need not.
    pub(crate) fn attend(&self, attend: bool) {
        if attend {
            self.attention.fetch_add(1, SeqCst);
        } else {
            self.attention.fetch_sub(1, SeqCst);
        }
    }

    /// Whether somebody wants to see every block.
    pub(crate) fn watch(&self, watched: bool) {
        self.watched.store(watched, SeqCst);
    }

    /// A block, where that needs no lock.
    pub(crate) fn take(&self, request: &Request) -> Option<Found> {
        (!self.is_attended()).then(|| self.slots.take(request))
    }

    /// Takes a block back, where that needs no lock.
    pub(crate) fn give(&self, address: Address) -> Given {
        let Some(offset) = self.offset(address) else { return Given::No };
        if self.is_attended() {
            Given::No
        } else if self.slots.give(offset) {
            Given::Yes
        } else if self.slots.has_left(offset) {
            Given::Late(self.number)
        } else {
            Given::No
        }
    }
}

/// What came of giving a block back without the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// It was taken back.
    Yes,
    /// The lock is needed.
    No,
    /// It was in use when the plan was dropped: it is a block of the arena by now, or is about to be, that lies on the memory
    /// of the plan of this number.
    Late(u64),
}
