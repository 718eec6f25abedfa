//! One device of a fleet.

use std::sync::Arc;

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Calls, Limited, Source};

use super::FleetOptions;
use super::captures::Captures;
use super::counts::Counts;
use super::history::History;
use crate::arena::{Arena, UNIT};
use crate::error::Error;
use crate::learner::Served;
use crate::pool::{Address, Pool, Request};

/// What a device holds and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceStats {
    /// What the program asked for and has not freed.
    pub requested: Bytes,
    /// The most of it at once since the peaks were reset.
    pub peak_requested: Bytes,
    /// What that takes in whole units of 512 bytes.
    pub allocated: Bytes,
    /// The most of it at once since the peaks were reset.
    pub peak_allocated: Bytes,
    /// What is taken of the device.
    pub reserved: Bytes,
    /// The most of it at once since the peaks were reset.
    pub peak_reserved: Bytes,
    /// Blocks handed out.
    pub allocs: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Requests that were served only after what could be given back was.
    pub retries: u64,
    /// Requests that were refused for lack of memory.
    pub shortages: u64,
    /// What was asked of the driver.
    pub calls: Calls,
    /// How the plans did.
    pub served: Served,
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) number: u32,
    pub(super) source: Arc<Limited<dyn Source>>,
    pub(super) arena: Arena,
    pub(super) captures: Captures,
    pub(super) history: History,
    pub(super) counts: Counts,
}

impl Device {
    pub(super) fn new(number: u32, source: Arc<dyn Source>, options: &FleetOptions) -> Result<Self, Error> {
        let source = Arc::new(Limited::new(source, options.limit));
        let arena = Arena::new(Arc::clone(&source) as Arc<dyn Source>, options.arena.clone())?;
        let captures = Captures::new(Arc::clone(&source) as Arc<dyn Source>);
        let history = History::new(options.history);
        Ok(Self { number, source, arena, captures, history, counts: Counts::default() })
    }

    pub(super) fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let address = match self.place(request) {
            Ok(address) => address,
            Err(error) => self.place_after_giving_back(request, error)?,
        };
        self.counts.alloc(request.bytes, UNIT);
        self.history.alloc(address, request);
        Ok(address)
    }

    fn place(&self, request: &Request) -> Result<Address, Error> {
        match self.captures.alloc(request) {
            Some(outcome) => outcome,
            None => self.arena.alloc(request),
        }
    }

    #[cold]
    fn place_after_giving_back(&self, request: &Request, error: Error) -> Result<Address, Error> {
        match &error {
            Error::OutOfMemory { .. } => {}
            Error::TooLarge { .. } => {
                self.counts.shortage();
                return Err(error);
            }
            _ => return Err(error),
        }
        self.counts.retry();
        // What cannot be given back does not help, whatever the reason.
        let _ = self.trim();
        self.place(request).inspect_err(|_| self.counts.shortage())
    }

    pub(super) fn free(&self, address: Address, bytes: Bytes) -> Result<(), Error> {
        // Told before the address can be handed out again.
        self.history.free(address);
        match self.captures.free(address) {
            Some(outcome) => outcome,
            None => self.arena.free(address),
        }?;
        self.counts.free(bytes, UNIT);
        Ok(())
    }

    pub(super) fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        if self.captures.record(address, stream) { Ok(()) } else { self.arena.record(address, stream) }
    }

    pub(super) fn close_step(&self) {
        self.arena.step();
        self.history.close_step();
    }

    pub(super) fn trim(&self) -> Result<Bytes, Error> {
        let before = self.source.calls().committed;
        self.captures.trim();
        self.arena.trim()?;
        Ok(before.saturating_sub(self.source.calls().committed))
    }

    pub(super) fn reset_peaks(&self) {
        self.counts.reset_peaks();
        self.source.reset_peak();
    }

    pub(super) fn stats(&self) -> DeviceStats {
        let calls = self.source.calls();
        DeviceStats {
            requested: self.counts.requested.now(),
            peak_requested: self.counts.requested.peak(),
            allocated: self.counts.rounded.now(),
            peak_allocated: self.counts.rounded.peak(),
            reserved: calls.committed,
            peak_reserved: self.source.peak(),
            allocs: self.counts.allocs(),
            frees: self.counts.frees(),
            retries: self.counts.retries(),
            shortages: self.counts.shortages(),
            calls,
            served: self.arena.served(),
        }
    }
}
