//! Why memory is as high as it is at some moment, and what would lower it. The planner finds it, reports show it.

use crate::{BufferIndex, Bytes, Lifetime, StepIndex};

/// What is alive at a moment, what could have been gone by then, and what would lower the peak.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The moment that is explained.
    pub moment: Moment,
    /// The highest moment of all; the same unless another was asked for.
    pub peak: Moment,
    /// What the plan needs in all.
    pub planned: Option<Bytes>,
    /// Every buffer alive at the moment, the largest first.
    pub alive: Vec<Alive>,
    /// What was alive at the moment although something speaks for its having been of no more use, the largest
    /// first.
    pub late: Vec<Late>,
    /// Single changes, those that save most first. Only changes that save something are here.
    pub remedies: Vec<Remedy>,
}

/// A time, and what was alive then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The event.
    pub time: i64,
    /// The step it lies in, where steps are known.
    pub step: Option<StepIndex>,
    /// The bytes alive then.
    pub live: Bytes,
}

/// A buffer that is alive at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alive {
    /// Which one.
    pub buffer: BufferIndex,
    /// What it adds to the bytes alive: less than its size where it shares memory with another.
    pub bytes: Bytes,
}

/// A buffer that was alive longer than it seems to have been of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Which one.
    pub buffer: BufferIndex,
    /// What speaks for it.
    pub why: Lateness,
    /// What the peak would be lower by, had it been gone before the moment.
    pub saves: Bytes,
}

/// What speaks for a buffer's having been of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// The program had let go of it; the device was not done with it.
    NotDone {
        /// When the program let go.
        freed: i64,
    },
    /// It went right after the moment, and nothing else happened in between that could have needed it.
    JustAfter {
        /// Events between the moment and its end.
        events: u64,
    },
    /// It was kept until a newer one from the same place of the program, of the same size, had been made: the old
    /// value of a variable that is assigned again.
    Replaced {
        /// The newer one.
        by: BufferIndex,
    },
    /// It was still there at the end, though everything else that was made beside it had gone.
    NeverFreed,
}

/// One change, and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// What to change.
    pub change: Change,
    /// What the peak is lower by.
    pub saves: Bytes,
    /// What the peak is then.
    pub peak: Bytes,
}

/// A single change to a program or to how its memory is laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Write `output` over `input`, which goes when `output` is there.
    InPlace {
        /// What is read.
        input: BufferIndex,
        /// What is written.
        output: BufferIndex,
    },
    /// Let go of `buffer` before `before` is made instead of shortly after.
    Order {
        /// What goes.
        buffer: BufferIndex,
        /// What is made.
        before: BufferIndex,
    },
    /// Do without alignment, or with a smaller one.
    Alignment {
        /// Every offset would be a multiple of this at most.
        align: crate::Align,
    },
    /// Make `buffers`, which come and go together, in `parts`, one after the other.
    Split {
        /// What is split.
        buffers: Vec<BufferIndex>,
        /// Into how many parts.
        parts: u32,
    },
    /// Move `buffer` elsewhere for `window` and back.
    Swap {
        /// What is moved.
        buffer: BufferIndex,
        /// While it is away.
        window: Lifetime,
    },
}
