//! Blocks and streams: whose a block is, and when it comes back.

use lowtide_core::Bytes;
use lowtide_memory::{Lag, Source};

use super::check::check;
use super::*;

fn a_block_belongs_to_its_stream<P: Open>() {
    let pool: P = pool("");
    let block = take_on(&pool, 50 * MIB, 1);
    pool.free(block).unwrap();
    assert_ne!(take_on(&pool, 50 * MIB, 2), block);
    assert_eq!(take_on(&pool, 50 * MIB, 1), block);
}

#[test]
fn a_block_belongs_to_its_stream_in_both() {
    a_block_belongs_to_its_stream::<Caching>();
    a_block_belongs_to_its_stream::<Expandable>();
}

fn a_recorded_block_comes_back_when_all_its_marks_passed<P: Open>() {
    let device = device(None);
    let pool = P::open(device.clone(), "");
    let (block, _beside) = (take(&pool, MIB), take(&pool, 512));
    pool.record(block, StreamId(1)).unwrap();
    pool.record(block, StreamId(2)).unwrap();
    pool.record(block, StreamId(1)).unwrap();
    device.set_lag(Lag::At(100));
    pool.free(block).unwrap();
    assert_eq!(pool.free(block), Err(Error::DoubleFree { address: block }));
    assert_eq!(pool.stats().live.get(), MIB + 512, "work that is queued still uses it");
    device.set_time(99);
    let other = take(&pool, MIB);
    assert_ne!(other, block);
    device.set_time(100);
    check(&pool);
    assert!([take(&pool, MIB), take(&pool, MIB)].contains(&block));
    check(&pool);
}

#[test]
fn a_recorded_block_comes_back_when_all_its_marks_passed_in_both() {
    a_recorded_block_comes_back_when_all_its_marks_passed::<Caching>();
    a_recorded_block_comes_back_when_all_its_marks_passed::<Expandable>();
}

#[test]
fn a_record_on_its_own_stream_changes_nothing() {
    let device = device(None);
    let pool = Caching::open(device.clone(), "");
    device.set_lag(Lag::Never);
    let block = take_on(&pool, 50 * MIB, 3);
    pool.record(block, StreamId(3)).unwrap();
    pool.free(block).unwrap();
    assert_eq!(pool.stats().live, Bytes::ZERO);
}

#[test]
fn a_stream_that_is_behind_holds_up_only_its_own() {
    let device = device(None);
    let pool = Caching::open(device.clone(), "");
    let blocks = [1, 2, 2].map(|stream| (stream, take(&pool, 50 * MIB)));
    for ((stream, block), passes_at) in blocks.into_iter().zip([1000, 20, 10]) {
        pool.record(block, StreamId(stream)).unwrap();
        device.set_lag(Lag::At(passes_at));
        pool.free(block).unwrap();
    }
    device.set_time(10);
    take(&pool, 1);
    assert_eq!(pool.stats().live.get(), 150 * MIB + 1, "a queue is asked from its front");
    device.set_time(20);
    take(&pool, 1);
    assert_eq!(pool.stats().live.get(), 50 * MIB + 2);
}

fn out_of_memory_waits_for_recorded_streams<P: Open>() {
    let device = device(Some(100 * MIB));
    let pool = P::open(device.clone(), "");
    let block = take(&pool, 80 * MIB);
    pool.record(block, StreamId(1)).unwrap();
    device.set_lag(Lag::At(5_000_000));
    pool.free(block).unwrap();
    device.set_lag(Lag::After(0));
    take_on(&pool, 80 * MIB, 4);
    assert_eq!(device.now_ns(), 5_000_000);
    assert_eq!(pool.stats().live.get(), 80 * MIB);
    check(&pool);
}

#[test]
fn out_of_memory_waits_for_recorded_streams_in_both() {
    out_of_memory_waits_for_recorded_streams::<Caching>();
    out_of_memory_waits_for_recorded_streams::<Expandable>();
}

fn memory_goes_back_behind_the_work_of_its_own_stream<P: Open>() {
    let device = device(None);
    let pool = P::open(device.clone(), "");
    pool.free(take(&pool, 80 * MIB)).unwrap();
    device.set_lag(Lag::After(700));
    pool.trim().unwrap();
    assert_eq!(device.now_ns(), 700);
}

#[test]
fn memory_goes_back_behind_the_work_of_its_own_stream_in_both() {
    memory_goes_back_behind_the_work_of_its_own_stream::<Caching>();
    memory_goes_back_behind_the_work_of_its_own_stream::<Expandable>();
}

#[test]
fn trim_fails_and_keeps_the_block_where_its_work_never_ends() {
    let device = device(None);
    let pool = Caching::open(device.clone(), "");
    let block = take(&pool, 80 * MIB);
    pool.record(block, StreamId(1)).unwrap();
    device.set_lag(Lag::Never);
    pool.free(block).unwrap();
    assert!(matches!(pool.trim(), Err(Error::Source(_))));
    assert_eq!(pool.stats().live.get(), 80 * MIB);
    check(&pool);
    assert_eq!(device.calls().committed.get(), 80 * MIB);
}
