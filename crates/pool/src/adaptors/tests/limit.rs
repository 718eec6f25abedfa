//! What a limit lets through.

use super::*;
use crate::adaptors::{Call, Fail, FaultPlan, Limit};
use lowtide_memory::FailWhen;

#[test]
fn the_limit_is_exact_to_the_byte() {
    let pool = Limit::new(pool(None), Bytes::new(1000));
    let first = take(&pool, 600);
    take(&pool, 400);
    let refused = pool.alloc(&request(1, 0, 0));
    let full = Bytes::new(1000);
    assert_eq!(refused, Err(Error::OverLimit { asked: Bytes::new(1), live: full, limit: full }));
    pool.free(first).unwrap();
    assert!(pool.alloc(&request(601, 0, 0)).is_err());
    take(&pool, 600);
    assert_eq!(pool.live(), full);
}

#[test]
fn a_raised_limit_helps_and_a_lowered_one_takes_nothing_away() {
    let pool = Limit::new(pool(None), Bytes::new(100));
    assert!(pool.alloc(&request(101, 0, 0)).is_err());
    pool.set_limit(Bytes::new(200));
    let block = take(&pool, 101);
    pool.set_limit(Bytes::new(10));
    assert!(pool.alloc(&request(1, 0, 0)).is_err());
    pool.free(block).unwrap();
    take(&pool, 10);
}

#[test]
fn what_the_pool_refuses_is_not_counted() {
    let pool = Limit::new(pool(Some(4 * MIB)), Bytes::new(100 * MIB));
    assert!(matches!(pool.alloc(&request(5 * MIB, 0, 0)), Err(Error::TooLarge { .. })));
    assert_eq!(pool.alloc(&request(0, 0, 0)), Err(Error::ZeroSize));
    assert_eq!(pool.live(), Bytes::ZERO);
    assert!(matches!(pool.alloc(&request(u64::MAX, 0, 0)), Err(Error::OverLimit { .. })));
}

#[test]
fn a_free_that_fails_leaves_its_block_counted() {
    let failing = Fail::new(pool(None), FaultPlan::new(FailWhen::Nth(1)).only(&[Call::Free]));
    let pool = Limit::new(failing, Bytes::new(MIB));
    let block = take(&pool, 1000);
    assert!(pool.free(block).is_err());
    assert_eq!(pool.live(), Bytes::new(1000));
    pool.free(block).unwrap();
    assert_eq!(pool.free(block), Err(Error::DoubleFree { address: block }));
    assert_eq!(pool.live(), Bytes::ZERO);
}

#[test]
fn threads_never_pass_the_limit_together_and_lose_no_count() {
    let pool = &Limit::new(pool(None), Bytes::new(10_000));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut blocks = Vec::new();
                for round in 1..2000_u64 {
                    match pool.alloc(&request(round % 777 + 1, thread, thread)) {
                        Ok(block) => blocks.push(block),
                        Err(Error::OverLimit { .. }) => blocks.drain(..).for_each(|block| pool.free(block).unwrap()),
                        Err(error) => panic!("{error}"),
                    }
                    assert!(pool.stats().live <= pool.limit());
                }
                for block in blocks {
                    pool.free(block).unwrap();
                }
            });
        }
    });
    assert_eq!((pool.live(), pool.stats().live), (Bytes::ZERO, Bytes::ZERO));
}
