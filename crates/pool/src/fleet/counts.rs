//! What a program holds of a device, counted exactly whoever serves it.

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::Bytes;

/// A sum that comes and goes, and the most it was.
#[derive(Debug, Default)]
pub(super) struct Level {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Level {
    fn add(&self, amount: u64) {
        let now = self.now.fetch_add(amount, Ordering::Relaxed) + amount;
        if now > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn sub(&self, amount: u64) {
        self.now.fetch_sub(amount, Ordering::Relaxed);
    }

    fn reset(&self) {
        self.peak.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Bytes {
        Bytes::new(self.now.load(Ordering::Relaxed))
    }

    pub(super) fn peak(&self) -> Bytes {
        Bytes::new(self.peak.load(Ordering::Relaxed)).max(self.now())
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// What was asked for.
    pub(super) requested: Level,
    /// The same in whole units.
    pub(super) rounded: Level,
    /// How many blocks.
    pub(super) blocks: Level,
    in_all: AtomicU64,
    allocs: AtomicU64,
    frees: AtomicU64,
    retries: AtomicU64,
    shortages: AtomicU64,
}

impl Counts {
    pub(super) fn alloc(&self, bytes: Bytes, unit: u64) {
        let rounded = bytes.get().next_multiple_of(unit);
        self.requested.add(bytes.get());
        self.rounded.add(rounded);
        self.blocks.add(1);
        self.in_all.fetch_add(rounded, Ordering::Relaxed);
        self.allocs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: Bytes, unit: u64) {
        self.requested.sub(bytes.get());
        self.rounded.sub(bytes.get().next_multiple_of(unit));
        self.blocks.sub(1);
        self.frees.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn shortage(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reset_peaks(&self) {
        self.requested.reset();
        self.rounded.reset();
        self.blocks.reset();
    }

    pub(super) fn in_all(&self) -> Bytes {
        Bytes::new(self.in_all.load(Ordering::Relaxed))
    }

    pub(super) fn allocs(&self) -> u64 {
        self.allocs.load(Ordering::Relaxed)
    }

    pub(super) fn frees(&self) -> u64 {
        self.frees.load(Ordering::Relaxed)
    }

    pub(super) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    pub(super) fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }
}
