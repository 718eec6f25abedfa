//! Frees that failed: who frees has nobody to give an error to, so that they are counted here and said once.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many frees failed, and why the first did that was not said yet.
#[derive(Debug, Default)]
pub struct FailedFrees {
    count: AtomicU64,
    unsaid: Mutex<Option<Unsaid>>,
}

#[derive(Debug)]
struct Unsaid {
    count: u64,
    first: String,
}

impl FailedFrees {
    /// None yet.
    pub const fn new() -> Self {
        Self { count: AtomicU64::new(0), unsaid: Mutex::new(None) }
    }

    /// Notes one.
    #[cold]
    pub fn note(&self, error: &dyn Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        unsaid.get_or_insert_with(|| Unsaid { count: 0, first: error.to_string() }).count += 1;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// A sentence about those since the last call.
    pub fn warning(&self) -> Option<String> {
        let unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let Unsaid { count, first } = unsaid;
        let frees = if count == 1 { "free" } else { "frees" };
        Some(format!("{count} {frees} failed, the first because of this: {first}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::pool::Address;

    #[test]
    fn what_failed_is_counted_and_said_once_with_the_first_reason() {
        let failed = FailedFrees::default();
        assert_eq!((failed.count(), failed.warning()), (0, None));
        let first = Error::DoubleFree { address: Address(512) };
        failed.note(&first);
        failed.note(&Error::ForeignAddress { address: Address(7) });
        assert_eq!(failed.count(), 2);
        assert_eq!(failed.warning(), Some(format!("2 frees failed, the first because of this: {first}")));
        assert_eq!((failed.count(), failed.warning()), (2, None));
    }
}
