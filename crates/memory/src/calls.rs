//! Counting what a source asks of the system: strategies are compared by it.

use std::sync::atomic::{AtomicU64, Ordering};

use lowtide_core::Bytes;

/// What was asked of the system or the driver. One call for many handles counts as many.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Calls {
    /// Ranges of addresses taken.
    pub reserved: u64,
    /// Ranges of addresses given back.
    pub released: u64,
    /// Handles made.
    pub created: u64,
    /// Handles given back.
    pub destroyed: u64,
    /// Handles mapped to an address.
    pub mapped: u64,
    /// Handles taken from an address.
    pub unmapped: u64,
    /// Times the caller had to wait for queued work.
    pub waits: u64,
    /// Nanoseconds the caller waited for queued work; not part of [`Calls::nanoseconds`].
    pub waited_ns: u64,
    /// Times a stream was made to wait for a mark.
    pub holds: u64,
    /// Memory that is there now.
    pub committed: Bytes,
    /// The most that was there at once.
    pub peak_committed: Bytes,
    /// What the calls cost in nanoseconds: measured by a real source, charged by a simulated one.
    pub nanoseconds: u64,
}

impl Calls {
    /// Handles created, mapped, unmapped or given back.
    pub fn handles(&self) -> u64 {
        self.created + self.destroyed + self.mapped + self.unmapped
    }
}

/// [`Calls`] as they are counted, by any number of threads.
#[derive(Debug, Default)]
pub struct Counter {
    reserved: AtomicU64,
    released: AtomicU64,
    created: AtomicU64,
    destroyed: AtomicU64,
    mapped: AtomicU64,
    unmapped: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
    holds: AtomicU64,
    committed: AtomicU64,
    peak_committed: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Counter {
    /// A range of addresses was taken.
    pub fn reserve(&self) {
        self.reserved.fetch_add(1, Ordering::Relaxed);
    }

    /// A range of addresses was given back.
    pub fn release(&self) {
        self.released.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle of `bytes` was made.
    pub fn create(&self, bytes: Bytes) {
        self.created.fetch_add(1, Ordering::Relaxed);
        let now = self.committed.fetch_add(bytes.get(), Ordering::Relaxed) + bytes.get();
        self.peak_committed.fetch_max(now, Ordering::Relaxed);
    }

    /// A handle of `bytes` was given back.
    pub fn destroy(&self, bytes: Bytes) {
        self.destroyed.fetch_add(1, Ordering::Relaxed);
        self.committed.fetch_sub(bytes.get(), Ordering::Relaxed);
    }

    /// A handle was mapped.
    pub fn map(&self) {
        self.mapped.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle was unmapped.
    pub fn unmap(&self) {
        self.unmapped.fetch_add(1, Ordering::Relaxed);
    }

    /// The caller waited for queued work, for so many nanoseconds.
    pub fn wait(&self, nanoseconds: u64) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// A stream was made to wait.
    pub fn hold(&self) {
        self.holds.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls took `nanoseconds`.
    pub fn charge(&self, nanoseconds: u64) {
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn read(&self) -> Calls {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Calls {
            reserved: read(&self.reserved),
            released: read(&self.released),
            created: read(&self.created),
            destroyed: read(&self.destroyed),
            mapped: read(&self.mapped),
            unmapped: read(&self.unmapped),
            waits: read(&self.waits),
            waited_ns: read(&self.waited_ns),
            holds: read(&self.holds),
            committed: Bytes::new(read(&self.committed)),
            peak_committed: Bytes::new(read(&self.peak_committed)),
            nanoseconds: read(&self.nanoseconds),
        }
    }
}
