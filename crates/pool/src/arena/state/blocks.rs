//! The blocks of an arena by their addresses. Those in heaps are found through tables without a search, those on the memory
//! of plans, which seldom become the arena's own, in a map.

use std::iter;

use lowtide_core::StreamId;
use lowtide_learn::Ticket;
use rustc_hash::FxHashMap;

use crate::arena::address_table::AddressTable;
use crate::arena::sized_heaps::{SizeClass, SizedHeaps};
use crate::arena::streams::Position;
use crate::pool::UNIT;

/// Where a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// In a heap, and on this range of the plan that is served, where its handle is lent to it.
    Heap { size: SizeClass, lent: Option<(u64, u64)> },
    /// On the memory of the plan of this number, which is served or was.
    Plan(u64),
}

#[derive(Debug)]
pub(super) struct Block {
    /// Its offset in its heap or in the plan's memory.
    pub(super) offset: u64,
    /// What it takes.
    pub(super) size: u64,
    /// What was asked for.
    pub(super) bytes: u64,
    pub(super) home: Home,
    pub(super) stream: StreamId,
    /// Other streams that use it.
    pub(super) uses: Vec<StreamId>,
    pub(super) state: BlockState,
    /// What the learner knows it by.
    pub(super) ticket: Ticket,
    /// How far its stream had come when it was freed, where there are several streams.
    pub(super) freed: Option<Position>,
}

/// What became of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockState {
    InUse,
    /// It was freed and waits for the work of other streams.
    Pending,
    /// It was freed, and its memory is kept for the next one of its size.
    Cached,
}

impl Block {
    pub(super) fn new(offset: u64, bytes: u64, home: Home, stream: StreamId) -> Self {
        let least = if let Home::Heap { size, .. } = home { size.smallest() } else { UNIT };
        let size = bytes.next_multiple_of(UNIT).max(least);
        Self {
            offset,
            size,
            bytes,
            home,
            stream,
            uses: Vec::new(),
            state: BlockState::InUse,
            ticket: Ticket::NONE,
            freed: None,
        }
    }
}

/// The blocks of a heap: no two begin in the same entry of its table.
#[derive(Debug)]
struct HeapBlocks {
    /// The first address of the heap.
    base: u64,
    /// How many addresses it has.
    addresses: u64,
    table: AddressTable,
}

impl HeapBlocks {
    fn new(heaps: &SizedHeaps, size: SizeClass) -> Self {
        let heap = &heaps.of(size).heap;
        Self { base: heap.address(0), addresses: heap.addresses(), table: AddressTable::new(size.smallest()) }
    }

    fn offset(&self, address: u64) -> Option<u64> {
        Some(address.wrapping_sub(self.base)).filter(|&offset| offset < self.addresses)
    }
}

/// Blocks by their addresses.
#[derive(Debug)]
pub(super) struct Blocks {
    heaps: [HeapBlocks; 2],
    /// Those in heaps, with their addresses; the tables have their places here.
    placed: Vec<Option<(u64, Block)>>,
    vacant: Vec<u32>,
    planned: FxHashMap<u64, Block>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "asked as any map by address is")]
impl Blocks {
    /// No block, for those heaps.
    pub(super) fn new(heaps: &SizedHeaps) -> Self {
        Self {
            heaps: [SizeClass::Small, SizeClass::Large].map(|size| HeapBlocks::new(heaps, size)),
            placed: Vec::new(),
            vacant: Vec::new(),
            planned: FxHashMap::default(),
        }
    }

    /// The block that begins at an address.
    pub(super) fn get(&self, address: &u64) -> Option<&Block> {
        let Some((heap, offset)) = self.heap(*address) else { return self.planned.get(address) };
        let placed = self.placed[self.heaps[heap].table.get(offset)? as usize].as_ref();
        placed.filter(|(own, _)| own == address).map(|(_, block)| block)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, address: &u64) -> Option<&mut Block> {
        let Some((heap, offset)) = self.heap(*address) else { return self.planned.get_mut(address) };
        let placed = self.placed[self.heaps[heap].table.get(offset)? as usize].as_mut();
        placed.filter(|(own, _)| own == address).map(|(_, block)| block)
    }

