//! What each adaptor promises, over the caching model on a simulated device.

mod fail;
mod limit;
mod record;
mod stats;

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Simulated, SimulatedOptions};

use crate::{Address, Caching, Error, Pool, Request, ThreadId, TorchOptions};

const MIB: u64 = 1 << 20;

fn device(capacity: Option<u64>) -> Arc<Simulated> {
    let options = SimulatedOptions { capacity: capacity.map(Bytes::new), lag_ns: 0, ..SimulatedOptions::default() };
    Arc::new(Simulated::new(options).unwrap())
}

fn pool(capacity: Option<u64>) -> Caching {
    Caching::new(device(capacity), TorchOptions::default())
}

fn request(bytes: u64, stream: u64, thread: u64) -> Request {
    Request { stream: StreamId(stream), thread: ThreadId(thread), ..Request::new(Bytes::new(bytes)) }
}

fn take(pool: &impl Pool, bytes: u64) -> Address {
    pool.alloc(&request(bytes, 0, 0)).unwrap()
}

#[test]
fn adaptors_wrap_boxed_and_shared_pools_and_each_other() {
    let boxed: Box<dyn Pool> = Box::new(pool(None));
    let shared: Arc<dyn Pool> = Arc::new(super::Limit::new(boxed, Bytes::new(MIB)));
    let outer = super::Statistics::new(super::Record::new(shared.clone(), || 0));
    let block = take(&outer, 1000);
    outer.step();
    assert!(matches!(outer.alloc(&request(MIB, 0, 0)), Err(Error::OverLimit { .. })));
    assert_eq!(shared.stats().live, Bytes::new(1000));
    outer.free(block).unwrap();
    assert_eq!(outer.pool().trace().events.len(), 4);
    assert_eq!(outer.trim(), Ok(Bytes::new(2 * MIB)));
}
