//! What is no pool by itself, or not for devices, as one that the checks can be run over.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::{Bytes, StreamId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{HostOptions, Pages, Span};
use lowtide_pool::program::Watching;
use lowtide_pool::{Address, Error, HostArena, HostArenaOptions, Pool, Request, Stats};

use crate::strategies::Made;

/// A pool in which every block is used by the stream that it is asked for.
#[derive(Debug)]
pub struct RecordsItsStream<P>(pub P);

impl<P: Pool> Pool for RecordsItsStream<P> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let address = self.0.alloc(request)?;
        self.0.record(address, request.stream)?;
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        self.0.free(address)
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.0.record(address, stream)
    }

    fn step(&self) {
        self.0.step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.0.trim()
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

/// The host arena, with the errors that `malloc` has no use for. Work is done when it is queued, so that no stream matters. All its
/// addresses count as given, so that what it says is resident is held to nothing.
#[derive(Debug)]
pub struct HostArenaPool {
    arena: HostArena,
    /// Addresses at which blocks were freed, whatever lies there now.
    freed: Mutex<BTreeSet<Address>>,
    peak_reserved: AtomicU64,
}

impl HostArenaPool {
    pub fn open(learner: Option<LearnerOptions>, source: &Watching) -> Made {
        let pages = HostOptions { pages: Pages::Base, ..HostOptions::default() };
        let options = HostArenaOptions {
            range: Bytes::new(1 << 34),
            pages,
            learner,
            find_steps: None,
            ..HostArenaOptions::default()
        };
        let arena = HostArena::new(options).map_err(Error::Source)?;
        let range = arena.range();
        source.include(Span::new(range.start, Bytes::new(range.end - range.start)));
        Ok(Box::new(Self { arena, freed: Mutex::default(), peak_reserved: AtomicU64::new(0) }))
    }
}

impl Pool for HostArenaPool {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let (bytes, align) = (request.bytes, request.align.get());
        let range = self.arena.range();
        let capacity = Bytes::new(range.end - range.start);
        if bytes == Bytes::ZERO {
            return Err(Error::ZeroSize);
        }
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        if bytes > capacity {
            return Err(Error::TooLarge { asked: bytes, capacity });
        }
        let address = self.arena.alloc(bytes.get(), align, request.thread);
        let Stats { live, reserved, .. } = self.stats();
        address.map(Address).ok_or(Error::OutOfMemory { asked: bytes, live, reserved })
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        if !self.arena.range().contains(&address.0) {
            return Err(Error::ForeignAddress { address });
        }
        self.arena.free(address.0)?;
        self.freed.lock().unwrap().insert(address);
        Ok(())
    }

    fn record(&self, address: Address, _: StreamId) -> Result<(), Error> {
        if self.arena.usable(address.0).is_some() {
            Ok(())
        } else if self.freed.lock().unwrap().contains(&address) {
            Err(Error::DoubleFree { address })
        } else {
            Err(Error::ForeignAddress { address })
        }
    }

    fn step(&self) {
        self.arena.step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        Ok(self.arena.trim())
    }

    fn stats(&self) -> Stats {
        let stats = self.arena.stats();
        let peak = self.peak_reserved.fetch_max(stats.resident.get(), Ordering::Relaxed).max(stats.resident.get());
        Stats {
            live: stats.live,
            peak_live: stats.peak_live,
            reserved: stats.resident,
            peak_reserved: Bytes::new(peak),
        }
    }
}
