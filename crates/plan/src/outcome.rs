//! What a solve came to.

use lowtide_core::{BufferIndex, Plan};

/// The technique that found a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Solver {
    /// In the order of allocation, each buffer in the hole it fills best.
    Online,
    /// One pass in some order.
    Greedy,
    /// Repair under a lower ceiling.
    Repair,
    /// Complete search.
    Exact,
}

impl Solver {
    /// A word for people and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Greedy => "greedy",
            Self::Repair => "repair",
            Self::Exact => "exact",
        }
    }
}

/// Why a solve ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The question is settled: nothing better exists, or it cannot fit.
    Proved,
    /// It fits what there is, which was the question; whether it could be lower was not.
    Fits,
    /// Nothing is left to try with the techniques switched on.
    Exhausted,
    /// The work given was done.
    Work,
    /// The caller asked for it.
    Cancelled,
    /// The time was over.
    Time,
}

impl Stopped {
    /// A word for people and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Fits => "fits",
            Self::Exhausted => "exhausted",
            Self::Work => "work",
            // Both depend on the clock of whoever watched, so that such a result need not come again.
            Self::Cancelled | Self::Time => "time",
        }
    }
}

/// Whether everything fits the capacities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fits {
    /// It does, in the plan given; also where nothing has a capacity.
    Yes,
    /// It cannot.
    No(Blame),
    /// No plan that fits was found, nor that there is none.
    Unknown,
}

/// Buffers that cannot all fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blame {
    /// The buffers, in the problem's order.
    pub buffers: Vec<BufferIndex>,
    /// Whether the rest would fit as soon as any one of them is left out; otherwise there was no time to find
    /// out for all.
    pub irreducible: bool,
}

/// What a solve came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The best plan found, whether it fits or not; absent only where pins contradict each other.
    pub plan: Option<Plan>,
    /// Whether it fits.
    pub fits: Fits,
    /// Buffers that went to another pool than their own.
    pub spilled: Vec<BufferIndex>,
    /// What found the plan.
    pub solver: Solver,
    /// Why the search ended.
    pub stopped: Stopped,
    /// Units of work done.
    pub work: u64,
}
