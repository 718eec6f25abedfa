//! Blocks that grow and shrink: where they are, where there is room behind them, and else by moving their pages.

use lowtide_core::Bytes;
use lowtide_memory::Span;

use super::state::{HUGE, State};
use crate::arena::UNIT;
use crate::error::Error;
use crate::pool::Address;

/// Smaller blocks are copied sooner than their pages are moved.
const MOVED: u64 = 1 << 20;

impl State {
    /// Makes a block larger or smaller, and says where it is then; none where the caller has to allocate, copy and free.
    pub(super) fn resize(
        &mut self,
        address: Address,
        bytes: u64,
        copy: &mut dyn FnMut(u64, u64, u64),
    ) -> Result<Option<u64>, Error> {
        let Some(&block) = self.blocks.get(&address.0) else {
            return match self.usable(address) {
                Some(usable) => Ok((bytes <= usable && bytes >= usable / 2).then_some(address.0)),
                None => Err(Error::DoubleFree { address }),
            };
        };
        let Some(size) = bytes.checked_next_multiple_of(UNIT) else { return Ok(None) };
        let end = address.0 + block.size;
        if size <= block.size {
            self.shrink(address.0, size, bytes);
            return Ok(Some(address.0));
        }
        let more = size - block.size;
        let room = self.free.around(end).filter(|&(start, _)| start == end).map_or(0, |(_, length)| length);
        if room < more && end + room == self.opened && block.size >= MOVED {
            self.open_for(more, UNIT);
        }
        let room = self.free.around(end).filter(|&(start, _)| start == end).map_or(0, |(_, length)| length);
        if room >= more {
            self.free.remove(end, more);
            self.residency.touch(end..end + more);
            self.set_size(address.0, size, bytes);
            return Ok(Some(address.0));
        }
        if block.size < MOVED {
            return Ok(None);
        }
        Ok(self.relocate(address.0, size, bytes, copy))
    }

    fn shrink(&mut self, address: u64, size: u64, bytes: u64) {
        let Some(old) = self.blocks.get(&address).map(|block| block.size) else { return };
        self.set_size(address, size, bytes);
        if size < old {
            self.vacate(address + size..address + old);
        }
    }

    fn set_size(&mut self, address: u64, size: u64, bytes: u64) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        let before = std::mem::replace(&mut block.bytes, bytes);
        block.size = size;
        self.recount(before, bytes);
    }

    /// Moves the pages of a block to where it can grow. Its new address has the same place in a huge page as the old.
    fn relocate(&mut self, address: u64, size: u64, bytes: u64, copy: &mut dyn FnMut(u64, u64, u64)) -> Option<u64> {
        let block = *self.blocks.get(&address)?;
        let shift = address % HUGE;
        let whole = self.find(size + shift, HUGE).or_else(|| self.open_for(size + shift, HUGE))?;
        let to = whole + shift;
        let page = self.expanse.page().get();
        let (first, last) = (address.next_multiple_of(page), (address + block.size) / page * page);
        let pages = Span::new(first, Bytes::new(last.checked_sub(first)?));
        let target = first - address + to;
        self.expanse.relocate(pages, target).ok()?;
        copy(address, to, first - address);
        copy(last, last - address + to, address + block.size - last);
        self.residency.clear(first..last);
        self.hold(to, size, bytes, None);
        if let Some(learning) = &mut self.learning {
            learning.free(address);
        }
        self.blocks.remove(&address);
        self.recount(block.bytes, 0);
        self.vacate(address..address + block.size);
        Some(to)
    }
}
