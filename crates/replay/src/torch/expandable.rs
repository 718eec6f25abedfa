//! PyTorch's expandable segments: for each stream and pool one range of addresses, more than the device has memory,
//! under which pages are put as they are needed, at the lowest place. Pages that are wholly free go back when memory
//! runs out or on demand; the addresses stay, and the gap is filled first when memory is needed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use lowtide_core::Bytes;
use lowtide_memory::{Source, Span};
use lowtide_pool::Error;

use super::blocks::{Block, Class, Index, State};
use super::model::{Backing, Growth, Model, Want};
use super::options::{SMALL_SEGMENT, TorchOptions, UNIT};

/// The range for a source without a known capacity.
const VAST: u64 = 1 << 40;

/// What PyTorch would do with the same requests with `expandable_segments:True`.
///
/// As [`Caching`](super::Caching), but for where memory comes from: pages of 2 MiB for small blocks, of
/// [`large_segment_size`](TorchOptions::large_segment_size) for large ones, each rounded up to the granularity of
/// the source. Garbage collection gives nothing back here, nor does it in PyTorch.
#[derive(Debug)]
pub struct Expandable {
    pub(super) model: Model<Ranges>,
}

impl Expandable {
    /// An empty pool over `source`.
    pub fn new(source: Arc<dyn Source>, options: TorchOptions) -> Self {
        Self { model: Model::new(source, options, Ranges::default()) }
    }
}

pool_of_model!(Expandable);

/// The ranges there are, by their address.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    spans: BTreeMap<u64, Span>,
}

impl Ranges {
    /// The lowest place where free and unmapped blocks in a row have room, in a new range if there is none.
    fn place(&mut self, backing: &mut Backing, want: &Want) -> Result<Option<Index>, Error> {
        let blocks = &backing.blocks;
        let with_free_before = |unmapped: Index| {
            let before = blocks[unmapped].previous;
            before.filter(|&index| blocks[index].state != State::Held).unwrap_or(unmapped)
        };
        let mut places = blocks.unmapped(want.class, want.stream).map(with_free_before);
        let place = places.find(|&index| has_room(backing, index, want.bytes));
        drop(places);
        match place {
            Some(index) => Ok(Some(index)),
            None => self.open(backing, want),
        }
    }

    /// A new range, all of it unmapped.
    fn open(&mut self, backing: &mut Backing, want: &Want) -> Result<Option<Index>, Error> {
        let page = page(backing, want.class);
        let room = backing.supply.capacity().map_or(VAST, |capacity| capacity.saturating_add(capacity / 8));
        let bytes = room.max(want.bytes).div_ceil(page).saturating_mul(page);
        let Some(span) = backing.supply.reserve(bytes)? else { return Ok(None) };
        self.spans.insert(span.start, span);
        Ok(Some(backing.blocks.add_segment(span, span.bytes.get(), (want.stream, want.class), State::Unmapped)))
    }

    /// Gives back a range of which nothing is mapped.
    fn shut(&mut self, backing: &mut Backing, index: Index) -> Result<(), Error> {
        let Some(span) = self.spans.remove(&backing.blocks[index].address) else { return Ok(()) };
        backing.blocks.unshelve(index);
        backing.blocks.remove(index);
        backing.supply.release(span)
    }

    /// The start of the range that a block lies in.
    fn start(&self, block: &Block) -> u64 {
        self.spans.range(..=block.address).next_back().map_or(block.address, |(&start, _)| start)
    }

    /// Takes the pages from under a free block that lie in it whole.
    fn unmap(&self, backing: &mut Backing, index: Index) -> Result<(), Error> {
        let block = &backing.blocks[index];
        let (stream, start, page) = (block.stream, self.start(block), page(backing, block.class));
        let first = start + (block.address - start).next_multiple_of(page);
        let end = start + (block.end() - start) / page * page;
        if first >= end {
            return Ok(());
        }
        backing.supply.wait_for(stream)?;
        let mut unmapped = first;
        let mut result = Ok(());
        while unmapped < end && result.is_ok() {
            result = backing.supply.decommit(Span::new(unmapped, Bytes::new(page)));
            unmapped += if result.is_ok() { page } else { 0 };
        }
        if unmapped == first {
            return result;
        }
        backing.supply.discount(unmapped - first);
        let blocks = &mut backing.blocks;
        blocks.unshelve(index);
        if first > blocks[index].address {
            let before = blocks.cut_front(index, first - blocks[index].address);
            blocks.shelve(before);
        }
        let gap = if unmapped < blocks[index].end() {
            let gap = blocks.cut_front(index, unmapped - first);
            blocks.shelve(index);
            gap
        } else {
            index
        };
        blocks[gap].state = State::Unmapped;
        blocks.merge(gap);
        blocks.shelve(gap);
        result
    }

    /// Takes all pages that are wholly free, and gives back the ranges that have none.
    fn unmap_free(&mut self, backing: &mut Backing, class: Class) -> Result<(), Error> {
        let free: Vec<Index> = backing.blocks.all_free(class).collect();
        free.into_iter().try_for_each(|index| self.unmap(backing, index))?;
        let empty = backing.blocks.all_unmapped(class).filter(|&index| backing.blocks[index].is_whole());
        let empty: Vec<Index> = empty.collect();
        empty.into_iter().try_for_each(|index| self.shut(backing, index))
    }
}

