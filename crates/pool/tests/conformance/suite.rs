//! What every strategy promises. Each check gets a pool that nothing was done with yet.

#![expect(clippy::needless_pass_by_value, reason = "a check may end its pool")]

use std::mem;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::Source;
use lowtide_pool::program::run_on_threads;
use lowtide_pool::{Address, Error};

use crate::bench::{Bench, Block, aligned, on, request};
use crate::programs::made_up;

const MIB: u64 = 1 << 20;

/// Calls `$macro` with the names of all checks.
macro_rules! checks {
    ($macro:ident $($more:tt)*) => {
        $macro! { $($more)*
            blocks_lie_apart_in_memory
            a_block_that_is_freed_twice_is_named
            an_address_of_nobody_is_named
            a_block_of_nothing_is_refused
            a_block_larger_than_the_device_is_refused
            an_alignment_that_is_no_power_of_two_is_refused
            alignments_up_to_2_mib_are_kept
            sizes_of_every_magnitude_are_served
            memory_is_used_again_on_its_stream
            another_stream_gets_memory_behind_the_work_of_the_first
            a_recorded_block_comes_back_behind_all_its_streams
            memory_that_ran_out_is_there_again_when_something_was_freed
            threads_share_a_pool
            a_trim_gives_back_what_is_free
            stats_count_what_was_asked_for
            a_pool_that_ends_gives_everything_back
        }
    };
}

pub fn blocks_lie_apart_in_memory(bench: Bench) {
    let blocks: Vec<Block> = (1..60).map(|size| bench.take(&request(size * 977))).collect();
    for block in blocks.iter().step_by(2) {
        bench.give(block);
    }
    for size in 1..30 {
        bench.take(&request(size * 1111));
    }
}

pub fn a_block_that_is_freed_twice_is_named(bench: Bench) {
    let block = bench.take(&request(1000));
    let _beside = bench.take(&request(1000));
    bench.give(&block);
    let again = || Err(Error::DoubleFree { address: block.address });
    assert_eq!(bench.pool.free(block.address), again());
    assert_eq!(bench.pool.record(block.address, StreamId(1)), again());
    bench.trim();
    assert!(bench.pool.free(block.address).is_err());
    assert_eq!(bench.live(), 1000);
}

pub fn an_address_of_nobody_is_named(bench: Bench) {
    let wild = |address: u64| Err(Error::ForeignAddress { address: Address(address) });
    assert_eq!(bench.pool.free(Address(4096)), wild(4096), "before anything was handed out");
    let block = bench.take(&request(3 * MIB));
    for address in [0, 1, block.address.0 + 1, block.address.0 + 512, block.address.0 + 2 * MIB, u64::MAX] {
        assert_eq!(bench.pool.free(Address(address)), wild(address));
        assert_eq!(bench.pool.record(Address(address), StreamId(1)), wild(address));
    }
    assert_eq!(bench.live(), 3 * MIB);
    bench.give(&block);
}

pub fn a_block_of_nothing_is_refused(bench: Bench) {
    assert_eq!(bench.pool.alloc(&request(0)), Err(Error::ZeroSize));
    assert_eq!(bench.pool.stats().peak_live, Bytes::ZERO);
}

pub fn a_block_larger_than_the_device_is_refused(bench: Bench) {
    let is_too_large = |bytes| matches!(bench.pool.alloc(&request(bytes)), Err(Error::TooLarge { .. }));
    assert!(is_too_large(1 << 61));
    assert!(is_too_large(u64::MAX));
    if let Some(capacity) = bench.source.describe().capacity {
        assert!(is_too_large(capacity.get() + 1));
        assert!(is_too_large(capacity.get() * 2));
    }
    assert_eq!((bench.live(), bench.reserved()), (0, 0));
    bench.take(&request(5));
}

pub fn an_alignment_that_is_no_power_of_two_is_refused(bench: Bench) {
    for align in [3, 24, 513, u64::MAX] {
        assert_eq!(bench.pool.alloc(&aligned(align, 100)), Err(Error::BadAlignment { align }));
    }
    assert_eq!(bench.live(), 0);
}

pub fn alignments_up_to_2_mib_are_kept(bench: Bench) {
    bench.take(&request(100));
    for power in 0..22 {
        let (small, large) = (bench.take(&aligned(1 << power, 700)), bench.take(&aligned(1 << power, 3 * MIB + 1)));
        for block in [small, large] {
            assert_eq!(block.address.0 % (1 << power), 0);
            if power % 3 != 0 {
                bench.give(&block);
            }
        }
    }
}

pub fn sizes_of_every_magnitude_are_served(bench: Bench) {
    for power in 0..26 {
        let sizes = [(1 << power) - 1, 1 << power, (1 << power) + 1].into_iter().filter(|&size| size > 0);
        let blocks: Vec<Block> = sizes.map(|size| bench.take(&request(size))).collect();
        bench.give(&blocks[0]);
        blocks[1..].iter().rev().for_each(|block| bench.give(block));
        if power > 24 {
            bench.trim();
        }
    }
}

