//! A recorded run: what was allocated and freed, in order, on which stream, in which step.

use std::fmt;

/// A block's place in [`Trace::blocks`]: one per `alloc` row, also where a program used a name again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockIndex(pub u32);

/// A range's place in [`Trace::ranges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RangeIndex(pub u32);

/// A text's place in [`Trace::texts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TextIndex(pub u32);

/// A queue of work on a device; events on one stream happen in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StreamId(pub u64);

/// A thread of the program, as whoever records or serves it numbers them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ThreadId(pub u64);

/// A training or inference step, counted from one; what precedes step 1 is set-up and belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepIndex(pub u64);

impl fmt::Display for StepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What happened in one row of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A block was handed out.
    Alloc {
        /// The block that begins here.
        block: BlockIndex,
    },
    /// The program let go of a block.
    Free {
        /// The block.
        block: BlockIndex,
    },
    /// The device has finished with a block that was freed.
    Done {
        /// The block.
        block: BlockIndex,
    },
    /// A block was used on another stream than its own: the event's.
    Record {
        /// The block.
        block: BlockIndex,
    },
    /// A step was closed.
    Step {
        /// Which one.
        step: StepIndex,
    },
    /// A mark was set on a stream.
    Signal {
        /// The mark's name.
        mark: TextIndex,
    },
    /// A stream waits for a mark.
    Wait {
        /// The mark's name.
        mark: TextIndex,
    },
    /// The allocator took memory from the system or the driver.
    Reserve {
        /// Where.
        range: RangeIndex,
    },
    /// The allocator gave memory back.
    Release {
        /// Where.
        range: RangeIndex,
    },
    /// An allocation failed.
    OutOfMemory {
        /// The bytes that were asked for.
        bytes: crate::Bytes,
    },
}

/// One row of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// On which stream.
    pub stream: StreamId,
    /// When, in nanoseconds from the start of the recording.
    pub time_ns: Option<u64>,
    /// On which device.
    pub device: Option<u32>,
    /// By which thread.
    pub thread: Option<u64>,
    /// What the memory is for: parameter, gradient, activation, …
    pub category: Option<TextIndex>,
    /// Where in the program.
    pub site: Option<TextIndex>,
}

impl Event {
    /// `action` on the first stream, with nothing else known.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            stream: StreamId::default(),
            time_ns: None,
            device: None,
            thread: None,
            category: None,
            site: None,
        }
    }
}

/// A block of memory in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The name that its rows had.
    pub name: TextIndex,
    /// The bytes asked for.
    pub bytes: crate::Bytes,
    /// The address it had on its device, where that was recorded.
    pub address: Option<u64>,
}

/// Addresses that an allocator took or gave back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRange {
    /// The first of them, where that was recorded.
    pub address: Option<u64>,
    /// How many bytes they are.
    pub bytes: crate::Bytes,
}

/// A column that Lowtide gives no meaning, kept so that nothing is lost in writing a trace again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtraColumn {
    /// Its header.
    pub name: Box<str>,
    /// A value per event.
    pub values: Vec<TextIndex>,
}

/// A recorded run, in the order in which it happened.
///
/// Texts (names, sites, categories) are kept once each, so that a trace of millions of rows stays small.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The rows.
    pub events: Vec<Event>,
    /// Every block ever handed out, in the order of its allocation.
    pub blocks: Vec<Block>,
    /// What the rows about the allocator's own memory speak of.
    pub ranges: Vec<AddressRange>,
    /// The texts that events and blocks refer to.
    pub texts: Vec<Box<str>>,
    /// Columns without a meaning of their own.
    pub extra: Vec<ExtraColumn>,
}

impl Trace {
    /// The text at `index`.
    pub fn text(&self, index: TextIndex) -> &str {
        &self.texts[index.0 as usize]
    }

    /// The block at `index`.
    pub fn block(&self, index: BlockIndex) -> &Block {
        &self.blocks[index.0 as usize]
    }

    /// The range at `index`.
    pub fn range(&self, index: RangeIndex) -> &AddressRange {
        &self.ranges[index.0 as usize]
    }

    /// Whether the trace tells when the device finished with blocks; where it does not, that is at once.
    pub fn has_done_rows(&self) -> bool {
        self.events.iter().any(|event| matches!(event.action, Action::Done { .. }))
    }

    /// The steps that are closed, in order, each with the range of events that belong to it, its closing row
    /// included.
    pub fn steps(&self) -> impl Iterator<Item = (StepIndex, std::ops::Range<usize>)> + '_ {
        let mut start = 0;
        self.events.iter().enumerate().filter_map(move |(row, event)| {
            let Action::Step { step } = event.action else { return None };
            let range = start..row + 1;
            start = row + 1;
            Some((step, range))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_the_rows_up_to_their_closing_row() {
        let step = |n| Event::new(Action::Step { step: StepIndex(n) });
        let other = Event::new(Action::Free { block: BlockIndex(0) });
        let trace = Trace { events: vec![other, step(1), other, other, step(2), other], ..Trace::default() };
        let ranges: Vec<_> = trace.steps().collect();
        assert_eq!(ranges, [(StepIndex(1), 0..2), (StepIndex(2), 2..5)]);
    }
}
