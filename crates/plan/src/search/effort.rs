//! How much may still be done: work units, a deadline and a stop flag, asked for as work is spent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A share of work given to one task. Units are pieces looked at or states visited: the same run spends the
/// same units everywhere, which is what makes results repeatable.
pub(crate) struct Effort<'a> {
    left: u64,
    spent: u64,
    until_look: u64,
    deadline: Option<Instant>,
    flags: [&'a AtomicBool; 2],
    interrupted: bool,
}

/// Units between two looks at the clock: well under a millisecond.
const LOOK_EVERY: u64 = 20_000;

impl<'a> Effort<'a> {
    /// `units` of work, or less when `deadline` passes or one of `flags` is raised.
    pub fn new(units: u64, deadline: Option<Instant>, flags: [&'a AtomicBool; 2]) -> Self {
        Self { left: units, spent: 0, until_look: 0, deadline, flags, interrupted: false }
    }

    /// Takes `units`; false when there is nothing left to take, from then on.
    pub fn spend(&mut self, units: u64) -> bool {
        self.spent += units;
        if self.interrupted || units > self.left {
            self.left = 0;
            return false;
        }
        self.left -= units;
        if units >= self.until_look {
            self.until_look = LOOK_EVERY;
            self.interrupted = self.flags.iter().any(|flag| flag.load(Ordering::Relaxed))
                || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            !self.interrupted
        } else {
            self.until_look -= units;
            true
        }
    }

    /// What was taken so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}