impl Growth for Ranges {
    /// The best fit, where a block that can grow counts with all it can grow to.
    fn find(&self, backing: &Backing, want: &Want) -> Option<Index> {
        let mut fitting = backing.blocks.fitting(want.class, want.stream, want.bytes);
        let mut best = fitting.next()?;
        let mut room = growable(backing, best);
        for next in fitting {
            let larger = growable(backing, next);
            if larger >= room {
                break;
            }
            (best, room) = (next, larger);
        }
        Some(best).filter(|&index| backing.options.may_serve(backing.blocks[index].bytes, want.bytes))
    }

    fn splits(&self, _: &Backing, block: &Block, want: &Want) -> bool {
        block.bytes - want.bytes >= UNIT
    }

    fn grow(&mut self, backing: &mut Backing, want: &Want) -> Result<Option<Index>, Error> {
        if !backing.supply.allows(backing.options.segment(want.bytes)) {
            return Ok(None);
        }
        let Some(mut index) = self.place(backing, want)? else { return Ok(None) };
        if backing.blocks[index].state == State::Unmapped {
            let Some(mapped) = map(backing, index, want.bytes)? else { return Ok(None) };
            index = mapped;
        }
        while backing.blocks[index].bytes < want.bytes {
            let missing = want.bytes - backing.blocks[index].bytes;
            let Some(next) = backing.blocks[index].next else { return Ok(None) };
            let Some(mapped) = map(backing, next, missing)? else { return Ok(None) };
            index = mapped;
        }
        Ok(Some(index))
    }

    fn collect_garbage(&mut self, _: &mut Backing) -> Result<(), Error> {
        Ok(())
    }

    fn release_oversize(&mut self, _: &mut Backing, _: &Want) -> Result<bool, Error> {
        Ok(false)
    }

    fn release_free(&mut self, backing: &mut Backing) -> Result<(), Error> {
        self.unmap_free(backing, Class::Large)?;
        self.unmap_free(backing, Class::Small)
    }

    fn close(&mut self, backing: &mut Backing) {
        backing.supply.close(self.spans.values().copied());
    }
}

/// What is mapped at a time.
fn page(backing: &Backing, class: Class) -> u64 {
    backing.supply.grains(match class {
        Class::Small => SMALL_SEGMENT,
        Class::Large => backing.options.large_segment,
    })
}

/// What a free block can grow to without taking another one in.
fn growable(backing: &Backing, index: Index) -> u64 {
    let block = &backing.blocks[index];
    let behind = block.next.map(|next| &backing.blocks[next]).filter(|next| next.state == State::Unmapped);
    block.bytes + behind.map_or(0, |next| next.bytes)
}

/// Whether `bytes` follow from the start of a block on that nobody holds.
fn has_room(backing: &Backing, index: Index, bytes: u64) -> bool {
    let mut room = 0;
    let mut next = Some(index);
    while let Some(block) = next.map(|index| &backing.blocks[index]).filter(|block| block.state != State::Held) {
        room += block.bytes;
        if room >= bytes {
            return true;
        }
        next = block.next;
    }
    false
}

/// Puts pages under the start of an unmapped block, at least `bytes` or all of it, and makes one free block of them and
/// the free blocks beside them. None where the source has not enough memory; then no page is left, or those that the
/// source did not take back.
fn map(backing: &mut Backing, index: Index, bytes: u64) -> Result<Option<Index>, Error> {
    let Block { address, bytes: room, class, .. } = backing.blocks[index];
    let page = page(backing, class);
    let wanted = bytes.min(room).next_multiple_of(page);
    let span = |offset: u64| Span::new(address + offset, Bytes::new(page));
    let mut mapped = 0;
    let mut result = Ok(true);
    while mapped < wanted && matches!(result, Ok(true)) {
        result = backing.supply.commit(span(mapped));
        mapped += if matches!(result, Ok(true)) { page } else { 0 };
    }
    while mapped > 0 && !matches!(result, Ok(true)) {
        if let Err(error) = backing.supply.decommit(span(mapped - page)) {
            result = Err(error);
            break;
        }
        mapped -= page;
    }
    let free = (mapped > 0).then(|| make_free(backing, index, mapped));
    result.map(|enough| free.filter(|_| enough))
}

/// Makes the first `mapped` bytes of an unmapped block free, now that there is memory under them.
fn make_free(backing: &mut Backing, index: Index, mapped: u64) -> Index {
    backing.supply.count(mapped);
    let blocks = &mut backing.blocks;
    blocks.unshelve(index);
    let free = if mapped < blocks[index].bytes {
        let front = blocks.cut_front(index, mapped);
        blocks.shelve(index);
        front
    } else {
        index
    };
    blocks[free].state = State::Free;
    blocks.merge(free);
    blocks.shelve(free);
    free
}
