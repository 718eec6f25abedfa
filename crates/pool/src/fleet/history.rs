//! The last requests to a device, step by step: what a report of the running process shows. Older steps are folded into
//! the set of blocks that were in use before.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lowtide_core::{Action, Block, BlockIndex, Bytes, Event, StepIndex, StreamId, TextIndex, ThreadId, Trace};
use rustc_hash::FxHashMap;

use crate::pool::{Address, Request};

/// How many closed parts are kept.
const KEPT: usize = 4;

/// How many requests of an older part are folded with each new one: more than come, so that hardly anybody folds a part at once;
/// only where a part is followed by one less than a quarter as long.
const FOLDED_AT_ONCE: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Entry {
    Alloc { address: Address, bytes: Bytes, stream: StreamId, thread: ThreadId },
    Free { address: Address },
}

/// The requests up to the end of a step, or as many as are kept of a long one.
#[derive(Debug)]
struct Part {
    entries: Vec<Entry>,
    closes: Option<StepIndex>,
}

#[derive(Debug)]
pub(super) struct History {
    most: usize,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Blocks in use before the part that is being folded.
    before: FxHashMap<Address, (Bytes, StreamId, ThreadId)>,
    /// The part before the first that is kept, and how much of it is folded.
    folding: Vec<Entry>,
    folded: usize,
    parts: VecDeque<Part>,
    open: Vec<Entry>,
}

impl History {
    pub(super) fn new(most: usize) -> Self {
        Self { most, log: Mutex::default() }
    }

    pub(super) fn alloc(&self, address: Address, request: &Request) {
        if self.most > 0 {
            let (bytes, stream, thread) = (request.bytes, request.stream, request.thread);
            self.push(Entry::Alloc { address, bytes, stream, thread });
        }
    }

    pub(super) fn free(&self, address: Address) {
        if self.most > 0 {
            self.push(Entry::Free { address });
        }
    }

    pub(super) fn close_step(&self, step: StepIndex) {
        self.log().close(Some(step));
    }

    fn push(&self, entry: Entry) {
        let mut log = self.log();
        log.open.push(entry);
        log.fold(FOLDED_AT_ONCE);
        if log.open.len() >= self.most {
            log.close(None);
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn close(&mut self, closes: Option<StepIndex>) {
        let mut entries = Vec::new();
        if self.parts.len() >= KEPT
            && let Some(oldest) = self.parts.pop_front()
        {
            self.fold(usize::MAX);
            entries = mem::replace(&mut self.folding, oldest.entries);
            entries.clear();
            self.folded = 0;
        }
        mem::swap(&mut entries, &mut self.open);
        self.parts.push_back(Part { entries, closes });
    }

    /// Folds up to `most` requests of the part that is no longer kept.
    fn fold(&mut self, most: usize) {
        let until = self.folded.saturating_add(most).min(self.folding.len());
        for entry in &self.folding[self.folded..until] {
            match *entry {
                Entry::Alloc { address, bytes, stream, thread } => {
                    self.before.insert(address, (bytes, stream, thread));
                }
                Entry::Free { address } => {
                    self.before.remove(&address);
                }
            }
        }
        self.folded = until;
    }
}

/// The histories of some devices as one trace, device after device within each step.
pub(super) fn trace<'a>(histories: impl Iterator<Item = (u32, &'a History)>) -> Trace {
    let mut writer = Writer::default();
    let mut logs: Vec<(u32, MutexGuard<'_, Log>)> =
        histories.map(|(device, history)| (device, history.log())).collect();
    for (device, log) in &mut logs {
        log.fold(usize::MAX);
        let mut before: Vec<_> = log.before.iter().collect();
        before.sort_unstable_by_key(|&(address, _)| *address);
        for (&address, &(bytes, stream, thread)) in before {
            writer.entry(*device, Entry::Alloc { address, bytes, stream, thread });
        }
    }
    let steps: BTreeSet<StepIndex> =
        logs.iter().flat_map(|(_, log)| log.parts.iter().filter_map(|part| part.closes)).collect();
    let mut left: Vec<_> = logs.iter().map(|(device, log)| (*device, log.parts.iter().peekable())).collect();
    for step in steps {
        for (device, parts) in &mut left {
            while let Some(part) = parts.next_if(|part| part.closes.is_none_or(|closed| closed <= step)) {
                for &entry in &part.entries {
                    writer.entry(*device, entry);
                }
            }
        }
        writer.trace.events.push(Event::new(Action::Step { step }));
    }
    for (device, parts) in left {
        for &entry in parts.flat_map(|part| &part.entries) {
            writer.entry(device, entry);
        }
    }
    for (device, log) in &logs {
        for &entry in &log.open {
            writer.entry(*device, entry);
        }
    }
    writer.trace
}

#[derive(Default)]
struct Writer {
    trace: Trace,
    live: FxHashMap<(u32, Address), (BlockIndex, StreamId)>,
}

impl Writer {
    fn entry(&mut self, device: u32, entry: Entry) {
        let (action, stream, thread) = match entry {
            Entry::Alloc { address, bytes, stream, thread } => {
                let block = BlockIndex(self.trace.blocks.len() as u32);
                let name = TextIndex(self.trace.texts.len() as u32);
                self.trace.texts.push(block.0.to_string().into());
                self.trace.blocks.push(Block { name, bytes, address: Some(address.0) });
                self.live.insert((device, address), (block, stream));
                (Action::Alloc { block }, stream, Some(thread.0))
            }
            Entry::Free { address } => {
                let Some((block, stream)) = self.live.remove(&(device, address)) else { return };
                (Action::Free { block }, stream, None)
            }
        };
        self.trace.events.push(Event { stream, thread, device: Some(device), ..Event::new(action) });
    }
}
