//! Why an input was refused. One [`Error`] for the whole crate: where it is wrong, what is wrong, and what the
//! caller can do about it.

mod hint;
mod kind;
pub(crate) mod shorten;

use std::fmt;
use std::io;

use lowtide_core::{BufferIndex, ProblemError};

use crate::reading::decompress::GzipFault;
use shorten::shorten_message;

pub use kind::ErrorKind;

/// What is wrong with an input, and where.
///
/// Displays as one line without the row, so that a caller can print `FILE:ROW: message`.
#[derive(Debug)]
pub struct Error {
    /// The physical line, counted from one with the header as line 1. In the entries of a plan in JSON, the
    /// place in `buffers` counted from one.
    pub row: Option<u64>,
    /// What is wrong.
    pub kind: ErrorKind,
}

const BEHIND: &str = "there is more text behind the end of the JSON";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { row: None, kind }
    }

    pub(crate) fn at(row: u64, kind: ErrorKind) -> Self {
        Self { row: Some(row), kind }
    }

    /// A failed read; the faults of a gzip stream arrive as the payload of an [`io::Error`].
    pub(crate) fn reading(error: io::Error, row: Option<u64>) -> Self {
        let kind = match error.get_ref().and_then(|payload| payload.downcast_ref::<GzipFault>()) {
            Some(GzipFault::Truncated) => ErrorKind::TruncatedGzip,
            Some(GzipFault::Corrupt(why)) => ErrorKind::CorruptGzip(shorten_message(why)),
            None => ErrorKind::Unreadable(error),
        };
        Self { row, kind }
    }

    pub(crate) fn writing(error: impl Into<io::Error>) -> Self {
        Self::new(ErrorKind::Unwritable(error.into()))
    }

    pub(crate) fn json(error: &serde_json::Error) -> Self {
        let row = u64::try_from(error.line()).ok().filter(|&line| line > 0);
        let text = error.to_string();
        // The one message of the parser that speaks of itself and not of the file.
        let text = text.strip_prefix("trailing characters").map_or(text.clone(), |place| format!("{BEHIND}{place}"));
        Self { row, kind: ErrorKind::BadJson(shorten_message(&text)) }
    }

    /// A problem that was read and failed its check; `row_of` tells where a buffer stands, where that is known.
    pub(crate) fn problem(error: ProblemError, row_of: impl FnOnce(BufferIndex) -> Option<u64>) -> Self {
        let row = match &error {
            ProblemError::DuplicateBuffer { second: buffer, .. }
            | ProblemError::TooLarge { buffer, .. }
            | ProblemError::BackwardLifetime { buffer, .. }
            | ProblemError::BadGap { buffer, .. }
            | ProblemError::MisalignedPin { buffer, .. } => row_of(*buffer),
            ProblemError::UnknownIndex { .. } | ProblemError::BadPools(_) | ProblemError::Contradiction { .. } => None,
        };
        Self { row, kind: ErrorKind::BadProblem(error) }
    }

    /// What the caller can do about it, in one sentence.
    pub fn hint(&self) -> &'static str {
        self.kind.hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_is_cut_in_the_message_of_a_bad_problem() {
        let id = "x".repeat(100_000).into();
        let second = BufferIndex::new(1);
        let error = Error::new(ErrorKind::BadProblem(ProblemError::DuplicateBuffer { id, second }));
        assert!(error.to_string().chars().count() <= 201);
    }

    #[test]
    fn errors_are_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
