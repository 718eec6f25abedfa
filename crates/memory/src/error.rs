//! Why a source could not do what was asked, by what the caller can do about it.

use lowtide_core::Bytes;

use crate::source::Span;

/// Why a source refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is not enough memory now; giving some back may help.
    #[error("no memory left for {asked} more")]
    OutOfMemory {
        /// What was asked for.
        asked: Bytes,
    },
    /// There are not enough addresses.
    #[error("no range of {asked} addresses is free")]
    OutOfAddresses {
        /// What was asked for.
        asked: Bytes,
    },
    /// This kind of source never can.
    #[error("{by} cannot do this: {what}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// The source.
        by: String,
    },
    /// The machine has no driver, or one that is too old.
    #[error("no CUDA driver: {why}")]
    NoDriver {
        /// What was looked for and how that failed.
        why: String,
    },
    /// The system or the driver said no.
    #[error("`{call}` failed: {why}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Its reason.
        why: String,
    },
    /// The caller's span is not one this call can take.
    #[error("addresses {:#x} to {:#x} {why}", span.start, span.end())]
    BadSpan {
        /// The span.
        span: Span,
        /// What is wrong with it, as the end of a sentence.
        why: &'static str,
    },
}
