//! What an arena promises beyond the conformance suite: how few calls it makes, and (`plans`) what becomes of plans.

mod plans;

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{CallKind, FailPlan, FailWhen, Failing, Failure, Lag, Simulated, SimulatedOptions, Source};

use super::{Arena, ArenaOptions};
use crate::error::Error;
use crate::pool::{Address, Pool, Request};

const MIB: u64 = 1 << 20;

fn device(capacity: Option<u64>) -> Arc<Simulated> {
    let options = SimulatedOptions { capacity: capacity.map(Bytes::new), ..SimulatedOptions::default() };
    Arc::new(Simulated::new(options).unwrap())
}

fn online(device: &Arc<Simulated>) -> Arena {
    Arena::new(Arc::clone(device) as Arc<dyn Source>, ArenaOptions::default()).unwrap()
}

fn block(pool: &Arena, mebibytes: u64) -> Address {
    pool.alloc(&Request::new(Bytes::new(mebibytes * MIB))).unwrap()
}

/// Blocks of one mebibyte of which every second is freed, so that what is free lies scattered.
fn scattered(pool: &Arena, count: u64, mebibytes: u64) -> Vec<Address> {
    let blocks: Vec<Address> = (0..count).map(|_| block(pool, mebibytes)).collect();
    for &free in blocks.iter().step_by(2) {
        pool.free(free).unwrap();
    }
    blocks.into_iter().skip(1).step_by(2).collect()
}

#[test]
fn scattered_free_memory_serves_a_large_block_through_a_window() {
    let device = device(None);
    let pool = online(&device);
    scattered(&pool, 64, 4);
    let before = device.calls();
    block(&pool, 100);
    let after = device.calls();
    assert_eq!(after.committed, before.committed, "nothing was taken from the device");
    assert!(after.mapped - before.mapped <= 50, "{} handles were mapped", after.mapped - before.mapped);
}

#[test]
fn memory_that_a_window_used_is_whole_again_without_a_call() {
    let device = device(None);
    let pool = online(&device);
    scattered(&pool, 64, 4);
    let large = block(&pool, 100);
    pool.free(large).unwrap();
    let before = device.calls().handles();
    let blocks: Vec<Address> = (0..32).map(|_| block(&pool, 4)).collect();
    for at in blocks {
        pool.free(at).unwrap();
    }
    block(&pool, 100);
    assert_eq!(device.calls().handles(), before);
}

#[test]
fn a_device_that_is_full_gathers_its_free_memory_instead_of_failing() {
    let device = device(Some(256 * MIB));
    let pool = online(&device);
    let kept = scattered(&pool, 64, 4);
    block(&pool, 120);
    let error = pool.alloc(&Request::new(Bytes::new(16 * MIB))).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    for at in kept {
        pool.free(at).unwrap();
    }
    block(&pool, 120);
}

#[test]
fn calls_of_a_step_stay_within_the_ration_after_the_second() {
    let device = device(None);
    let options = ArenaOptions { ration: 20, ..ArenaOptions::default() };
    let pool = Arena::new(Arc::clone(&device) as Arc<dyn Source>, options).unwrap();
    pool.step();
    pool.step();
    let kept = scattered(&pool, 512, 4);
    pool.step();
    let before = device.calls().handles();
    let large = block(&pool, 900);
    let calls = device.calls().handles() - before;
    assert!(calls <= 20 + 2, "{calls} calls");
    for at in kept.into_iter().chain([large]) {
        pool.free(at).unwrap();
    }
}

#[test]
fn a_small_block_serves_the_next_of_its_size_and_stream_as_it_is() {
    let pool = online(&device(None));
    let of = |kib: u64, stream: u64| {
        let request = Request { stream: StreamId(stream), ..Request::new(Bytes::new(kib << 10)) };
        pool.alloc(&request).unwrap()
    };
    let _other = of(8, 2);
    let (first, _between, last) = (of(8, 1), of(4, 1), of(8, 1));
    pool.free(last).unwrap();
    pool.free(first).unwrap();
    assert!(matches!(pool.free(first), Err(Error::DoubleFree { .. })));
    assert_eq!(pool.stats().live, Bytes::new(12 << 10));
    assert_eq!(of(8, 1), first, "the one that was freed last");
    assert_ne!(of(8, 2), last, "another stream would have to wait for it");
    assert_eq!(of(8, 1), last);
    let kept = pool.blocks();
    for block in &kept {
        pool.free(block.address).unwrap();
    }
    assert_eq!(kept.len(), 5);
    pool.trim().unwrap();
    assert_eq!(pool.stats().reserved, Bytes::ZERO, "what was kept goes back too");
}

#[test]
fn another_stream_takes_freed_memory_behind_a_hold() {
    let device = device(None);
    let pool = online(&device);
    let first = block(&pool, 64);
    pool.free(first).unwrap();
    let request = Request { stream: StreamId(7), ..Request::new(Bytes::new(64 * MIB)) };
    let before = device.calls();
    assert_eq!(pool.alloc(&request).unwrap(), first);
    assert_eq!(device.calls().holds, before.holds + 1);
    assert_eq!(device.calls().committed, before.committed);
}

#[test]
fn another_stream_waits_for_nothing_once_the_work_is_done() {
    let device = device(None);
    let pool = online(&device);
    let other = |bytes| Request { stream: StreamId(7), ..Request::new(Bytes::new(bytes)) };
    let warm = pool.alloc(&other(MIB)).unwrap();
    for _ in 0..64 {
        let at = block(&pool, 64);
        pool.free(at).unwrap();
    }
    device.advance(1_000_000_000);
    let holds = device.calls().holds;
    pool.alloc(&other(64 * MIB)).unwrap();
    assert_eq!(device.calls().holds, holds);
    pool.free(warm).unwrap();
}

#[test]
fn a_block_that_another_stream_uses_comes_back_when_that_is_done() {
    let device = device(None);
    let pool = online(&device);
    let first = block(&pool, 64);
    pool.record(first, StreamId(3)).unwrap();
    device.set_lag(Lag::At(5_000));
    pool.free(first).unwrap();
    assert!(matches!(pool.free(first), Err(Error::DoubleFree { .. })));
    assert_ne!(block(&pool, 64), first);
    device.set_time(5_000);
    assert_eq!(block(&pool, 64), first);
}

#[test]
fn a_trim_that_cannot_wait_for_a_stream_says_so() {
    let plan = FailPlan::new(FailWhen::Nth(2)).only(&[CallKind::Wait]).with(Failure::Refused);
    let source = Arc::new(Failing::new(Simulated::new(SimulatedOptions::default()).unwrap(), plan));
    let pool = Arena::new(Arc::clone(&source) as Arc<dyn Source>, ArenaOptions::default()).unwrap();
    let blocks = [1, 2].map(|stream| {
        let address = block(&pool, 4);
        pool.record(address, StreamId(stream)).unwrap();
        address
    });
    for (address, done) in blocks.into_iter().zip([1_000_000, 2_000_000]) {
        source.source().set_lag(Lag::At(done));
        pool.free(address).unwrap();
    }
    let error = pool.trim().unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error}");
    pool.trim().unwrap();
    assert_eq!(pool.stats().live, Bytes::ZERO);
    assert_eq!(pool.stats().reserved, Bytes::ZERO);
}
