//! The rules of both models, their invariants under any program, and what is left when the source fails.

mod caching;
mod check;
mod expandable;
mod failing;
mod memory;
mod programs;
mod streams;

use std::sync::Arc;

use lowtide_core::{Align, Bytes, StreamId};
use lowtide_memory::{Simulated, SimulatedOptions, Source};
use lowtide_pool::{Address, Error, Pool, Request};

use super::model::Backing;
use super::{Caching, Expandable};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A pool whose blocks tests can look at.
trait Open: Pool {
    fn open(source: Arc<dyn Source>, options: &str) -> Self;
    fn inspect<T>(&self, look: impl FnOnce(&Backing) -> T) -> T;
}

impl Open for Caching {
    fn open(source: Arc<dyn Source>, options: &str) -> Self {
        Self::new(source, options.parse().unwrap())
    }

    fn inspect<T>(&self, look: impl FnOnce(&Backing) -> T) -> T {
        self.model.inspect(look)
    }
}

impl Open for Expandable {
    fn open(source: Arc<dyn Source>, options: &str) -> Self {
        Self::new(source, options.parse().unwrap())
    }

    fn inspect<T>(&self, look: impl FnOnce(&Backing) -> T) -> T {
        self.model.inspect(look)
    }
}

fn device(capacity: Option<u64>) -> Arc<Simulated> {
    let options = SimulatedOptions { capacity: capacity.map(Bytes::new), lag_ns: 0, ..SimulatedOptions::default() };
    Arc::new(Simulated::new(options).unwrap())
}

/// A pool over a device without a limit.
fn pool<P: Open>(options: &str) -> P {
    P::open(device(None), options)
}

/// A pool over a device with so many MiB.
fn small_pool<P: Open>(mebibytes: u64, options: &str) -> P {
    P::open(device(Some(mebibytes * MIB)), options)
}

fn request(bytes: u64, stream: u64) -> Request {
    Request { stream: StreamId(stream), ..Request::new(Bytes::new(bytes)) }
}

fn try_take(pool: &impl Pool, bytes: u64) -> Result<Address, Error> {
    pool.alloc(&request(bytes, 0))
}

fn take(pool: &impl Pool, bytes: u64) -> Address {
    try_take(pool, bytes).unwrap()
}

fn take_on(pool: &impl Pool, bytes: u64, stream: u64) -> Address {
    pool.alloc(&request(bytes, stream)).unwrap()
}

fn free_all(pool: &impl Pool, blocks: &[Address]) {
    for &block in blocks {
        pool.free(block).unwrap();
    }
}

fn aligned(bytes: u64, align: u64) -> Request {
    Request { align: Align::new(align).unwrap(), ..Request::new(Bytes::new(bytes)) }
}

fn reserved(pool: &impl Pool) -> u64 {
    pool.stats().reserved.get()
}

fn is_out_of_memory<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::OutOfMemory { .. }))
}