pub fn memory_is_used_again_on_its_stream(bench: Bench) {
    let round = || {
        let blocks = [5 * MIB, 1000, 3 * MIB, 300_000].map(|size| bench.take(&on(3, size)));
        bench.give_all(&blocks);
    };
    round();
    let reserved = bench.reserved();
    (0..50).for_each(|_| round());
    assert_eq!(bench.pool.stats().peak_reserved.get(), reserved);
}

/// The watched source judges; memory is short, so that a strategy is tempted.
pub fn another_stream_gets_memory_behind_the_work_of_the_first(bench: Bench) {
    let size = bench.small_capacity().map_or(MIB, |capacity| capacity / 4);
    for round in 0..40 {
        let block = bench.take(&on(round % 3, size));
        bench.give(&block);
        if let Some(device) = bench.device.as_ref().filter(|_| round % 4 == 0) {
            device.advance(700);
        }
    }
}

pub fn a_recorded_block_comes_back_behind_all_its_streams(bench: Bench) {
    let size = bench.small_capacity().map_or(MIB, |capacity| capacity / 4);
    for round in 0..40 {
        let mut block = bench.take(&on(0, size));
        bench.record(&mut block, StreamId(1));
        bench.record(&mut block, StreamId(1));
        bench.record(&mut block, StreamId(round % 3));
        bench.give(&block);
        assert_eq!(bench.pool.free(block.address), Err(Error::DoubleFree { address: block.address }));
        if let Some(device) = bench.device.as_ref().filter(|_| round % 4 == 0) {
            device.advance(700);
        }
    }
    bench.trim();
    assert_eq!(bench.live(), 0);
}

pub fn memory_that_ran_out_is_there_again_when_something_was_freed(bench: Bench) {
    let capacity = bench.limited_capacity();
    let mut blocks = Vec::new();
    let refused = loop {
        match bench.try_take(&on(blocks.len() as u64 % 2, capacity / 8)) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    let (asked, live) = (Bytes::new(capacity / 8), Bytes::new(blocks.len() as u64 * (capacity / 8)));
    assert!(matches!(refused, Error::OutOfMemory { asked: a, live: l, .. } if (a, l) == (asked, live)), "{refused:?}");
    assert!(blocks.len() >= 4, "{} blocks of an eighth", blocks.len());
    for _ in 0..3 {
        let block = blocks.remove(0);
        bench.give(&block);
        blocks.push(bench.take(&block.request));
    }
    bench.give_all(&blocks);
    bench.take(&on(5, capacity / 2));
}

pub fn threads_share_a_pool(bench: Bench) {
    let takes_long = bench.percent < 20;
    if takes_long && !lowtide_testing::thorough() {
        return;
    }
    let bytes = 600 * bench.percent.clamp(20, 100) as usize / 100;
    let programs: Vec<_> = (0..4).map(|seed| made_up(seed, bytes)).collect();
    run_on_threads(&programs, &bench.subject()).unwrap();
}

pub fn a_trim_gives_back_what_is_free(bench: Bench) {
    let blocks = [50 << 10, 9 * MIB, 700, 20 * MIB].map(|size| bench.take(&on(size % 2, size)));
    bench.give_all(&blocks);
    let reserved = bench.reserved();
    assert!(reserved > 0);
    assert_eq!(bench.trim().get(), reserved);
    assert_eq!((bench.live(), bench.reserved()), (0, 0));
    assert_eq!(bench.source.calls().committed, Bytes::ZERO);
    assert_eq!(bench.trim(), Bytes::ZERO);
    bench.take(&request(MIB));
}

pub fn stats_count_what_was_asked_for(bench: Bench) {
    let large = bench.take(&request(5 * MIB + 3));
    let small = bench.take(&on(1, 7));
    assert_eq!(bench.live(), 5 * MIB + 10);
    bench.give(&large);
    let stats = bench.pool.stats();
    assert_eq!((stats.live.get(), stats.peak_live.get()), (7, 5 * MIB + 10));
    assert!(stats.peak_reserved.get() >= 5 * MIB + 10 && stats.reserved.get() >= 7);
    bench.give(&small);
    assert_eq!(bench.live(), 0);
    bench.trim();
    assert_eq!(bench.pool.stats().peak_live.get(), 5 * MIB + 10, "a peak stays");
}

pub fn a_pool_that_ends_gives_everything_back(bench: Bench) {
    let blocks: Vec<Block> = (1..20).map(|size| bench.take(&on(size % 3, size * 400_000))).collect();
    blocks.iter().step_by(2).for_each(|block| bench.give(block));
    let Bench { pool, source, .. } = bench;
    mem::drop(pool);
    let calls = source.calls();
    assert_eq!(calls.committed, Bytes::ZERO);
    assert_eq!(calls.reserved, calls.released);
}
