//! A strategy over a source, watched.

use std::sync::Arc;

use lowtide_core::{Align, Bytes, StreamId};
use lowtide_memory::{Limited, Simulated, Source};
use lowtide_pool::program::{Subject, Watching};
use lowtide_pool::{Address, Error, Pool, Request};

use crate::sources::Backing;
use crate::strategies::Made;

pub type MakeSource = fn() -> Option<Backing>;
pub type MakePool = fn(Arc<Watching>) -> Made;

pub struct Bench {
    pub pool: Box<dyn Pool>,
    pub source: Arc<Watching>,
    limited: Arc<Limited<dyn Source>>,
    pub device: Option<Arc<Simulated>>,
    /// How much is to be tried for each hundred.
    pub percent: u32,
}

impl Bench {
    /// A pool over a source that nothing was done with yet; none where the machine has no such source.
    pub fn new(source: MakeSource, pool: MakePool) -> Option<Self> {
        let Backing { source, device, percent } = source()?;
        let limited = Arc::new(Limited::new(source, None));
        let source = Arc::new(Watching::new(limited.clone()));
        Some(Self { pool: pool(source.clone()).unwrap(), source, limited, device, percent })
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject {
            pool: &*self.pool,
            source: &self.source,
            device: self.device.as_deref(),
            gives_all_back: true,
            source_fails: false,
        }
    }

    /// The memory there is, where that is little enough to use it up.
    pub fn small_capacity(&self) -> Option<u64> {
        self.source.describe().capacity.map(Bytes::get).filter(|&capacity| capacity <= 1 << 30)
    }

    /// The memory there is; where that is too much to use it up, there is less from now on.
    pub fn limited_capacity(&self) -> u64 {
        const LITTLE: u64 = 256 << 20;
        self.small_capacity().unwrap_or_else(|| {
            self.limited.set_limit(Some(Bytes::new(LITTLE)));
            LITTLE
        })
    }

    pub fn try_take(&self, request: &Request) -> Result<Block, Error> {
        let address = self.pool.alloc(request)?;
        self.source.hand_out(address, request.bytes, request.stream);
        self.assert_sound();
        Ok(Block { address, request: *request, streams: vec![request.stream] })
    }

    pub fn take(&self, request: &Request) -> Block {
        self.try_take(request).unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    pub fn record(&self, block: &mut Block, stream: StreamId) {
        self.pool.record(block.address, stream).unwrap();
        block.streams.push(stream);
    }

    pub fn give(&self, block: &Block) {
        self.source.let_go(block.address, block.request.bytes, &block.streams);
        self.pool.free(block.address).unwrap();
        self.assert_sound();
    }

    pub fn give_all(&self, blocks: &[Block]) {
        for block in blocks {
            self.give(block);
        }
    }

    pub fn trim(&self) -> Bytes {
        let given = self.pool.trim().unwrap();
        self.assert_sound();
        given
    }

    pub fn live(&self) -> u64 {
        self.pool.stats().live.get()
    }

    pub fn reserved(&self) -> u64 {
        self.pool.stats().reserved.get()
    }

    /// Panics where the pool broke a rule that its source can see.
    pub fn assert_sound(&self) {
        if let Some(fault) = self.source.fault() {
            panic!("{fault}");
        }
    }
}

/// A block in hand.
pub struct Block {
    pub address: Address,
    pub request: Request,
    streams: Vec<StreamId>,
}

pub fn request(bytes: u64) -> Request {
    Request::new(Bytes::new(bytes))
}

pub fn on(stream: u64, bytes: u64) -> Request {
    Request { stream: StreamId(stream), ..request(bytes) }
}

pub fn aligned(align: u64, bytes: u64) -> Request {
    Request { align: Align::new(align).unwrap(), ..request(bytes) }
}
