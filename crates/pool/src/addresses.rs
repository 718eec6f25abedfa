//! Addresses for a strategy: many times as many as its source has memory, so that they need not be used again soon.

use lowtide_core::Bytes;
use lowtide_memory::{Error as SourceError, Source, Span};

/// How many addresses are taken for a byte of memory.
const ADDRESSES_PER_BYTE: u64 = 16;

/// The memory that is assumed where a source does not know its own.
const UNKNOWN_CAPACITY: u64 = 1 << 40;

/// The memory that a source has at most.
pub(crate) fn capacity(source: &dyn Source) -> u64 {
    source.describe().capacity.map_or(UNKNOWN_CAPACITY, Bytes::get)
}

/// Addresses for all memory of a source; fewer where there are not so many, and at least `least`.
pub(crate) fn reserve(source: &dyn Source, least: u64) -> Result<Span, SourceError> {
    let least = least.max(1);
    let mut wanted = capacity(source).saturating_mul(ADDRESSES_PER_BYTE).max(least);
    loop {
        match source.reserve(Bytes::new(wanted)) {
            Err(_) if wanted / 2 >= least => wanted /= 2,
            other => return other,
        }
    }
}

/// Gives addresses back with whatever is under them. A source that fails twice keeps them until it is dropped itself.
pub(crate) fn release(source: &dyn Source, span: Span) {
    let _ = source.release(span).or_else(|_| source.release(span));
}
