//! One device of a fleet.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lowtide_core::{Bytes, StepIndex, StreamId};
use lowtide_learn::Served;
use lowtide_memory::{Calls, Limited, Source};

use super::captures::{Capture, Captures};
use super::counts::Counts;
use super::failed_frees::FailedFrees;
use super::history::History;
use super::{CapturePool, FleetOptions};
use crate::arena::Arena;
use crate::error::Error;
use crate::pool::{Address, Pool, Request, UNIT};

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
    /// The most blocks in use at once since the peaks were reset.
    pub peak_blocks: u64,
    /// What all blocks took that were ever handed out, in whole units.
    pub allocated_in_all: Bytes,
    /// Blocks handed out.
    pub allocs: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Frees that failed: of blocks that were free already, or never the device's.
    pub failed_frees: u64,
    /// Requests for which what could be given back was, before they were tried again.
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
    pub(super) failed_frees: FailedFrees,
    /// Blocks that were freed and could not be given back yet.
    owed: Mutex<Vec<(Address, Bytes)>>,
}

impl Device {
    pub(super) fn new(
        number: u32,
        source: Arc<dyn Source>,
        capture_pool: CapturePool,
        options: &FleetOptions,
    ) -> Result<Self, Error> {
        let source = Arc::new(Limited::new(source, options.limit));
        let arena = Arena::new(Arc::clone(&source) as Arc<dyn Source>, options.arena.clone())?;
        let captures = Captures::new(Arc::clone(&source) as Arc<dyn Source>, capture_pool);
        let history = History::new(options.history);
        Ok(Self {
            number,
            source,
            arena,
            captures,
            history,
            counts: Counts::default(),
            failed_frees: FailedFrees::default(),
            owed: Mutex::default(),
        })
    }

    pub(super) fn alloc(&self, request: &Request, capture: Option<Capture>) -> Result<Address, Error> {
        let address = match self.place(request, capture) {
            Ok(address) => address,
            Err(error) => self.place_after_giving_back(request, capture, error)?,
        };
        self.counts.alloc(request.bytes, UNIT);
        self.history.alloc(address, request);
        Ok(address)
    }

    fn place(&self, request: &Request, capture: Option<Capture>) -> Result<Address, Error> {
        match capture.and_then(|capture| self.captures.alloc(capture, request)) {
            Some(outcome) => outcome,
            None => self.arena.alloc(request),
        }
    }

    #[cold]
    fn place_after_giving_back(
        &self,
        request: &Request,
        capture: Option<Capture>,
        error: Error,
    ) -> Result<Address, Error> {
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
        self.place(request, capture).inspect_err(|_| self.counts.shortage())
    }

    pub(super) fn free(&self, address: Address, bytes: Bytes) -> Result<(), Error> {
        self.take_back(address, bytes).inspect_err(|error| self.failed_frees.note(error))
    }

    fn take_back(&self, address: Address, bytes: Bytes) -> Result<(), Error> {
        match self.captures.free(address) {
            Some(outcome) => outcome?,
            None if self.captures.keep(address, bytes) => return Ok(()),
            None => return self.give_to_arena(address, bytes),
        }
        self.history.free(address);
        self.counts.free(bytes, UNIT);
        Ok(())
    }

    fn give_to_arena(&self, address: Address, bytes: Bytes) -> Result<(), Error> {
        // Told before the address can be handed out again.
        self.history.free(address);
        match self.arena.free(address) {
            Ok(()) => self.counts.free(bytes, UNIT),
            // Its streams could not be asked: it is tried again.
            Err(Error::Source(_)) => self.owed().push((address, bytes)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives to the arena what could not be given before.
    fn settle(&self) {
        for (address, bytes) in mem::take(&mut *self.owed()) {
            // What fails for another reason than before is nobody's any more.
            let _ = self.give_to_arena(address, bytes).inspect_err(|error| self.failed_frees.note(error));
        }
    }

    fn owed(&self) -> MutexGuard<'_, Vec<(Address, Bytes)>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a capture. What was freed meanwhile is given back now.
    pub(super) fn end_capture(&self, capture: Capture) {
        for (address, bytes) in self.captures.end(capture) {
            // The free itself is long over.
            let _ = self.give_to_arena(address, bytes).inspect_err(|error| self.failed_frees.note(error));
        }
    }

    pub(super) fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        if self.captures.record(address, stream) { Ok(()) } else { self.arena.record(address, stream) }
    }

    pub(super) fn work_ahead(&self, longest: Duration) {
        self.arena.work_ahead(longest);
    }

    pub(super) fn close_step(&self, step: StepIndex) {
        self.settle();
        self.arena.step();
        self.history.close_step(step);
    }

    pub(super) fn trim(&self) -> Result<Bytes, Error> {
        let before = self.source.calls().committed;
        self.settle();
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
            peak_blocks: self.counts.blocks.peak().get(),
            allocated_in_all: self.counts.in_all(),
            allocs: self.counts.allocs(),
            frees: self.counts.frees(),
            failed_frees: self.failed_frees.count(),
            retries: self.counts.retries(),
            shortages: self.counts.shortages(),
            calls,
            served: self.arena.served(),
        }
    }
}
