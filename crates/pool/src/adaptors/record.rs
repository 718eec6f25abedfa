//! Writes down what a program does with a pool, as a trace that can be planned, replayed and shown.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lowtide_core::{Action, Block, BlockIndex, Bytes, Event, StepIndex, StreamId, TextIndex, Trace};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::pool::{Address, Pool, Request, Stats};

/// A pool whose calls are written down, in the order in which they were served: they wait for each other.
///
/// Rows are written for what was done: blocks handed out, used on other streams and freed, steps, and requests for which
/// there was no room. When the device has finished with a block is not known here, so there are no `done` rows; nor is
/// the thread that frees. Blocks that were handed out before the recording began are left out of it.
pub struct Record<P> {
    pool: P,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    recording: Mutex<Recording>,
}

#[derive(Debug, Default)]
struct Recording {
    trace: Trace,
    live: FxHashMap<Address, (BlockIndex, StreamId)>,
    steps: u64,
}

impl<P: Pool> Record<P> {
    /// Records what goes through to `pool`; `clock` says how many nanoseconds have passed.
    pub fn new(pool: P, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { pool, clock: Box::new(clock), recording: Mutex::default() }
    }

    /// The pool within.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// What was recorded so far.
    pub fn trace(&self) -> Trace {
        self.recording().trace.clone()
    }

    /// Ends the recording.
    pub fn into_trace(self) -> Trace {
        self.recording.into_inner().unwrap_or_else(PoisonError::into_inner).trace
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, action: Action, stream: StreamId) -> Event {
        Event { stream, time_ns: Some((self.clock)()), ..Event::new(action) }
    }
}

impl Recording {
    /// Begins a block, whose name is its number.
    fn begin(&mut self, address: Address, request: &Request) -> BlockIndex {
        let block = BlockIndex(self.trace.blocks.len() as u32);
        let name = TextIndex(self.trace.texts.len() as u32);
        self.trace.texts.push(block.0.to_string().into());
        self.trace.blocks.push(Block { name, bytes: request.bytes, address: Some(address.0) });
        self.live.insert(address, (block, request.stream));
        block
    }
}

impl<P: Pool> Pool for Record<P> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let mut recording = self.recording();
        let served = self.pool.alloc(request);
        let action = match &served {
            Ok(address) => Action::Alloc { block: recording.begin(*address, request) },
            Err(error) if is_lack(error) => Action::OutOfMemory { bytes: request.bytes },
            Err(_) => return served,
        };
        recording.trace.events.push(Event { thread: Some(request.thread.0), ..self.event(action, request.stream) });
        served
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        let mut recording = self.recording();
        self.pool.free(address)?;
        if let Some((block, stream)) = recording.live.remove(&address) {
            recording.trace.events.push(self.event(Action::Free { block }, stream));
        }
        Ok(())
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        let mut recording = self.recording();
        self.pool.record(address, stream)?;
        if let Some(&(block, _)) = recording.live.get(&address) {
            recording.trace.events.push(self.event(Action::Record { block }, stream));
        }
        Ok(())
    }

    fn step(&self) {
        let mut recording = self.recording();
        self.pool.step();
        recording.steps += 1;
        let step = StepIndex(recording.steps);
        recording.trace.events.push(self.event(Action::Step { step }, StreamId::default()));
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.pool.trim()
    }

    fn stats(&self) -> Stats {
        self.pool.stats()
    }
}

impl<P: fmt::Debug> fmt::Debug for Record<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("pool", &self.pool).field("recording", &self.recording).finish_non_exhaustive()
    }
}

/// Whether there was no room, rather than something wrong.
fn is_lack(error: &Error) -> bool {
    matches!(error, Error::OutOfMemory { .. } | Error::TooLarge { .. } | Error::OverLimit { .. })
}
