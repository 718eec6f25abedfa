//! What is true of memory, whatever the pool believes: which of it lies under which addresses, which blocks are in hand,
//! and which work may still use what was let go.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lowtide_core::ranges::RangeMap;
use lowtide_core::{Bytes, StreamId};
use lowtide_memory::{Description, Span};

use super::clocks::{Clocks, Use};
use super::violation::Fault;
use crate::pool::Address;

/// A handle under some addresses. Every handle has its own part of a space of memory that is never used again.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    bytes: u64,
    memory: u64,
}

#[derive(Debug)]
pub(crate) struct MemoryModel {
    visible: bool,
    queued: bool,
    mappings: BTreeMap<u64, Mapping>,
    next_memory: u64,
    /// Blocks in hand, by their addresses and by their memory.
    live: RangeMap<Address>,
    live_memory: RangeMap<Address>,
    /// Work on blocks that were let go, by their addresses and by their memory.
    uses: RangeMap<Arc<[Use]>>,
    uses_memory: RangeMap<Arc<[Use]>>,
    pub(super) clocks: Clocks,
    /// The first thing that went wrong.
    pub(super) fault: Option<Fault>,
}

impl MemoryModel {
    pub(super) fn new(description: &Description) -> Self {
        Self {
            visible: description.host_visible,
            queued: description.queued,
            mappings: BTreeMap::new(),
            next_memory: 0,
            live: RangeMap::default(),
            live_memory: RangeMap::default(),
            uses: RangeMap::default(),
            uses_memory: RangeMap::default(),
            clocks: Clocks::default(),
            fault: None,
        }
    }

    /// Whether the processor may read and write every byte of a span.
    pub(crate) fn is_accessible(&self, span: Span) -> bool {
        self.visible && self.is_backed(&range(span))
    }

    fn is_backed(&self, range: &Range<u64>) -> bool {
        self.memory(range).map(|part| part.end - part.start).sum::<u64>() == range.end - range.start
    }

    /// The memory under a range.
    fn memory(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let range = range.clone();
        let before = self.mappings.range(..range.start).next_back();
        let first = before.map_or(range.start, |(&start, _)| start);
        self.mappings.range(first..range.end.max(first)).filter_map(move |(&start, mapping)| {
            let met = range.start.max(start)..range.end.min(start + mapping.bytes);
            (!met.is_empty()).then(|| mapping.memory + (met.start - start)..mapping.memory + (met.end - start))
        })
    }

    pub(super) fn commit(&mut self, span: Span) {
        let memory = self.next_memory;
        self.next_memory += span.bytes.get();
        self.mappings.insert(span.start, Mapping { bytes: span.bytes.get(), memory });
    }

    pub(super) fn alias(&mut self, from: Span, to: u64) {
        if let Some(&mapping) = self.mappings.get(&from.start) {
            self.mappings.insert(to, mapping);
        }
    }

    pub(super) fn relocate(&mut self, from: Span, to: u64) {
        if let Some(mapping) = self.mappings.remove(&from.start) {
            self.mappings.insert(to, mapping);
            self.uses.remove(range(from));
        }
    }

    pub(super) fn unmap(&mut self, span: Span) {
        let begin = self.mappings.range(range(span)).map(|(&start, _)| start).collect::<Vec<_>>();
        for start in begin {
            self.mappings.remove(&start);
        }
        self.uses.remove(range(span));
    }

    /// Judges that addresses lose their memory: nobody holds it, and nothing that is queued reaches it there.
    pub(super) fn judge_unmap(&mut self, span: Span) {
        let live = self.live.overlapping(&range(span)).map(|(_, &block)| block).next();
        if let Some(block) = live {
            self.blame(Fault::TakenWhileLive { block });
        }
        let mut uses =
            self.uses.overlapping(&range(span)).flat_map(|(at, uses)| uses.iter().map(move |use_| (at.start, *use_)));
        let early = uses.find(|&(_, work)| self.queued && !self.clocks.is_done(work));
        drop(uses);
        if let Some((at, work)) = early {
            self.blame(Fault::TakenWhileUsed { address: Address(at), stream: work.stream });
        }
    }

    /// A pool handed a block out: judges it.
    pub(super) fn hand_out(&mut self, block: Address, bytes: Bytes, stream: StreamId) {
        let place = block.0..block.0.saturating_add(bytes.get());
        if !self.is_backed(&place) {
            self.blame(Fault::OutsideMemory { block, bytes });
        }
        let other = self.live.overlapping(&place).map(|(_, &other)| other).next();
        if let Some(other) = other {
            self.blame(Fault::Overlap { block, other });
        }
        self.live.insert(place.clone(), block);
        self.uses.remove(place.clone());
        let memory: Vec<Range<u64>> = self.memory(&place).collect();
        for part in memory {
            let other = self.live_memory.overlapping(&part).map(|(_, &other)| other).next();
            if let Some(other) = other {
                self.blame(Fault::SharedMemory { block, other });
            }
            let mut uses = self.uses_memory.overlapping(&part).flat_map(|(_, uses)| uses.iter());
            let early = uses.find(|&&work| self.queued && !self.clocks.is_before(work, stream)).copied();
            drop(uses);
            if let Some(work) = early {
                self.blame(Fault::HandedOnWhileUsed { block, stream, used_by: work.stream });
            }
            self.live_memory.insert(part.clone(), block);
            self.uses_memory.remove(part.clone());
        }
    }

    /// A program lets go of a block, which work on `streams` uses.
    pub(super) fn let_go(&mut self, block: Address, bytes: Bytes, streams: &[StreamId]) {
        let place = block.0..block.0.saturating_add(bytes.get());
        let uses: Arc<[Use]> = streams.iter().map(|&stream| self.clocks.up_to_now(stream)).collect();
        self.live.remove(place.clone());
        self.uses.insert(place.clone(), uses.clone());
        let memory: Vec<Range<u64>> = self.memory(&place).collect();
        for part in memory {
            self.live_memory.remove(part.clone());
            self.uses_memory.insert(part.clone(), uses.clone());
        }
    }

    /// A program could not let go of a block after all.
    pub(super) fn keep(&mut self, block: Address, bytes: Bytes) {
        let place = block.0..block.0.saturating_add(bytes.get());
        self.live.insert(place.clone(), block);
        self.uses.remove(place.clone());
        let memory: Vec<Range<u64>> = self.memory(&place).collect();
        for part in memory {
            self.live_memory.insert(part.clone(), block);
            self.uses_memory.remove(part.clone());
        }
    }

    fn blame(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}

fn range(span: Span) -> Range<u64> {
    span.start..span.end()
}
