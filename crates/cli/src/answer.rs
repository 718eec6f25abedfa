//! What a command came to, as scripts see it: the exit code.

use std::process::ExitCode;

/// The answer of a command that could be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done; it fits; it holds.
    Yes,
    /// It does not fit, was not found in time, or does not hold.
    No,
}

impl Answer {
    /// The exit code of a command that could not be carried out.
    pub(crate) fn trouble() -> ExitCode {
        ExitCode::from(2)
    }

    /// Yes where `holds`.
    pub fn from_bool(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes => Self::SUCCESS,
            Answer::No => Self::from(1),
        }
    }
}
