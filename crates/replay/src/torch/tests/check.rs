//! What holds of a pool's blocks at every moment.

use std::collections::BTreeMap;

use super::super::blocks::{Block, State};
use super::Open;

/// Panics where blocks do not tile their segments, neighbours were not merged, or counts and blocks disagree.
pub(super) fn check(pool: &impl Open) {
    let stats = pool.stats();
    pool.inspect(|backing| {
        let blocks = &backing.blocks;
        let (mut mapped, mut requested, mut shelved) = (0, 0, 0);
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for index in blocks.all() {
            let block = &blocks[index];
            assert!(block.bytes > 0);
            ends.insert(block.address, block.end());
            if let Some(next) = block.next {
                let next = &blocks[next];
                assert_eq!(next.previous, Some(index));
                assert_eq!(next.address, block.end());
                assert_eq!((next.stream, next.class), (block.stream, block.class));
                assert!(block.state == State::Held || next.state != block.state, "neighbours were not merged");
            }
            assert!(block.previous.is_none_or(|previous| blocks[previous].next == Some(index)));
            mapped += if block.state == State::Unmapped { 0 } else { block.bytes };
            requested += block.requested;
            shelved += usize::from(block.state != State::Held);
            assert_eq!(blocks.is_shelved(index), block.state != State::Held);
            check_block(block);
        }
        assert!(ends.iter().zip(ends.iter().skip(1)).all(|((_, end), (start, _))| end <= start), "blocks overlap");
        assert_eq!(blocks.shelved(), shelved);
        assert_eq!(stats.live.get(), requested);
        assert_eq!(stats.reserved.get(), mapped);
        assert!(stats.peak_reserved >= stats.reserved && stats.peak_live >= stats.live);
        assert!(stats.reserved >= stats.live);
    });
}

fn check_block(block: &Block) {
    let held = block.state == State::Held;
    assert_eq!(held, block.requested > 0);
    assert!(block.requested <= block.bytes);
    assert!(held || (block.uses.is_empty() && block.marks == 0));
    assert!(block.uses.is_empty() || block.marks == 0);
    assert_eq!(block.bytes % 512, 0);
}
