//! What all parts of an arena count together: how much is in use, how much is reserved, and how many driver calls the
//! step has left.

use lowtide_core::Bytes;

use crate::pool::Stats;

/// The counts of an arena.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) live: u64,
    pub(super) peak_live: u64,
    pub(super) reserved: u64,
    pub(super) peak_reserved: u64,
    /// What a stage serves, as far as these books are concerned in use.
    pub(super) staged: u64,
    slack: f64,
    ration: u64,
    used: u64,
    step: u64,
}

/// Steps in which calls are not rationed: the first sets memory up, the second is the first of its kind.
const WARM_UP: u64 = 2;

impl Books {
    pub(super) fn new(slack: f64, ration: u64) -> Self {
        Self { live: 0, peak_live: 0, reserved: 0, peak_reserved: 0, staged: 0, slack, ration, used: 0, step: 0 }
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.live += bytes;
        self.peak_live = self.peak_live.max(self.live);
    }

    pub(super) fn give(&mut self, bytes: u64) {
        self.live -= bytes;
    }

    pub(super) fn created(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.used += 2;
    }

    pub(super) fn destroyed(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.used += 2;
    }

    pub(super) fn mapped(&mut self) {
        self.used += 1;
    }

    pub(super) fn unmapped(&mut self) {
        self.used += 1;
    }

    /// What may be reserved while `asked` more is about to be used: a little above the most that was ever in use.
    pub(super) fn allowance(&self, asked: u64) -> u64 {
        let peak = self.peak_live.max(self.live + self.staged + asked);
        peak + (peak as f64 * self.slack) as u64
    }

    /// How many more calls this step may make.
    pub(super) fn left(&self) -> u64 {
        if self.warming_up() { u64::MAX } else { self.ration.saturating_sub(self.used) }
    }

    /// Whether calls are not rationed yet.
    pub(super) fn warming_up(&self) -> bool {
        self.step < WARM_UP
    }

    /// Closes a step.
    pub(super) fn close(&mut self) {
        self.used = 0;
        self.step += 1;
    }

    /// How many steps were closed.
    pub(super) fn closed_steps(&self) -> u64 {
        self.step
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            live: Bytes::new(self.live),
            peak_live: Bytes::new(self.peak_live),
            reserved: Bytes::new(self.reserved),
            peak_reserved: Bytes::new(self.peak_reserved),
        }
    }
}
