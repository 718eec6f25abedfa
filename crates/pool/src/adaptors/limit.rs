//! A cap on what a program may hold, whatever the device has: for tests of small devices, and for programs that share
//! one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lowtide_core::{Bytes, StreamId};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::pool::{Address, Pool, Request, Stats};

/// A pool that never has more than a limit handed out: what would pass it is [`Error::OverLimit`].
///
/// Counted is what was asked for through this adaptor and not freed yet. A request counts from its call on, so that
/// threads cannot pass the limit together; one that the pool within refuses counts until it is refused.
#[derive(Debug)]
pub struct Limit<P> {
    pool: P,
    most: AtomicU64,
    live: AtomicU64,
    sizes: Mutex<FxHashMap<Address, u64>>,
}

impl<P: Pool> Limit<P> {
    /// `pool`, of which no more than `limit` may be in use.
    pub fn new(pool: P, limit: Bytes) -> Self {
        let (most, live) = (AtomicU64::new(limit.get()), AtomicU64::new(0));
        Self { pool, most, live, sizes: Mutex::default() }
    }

    /// The most that may be in use.
    pub fn limit(&self) -> Bytes {
        Bytes::new(self.most.load(Ordering::Relaxed))
    }

    /// Changes the limit. What is in use stays so; where it is more than the new limit, nothing is served until enough
    /// was freed.
    pub fn set_limit(&self, limit: Bytes) {
        self.most.store(limit.get(), Ordering::Relaxed);
    }

    /// What is handed out.
    pub fn live(&self) -> Bytes {
        Bytes::new(self.live.load(Ordering::Relaxed))
    }

    /// The pool within.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// Counts `bytes` more, unless that passes the limit.
    fn take(&self, bytes: Bytes) -> Result<(), Error> {
        let limit = self.limit();
        let sum = |live: u64| live.checked_add(bytes.get()).filter(|&sum| sum <= limit.get());
        let taken = self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        taken.map(|_| ()).map_err(|live| Error::OverLimit { asked: bytes, live: Bytes::new(live), limit })
    }

    fn give(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn sizes(&self) -> MutexGuard<'_, FxHashMap<Address, u64>> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Pool> Pool for Limit<P> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        self.take(request.bytes)?;
        let address = self.pool.alloc(request).inspect_err(|_| self.give(request.bytes.get()))?;
        self.sizes().insert(address, request.bytes.get());
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        // Struck out first: once it is free, another thread may be given the same address.
        let bytes = self.sizes().remove(&address);
        let freed = self.pool.free(address);
        if let Some(bytes) = bytes {
            match freed {
                Ok(()) => self.give(bytes),
                Err(_) => _ = self.sizes().insert(address, bytes),
            }
        }
        freed
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.pool.record(address, stream)
    }

    fn step(&self) {
        self.pool.step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.pool.trim()
    }

    fn stats(&self) -> Stats {
        self.pool.stats()
    }
}
