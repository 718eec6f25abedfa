//! Why a pool could not serve, by what the caller can do about it.

use lowtide_core::Bytes;

use crate::pool::Address;

/// Why a pool refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block of no bytes was asked for.
    #[error("a block of 0 bytes was asked for")]
    ZeroSize,
    /// The alignment is no power of two.
    #[error("an alignment of {align} is not a power of two")]
    BadAlignment {
        /// What was asked for.
        align: u64,
    },
    /// The block is larger than all the memory there is: it never fits.
    #[error("a block of {asked} is larger than the {capacity} there are")]
    TooLarge {
        /// What was asked for.
        asked: Bytes,
        /// All there is.
        capacity: Bytes,
    },
    /// There is no room now; freeing something may help.
    #[error("no room for {asked}: {live} are in use and {reserved} reserved")]
    OutOfMemory {
        /// What was asked for.
        asked: Bytes,
        /// What blocks hold.
        live: Bytes,
        /// What the pool holds.
        reserved: Bytes,
    },
    /// The limit of an adaptor would be passed; raising it helps.
    #[error("{asked} more than the {live} in use would pass the limit of {limit}")]
    OverLimit {
        /// What was asked for.
        asked: Bytes,
        /// What blocks hold.
        live: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// The block was freed before.
    #[error("the block at {address} was freed before")]
    DoubleFree {
        /// Where.
        address: Address,
    },
    /// The address is none that this pool gave.
    #[error("{address} is not the address of a block of this pool")]
    ForeignAddress {
        /// Which.
        address: Address,
    },
    /// The source failed in another way than by lack of memory.
    #[error("the memory source failed")]
    Source(#[source] lowtide_memory::Error),
}
