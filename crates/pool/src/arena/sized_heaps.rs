//! The two heaps of an arena: large blocks have one of their own, so that small ones do not lie between them.

use std::sync::Arc;

use lowtide_core::StreamId;
use lowtide_memory::{Error as SourceError, Source};

use super::accounting::Accounting;
use super::heap::{Fit, Heap};
use super::streams::{Freed, Position};

/// Blocks from this size on are large.
const LARGE: u64 = 1 << 20;

/// Which heap a block lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum SizeClass {
    Small,
    Large,
}

impl SizeClass {
    /// Of a block of `bytes` at a multiple of `align`.
    pub(super) fn of(bytes: u64, align: u64) -> Self {
        if bytes > LARGE - super::UNIT || align > LARGE { Self::Large } else { Self::Small }
    }

    /// What a block in it takes at least.
    pub(super) fn smallest(self) -> u64 {
        match self {
            Self::Small => super::UNIT,
            Self::Large => LARGE,
        }
    }
}

/// A heap, and who freed what in it.
#[derive(Debug)]
pub(super) struct SizedHeap {
    pub(super) heap: Heap,
    pub(super) freed: Freed,
}

/// The heaps of an arena.
#[derive(Debug)]
pub(super) struct SizedHeaps {
    small: SizedHeap,
    large: SizedHeap,
}

impl SizedHeaps {
    /// Heaps with addresses and no memory.
    pub(super) fn new(source: &Arc<dyn Source>) -> Result<Self, SourceError> {
        let sized = || -> Result<SizedHeap, SourceError> {
            let heap = Heap::new(Arc::clone(source), Fit::Tightest)?;
            Ok(SizedHeap { heap, freed: Freed::default() })
        };
        Ok(Self { small: sized()?, large: sized()? })
    }

    pub(super) fn of(&self, size: SizeClass) -> &SizedHeap {
        match size {
            SizeClass::Small => &self.small,
            SizeClass::Large => &self.large,
        }
    }

    pub(super) fn of_mut(&mut self, size: SizeClass) -> &mut SizedHeap {
        match size {
            SizeClass::Small => &mut self.small,
            SizeClass::Large => &mut self.large,
        }
    }

    /// Whether a block that was freed began at an address.
    pub(super) fn was_freed(&self, address: u64) -> bool {
        [&self.small, &self.large].into_iter().any(|sized| {
            let offset = sized.heap.offset(address);
            offset.is_some_and(|offset| offset.is_multiple_of(super::UNIT) && sized.heap.was_used(offset))
        })
    }

    /// All that is free was freed by `stream`.
    pub(super) fn belong_to(&mut self, stream: StreamId, position: Position) {
        for sized in [&mut self.small, &mut self.large] {
            sized.freed.insert(0, sized.heap.addresses(), stream, position);
        }
    }

    /// Gives every handle back in which no block lies. The caller knows that queued work is done.
    pub(super) fn give_back(&mut self, accounting: &mut Accounting) -> Result<u64, SourceError> {
        let small = self.small.heap.give_back(accounting)?;
        Ok(small + self.large.heap.give_back(accounting)?)
    }
}
