//! The small blocks that were freed last, as they are. One of the same size is served by them without a search; they join the free
//! memory around them only when others push them out or somebody looks for memory in vain. Large blocks join it at once: what
//! lies scattered of those would have to be brought together by driver calls.

use lowtide_core::StreamId;

use crate::pool::UNIT;

/// How many are kept: as many as a word has bits.
const LENGTH: usize = u64::BITS as usize;

/// The last blocks that were freed, in the order in which they were. Sizes are all looked at, so they lie together: in units, and
/// zero where there is no block.
#[derive(Debug)]
pub(super) struct QuickList {
    sizes: [u16; LENGTH],
    blocks: [(u64, StreamId); LENGTH],
    /// Where the next one goes: in the place of the oldest.
    next: usize,
}

impl QuickList {
    pub(super) const fn new() -> Self {
        Self { sizes: [0; LENGTH], blocks: [(0, StreamId(0)); LENGTH], next: 0 }
    }

    /// Keeps a block that `stream` freed; the address of the one that must go for it, which is this very one where it is too large.
    pub(super) fn push(&mut self, address: u64, size: u64, stream: StreamId) -> Option<u64> {
        let Some(units) = units(size) else { return Some(address) };
        let place = self.next;
        self.next = (place + 1) % LENGTH;
        let gone = (self.sizes[place] != 0).then_some(self.blocks[place].0);
        (self.sizes[place], self.blocks[place]) = (units, (address, stream));
        gone
    }

    /// Takes out the address of the latest block of this very size that `stream` freed at a multiple of `align`.
    pub(super) fn take(&mut self, size: u64, align: u64, stream: StreamId) -> Option<u64> {
        let units = units(size)?;
        let of_size =
            (self.sizes.iter().enumerate()).fold(0, |places, (place, &own)| places | u64::from(own == units) << place);
        // The oldest first.
        let mut by_age = of_size.rotate_right(self.next as u32);
        while by_age != 0 {
            let age = by_age.ilog2();
            let place = (self.next + age as usize) % LENGTH;
            let (address, freed_by) = self.blocks[place];
            if freed_by == stream && address.is_multiple_of(align) {
                self.sizes[place] = 0;
                return Some(address);
            }
            by_age &= !(1 << age);
        }
        None
    }

    /// Takes out the address of any block.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let place = self.sizes.iter().position(|&units| units != 0)?;
        self.sizes[place] = 0;
        Some(self.blocks[place].0)
    }
}

fn units(size: u64) -> Option<u16> {
    u16::try_from(size / UNIT).ok().filter(|&units| units > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The model is a list of the last 64 frees, with gaps for what was taken out.
        #[test]
        fn the_latest_block_of_a_size_and_stream_is_taken(
            changes in prop::collection::vec((any::<bool>(), 1..6_u64, 0..2_u64, 0..2_u32), 0..300),
        ) {
            let mut list = QuickList::new();
            let mut model: VecDeque<Option<(u64, u64, StreamId)>> = VecDeque::new();
            for (number, (frees, units, stream, align)) in (1..).zip(changes) {
                let (size, stream, align) = (units * UNIT, StreamId(stream), UNIT << align);
                if frees {
                    let gone = (model.len() == LENGTH).then(|| model.pop_front()).flatten().flatten();
                    prop_assert_eq!(list.push(number * UNIT, size, stream), gone.map(|(address, ..)| address));
                    model.push_back(Some((number * UNIT, size, stream)));
                } else {
                    let fits = |kept: &&mut Option<(u64, u64, StreamId)>| {
                        kept.is_some_and(|(at, own, by)| own == size && by == stream && at.is_multiple_of(align))
                    };
                    let expected = model.iter_mut().rev().find(fits).and_then(Option::take);
                    prop_assert_eq!(list.take(size, align, stream), expected.map(|(address, ..)| address));
                }
            }
            let mut left: Vec<u64> = std::iter::from_fn(|| list.pop()).collect();
            left.sort_unstable();
            prop_assert_eq!(left, model.into_iter().flatten().map(|(address, ..)| address).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_block_that_is_too_large_is_not_kept() {
        let mut list = QuickList::new();
        assert_eq!(list.push(512, UNIT << 16, StreamId(0)), Some(512));
        assert_eq!((list.take(UNIT << 16, UNIT, StreamId(0)), list.pop()), (None, None));
    }
}
