//! What an arena holds, for whoever asks: in sum, and block by block, those of the plan included.

use lowtide_core::Bytes;
use lowtide_learn::Slot;

use super::Living;
use super::serving::Serving;
use super::state::State;
use crate::pool::{Address, Stats};

impl State {
    /// What is in use and reserved, the plan's blocks included. Those come and go without a count: the most in use is
    /// what was seen whenever somebody asked.
    pub(super) fn stats(&mut self) -> Stats {
        let planned = self.serving.as_ref().map_or(0, |serving| {
            serving.stage.in_use().filter(|slot| !self.is_adopted(serving, slot)).map(|slot| slot.bytes.get()).sum()
        });
        let mut stats = self.books.stats();
        stats.live += Bytes::new(planned);
        self.peak_seen = self.peak_seen.max(stats.live).max(stats.peak_live);
        stats.peak_live = self.peak_seen;
        stats
    }

    /// The blocks that are in use, by address.
    pub(super) fn living(&self) -> Vec<Living> {
        let online = self.blocks.iter().map(|(&address, block)| Living {
            address: Address(address),
            bytes: Bytes::new(block.bytes),
            stream: block.stream,
            pending: block.pending,
        });
        let planned = self.serving.iter().flat_map(|serving| {
            let own = serving.stage.in_use().filter(|slot| !self.is_adopted(serving, slot));
            own.filter_map(|slot| {
                let address = serving.address(slot.offset?.get());
                Some(Living { address, bytes: slot.bytes, stream: slot.lane.stream, pending: false })
            })
        });
        let mut living: Vec<Living> = online.chain(planned).collect();
        living.sort_unstable_by_key(|block| block.address);
        living
    }

    fn is_adopted(&self, serving: &Serving, slot: &Slot) -> bool {
        slot.offset.is_some_and(|offset| self.blocks.contains_key(&serving.address(offset.get()).0))
    }
}
