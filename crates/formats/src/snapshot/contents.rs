//! What a snapshot holds, as it is read: texts, frames, stacks and contexts once each, and a compact record per event,
//! block, segment and annotation. Nothing of the pickle's own shape is left.

use std::ops::Range;

use lowtide_core::TextIndex;

use super::chunks::Chunks;
use super::fault::{Halt, PickleFault};
use super::table::{Stacks, Table};
use super::unread::Unread;
use super::value::{Sort, Value};
use super::words::WORDS;
use crate::interner::Interner;
use crate::limits;

/// No stack, context or pool.
pub(super) const ABSENT: u32 = u32::MAX;
/// A time or an amount that was not recorded.
pub(super) const UNRECORDED: u64 = u64::MAX;

/// A line of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FrameRecord {
    pub(super) name: u32,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// What an event has beside the event itself; most events share theirs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Context {
    pub(super) user_metadata: u32,
    pub(super) compilation: u32,
    pub(super) internal_metadata: u32,
    pub(super) forward_stack: u32,
    pub(super) pool: u32,
}

/// An event of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EventRecord {
    /// The text of what happened.
    pub(super) action: u32,
    /// Where; in an event about a lack of memory, what the device had left.
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) stream: u64,
    pub(super) time_us: u64,
    pub(super) stack: u32,
    pub(super) context: u32,
}

/// A block of a segment at the moment of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockRecord {
    pub(super) state: u32,
    pub(super) stack: u32,
    /// Where it was recorded; older versions leave it to be added up.
    pub(super) address: Option<u64>,
    pub(super) bytes: u64,
    pub(super) requested: u64,
}

/// A segment at the moment of the snapshot.
#[derive(Clone, Debug)]
pub(super) struct SegmentRecord {
    pub(super) device: u32,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) stream: u64,
    pub(super) pool: u32,
    pub(super) stack: u32,
    pub(super) blocks: Range<u32>,
}

/// A mark that the program set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AnnotationRecord {
    pub(super) stage: u32,
    pub(super) name: u32,
    pub(super) device: u32,
    pub(super) time_us: u64,
}

/// What the outermost dict refers to.
#[derive(Clone, Debug, Default)]
pub(super) struct Root {
    pub(super) segments: Range<u32>,
    /// Of [`Contents::traces`].
    pub(super) devices: Range<u32>,
    pub(super) annotations: Range<u32>,
    /// The text of the allocator's settings.
    pub(super) settings: Option<u32>,
    /// How many events and segments of pinned host memory there are.
    pub(super) host: u64,
}

/// Everything that was read.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) texts: Interner,
    text_bytes: u64,
    pub(super) frames: Table<FrameRecord>,
    pub(super) stacks: Stacks,
    pub(super) contexts: Table<Context>,
    pub(super) pools: Table<(i64, i64)>,
    pub(super) events: Chunks<EventRecord>,
    pub(super) blocks: Chunks<BlockRecord>,
    pub(super) segments: Vec<SegmentRecord>,
    pub(super) annotations: Vec<AnnotationRecord>,
    /// The events of one device each.
    pub(super) traces: Vec<Range<u32>>,
    /// Before these events and blocks, all are in a list of which something was made.
    events_used: u32,
    blocks_used: u32,
    runs: Vec<(Sort, Range<u32>)>,
    pub(super) root: Root,
    pub(super) unread: Unread,
}

impl Contents {
    pub(super) fn new() -> Self {
        let mut contents = Self::default();
        for &(word, text) in WORDS {
            let place = contents.text(text).ok();
            debug_assert_eq!(place, Some(word.place()));
        }
        contents
    }

    pub(super) fn text(&mut self, text: &str) -> Result<u32, Halt> {
        let known = self.texts.len();
        let place = self.texts.intern(text).map_err(|_| TOO_MANY_TEXTS)?.0;
        if self.texts.len() > known {
            self.text_bytes += text.len() as u64;
            if known as u64 >= limits::TEXTS {
                return Err(TOO_MANY_TEXTS.into());
            }
            if self.text_bytes > limits::TEXT_BYTES {
                return Err(PickleFault::TooMany { what: "bytes of distinct text", limit: limits::TEXT_BYTES }.into());
            }
        }
        Ok(place)
    }

    pub(super) fn text_at(&self, place: u32) -> &str {
        self.texts.get(TextIndex(place))
    }

    pub(super) fn pair(&mut self, first: i64, second: i64) -> Result<Value, Halt> {
        let place = self.pools.intern((first, second));
        within(self.pools.len(), limits::OBJECTS, "distinct pairs of numbers")?;
        Ok(Value::Pair(place))
    }

    pub(super) fn stack(&mut self, frames: &[u32]) -> Result<Value, Halt> {
        let place = self.stacks.intern(frames);
        within(self.stacks.len(), limits::RECORDS, "distinct stacks")?;
        within(self.stacks.frames(), limits::FRAMES, "frames of distinct stacks")?;
        Ok(Value::Stack(place))
    }

    pub(super) fn run(&mut self, sort: Sort, first: u32, end: u32) -> Result<Value, Halt> {
        let place = self.runs.len();
        within(place, limits::RECORDS, "lists")?;
        self.runs.push((sort, first..end));
        Ok(Value::Run(place as u32))
    }

    /// The records of a list, where it is one of records of this sort, or empty.
    pub(super) fn records(&self, value: Value, sort: Sort) -> Option<Range<u32>> {
        match value {
            Value::EmptyList => Some(0..0),
            Value::Run(place) => self.runs.get(place as usize).filter(|run| run.0 == sort).map(|run| run.1.clone()),
            _ => None,
        }
    }

    /// The item as the events of one device, where it is a list of events or an empty one and `fits` such a place.
    pub(super) fn as_trace(&mut self, item: Value, fits: bool) -> Result<Value, Halt> {
        match self.records(item, Sort::Event) {
            Some(events) if fits => {
                within(self.traces.len() + 1, limits::DEVICES, "devices")?;
                use_once(&mut self.events_used, &events)?;
                self.traces.push(events);
                Ok(Value::Record(Sort::Trace, self.traces.len() as u32 - 1))
            }
            _ => Ok(item),
        }
    }

    /// Refuses one more record than there may be.
    pub(super) fn has_room(&self) -> Result<(), Halt> {
        let records = self.events.len() + self.blocks.len() + self.segments.len() + self.annotations.len();
        within(records + 1, limits::RECORDS, "events, blocks, segments and annotations")
    }

    /// Refuses blocks that belong to another segment already.
    pub(super) fn use_blocks(&mut self, blocks: &Range<u32>) -> Result<(), Halt> {
        use_once(&mut self.blocks_used, blocks)
    }

    /// Forgets what is needed only to read on.
    pub(super) fn close(&mut self) {
        self.frames.close();
        self.stacks.close();
        self.contexts.close();
        self.pools.close();
        self.runs = Vec::new();
    }
}

/// Refuses records of which some are used already, so that a short pickle cannot stand for a long history.
fn use_once(used: &mut u32, records: &Range<u32>) -> Result<(), Halt> {
    if records.is_empty() {
        return Ok(());
    }
    if records.start < *used {
        return Err(PickleFault::UsedTwice.into());
    }
    *used = records.end;
    Ok(())
}

const TOO_MANY_TEXTS: PickleFault = PickleFault::TooMany { what: "distinct texts", limit: limits::TEXTS };

/// Refuses to count beyond `limit`.
pub(super) fn within(count: usize, limit: u64, what: &'static str) -> Result<(), Halt> {
    if count as u64 > limit { Err(PickleFault::TooMany { what, limit }.into()) } else { Ok(()) }
}
