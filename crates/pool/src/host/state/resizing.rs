//! Blocks that grow and shrink where they are, as far as there is room behind them.

use super::State;
use crate::error::Error;
use crate::pool::{Address, UNIT};

/// For a block of this size that ends where all memory ends, more is opened behind it.
const WORTH_OPENING: u64 = 1 << 20;

impl State {
    /// Makes a block larger or smaller, and says whether that was possible.
    pub(in crate::host) fn resize(&mut self, address: Address, bytes: u64) -> Result<bool, Error> {
        let Some(&block) = self.blocks.get(&address.0) else {
            // A block of the plan has its slot.
            let usable = self.usable(address).ok_or(Error::DoubleFree { address })?;
            return Ok(bytes <= usable && bytes >= usable / 2);
        };
        let Some(size) = bytes.checked_next_multiple_of(UNIT) else { return Ok(false) };
        let end = address.0 + block.size;
        let is_in_the_way = self.plan_range.contains(address.0);
        if size <= block.size {
            self.set_size(address.0, size, bytes);
            if size < block.size && is_in_the_way {
                self.lie_smaller(address.0, block.size, size);
            } else if size < block.size {
                self.vacate(address.0 + size..end);
            }
            return Ok(true);
        }
        if is_in_the_way {
            return Ok(false);
        }
        let more = size - block.size;
        if self.room_at(end) < more && end + self.room_at(end) == self.pages.opened() && block.size >= WORTH_OPENING {
            self.pages.open_for(more, UNIT, &mut self.free);
        }
        if self.room_at(end) < more {
            return Ok(false);
        }
        self.free.remove(end..end + more);
        self.pages.touch(end..end + more);
        self.set_size(address.0, size, bytes);
        Ok(true)
    }

    /// A block that lies on the plan's memory keeps fewer slots from being served: those that it still lies on are kept
    /// before the others are let go.
    fn lie_smaller(&mut self, address: u64, before: u64, after: u64) {
        let Some((served, offset)) = self.plans.current().zip(self.plan_range.offset(address)) else { return };
        served.slots.block(offset, offset + after, true);
        served.slots.block(offset, offset + before, false);
    }

    /// How much is free from an address on.
    fn room_at(&self, start: u64) -> u64 {
        self.free.containing(start).filter(|run| run.start == start).map_or(0, |run| run.end - start)
    }

    fn set_size(&mut self, address: u64, size: u64, bytes: u64) {
        let Some(block) = self.blocks.get_mut(&address) else { return };
        let before = std::mem::replace(&mut block.bytes, bytes);
        block.size = size;
        self.counts.give(before);
        self.counts.take(bytes);
    }
}
