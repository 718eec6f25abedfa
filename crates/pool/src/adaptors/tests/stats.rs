//! What the counts say.

use super::*;
use crate::adaptors::{Call, Fail, FaultPlan, Statistics, Tally};
use lowtide_memory::{FailWhen, Lag};

fn tally(live: u64, peak: u64, allocs: u64, frees: u64) -> Tally {
    Tally { live: Bytes::new(live), peak: Bytes::new(peak), allocs, frees }
}

#[test]
fn blocks_are_counted_by_stream_and_thread() {
    let pool = Statistics::new(pool(None));
    let first = pool.alloc(&request(100, 0, 1)).unwrap();
    pool.alloc(&request(20, 0, 2)).unwrap();
    pool.alloc(&request(3, 7, 2)).unwrap();
    pool.free(first).unwrap();
    let reading = pool.reading();
    assert_eq!(reading.all, tally(23, 123, 3, 1));
    assert_eq!(reading.by_stream[&StreamId(0)], tally(20, 120, 2, 1));
    assert_eq!(reading.by_stream[&StreamId(7)], tally(3, 3, 1, 0));
    assert_eq!(reading.by_thread[&ThreadId(1)], tally(0, 100, 1, 1));
    assert_eq!(reading.by_thread[&ThreadId(2)], tally(23, 23, 2, 0));
}

#[test]
fn a_block_that_outlives_its_step_is_persistent() {
    let pool = Statistics::new(pool(None));
    let weight = take(&pool, 1000);
    let activation = take(&pool, 10);
    pool.free(activation).unwrap();
    assert_eq!(pool.reading().transient, tally(1000, 1010, 2, 1));
    pool.step();
    let reading = pool.reading();
    assert_eq!((reading.persistent, reading.transient), (tally(1000, 1000, 1, 0), tally(0, 1010, 1, 1)));
    take(&pool, 5);
    pool.free(weight).unwrap();
    let reading = pool.reading();
    assert_eq!((reading.persistent, reading.transient), (tally(0, 1000, 1, 1), tally(5, 1010, 2, 1)));
    assert_eq!(reading.steps, 1);
}

#[test]
fn fragmentation_is_what_is_reserved_and_not_in_use() {
    let pool = Statistics::new(pool(None));
    assert_eq!(pool.reading().fragmentation().to_bits(), 0.0_f64.to_bits());
    let block = take(&pool, MIB);
    take(&pool, MIB / 2);
    assert!((pool.reading().fragmentation() - 0.25).abs() < 1e-9);
    pool.free(block).unwrap();
    assert!((pool.reading().fragmentation() - 0.75).abs() < 1e-9);
    assert!((pool.reading().peak_fragmentation() - 0.25).abs() < 1e-9);
}

#[test]
fn memory_that_queued_work_uses_is_in_use_and_not_live() {
    let device = device(None);
    let pool = Statistics::new(Caching::new(device.clone(), TorchOptions::default()));
    let block = take(&pool, MIB);
    pool.record(block, StreamId(1)).unwrap();
    device.set_lag(Lag::At(100));
    pool.free(block).unwrap();
    let reading = pool.reading();
    assert_eq!((reading.all.live, reading.in_use, reading.records), (Bytes::ZERO, Bytes::new(MIB), 1));
}

#[test]
fn peaks_begin_again_at_a_reset() {
    let pool = Statistics::new(pool(None));
    let large = take(&pool, 50 * MIB);
    take(&pool, 100);
    pool.free(large).unwrap();
    assert_eq!(pool.reading().peak_reserved, Bytes::new(52 * MIB));
    pool.trim().unwrap();
    pool.reset_peaks();
    let reading = pool.reading();
    assert_eq!((reading.all.peak, reading.peak_reserved), (Bytes::new(100), Bytes::new(2 * MIB)));
    take(&pool, 20 * MIB);
    assert_eq!(pool.reading().peak_reserved, Bytes::new(22 * MIB));
    take(&pool, 60 * MIB);
    let reading = pool.reading();
    assert_eq!((reading.all.peak, reading.peak_reserved), (Bytes::new(80 * MIB + 100), Bytes::new(82 * MIB)));
    assert_eq!((reading.trims, reading.trimmed), (1, Bytes::new(50 * MIB)));
}

#[test]
fn refusals_are_counted_and_a_free_that_fails_changes_nothing() {
    let failing = Fail::new(pool(Some(4 * MIB)), FaultPlan::new(FailWhen::Nth(1)).only(&[Call::Free]));
    let pool = Statistics::new(failing);
    assert!(pool.alloc(&request(5 * MIB, 0, 0)).is_err());
    let block = take(&pool, 1000);
    assert!(pool.free(block).is_err());
    pool.step();
    let reading = pool.reading();
    assert_eq!((reading.refusals, reading.all, reading.persistent), (1, tally(1000, 1000, 1, 0), reading.all));
    pool.free(block).unwrap();
    assert!(pool.free(block).is_err());
    assert_eq!(pool.reading().all, tally(0, 1000, 1, 1));
}

#[test]
fn counts_of_threads_add_up() {
    let pool = &Statistics::new(pool(None));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 1..500 {
                    let blocks = [1, 2, 3].map(|size| pool.alloc(&request(size * round, thread, thread)).unwrap());
                    if round % 10 == 0 {
                        pool.step();
                    }
                    for block in blocks {
                        pool.free(block).unwrap();
                    }
                }
            });
        }
    });
    let reading = pool.reading();
    assert_eq!((reading.all.live, reading.all.allocs, reading.all.frees), (Bytes::ZERO, 4 * 499 * 3, 4 * 499 * 3));
    assert_eq!((reading.persistent.live, reading.transient.live), (Bytes::ZERO, Bytes::ZERO));
    assert_eq!(reading.persistent.frees + reading.transient.frees, reading.all.frees);
    assert!(reading.by_thread.values().all(|tally| tally.allocs == 499 * 3));
}
