//! A source that fails: the pool says so, stays as it is, and loses nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Calls, Description, Error as SourceError, Mark, Source, Span};

use super::check::check;
use super::*;

/// Lets `good` calls pass, then fails `bad` of them, then lets all pass.
#[derive(Debug)]
struct Failing {
    device: Arc<Simulated>,
    calls: AtomicU64,
    good: u64,
    bad: u64,
    lacks_memory: bool,
}

impl Failing {
    fn call(&self) -> Result<(), SourceError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call < self.good || call - self.good >= self.bad {
            return Ok(());
        }
        Err(if self.lacks_memory {
            SourceError::OutOfMemory { asked: Bytes::new(1) }
        } else {
            SourceError::Refused { call: "test", why: "the test says so".to_owned() }
        })
    }
}

impl Source for Failing {
    fn describe(&self) -> Description {
        self.device.describe()
    }

    fn reserve(&self, bytes: Bytes) -> Result<Span, SourceError> {
        self.call()?;
        self.device.reserve(bytes)
    }

    fn release(&self, span: Span) -> Result<(), SourceError> {
        self.call()?;
        self.device.release(span)
    }

    fn commit(&self, span: Span) -> Result<(), SourceError> {
        self.call()?;
        self.device.commit(span)
    }

    fn decommit(&self, span: Span) -> Result<(), SourceError> {
        self.call()?;
        self.device.decommit(span)
    }

    fn calls(&self) -> Calls {
        self.device.calls()
    }

    fn mark(&self, stream: StreamId) -> Result<Mark, SourceError> {
        self.call()?;
        self.device.mark(stream)
    }

    fn passed(&self, mark: Mark) -> bool {
        self.device.passed(mark)
    }

    fn hold(&self, stream: StreamId, mark: Mark) -> Result<(), SourceError> {
        self.device.hold(stream, mark)
    }

    fn wait(&self, mark: Mark) -> Result<(), SourceError> {
        self.call()?;
        self.device.wait(mark)
    }

    fn forget(&self, mark: Mark) {
        self.device.forget(mark);
    }
}

/// A program that runs out of memory, waits and trims; every call may fail.
fn program(pool: &impl Open) {
    let mut blocks = Vec::new();
    for size in [30 * MIB, 5, 9 * MIB, 45 * MIB, MIB, 20 * MIB, 45 * MIB] {
        match try_take(pool, size) {
            Ok(block) => blocks.push(block),
            Err(error) => assert!(matches!(error, Error::Source(_) | Error::OutOfMemory { .. }), "{error}"),
        }
        check(pool);
        if let (Some(&block), true) = (blocks.first(), blocks.len() > 2) {
            pool.record(block, StreamId(1)).unwrap();
            pool.record(block, StreamId(2)).unwrap();
            if pool.free(block).is_ok() {
                blocks.remove(0);
            }
            check(pool);
        }
    }
    _ = pool.trim();
    check(pool);
    for block in blocks {
        while pool.free(block).is_err() {
            check(pool);
        }
    }
}

fn nothing_is_lost_whichever_call_fails<P: Open>(lacks_memory: bool) {
    for bad in [1, 2, 5] {
        for good in 0..120 {
            let device = device(Some(100 * MIB));
            let source = Failing { device: device.clone(), calls: AtomicU64::new(0), good, bad, lacks_memory };
            let pool = P::open(Arc::new(source), "max_split_size_mb:40");
            program(&pool);
            while pool.trim().is_err() {
                check(&pool);
            }
            pool.trim().unwrap();
            check(&pool);
            assert_eq!(reserved(&pool), 0);
            assert_eq!(pool.stats().live, Bytes::ZERO);
            let calls = device.calls();
            assert_eq!(calls.committed, Bytes::ZERO);
            assert_eq!(calls.reserved, calls.released);
        }
    }
}

#[test]
fn nothing_is_lost_whichever_call_of_the_caching_allocator_fails() {
    nothing_is_lost_whichever_call_fails::<Caching>(false);
    nothing_is_lost_whichever_call_fails::<Caching>(true);
}

#[test]
fn nothing_is_lost_whichever_call_of_expandable_segments_fails() {
    nothing_is_lost_whichever_call_fails::<Expandable>(false);
    nothing_is_lost_whichever_call_fails::<Expandable>(true);
}
