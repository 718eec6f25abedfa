//! A pool that refuses on purpose, so that a program above it can show what it does when it is refused.

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Error as SourceError, FailWhen, Failure};

use crate::error::Error;
use crate::pool::{Address, Pool, Request, Stats};

/// A call that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// [`Pool::alloc`]
    Alloc,
    /// [`Pool::free`]
    Free,
    /// [`Pool::record`]
    Record,
    /// [`Pool::trim`]
    Trim,
}

/// Which calls fail, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct FaultPlan {
    /// Which.
    pub when: FailWhen,
    /// The calls that are counted and fail; all of them where none is named.
    pub calls: Vec<Call>,
    /// How: for lack of memory, or because the source refuses.
    pub failure: Failure,
}

impl FaultPlan {
    /// Calls of any kind, for lack of memory.
    pub fn new(when: FailWhen) -> Self {
        Self { when, calls: Vec::new(), failure: Failure::default() }
    }

    /// Counts and fails these calls alone.
    #[must_use]
    pub fn only(mut self, calls: &[Call]) -> Self {
        self.calls = calls.to_vec();
        self
    }

    /// Fails in another way.
    #[must_use]
    pub fn with(mut self, failure: Failure) -> Self {
        self.failure = failure;
        self
    }
}

/// Another pool, some of whose calls fail. A call that fails does nothing.
#[derive(Debug)]
pub struct Fail<P> {
    pool: P,
    plan: FaultPlan,
    made: AtomicU64,
    failed: AtomicU64,
}

impl<P: Pool> Fail<P> {
    /// `pool`, failing by `plan`.
    pub fn new(pool: P, plan: FaultPlan) -> Self {
        Self { pool, plan, made: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// The pool within.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// Calls of the plan's kinds so far, those that failed among them.
    pub fn calls_made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Calls that failed on purpose.
    pub fn calls_failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// The number of the call, where it is to fail.
    fn fails(&self, call: Call) -> Option<u64> {
        if !self.plan.calls.is_empty() && !self.plan.calls.contains(&call) {
            return None;
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let fails = self.plan.when.hits(number);
        self.failed.fetch_add(u64::from(fails), Ordering::Relaxed);
        fails.then_some(number)
    }

    /// Lets a call pass that asks for no memory, or fails it as the source would make it fail.
    fn pass(&self, call: Call) -> Result<(), Error> {
        let Some(number) = self.fails(call) else { return Ok(()) };
        Err(Error::Source(match self.plan.failure {
            Failure::OutOfMemory => SourceError::OutOfMemory { asked: Bytes::ZERO },
            Failure::Refused => refused(number),
        }))
    }
}

impl<P: Pool> Pool for Fail<P> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let Some(number) = self.fails(Call::Alloc) else { return self.pool.alloc(request) };
        let Stats { live, reserved, .. } = self.pool.stats();
        Err(match self.plan.failure {
            Failure::OutOfMemory => Error::OutOfMemory { asked: request.bytes, live, reserved },
            Failure::Refused => Error::Source(refused(number)),
        })
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        self.pass(Call::Free)?;
        self.pool.free(address)
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.pass(Call::Record)?;
        self.pool.record(address, stream)
    }

    fn step(&self) {
        self.pool.step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.pass(Call::Trim)?;
        self.pool.trim()
    }

    fn stats(&self) -> Stats {
        self.pool.stats()
    }
}

fn refused(number: u64) -> SourceError {
    SourceError::Refused { call: "Fail", why: format!("call {number} fails on purpose") }
}
