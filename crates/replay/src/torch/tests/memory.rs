//! What both models promise of requests and of the memory under them.

use std::mem;

use lowtide_core::Bytes;
use lowtide_memory::{SimulatedOptions, Source};

use super::*;
use crate::torch::TorchOptions;

fn errors_name_what_is_wrong<P: Open>() {
    let pool: P = small_pool(100, "");
    assert_eq!(try_take(&pool, 0), Err(Error::ZeroSize));
    assert_eq!(pool.alloc(&aligned(1, 3)), Err(Error::BadAlignment { align: 3 }));
    let too_large = Error::TooLarge { asked: Bytes::new(101 * MIB), capacity: Bytes::new(100 * MIB) };
    assert_eq!(try_take(&pool, 101 * MIB), Err(too_large));
    assert!(matches!(try_take(&pool, u64::MAX), Err(Error::TooLarge { .. })));
    assert!(matches!(pool.alloc(&aligned(u64::MAX, 1 << 63)), Err(Error::TooLarge { .. })));
    let block = take(&pool, 60 * MIB);
    let (live, reserved) = (pool.stats().live, pool.stats().reserved);
    assert_eq!(try_take(&pool, 60 * MIB), Err(Error::OutOfMemory { asked: Bytes::new(60 * MIB), live, reserved }));
    pool.free(block).unwrap();
    take(&pool, 60 * MIB);
}

#[test]
fn errors_name_what_is_wrong_in_both() {
    errors_name_what_is_wrong::<Caching>();
    errors_name_what_is_wrong::<Expandable>();
}

#[test]
fn without_a_capacity_only_what_no_device_has_is_too_large() {
    assert!(matches!(try_take(&pool::<Caching>(""), (1 << 60) + 1), Err(Error::TooLarge { .. })));
    assert!(matches!(try_take(&pool::<Expandable>(""), (1 << 60) + 1), Err(Error::TooLarge { .. })));
    take(&pool::<Expandable>("large_segment_size_mb:1048576"), 3 << 40);
}

fn bad_frees_are_told_apart<P: Open>() {
    let pool: P = pool("");
    let block = take(&pool, 1000);
    let inside = Address(block.0 + 512);
    assert_eq!(pool.free(inside), Err(Error::ForeignAddress { address: inside }));
    assert_eq!(pool.record(Address(0), StreamId(1)), Err(Error::ForeignAddress { address: Address(0) }));
    pool.free(block).unwrap();
    assert_eq!(pool.free(block), Err(Error::DoubleFree { address: block }));
    pool.trim().unwrap();
    assert_eq!(pool.free(block), Err(Error::DoubleFree { address: block }));
    assert_eq!(pool.record(block, StreamId(1)), Err(Error::DoubleFree { address: block }));
    check::check(&pool);
}

#[test]
fn bad_frees_are_told_apart_in_both() {
    bad_frees_are_told_apart::<Caching>();
    bad_frees_are_told_apart::<Expandable>();
}

fn any_power_of_two_is_an_alignment<P: Open>() {
    let pool: P = pool("");
    take(&pool, 512);
    for power in 0..33 {
        let address = pool.alloc(&aligned(700, 1 << power)).unwrap();
        assert_eq!(address.0 % (1 << power), 0);
        check::check(&pool);
        if power % 2 == 0 {
            pool.free(address).unwrap();
        }
    }
    assert_eq!(pool.stats().live.get(), 512 + 16 * 700);
}

#[test]
fn any_power_of_two_is_an_alignment_in_both() {
    any_power_of_two_is_an_alignment::<Caching>();
    any_power_of_two_is_an_alignment::<Expandable>();
}

fn stats_count_what_was_requested_and_what_is_held<P: Open>() {
    let pool: P = pool("");
    let block = take(&pool, 1000);
    take(&pool, 24);
    pool.free(block).unwrap();
    let stats = pool.stats();
    assert_eq!((stats.live.get(), stats.peak_live.get()), (24, 1024));
    assert_eq!((stats.reserved.get(), stats.peak_reserved.get()), (2 * MIB, 2 * MIB));
}

#[test]
fn stats_count_what_was_requested_and_what_is_held_in_both() {
    stats_count_what_was_requested_and_what_is_held::<Caching>();
    stats_count_what_was_requested_and_what_is_held::<Expandable>();
}

fn a_pool_that_ends_gives_everything_back<P: Open>() {
    let device = device(None);
    let pool = P::open(device.clone(), "");
    let block = take(&pool, 5 * MIB);
    take_on(&pool, 5, 1);
    pool.record(block, StreamId(7)).unwrap();
    pool.free(block).unwrap();
    mem::drop(pool);
    let calls = device.calls();
    assert_eq!(calls.committed, Bytes::ZERO);
    assert_eq!(calls.reserved, calls.released);
}

#[test]
fn a_pool_that_ends_gives_everything_back_in_both() {
    a_pool_that_ends_gives_everything_back::<Caching>();
    a_pool_that_ends_gives_everything_back::<Expandable>();
}

fn over(granularity: u64) -> Arc<Simulated> {
    let options = SimulatedOptions { granularity: Bytes::new(granularity), lag_ns: 0, ..SimulatedOptions::default() };
    Arc::new(Simulated::new(options).unwrap())
}

#[test]
fn a_segment_is_rounded_for_the_source_and_counted_as_it_is() {
    let device = over(4 * MIB);
    let pool = Caching::new(device.clone(), TorchOptions::default());
    let block = take(&pool, 5);
    assert_eq!(reserved(&pool), 2 * MIB);
    assert_eq!(device.calls().committed.get(), 4 * MIB);
    pool.free(block).unwrap();
    assert_eq!(pool.trim(), Ok(Bytes::new(2 * MIB)));
    assert_eq!(device.calls().committed, Bytes::ZERO);
}

#[test]
fn pages_are_rounded_to_the_source() {
    let device = over(16 * MIB);
    let pool = Expandable::new(device.clone(), TorchOptions::default());
    take(&pool, 5);
    take(&pool, 5 * MIB);
    assert_eq!(reserved(&pool), 48 * MIB);
    assert_eq!(device.calls().committed.get(), 48 * MIB);
}

#[test]
fn tiny_grains_leave_alignments_right() {
    let pool = Caching::new(over(1), TorchOptions::default());
    for align in [1, 256, 512, 4096] {
        assert_eq!(pool.alloc(&aligned(100, align)).unwrap().0 % align, 0);
    }
    check::check(&pool);
}

#[test]
fn threads_share_a_pool() {
    let pool = &pool::<Caching>("");
    std::thread::scope(|scope| {
        for stream in 0..4 {
            scope.spawn(move || {
                for round in 1..200 {
                    let blocks: Vec<Address> = (1..8).map(|size| take_on(pool, size * round * 999, stream)).collect();
                    free_all(pool, &blocks);
                }
            });
        }
    });
    check::check(pool);
    assert_eq!(pool.stats().live, Bytes::ZERO);
}
