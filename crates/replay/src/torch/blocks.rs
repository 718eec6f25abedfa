//! Blocks that tile a pool's memory: each knows its neighbours, and the free ones are found by size within their stream
//! and pool. Of several with one size the lowest is found first, as on a device, where drivers hand addresses out from
//! above to below: each segment counts as lower than those before it, whatever addresses the source gives.

use std::collections::BTreeSet;
use std::ops;

use lowtide_core::StreamId;
use lowtide_memory::Span;

use super::options::SMALL;

/// Which of a stream's two pools a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Small,
    Large,
}

impl Class {
    /// The pool of a block of `bytes`.
    pub(super) fn of(bytes: u64) -> Self {
        if bytes <= SMALL { Self::Small } else { Self::Large }
    }
}

/// A block's place in [`Blocks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Index(u32);

/// What a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Handed out, or freed and still in use by queued work, or on its way from one state to another.
    Held,
    /// Memory that can be handed out.
    Free,
    /// Addresses without memory.
    Unmapped,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) stream: StreamId,
    pub(super) class: Class,
    pub(super) state: State,
    /// The neighbours in the same segment.
    pub(super) previous: Option<Index>,
    pub(super) next: Option<Index>,
    /// What was asked for.
    pub(super) requested: u64,
    /// Other streams that use it.
    pub(super) uses: Vec<StreamId>,
    /// Marks that must pass before it is free.
    pub(super) marks: u32,
    /// The number of searches in its pool when it became free.
    freed_at: u64,
    /// From its address to the one it would have on a device; the same for all blocks of a segment.
    shift: u64,
}

impl Block {
    pub(super) fn end(&self) -> u64 {
        self.address + self.bytes
    }

    /// Whether it is a segment of its own.
    pub(super) fn is_whole(&self) -> bool {
        self.previous.is_none() && self.next.is_none()
    }

    /// What it is ordered by among others.
    fn place(&self) -> u64 {
        self.address.wrapping_add(self.shift)
    }
}

type BySize = (StreamId, u64, u64, Index);
type ByPlace = (StreamId, u64, Index);

/// All blocks, and those of them that are free or unmapped in order.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    slots: Vec<Block>,
    vacant: Vec<Index>,
    free: [BTreeSet<BySize>; 2],
    unmapped: [BTreeSet<ByPlace>; 2],
    searches: [u64; 2],
    /// How far the places of all segments so far reach down.
    floor: u64,
}

impl Blocks {
    /// Adds a segment of `bytes` as one block, free or unmapped, and [shelves](Self::shelve) it.
    pub(super) fn add_segment(&mut self, span: Span, bytes: u64, owner: (StreamId, Class), state: State) -> Index {
        self.floor = self.floor.wrapping_sub(span.bytes.get());
        let (stream, class) = owner;
        let index = self.add(Block {
            address: span.start,
            bytes,
            stream,
            class,
            state,
            previous: None,
            next: None,
            requested: 0,
            uses: Vec::new(),
            marks: 0,
            freed_at: 0,
            shift: self.floor.wrapping_sub(span.start),
        });
        self.shelve(index);
        index
    }

    fn add(&mut self, block: Block) -> Index {
        if let Some(index) = self.vacant.pop() {
            self[index] = block;
            return index;
        }
        self.slots.push(block);
        Index(self.slots.len() as u32 - 1)
    }

    /// Forgets a block that has no neighbours and is not shelved.
    pub(super) fn remove(&mut self, index: Index) {
        self.vacant.push(index);
    }

    /// Puts a free or unmapped block where it is found.
    pub(super) fn shelve(&mut self, index: Index) {
        let pool = self[index].class as usize;
        self[index].freed_at = self.searches[pool];
        let block = &self[index];
        let (stream, bytes, place) = (block.stream, block.bytes, block.place());
        match block.state {
            State::Free => _ = self.free[pool].insert((stream, bytes, place, index)),
            State::Unmapped => _ = self.unmapped[pool].insert((stream, place, index)),
            State::Held => {}
        }
    }

    /// Takes a free or unmapped block from where it is found, to change it.
    pub(super) fn unshelve(&mut self, index: Index) {
        let block = &self[index];
        let (pool, stream, bytes, place) = (block.class as usize, block.stream, block.bytes, block.place());
        match block.state {
            State::Free => _ = self.free[pool].remove(&(stream, bytes, place, index)),
            State::Unmapped => _ = self.unmapped[pool].remove(&(stream, place, index)),
            State::Held => {}
        }
    }

