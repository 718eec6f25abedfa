//! What all parts of an arena count together: how much is in use, how much is reserved, and how many driver calls the
//! step has left.

use lowtide_core::Bytes;

use super::ArenaOptions;
use crate::pool::Stats;

/// The counts of an arena.
#[derive(Debug)]
pub(super) struct Accounting {
    live: u64,
    peak_live: u64,
    reserved: u64,
    peak_reserved: u64,
    /// What is set aside for the plan that is served: it counts as in use.
    planned: u64,
    /// The most that was seen in use, blocks of the plan included.
    peak_seen: Bytes,
    slack: f64,
    warm_slack: f64,
    warm_handles: u64,
    ration: u64,
    record_ration: u64,
    warm_up: u64,
    used: u64,
    step: u64,
    /// The most that was in use before the step that is open.
    record: u64,
}

impl Accounting {
    pub(super) fn new(options: &ArenaOptions) -> Self {
        let &ArenaOptions { slack, warm_slack, warm_handles, ration, record_ration, warm_up, .. } = options;
        Self {
            live: 0,
            peak_live: 0,
            reserved: 0,
            peak_reserved: 0,
            planned: 0,
            peak_seen: Bytes::ZERO,
            slack,
            warm_slack,
            warm_handles,
            ration,
            record_ration,
            warm_up,
            used: 0,
            step: 0,
            record: 0,
        }
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
        let peak = self.peak_live.max(self.live + self.planned + asked);
        let slack = if self.warming_up() { self.warm_slack } else { self.slack };
        peak + (peak as f64 * slack) as u64
    }

    /// How many more calls this step may make.
    pub(super) fn left(&self) -> u64 {
        if self.warming_up() {
            return u64::MAX;
        }
        let ration = if self.most_in_use() > self.record { self.ration.max(self.record_ration) } else { self.ration };
        ration.saturating_sub(self.used)
    }

    /// Whether calls are not rationed yet.
    pub(super) fn warming_up(&self) -> bool {
        self.step < self.warm_up
    }

    /// Into how many handles memory is divided for the next step, where calls are not rationed in that one either.
    pub(super) fn warm_handles(&self) -> Option<u64> {
        (self.step + 1 < self.warm_up).then_some(self.warm_handles)
    }

    fn most_in_use(&self) -> u64 {
        self.peak_live.max(self.live + self.planned)
    }

    /// Closes a step.
    pub(super) fn close(&mut self) {
        self.used = 0;
        self.record = self.most_in_use();
        self.step += 1;
    }

    /// How much is reserved.
    pub(super) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The most that was reserved.
    pub(super) fn peak_reserved(&self) -> u64 {
        self.peak_reserved
    }

    /// Sets aside `bytes` for the plan that is served.
    pub(super) fn set_planned(&mut self, bytes: u64) {
        self.planned = bytes;
    }

    /// What is in use and reserved, where blocks of the plan have `planned` bytes. Those come and go without a count: the most
    /// in use is what was seen whenever somebody asked.
    pub(super) fn stats(&mut self, planned: u64) -> Stats {
        let live = Bytes::new(self.live + planned);
        self.peak_seen = self.peak_seen.max(live).max(Bytes::new(self.peak_live));
        Stats {
            live,
            peak_live: self.peak_seen,
            reserved: Bytes::new(self.reserved),
            peak_reserved: Bytes::new(self.peak_reserved),
        }
    }
}
