//! Why a run could not be played, by what the caller can do about it.

use lowtide_core::Bytes;

/// Why a run could not be played to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The page of the device is none that there is; give another.
    #[error("a page of {page} is no power of two from {smallest} to {largest}", page = page.get())]
    BadPage {
        /// What was asked for.
        page: Bytes,
        /// The smallest there is.
        smallest: Bytes,
        /// The largest there is.
        largest: Bytes,
    },
    /// A run that closes no step cannot be repeated; play it once.
    #[error("the run closes no step, so there is nothing to repeat")]
    NoSteps,
    /// The trace frees, or goes on using, a block that is not alive; mend it.
    #[error("event {event} is about a block that is not alive")]
    NotAlive {
        /// The place in the trace's events.
        event: usize,
    },
    /// The watcher ended it.
    #[error("the replay was stopped")]
    Stopped,
    /// The strategy failed in another way than by lack of memory.
    #[error("the strategy failed at event {event}")]
    Failed {
        /// The place in the trace's events.
        event: usize,
        /// What it said.
        #[source]
        source: lowtide_pool::Error,
    },
}