    /// Cuts the first `bytes` off a block that is not shelved; it keeps the rest, which is not nothing.
    pub(super) fn cut_front(&mut self, index: Index, bytes: u64) -> Index {
        let rest = &self[index];
        let front = Block { bytes, next: Some(index), uses: Vec::new(), ..rest.clone() };
        let previous = front.previous;
        let front = self.add(front);
        if let Some(previous) = previous {
            self[previous].next = Some(front);
        }
        let rest = &mut self[index];
        rest.previous = Some(front);
        rest.address += bytes;
        rest.bytes -= bytes;
        front
    }

    /// Lets a free or unmapped block that is not shelved take in those of its neighbours that are like it.
    pub(super) fn merge(&mut self, index: Index) {
        for neighbour in [self[index].previous, self[index].next].into_iter().flatten() {
            if self[neighbour].state == self[index].state {
                self.unshelve(neighbour);
                self.absorb(index, neighbour);
            }
        }
    }

    fn absorb(&mut self, index: Index, neighbour: Index) {
        let Block { address, bytes, previous, next, .. } = self[neighbour];
        let block = &mut self[index];
        block.bytes += bytes;
        if block.previous == Some(neighbour) {
            block.address = address;
            block.previous = previous;
            if let Some(previous) = previous {
                self[previous].next = Some(index);
            }
        } else {
            block.next = next;
            if let Some(next) = next {
                self[next].previous = Some(index);
            }
        }
        self.vacant.push(neighbour);
    }

    /// Free blocks of at least `bytes`, the smallest first, then the lowest.
    pub(super) fn fitting(&self, class: Class, stream: StreamId, bytes: u64) -> impl Iterator<Item = Index> {
        let from = (stream, bytes, 0, Index(0));
        let found = self.free[class as usize].range(from..);
        found.take_while(move |&&(of, ..)| of == stream).map(|&(.., index)| index)
    }

    /// Free blocks of less than `bytes`, the largest first.
    pub(super) fn below(&self, class: Class, stream: StreamId, bytes: u64) -> impl Iterator<Item = Index> {
        let to = (stream, bytes, 0, Index(0));
        let found = self.free[class as usize].range(..to).rev();
        found.take_while(move |&&(of, ..)| of == stream).map(|&(.., index)| index)
    }

    /// All free blocks of a pool.
    pub(super) fn all_free(&self, class: Class) -> impl Iterator<Item = Index> {
        self.free[class as usize].iter().map(|&(.., index)| index)
    }

    /// Unmapped blocks, the lowest first.
    pub(super) fn unmapped(&self, class: Class, stream: StreamId) -> impl Iterator<Item = Index> {
        let found = self.unmapped[class as usize].range((stream, 0, Index(0))..);
        found.take_while(move |&&(of, ..)| of == stream).map(|&(.., index)| index)
    }

    /// All unmapped blocks of a pool.
    pub(super) fn all_unmapped(&self, class: Class) -> impl Iterator<Item = Index> {
        self.unmapped[class as usize].iter().map(|&(.., index)| index)
    }

    /// Notes a search in a pool: what the age of its blocks is measured in.
    pub(super) fn count_search(&mut self, class: Class) {
        self.searches[class as usize] += 1;
    }

    /// How many searches were made in a free block's pool since it became free.
    pub(super) fn age(&self, index: Index) -> u64 {
        self.searches[self[index].class as usize] - self[index].freed_at
    }
}

#[cfg(test)]
impl Blocks {
    /// All blocks, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = Index> {
        (0..self.slots.len() as u32).map(Index).filter(|index| !self.vacant.contains(index))
    }

    /// Whether a block is found where it should be.
    pub(super) fn is_shelved(&self, index: Index) -> bool {
        let block = &self[index];
        let pool = block.class as usize;
        match block.state {
            State::Free => self.free[pool].contains(&(block.stream, block.bytes, block.place(), index)),
            State::Unmapped => self.unmapped[pool].contains(&(block.stream, block.place(), index)),
            State::Held => false,
        }
    }

    /// How many blocks are found.
    pub(super) fn shelved(&self) -> usize {
        self.free.iter().map(BTreeSet::len).chain(self.unmapped.iter().map(BTreeSet::len)).sum()
    }
}

impl ops::Index<Index> for Blocks {
    type Output = Block;

    fn index(&self, index: Index) -> &Block {
        &self.slots[index.0 as usize]
    }
}

impl ops::IndexMut<Index> for Blocks {
    fn index_mut(&mut self, index: Index) -> &mut Block {
        &mut self.slots[index.0 as usize]
    }
}
