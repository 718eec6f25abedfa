//! Which calls fail, and how.

use lowtide_memory::{Error as SourceError, FailWhen, Failure};

use super::*;
use crate::adaptors::{Call, Fail, FaultPlan};

#[test]
fn the_nth_call_fails_and_does_nothing() {
    let pool = Fail::new(pool(None), FaultPlan::new(FailWhen::Nth(2)).only(&[Call::Alloc]));
    take(&pool, 100);
    let refused = pool.alloc(&request(50, 0, 0));
    let (asked, live, reserved) = (Bytes::new(50), Bytes::new(100), Bytes::new(2 * MIB));
    assert_eq!(refused, Err(Error::OutOfMemory { asked, live, reserved }));
    take(&pool, 50);
    assert_eq!((pool.calls_made(), pool.calls_failed()), (3, 1));
}

#[test]
fn a_free_that_fails_can_be_made_again() {
    let plan = FaultPlan::new(FailWhen::Nth(1)).only(&[Call::Free]).with(Failure::Refused);
    let pool = Fail::new(pool(None), plan);
    let block = take(&pool, 100);
    assert!(matches!(pool.free(block), Err(Error::Source(SourceError::Refused { .. }))));
    assert_eq!(pool.free(block), Ok(()));
}

#[test]
fn calls_that_ask_for_no_memory_fail_by_their_source() {
    let pool = Fail::new(pool(None), FaultPlan::new(FailWhen::From(1)));
    let lack = || Error::Source(SourceError::OutOfMemory { asked: Bytes::ZERO });
    assert_eq!(pool.free(Address(1)), Err(lack()));
    assert_eq!(pool.record(Address(1), StreamId(0)), Err(lack()));
    assert_eq!(pool.trim(), Err(lack()));
    assert_eq!(pool.calls_failed(), 3);
}

#[test]
fn the_same_seed_fails_the_same_calls() {
    let failed = |seed| -> Vec<bool> {
        let when = FailWhen::Randomly { probability: 0.3, seed };
        let pool = Fail::new(pool(None), FaultPlan::new(when));
        (0..100).map(|_| pool.alloc(&request(10, 0, 0)).is_err()).collect()
    };
    assert_eq!(failed(1), failed(1));
    assert_ne!(failed(1), failed(2));
    assert!((10..60).contains(&failed(1).iter().filter(|&&failed| failed).count()));
}
