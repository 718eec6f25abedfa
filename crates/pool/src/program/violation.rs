//! What a pool can break.

use lowtide_core::{Bytes, StreamId};

use crate::error::Error;
use crate::pool::{Address, Stats};

/// What a pool broke, and when.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("operation {operation}: {fault}")]
pub struct Violation {
    /// The place of the operation in its program; the number of operations for what is found at the end.
    pub operation: usize,
    /// What.
    #[source]
    pub fault: Fault,
}

/// What a pool broke.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Two blocks have addresses in common.
    #[error("the block at {block} overlaps the one at {other}")]
    Overlap {
        /// The later one.
        block: Address,
        /// The earlier one.
        other: Address,
    },
    /// Two blocks have other addresses and the same memory.
    #[error("the block at {block} has memory of the one at {other}")]
    SharedMemory {
        /// The later one.
        block: Address,
        /// The earlier one.
        other: Address,
    },
    /// There is no memory under a part of a block.
    #[error("the block of {bytes} at {block} is not all in memory")]
    OutsideMemory {
        /// Where.
        block: Address,
        /// How large it is.
        bytes: Bytes,
    },
    /// A block is not aligned as it was asked for.
    #[error("the block at {block} is not aligned to {align}")]
    Misaligned {
        /// Where.
        block: Address,
        /// What was asked for.
        align: u64,
    },
    /// A block does not hold what was written to it.
    #[error("the block of {bytes} at {block} lost its contents at offset {offset}")]
    ContentsLost {
        /// Where.
        block: Address,
        /// How large it is.
        bytes: Bytes,
        /// Where in it.
        offset: u64,
    },
    /// Memory was given back under a block in hand.
    #[error("the memory of the block at {block}, which is in use, was taken")]
    TakenWhileLive {
        /// Where.
        block: Address,
    },
    /// Memory was given back that queued work may still use.
    #[error("memory at {address} was taken without knowing that the work of stream {} is done", stream.0)]
    TakenWhileUsed {
        /// Where.
        address: Address,
        /// Whose work.
        stream: StreamId,
    },
    /// Memory was handed to a stream that does not wait for the work that may still use it.
    #[error("the block at {block} came to stream {} before the work of stream {} on it is done", stream.0, used_by.0)]
    HandedOnWhileUsed {
        /// Where.
        block: Address,
        /// Who got it.
        stream: StreamId,
        /// Who may still use it.
        used_by: StreamId,
    },
    /// A call failed that should not have, or in another way than it should have.
    #[error("`{call}` gave {result:?}")]
    WrongResult {
        /// The call.
        call: String,
        /// What came of it.
        result: Result<(), Error>,
    },
    /// A block was refused that has room, since nothing is in use.
    #[error("{bytes} were refused though nothing is in use: {error}")]
    RefusedThoughEmpty {
        /// What was asked for.
        bytes: Bytes,
        /// How it was refused.
        error: Error,
    },
    /// Counts do not add up.
    #[error("{what}: {stats:?} with {live} in hand")]
    BadStats {
        /// What is wrong.
        what: &'static str,
        /// What the pool says of itself.
        stats: Stats,
        /// What is in hand.
        live: Bytes,
    },
    /// A thread of the program ended by a panic.
    #[error("a thread panicked")]
    Panic,
}
