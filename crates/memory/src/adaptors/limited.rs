//! A source with a limit that can be changed while it is used, and a peak that can be reset: what a program
//! sees of its share of a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lowtide_core::Bytes;

use crate::error::Error;
use crate::source::{Source, Span};

/// Another source, of whose memory no more than a limit is taken.
#[derive(Debug)]
pub struct Limited<S: ?Sized> {
    source: Arc<S>,
    limit: AtomicU64,
    /// Two who take memory at once would both find room for one.
    taking: Mutex<()>,
    peak: AtomicU64,
}

impl<S: Source + ?Sized> Limited<S> {
    /// `source`, of which at most `limit` is taken.
    pub fn new(source: Arc<S>, limit: Option<Bytes>) -> Self {
        let limit = AtomicU64::new(limit.map_or(u64::MAX, Bytes::get));
        Self { source, limit, taking: Mutex::new(()), peak: AtomicU64::new(0) }
    }

    /// The limit, where there is one.
    pub fn limit(&self) -> Option<Bytes> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|&limit| limit != u64::MAX).map(Bytes::new)
    }

    /// Sets another limit. What is taken beyond it already stays.
    pub fn set_limit(&self, limit: Option<Bytes>) {
        self.limit.store(limit.map_or(u64::MAX, Bytes::get), Ordering::Relaxed);
    }

    /// The most memory that was there at once since the peak was last reset.
    pub fn peak(&self) -> Bytes {
        Bytes::new(self.peak.load(Ordering::Relaxed)).max(self.source.calls().committed)
    }

    /// Lets the peak begin at what is there now.
    pub fn reset_peak(&self) {
        self.peak.store(self.source.calls().committed.get(), Ordering::Relaxed);
    }
}

impl<S: Source + ?Sized> Source for Limited<S> {
    // What the device has does not change with the limit.
    crate::forward_to_source!(describe, reserve, release, decommit, alias, relocate, calls, now);
    crate::forward_to_source!(mark, passed, hold, wait, forget, drain);

    fn commit(&self, span: Span) -> Result<(), Error> {
        let _one_at_a_time = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let after = self.source.calls().committed.get().saturating_add(span.bytes.get());
        if after > self.limit.load(Ordering::Relaxed) {
            return Err(Error::OutOfMemory { asked: span.bytes });
        }
        self.source.commit(span)?;
        self.peak.fetch_max(self.source.calls().committed.get(), Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Simulated, SimulatedOptions};

    const GRANULE: Bytes = Bytes::new(2 << 20);

    fn granules(count: u64) -> Bytes {
        Bytes::new(count * GRANULE.get())
    }

    fn limited(limit: u64) -> Limited<Simulated> {
        Limited::new(Arc::new(Simulated::new(SimulatedOptions::default()).unwrap()), Some(granules(limit)))
    }

    #[test]
    fn no_more_is_taken_than_the_limit_and_a_raised_one_helps() {
        let source = limited(2);
        let span = source.reserve(granules(4)).unwrap();
        source.commit(Span::new(span.start, granules(2))).unwrap();
        let more = Span::new(span.start + granules(2).get(), GRANULE);
        assert!(matches!(source.commit(more), Err(Error::OutOfMemory { .. })));
        assert_eq!(source.limit(), Some(granules(2)));
        source.set_limit(None);
        source.commit(more).unwrap();
    }

    #[test]
    fn a_peak_that_is_reset_begins_at_what_is_there() {
        let source = limited(4);
        let span = source.reserve(granules(4)).unwrap();
        let part = |index: u64| Span::new(span.start + index * GRANULE.get(), GRANULE);
        for index in 0..3 {
            source.commit(part(index)).unwrap();
        }
        source.decommit(part(2)).unwrap();
        assert_eq!(source.peak(), granules(3));
        source.reset_peak();
        assert_eq!(source.peak(), granules(2));
    }
}