    /// Whether a block begins at an address.
    pub(super) fn contains_key(&self, address: &u64) -> bool {
        self.get(address).is_some()
    }

    /// Adds a block at an address where there is none.
    pub(super) fn insert(&mut self, address: u64, block: Block) {
        debug_assert!(!self.contains_key(&address), "a block is put where one is");
        let Some((heap, offset)) = self.heap(address) else {
            self.planned.insert(address, block);
            return;
        };
        let placed = Some((address, block));
        let number = if let Some(number) = self.vacant.pop() {
            self.placed[number as usize] = placed;
            number
        } else {
            self.placed.push(placed);
            self.placed.len() as u32 - 1
        };
        self.heaps[heap].table.set(offset, Some(number));
    }

    /// Takes out the block that begins at an address.
    pub(super) fn remove(&mut self, address: &u64) -> Option<Block> {
        let Some((heap, offset)) = self.heap(*address) else { return self.planned.remove(address) };
        let number = self.heaps[heap].table.get(offset)?;
        let (_, block) = self.placed[number as usize].take_if(|(own, _)| own == address)?;
        self.vacant.push(number);
        self.heaps[heap].table.set(offset, None);
        Some(block)
    }

    /// How many there are in heaps, those that are kept for others included.
    pub(super) fn count(&self) -> usize {
        self.placed.len() - self.vacant.len()
    }

    /// All blocks with their addresses, in no order; those that are kept for others are none.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &Block)> {
        let placed = self.placed.iter().flatten().map(|(address, block)| (address, block));
        placed.chain(&self.planned).filter(|(_, block)| block.state != BlockState::Cached)
    }

    /// All blocks, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Block> {
        self.iter().map(|(_, block)| block)
    }

    /// All blocks, also those that are kept for others, to change them.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let placed = self.placed.iter_mut().flatten().map(|(_, block)| block);
        iter::chain(placed, self.planned.values_mut())
    }

    /// The heap that an address lies in, and where in it.
    fn heap(&self, address: u64) -> Option<(usize, u64)> {
        self.heaps.iter().enumerate().find_map(|(heap, blocks)| Some((heap, blocks.offset(address)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use lowtide_memory::{Simulated, SimulatedOptions, Source};
    use proptest::prelude::*;

    use super::*;

    fn heaps() -> SizedHeaps {
        let device = Arc::new(Simulated::new(SimulatedOptions::default()).unwrap());
        SizedHeaps::new(&(device as Arc<dyn Source>)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn blocks_are_those_that_were_put_in_and_not_taken_out(
            changes in prop::collection::vec((0..3_usize, 0..40_u64), 0..150),
        ) {
            let heaps = heaps();
            let mut blocks = Blocks::new(&heaps);
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            let small = Home::Heap { size: SizeClass::Small, lent: None };
            let large = Home::Heap { size: SizeClass::Large, lent: None };
            let heap = |size| heaps.of(size).heap.address(0);
            let (in_small, in_large) = (heap(SizeClass::Small), heap(SizeClass::Large));
            // Large blocks may begin anywhere, and are as far apart as they are long.
            let kinds = [(in_small, UNIT, small), (in_large + 3 * UNIT, 1 << 20, large), (1 << 12, UNIT, Home::Plan(7))];
            for (number, (kind, place)) in changes.into_iter().enumerate() {
                let (base, apart, home) = kinds[kind];
                let (address, bytes) = (base + place * apart, number as u64 + 1);
                if let Some(known) = model.remove(&address) {
                    prop_assert_eq!(blocks.remove(&address).map(|block| block.bytes), Some(known));
                    prop_assert!(blocks.remove(&address).is_none());
                } else {
                    model.insert(address, bytes);
                    blocks.insert(address, Block::new(place * apart, bytes, home, StreamId(0)));
                    prop_assert!(!blocks.contains_key(&(address + UNIT)) || kind != 1, "no block begins inside another");
                }
                prop_assert_eq!(blocks.get(&address).map(|block| block.bytes), model.get(&address).copied());
            }
            let all: BTreeMap<u64, u64> = blocks.iter().map(|(&address, block)| (address, block.bytes)).collect();
            prop_assert_eq!(&all, &model);
            prop_assert_eq!(blocks.values_mut().count(), model.len());
        }
    }
}
