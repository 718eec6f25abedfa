//! Who holds how much: what is live, reserved and lost, by class, stream and thread, readable at any time as plain data.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lowtide_core::{Bytes, StreamId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::tally::Tally;
use crate::error::Error;
use crate::pool::{Address, Pool, Request, Stats, ThreadId};

/// A pool whose use is counted.
#[derive(Debug)]
pub struct Statistics<P> {
    pool: P,
    books: Mutex<Books>,
}

/// What was counted up to a moment.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Reading {
    /// All blocks.
    pub all: Tally,
    /// Blocks that outlived the step in which they were handed out.
    pub persistent: Tally,
    /// Blocks that have not, so far.
    pub transient: Tally,
    /// By the stream that a block was asked for on.
    pub by_stream: BTreeMap<StreamId, Tally>,
    /// By the thread that asked.
    pub by_thread: BTreeMap<ThreadId, Tally>,
    /// What is in use: live, or freed and still used by queued work.
    pub in_use: Bytes,
    /// What the pool holds of its source's memory.
    pub reserved: Bytes,
    /// The most it held at once, since the start or the last reset.
    pub peak_reserved: Bytes,
    /// Requests that were refused.
    pub refusals: u64,
    /// Uses on other streams that were recorded.
    pub records: u64,
    /// Steps that were closed.
    pub steps: u64,
    /// Times memory was asked back.
    pub trims: u64,
    /// What trims gave back, in all.
    pub trimmed: Bytes,
}

impl Reading {
    /// The part of the reserved memory that is not in use: 1 − requested/reserved.
    pub fn fragmentation(&self) -> f64 {
        waste(self.in_use, self.reserved)
    }

    /// The same of the peaks: what the pool needed at most beyond what the program did.
    pub fn peak_fragmentation(&self) -> f64 {
        waste(self.all.peak, self.peak_reserved)
    }
}

fn waste(used: Bytes, reserved: Bytes) -> f64 {
    if reserved == Bytes::ZERO { 0.0 } else { 1.0 - used.ratio(reserved) }
}

#[derive(Debug, Default)]
struct Books {
    reading: Reading,
    live: FxHashMap<Address, Entry>,
    /// Live blocks that were handed out in this step.
    young: FxHashSet<Address>,
    /// The pool's own peak when peaks were reset.
    peak_before: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: Bytes,
    stream: StreamId,
    thread: ThreadId,
    /// Steps that were closed before it was handed out.
    step: u64,
    is_persistent: bool,
}

impl<P: Pool> Statistics<P> {
    /// Counts what goes through to `pool`.
    pub fn new(pool: P) -> Self {
        Self { pool, books: Mutex::default() }
    }

    /// The pool within.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// What was counted so far.
    pub fn reading(&self) -> Reading {
        let stats = self.pool.stats();
        let mut books = self.books();
        books.see(&stats);
        books.reading.clone()
    }

    /// Lets all peaks begin again at what there is now.
    pub fn reset_peaks(&self) {
        let stats = self.pool.stats();
        let mut books = self.books();
        books.peak_before = stats.peak_reserved;
        let reading = &mut books.reading;
        reading.peak_reserved = stats.reserved;
        let Reading { all, persistent, transient, by_stream, by_thread, .. } = reading;
        let groups = [all, persistent, transient].into_iter();
        groups.chain(by_stream.values_mut()).chain(by_thread.values_mut()).for_each(Tally::reset_peak);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn alloc(&mut self, address: Address, request: &Request) {
        let Request { bytes, stream, thread, .. } = *request;
        let entry = Entry { bytes, stream, thread, step: self.reading.steps, is_persistent: false };
        self.groups(entry).into_iter().for_each(|tally| tally.alloc(entry.bytes));
        self.reading.transient.alloc(entry.bytes);
        self.live.insert(address, entry);
        self.young.insert(address);
    }

    /// Strikes a block out, and says what it was.
    fn free(&mut self, address: Address) -> Option<Entry> {
        let entry = self.live.remove(&address)?;
        self.young.remove(&address);
        self.groups(entry).into_iter().for_each(|tally| tally.free(entry.bytes));
        self.class(entry).free(entry.bytes);
        Some(entry)
    }

    /// A block was not freed after all.
    fn keep(&mut self, address: Address, entry: Entry) {
        self.groups(entry).into_iter().for_each(|tally| tally.keep(entry.bytes));
        self.class(entry).keep(entry.bytes);
        let is_old = entry.step != self.reading.steps;
        if is_old && !entry.is_persistent {
            self.reading.transient.hand_over(entry.bytes, &mut self.reading.persistent);
        }
        if !is_old {
            self.young.insert(address);
        }
        self.live.insert(address, Entry { is_persistent: is_old, ..entry });
    }

    fn class(&mut self, entry: Entry) -> &mut Tally {
        if entry.is_persistent { &mut self.reading.persistent } else { &mut self.reading.transient }
    }

    fn groups(&mut self, entry: Entry) -> [&mut Tally; 3] {
        let Reading { all, by_stream, by_thread, .. } = &mut self.reading;
        [all, by_stream.entry(entry.stream).or_default(), by_thread.entry(entry.thread).or_default()]
    }

    /// Whatever is live outlived its step.
    fn step(&mut self) {
        self.reading.steps += 1;
        for address in self.young.drain() {
            if let Some(entry) = self.live.get_mut(&address) {
                entry.is_persistent = true;
                self.reading.transient.hand_over(entry.bytes, &mut self.reading.persistent);
            }
        }
    }

    /// Notes what the pool says of itself.
    fn see(&mut self, stats: &Stats) {
        let reading = &mut self.reading;
        (reading.in_use, reading.reserved) = (stats.live, stats.reserved);
        let peak = if stats.peak_reserved > self.peak_before { stats.peak_reserved } else { stats.reserved };
        reading.peak_reserved = reading.peak_reserved.max(peak);
    }
}

impl<P: Pool> Pool for Statistics<P> {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        let served = self.pool.alloc(request);
        let stats = self.pool.stats();
        let mut books = self.books();
        books.see(&stats);
        match served {
            Ok(address) => books.alloc(address, request),
            Err(_) => books.reading.refusals += 1,
        }
        served
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        // Struck out first: once it is free, another thread may be given the same address.
        let entry = self.books().free(address);
        let freed = self.pool.free(address);
        if let (Some(entry), Err(_)) = (entry, &freed) {
            self.books().keep(address, entry);
        }
        freed
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.pool.record(address, stream)?;
        self.books().reading.records += 1;
        Ok(())
    }

    fn step(&self) {
        self.pool.step();
        self.books().step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        let given = self.pool.trim()?;
        let mut books = self.books();
        books.reading.trims += 1;
        books.reading.trimmed += given;
        Ok(given)
    }

    fn stats(&self) -> Stats {
        self.pool.stats()
    }
}
