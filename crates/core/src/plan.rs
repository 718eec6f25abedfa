//! The answer to a [`Problem`](crate::Problem): where every buffer goes.

use crate::{BufferIndex, Bytes, PoolIndex};

/// Where one buffer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The pool that holds it: its own, or the one it spilled to.
    pub pool: PoolIndex,
    /// Its first byte, from the start of that pool.
    pub offset: Bytes,
}

/// An offset for every buffer of a problem, in the problem's order, and how good that is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// One placement per buffer.
    pub placements: Vec<Placement>,
    /// What each pool must hold: the largest end of a buffer in it.
    pub heights: Vec<Bytes>,
    /// No plan for this problem needs less than this in all.
    pub lower_bound: Bytes,
    /// Whether no plan can be lower: the bound is met, or a complete search found nothing better.
    pub proved: bool,
}

impl Plan {
    /// The bytes that all pools need together: the number to make small.
    pub fn peak(&self) -> Bytes {
        self.heights.iter().copied().sum()
    }

    /// Where each pool begins when they are put one above the other.
    pub fn floors(&self) -> Vec<Bytes> {
        let below = |floor: &mut Bytes, &height: &Bytes| {
            let start = *floor;
            *floor += height;
            Some(start)
        };
        self.heights.iter().scan(Bytes::ZERO, below).collect()
    }

    /// Where `buffer` goes.
    pub fn placement(&self, buffer: BufferIndex) -> Placement {
        self.placements[buffer.get()]
    }
}
