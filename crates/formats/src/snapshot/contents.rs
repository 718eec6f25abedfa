//! What a snapshot holds, as it is read: texts, frames, stacks and contexts once each, and a compact record per event,
//! block, segment and annotation. Nothing of the pickle's own shape is left.

pub(crate) mod chunks;
pub(crate) mod records;
pub(crate) mod table;
pub(crate) mod unread;
pub(crate) mod words;

use std::ops::Range;

use lowtide_core::TextIndex;

use crate::limits;
use crate::reading::interner::Interner;
use crate::snapshot::pickle::fault::{Halt, PickleFault};
use crate::snapshot::pickle::value::{Sort, Value};
use chunks::Chunks;
use table::{Stacks, Table};
use unread::Unread;
use words::WORDS;

/// No stack, context or pool.
pub(crate) const ABSENT: u32 = u32::MAX;
/// A time or an amount that was not recorded.
pub(crate) const UNRECORDED: u64 = u64::MAX;

/// A line of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FrameRecord {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// What an event has beside the event itself; most events share theirs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Context {
    pub(crate) user_metadata: u32,
    pub(crate) compilation: u32,
    pub(crate) internal_metadata: u32,
    pub(crate) forward_stack: u32,
    pub(crate) pool: u32,
}

/// An event of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EventRecord {
    /// The text of what happened.
    pub(crate) action: u32,
    /// Where; in an event about a lack of memory, what the device had left.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) time_us: u64,
    pub(crate) stack: u32,
    pub(crate) context: u32,
}

/// A block of a segment at the moment of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockRecord {
    pub(crate) state: u32,
    pub(crate) stack: u32,
    /// Where it was recorded; older versions leave it to be added up.
    pub(crate) address: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) requested: u64,
}

/// A segment at the moment of the snapshot.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRecord {
    pub(crate) device: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) pool: u32,
    pub(crate) stack: u32,
    pub(crate) blocks: Range<u32>,
}

/// A mark that the program set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AnnotationRecord {
    pub(crate) stage: u32,
    pub(crate) name: u32,
    pub(crate) device: u32,
    pub(crate) time_us: u64,
}

/// What the outermost dict refers to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Root {
    pub(crate) segments: Range<u32>,
    /// Of [`Contents::traces`].
    pub(crate) devices: Range<u32>,
    pub(crate) annotations: Range<u32>,
    /// The text of the allocator's settings.
    pub(crate) settings: Option<u32>,
    /// How many events and segments of pinned host memory there are.
    pub(crate) host: u64,
}

/// Everything that was read.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) texts: Interner,
    text_bytes: u64,
    pub(crate) frames: Table<FrameRecord>,
    pub(crate) stacks: Stacks,
    pub(crate) contexts: Table<Context>,
    pub(crate) pools: Table<(i64, i64)>,
    pub(crate) events: Chunks<EventRecord>,
    pub(crate) blocks: Chunks<BlockRecord>,
    pub(crate) segments: Vec<SegmentRecord>,
    pub(crate) annotations: Vec<AnnotationRecord>,
    /// The events of one device each.
    pub(crate) traces: Vec<Range<u32>>,
    /// Before these events and blocks, all are in a list of which something was made.
    events_used: u32,
    blocks_used: u32,
    runs: Vec<(Sort, Range<u32>)>,
    pub(crate) root: Root,
    pub(crate) unread: Unread,
}

impl Contents {
    pub(crate) fn new() -> Self {
        let mut contents = Self::default();
        for &(word, text) in WORDS {
            let place = contents.text(text).ok();
            debug_assert_eq!(place, Some(word.place()));
        }
        contents
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<u32, Halt> {
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

    pub(crate) fn text_at(&self, place: u32) -> &str {
        self.texts.get(TextIndex(place))
    }

    pub(crate) fn pair(&mut self, first: i64, second: i64) -> Result<Value, Halt> {
        let place = self.pools.intern((first, second));
        within(self.pools.len(), limits::OBJECTS, "distinct pairs of numbers")?;
        Ok(Value::Pair(place))
    }

    pub(crate) fn stack(&mut self, frames: &[u32]) -> Result<Value, Halt> {
        let place = self.stacks.intern(frames);
        within(self.stacks.len(), limits::RECORDS, "distinct stacks")?;
        within(self.stacks.frames(), limits::FRAMES, "frames of distinct stacks")?;
        Ok(Value::Stack(place))
    }

    pub(crate) fn run(&mut self, sort: Sort, first: u32, end: u32) -> Result<Value, Halt> {
        let place = self.runs.len();
        within(place, limits::RECORDS, "lists")?;
        self.runs.push((sort, first..end));
        Ok(Value::Run(place as u32))
    }

    /// The records of a list, where it is one of records of this sort, or empty.
    pub(crate) fn records(&self, value: Value, sort: Sort) -> Option<Range<u32>> {
        match value {
            Value::EmptyList => Some(0..0),
            Value::Run(place) => self.runs.get(place as usize).filter(|run| run.0 == sort).map(|run| run.1.clone()),
            _ => None,
        }
    }

    /// The item as the events of one device, where it is a list of events or an empty one and `fits` such a place.
    pub(crate) fn as_trace(&mut self, item: Value, fits: bool) -> Result<Value, Halt> {
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
    pub(crate) fn has_room(&self) -> Result<(), Halt> {
        let records = self.events.len() + self.blocks.len() + self.segments.len() + self.annotations.len();
        within(records + 1, limits::RECORDS, "events, blocks, segments and annotations")
    }

    /// Refuses blocks that belong to another segment already.
    pub(crate) fn use_blocks(&mut self, blocks: &Range<u32>) -> Result<(), Halt> {
        use_once(&mut self.blocks_used, blocks)
    }

    /// Forgets what is needed only to read on.
    pub(crate) fn close(&mut self) {
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
pub(crate) fn within(count: usize, limit: u64, what: &'static str) -> Result<(), Halt> {
    if count as u64 > limit { Err(PickleFault::TooMany { what, limit }.into()) } else { Ok(()) }
}
