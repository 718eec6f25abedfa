//! What an arena holds, for whoever asks: in sum, and block by block, those of the plan included.

use lowtide_core::Bytes;
use lowtide_learn::Slot;

use super::State;
use super::blocks::BlockState;
use crate::arena::LiveBlock;
use crate::pool::{Address, Stats};
use crate::serving::ServedPlan;

impl State {
    /// What is in use and reserved, the plan's blocks included.
    pub(in crate::arena) fn stats(&mut self) -> Stats {
        let planned = self.plans.current().map_or(0, |served| {
            served.slots.in_use().filter(|slot| !self.is_adopted(served, slot)).map(|slot| slot.bytes.get()).sum()
        });
        self.accounting.stats(planned)
    }

    /// The blocks that are in use, by address.
    pub(in crate::arena) fn live_blocks(&self) -> Vec<LiveBlock> {
        let online = self.blocks.iter().map(|(&address, block)| LiveBlock {
            address: Address(address),
            bytes: Bytes::new(block.bytes),
            stream: block.stream,
            pending: block.state == BlockState::Pending,
        });
        let planned = self.plans.current().into_iter().flat_map(|served| {
            let own = served.slots.in_use().filter(|slot| !self.is_adopted(served, slot));
            own.filter_map(|slot| {
                let address = served.address(slot.offset?.get());
                Some(LiveBlock { address, bytes: slot.bytes, stream: slot.lane.stream, pending: false })
            })
        });
        let mut live: Vec<LiveBlock> = online.chain(planned).collect();
        live.sort_unstable_by_key(|block| block.address);
        live
    }

    fn is_adopted(&self, served: &ServedPlan, slot: &Slot) -> bool {
        slot.offset.is_some_and(|offset| self.blocks.contains_key(&served.address(offset.get()).0))
    }
}
