//! Pools for what is allocated while a graph is captured. Each belongs to the graphs that were captured with it; a block
//! of it is used again only by the stream that freed it, which the graph keeps in order.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowtide_core::{Bytes, StreamId};
use lowtide_memory::Source;
use rustc_hash::{FxHashMap, FxHashSet};

use super::CapturePool;
use super::still::Still;
use crate::error::Error;
use crate::pool::{Address, Pool, Request};

/// The pool of a capture, as the framework names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Capture(pub u64, pub u64);

type Filter = Box<dyn Fn(StreamId) -> bool + Send>;

#[derive(Debug)]
pub(super) struct Captures {
    source: Arc<dyn Source>,
    make: CapturePool,
    /// How many captures are under way, and how many pools there are: both are zero nearly always.
    recording: AtomicUsize,
    existing: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recordings: Vec<(Capture, Filter)>,
    pools: FxHashMap<Capture, Private>,
    /// Blocks of the arena that were freed while a capture was under way.
    kept: Vec<(Address, Bytes)>,
}

struct Private {
    pool: Box<dyn Pool>,
    /// The graphs that use it.
    users: usize,
    live: FxHashMap<Address, StreamId>,
    /// Blocks that other streams use: nobody can say when the graph is done with them.
    shared: FxHashSet<Address>,
}

impl Captures {
    pub(super) fn new(source: Arc<dyn Source>, make: CapturePool) -> Self {
        let (recording, existing) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { source, make, recording, existing, state: Mutex::default() }
    }

    pub(super) fn begin(&self, capture: Capture, belongs: Filter) {
        let mut state = self.state();
        let private = state
            .pools
            .entry(capture)
            .or_insert_with(|| Private::new((self.make)(Arc::new(Still::new(Arc::clone(&self.source))))));
        private.users += 1;
        state.recordings.push((capture, belongs));
        self.count(&state);
    }

    /// Ends a capture, and hands over what was [kept](Self::keep) for the end of the last one.
    pub(super) fn end(&self, capture: Capture) -> Vec<(Address, Bytes)> {
        let mut state = self.state();
        if let Some(last) = state.recordings.iter().rposition(|(other, _)| *other == capture) {
            drop(state.recordings.remove(last));
        }
        self.count(&state);
        if state.recordings.is_empty() { mem::take(&mut state.kept) } else { Vec::new() }
    }

    /// Whether a capture is under way: streams may then not be marked, and nothing waited for.
    pub(super) fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Acquire) != 0
    }

    /// Keeps a block that was freed while a capture is under way, for its end. Says whether one is.
    pub(super) fn keep(&self, address: Address, bytes: Bytes) -> bool {
        if !self.is_recording() {
            return false;
        }
        let mut state = self.state();
        let recording = !state.recordings.is_empty();
        if recording {
            state.kept.push((address, bytes));
        }
        recording
    }

    pub(super) fn release(&self, capture: Capture) {
        let mut state = self.state();
        if let Some(private) = state.pools.get_mut(&capture) {
            private.users = private.users.saturating_sub(1);
        }
        self.sweep(&mut state);
    }

    /// The capture under way that `stream` belongs to, by the filters alone. One that unwinds leaves everything as it was.
    pub(super) fn belonging(&self, stream: StreamId) -> Option<Capture> {
        if !self.is_recording() {
            return None;
        }
        let state = self.state();
        let (capture, _) = state.recordings.iter().rev().find(|(_, belongs)| belongs(stream))?;
        Some(*capture)
    }

    /// A block for a capture; none where it is over.
    pub(super) fn alloc(&self, capture: Capture, request: &Request) -> Option<Result<Address, Error>> {
        let mut state = self.state();
        if !state.recordings.iter().any(|(other, _)| *other == capture) {
            return None;
        }
        let private = state.pools.get_mut(&capture)?;
        Some(private.pool.alloc(request).inspect(|&address| {
            private.live.insert(address, request.stream);
        }))
    }

    /// Takes a block back, where it is one of a capture.
    pub(super) fn free(&self, address: Address) -> Option<Result<(), Error>> {
        let mut state = self.owning(address)?;
        let private = state.pools.values_mut().find(|private| private.live.contains_key(&address))?;
        private.live.remove(&address);
        let kept = private.shared.remove(&address);
        let outcome = if kept { Ok(()) } else { private.pool.free(address) };
        if private.users == 0 {
            self.sweep(&mut state);
        }
        Some(outcome)
    }

    /// Whether the block is one of a capture; where the stream is not its own, it is then not used again in its graphs.
    pub(super) fn record(&self, address: Address, stream: StreamId) -> bool {
        let Some(mut state) = self.owning(address) else { return false };
        let private = state.pools.values_mut().find(|private| private.live.contains_key(&address));
        private.is_some_and(|private| {
            if private.live.get(&address) != Some(&stream) {
                private.shared.insert(address);
            }
            true
        })
    }

    /// Gives back the pools that nothing uses.
    pub(super) fn trim(&self) {
        if self.existing.load(Ordering::Acquire) != 0 {
            self.sweep(&mut self.state());
        }
    }

    fn owning(&self, address: Address) -> Option<MutexGuard<'_, State>> {
        if self.existing.load(Ordering::Acquire) == 0 {
            return None;
        }
        let state = self.state();
        state.pools.values().any(|private| private.live.contains_key(&address)).then_some(state)
    }

    fn sweep(&self, state: &mut State) {
        let is_unused = |private: &Private| private.users == 0 && private.live.is_empty();
        // To wait would end a capture that is under way.
        if !state.recordings.is_empty() || !state.pools.values().any(is_unused) {
            return;
        }
        // The last launch of a graph may still run. Without knowing that it does not, the memory stays.
        if self.source.drain().is_ok() {
            state.pools.retain(|_, private| !is_unused(private));
        }
        self.count(state);
    }

    fn count(&self, state: &State) {
        self.recording.store(state.recordings.len(), Ordering::Release);
        self.existing.store(state.pools.len(), Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Private {
    fn new(pool: Box<dyn Pool>) -> Self {
        Self { pool, users: 0, live: FxHashMap::default(), shared: FxHashSet::default() }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recordings: Vec<Capture> = self.recordings.iter().map(|(capture, _)| *capture).collect();
        let pools: Vec<&Capture> = self.pools.keys().collect();
        f.debug_struct("State").field("recordings", &recordings).field("pools", &pools).finish_non_exhaustive()
    }
}
