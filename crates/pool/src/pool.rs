//! The one trait that every strategy and every adaptor has, and what is said over it.

use std::fmt;
use std::sync::Arc;

use lowtide_core::{Align, Bytes, StreamId, ThreadId};

use crate::error::Error;

/// Every block of Lowtide's own strategies begins at a multiple of this and takes one.
pub(crate) const UNIT: u64 = 512;

/// Where a block begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The size of the block.
    pub bytes: Bytes,
    /// What its address is a multiple of; a strategy may align more.
    pub align: Align,
    /// The stream whose work uses it first.
    pub stream: StreamId,
    /// The thread that asks.
    pub thread: ThreadId,
}

impl Request {
    /// `bytes` for the first stream and thread, with no wish for an alignment.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, align: Align::ONE, stream: StreamId::default(), thread: ThreadId::default() }
    }
}

/// What a pool holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// What blocks hold that are in use: handed out and not freed, or freed and still used by queued work of a
    /// stream that was [recorded](Pool::record).
    pub live: Bytes,
    /// The most that was live at once.
    pub peak_live: Bytes,
    /// What the pool holds of its source's memory.
    pub reserved: Bytes,
    /// The most it held at once.
    pub peak_reserved: Bytes,
}

/// Serves blocks. Every call may come from any thread.
pub trait Pool: Send + Sync + fmt::Debug {
    /// A block that overlaps no other that is in use.
    fn alloc(&self, request: &Request) -> Result<Address, Error>;

    /// Takes a block back. Work that is queued on the block's own stream may still use it; other streams must have
    /// been [recorded](Pool::record).
    fn free(&self, address: Address) -> Result<(), Error>;

    /// Says that work on `stream` uses the block as well.
    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error>;

    /// Closes a step of the program.
    fn step(&self) {}

    /// Gives back to the source whatever can be given back, waiting for queued work where that helps, and says how much.
    fn trim(&self) -> Result<Bytes, Error>;

    /// What the pool holds now.
    fn stats(&self) -> Stats;
}

/// A pointer to a pool is a pool.
macro_rules! pool_behind {
    ($($pointer:ty),*) => {
        $(impl<P: Pool + ?Sized> Pool for $pointer {
            fn alloc(&self, request: &Request) -> Result<Address, Error> {
                (**self).alloc(request)
            }

            fn free(&self, address: Address) -> Result<(), Error> {
                (**self).free(address)
            }

            fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
                (**self).record(address, stream)
            }

            fn step(&self) {
                (**self).step();
            }

            fn trim(&self) -> Result<Bytes, Error> {
                (**self).trim()
            }

            fn stats(&self) -> Stats {
                (**self).stats()
            }
        })*
    };
}

pool_behind!(&P, Box<P>, Arc<P>);
