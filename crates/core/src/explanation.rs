//! Why memory is as high as it is at some moment, and what would lower it. The planner finds it, reports show it.

use crate::{Align, BufferIndex, Bytes, Lifetime, StepIndex};

/// What is alive at a moment, what could have been gone by then, and what would lower the peak.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The moment that is explained.
    pub moment: Moment,
    /// The highest moment of all; the same unless another was asked for.
    pub peak: Moment,
    /// The time that savings are counted over, of which the moment is the highest: all of it, the step or the event
    /// that was asked for.
    pub scope: Lifetime,
    /// What the plan needs in all, where there is one.
    pub planned: Option<Bytes>,
    /// Every buffer that holds memory at the moment, the largest first.
    pub alive: Vec<Alive>,
    /// The same buffers by size and place in the program, those first that hold most together.
    pub alike: Vec<Alike>,
    /// What was alive at the moment although something speaks for its having been of no more use, those first that
    /// cost most.
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
    /// What it adds to the bytes alive: less than its size where it shares memory with a larger one.
    pub bytes: Bytes,
}

/// Buffers alive at the moment, of the same size, stream and place in the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alike {
    /// Which ones, in the order in which they began.
    pub buffers: Vec<BufferIndex>,
    /// What they add to the bytes alive.
    pub bytes: Bytes,
}

/// Buffers that one change reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// What makes them one.
    pub bond: Bond,
    /// Those that it is about at the moment, alive then, the largest first; at least one.
    pub alive: Vec<BufferIndex>,
    /// What they are at other times, in the order in which they begin: in each other step the one that came at the
    /// same place. A change to one step alone does not lower a peak that comes again in the next.
    pub elsewhere: Vec<BufferIndex>,
}

/// What makes buffers one, from the narrowest to the widest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bond {
    /// They are one tensor, step after step.
    Tensor,
    /// They are of the same size, stream and place in the program.
    Alike,
    /// They come from the same place in the program.
    Site,
    /// They are of the same category.
    Category,
    /// They are alive together at the moment, and the same can be said of each.
    Together,
}

/// Buffers that were alive longer than they seem to have been of use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Late {
    /// Which ones, and when they could have gone.
    pub release: Release,
    /// What they add to the bytes alive at the moment.
    pub bytes: Bytes,
    /// What the peak would be lower by.
    pub saves: Bytes,
}

/// Letting go of buffers earlier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// Which ones.
    pub family: Family,
    /// What speaks for it.
    pub why: Lateness,
    /// When those of the family would go that would go earlier.
    pub ends: Vec<Ending>,
}

/// An earlier end of a buffer's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Which buffer.
    pub buffer: BufferIndex,
    /// The first event at which it is no longer alive.
    pub at: i64,
}

/// What speaks for a buffer's having been of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// The program had let go of it; the device was not done with it. It would end when the program let go.
    NotDone {
        /// When the program let go of the first of them.
        freed: i64,
    },
    /// It was kept until its successor had been made, in the next step where steps are known: the value of a variable
    /// that is assigned again. Surely too long where both were alive at the moment, and else where it was of no more
    /// use by then. It would end with its own step, or where no steps are known before the successor is made.
    Replaced {
        /// The successor, where there is one yet.
        by: Option<BufferIndex>,
    },
    /// Each step leaves more of them behind, and they do not go. They would end with the step they were made in.
    Leak {
        /// What is left behind in a step, on average.
        per_step: Bytes,
    },
    /// It went right after the moment, and nothing was made in between that could have needed it. It would end
    /// before the last allocation in front of its end.
    JustAfter {
        /// Events from the moment to when the program let go.
        events: u64,
    },
}

/// One change, and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// What to change.
    pub change: Change,
    /// What the peak is lower by: exactly, as far as the change is as described.
    pub saves: Bytes,
    /// What the peak is then.
    pub peak: Bytes,
}

/// A single change to a program or to how its memory is laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Write each output over its input, which goes when the output is there. The two are then one buffer.
    InPlace {
        /// Inputs, each followed by its output: first the pair alive at the moment, then the same in other steps.
        pairs: Vec<(BufferIndex, BufferIndex)>,
    },
    /// Let go of a buffer before another is made instead of shortly after; possible where the first is not needed to
    /// make the second.
    Order {
        /// What goes, each followed by what is made: first the pair alive at the moment, then the same in other steps.
        pairs: Vec<(BufferIndex, BufferIndex)>,
    },
    /// Let go of buffers earlier.
    Release(Release),
    /// Make buffers in parts, one after the other, so that each holds an equal share of its bytes at a time, rounded up.
    Split {
        /// What is split.
        family: Family,
        /// Into how many parts.
        parts: u32,
    },
    /// Move buffers elsewhere for a while and back; possible where they are not needed meanwhile.
    Swap {
        /// What is moved.
        family: Family,
        /// Who is away when, in the order of time.
        absences: Vec<Absence>,
        /// The most bytes that leave in a step, or in all where no steps are known; as many come back.
        per_step: Bytes,
    },
    /// Do without alignment, or with a smaller one.
    Alignment {
        /// Every offset would be a multiple of this at most.
        align: Align,
    },
    /// Lay the buffers out as planned instead of as the recorded allocator did.
    Plan,
}

/// A stretch of a buffer's life that it spends elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    /// Which buffer.
    pub buffer: BufferIndex,
    /// While it is away.
    pub interval: Lifetime,
}

/// Which peak a change lowers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Measure {
    /// The most bytes alive at once.
    Live,
    /// What the plan needs.
    Planned,
    /// The most that the recorded allocator had reserved.
    Reserved,
}

impl Change {
    /// Which peak the change lowers.
    pub const fn measure(&self) -> Measure {
        match self {
            Self::Alignment { .. } => Measure::Planned,
            Self::Plan => Measure::Reserved,
            _ => Measure::Live,
        }
    }

    /// A word for files and scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InPlace { .. } => "in-place",
            Self::Order { .. } => "order",
            Self::Release(Release { why: Lateness::NotDone { .. }, .. }) => "wait",
            Self::Release(Release { why: Lateness::Leak { .. }, .. }) => "leak",
            Self::Release(_) => "release",
            Self::Split { .. } => "split",
            Self::Swap { .. } => "swap",
            Self::Alignment { .. } => "alignment",
            Self::Plan => "layout",
        }
    }
}

impl Lateness {
    /// A word for files and scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotDone { .. } => "not-done",
            Self::Replaced { .. } => "replaced",
            Self::Leak { .. } => "leak",
            Self::JustAfter { .. } => "just-after",
        }
    }
}

impl Family {
    /// Every buffer of the family, those alive at the moment first.
    pub fn buffers(&self) -> impl Iterator<Item = BufferIndex> + '_ {
        self.alive.iter().chain(&self.elsewhere).copied()
    }
}
