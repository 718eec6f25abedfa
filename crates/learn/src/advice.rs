//! What is said between a [`Learner`](crate::Learner) and its owner.

use std::ops::AddAssign;
use std::sync::Arc;

use lowtide_core::{StreamId, ThreadId};

use crate::StepPlan;

/// Allocations that keep their order from step to step: those of one thread for one stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lane {
    /// The thread that asks.
    pub thread: ThreadId,
    /// The stream whose work uses the block first.
    pub stream: StreamId,
}

/// A block that the learner watches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

impl Ticket {
    /// A block that is not watched.
    pub const NONE: Self = Self(u64::MAX);
}

/// How a plan did in a step; zeros where none was served.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Served {
    /// Allocations that had the place that the plan gives them, or that it says to place online.
    pub hits: u64,
    /// All others.
    pub misses: u64,
}

impl Served {
    /// The share of hits; none where nothing was served.
    pub(crate) fn rate(self) -> Option<f64> {
        let all = self.hits.saturating_add(self.misses);
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

impl AddAssign for Served {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

/// What to do from the next step on.
#[derive(Clone, Debug)]
pub enum Advice {
    /// Go on as before.
    Wait,
    /// Serve this plan.
    Serve(Arc<StepPlan>),
    /// Stop serving: the plan keeps missing.
    Drop,
}
