//! What one group of blocks holds: those of a class, a stream or a thread, or all of them.

use lowtide_core::Bytes;

/// Counts of a group of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// What its blocks hold that were handed out and not freed.
    pub live: Bytes,
    /// The most that was at once, since the start or the last reset.
    pub peak: Bytes,
    /// Blocks that were handed out.
    pub allocs: u64,
    /// Blocks that were freed.
    pub frees: u64,
}

impl Tally {
    pub(super) fn alloc(&mut self, bytes: Bytes) {
        self.allocs += 1;
        self.live += bytes;
        self.peak = self.peak.max(self.live);
    }

    pub(super) fn free(&mut self, bytes: Bytes) {
        self.frees += 1;
        self.live = self.live.saturating_sub(bytes);
    }

    /// Takes a free back.
    pub(super) fn keep(&mut self, bytes: Bytes) {
        self.frees -= 1;
        self.live += bytes;
        self.peak = self.peak.max(self.live);
    }

    /// Lets a live block change to another group, as if it had been of that one from the start.
    pub(super) fn hand_over(&mut self, bytes: Bytes, to: &mut Self) {
        self.allocs -= 1;
        self.live = self.live.saturating_sub(bytes);
        to.alloc(bytes);
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.live;
    }
}
