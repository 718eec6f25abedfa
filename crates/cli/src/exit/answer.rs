//! What a command came to, as scripts see it: the exit code.

/// The answer of a command that could be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Done; it fits; it holds.
    Yes,
    /// It does not fit, was not found in time, or does not hold.
    No,
    /// A program was run, and ended with this code.
    Ended(u8),
}

impl Answer {
    /// The exit code of a command that could not be carried out.
    pub(crate) const TROUBLE: u8 = 2;

    /// Yes where `holds`.
    pub fn from_bool(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Ended(code) => code,
        }
    }
}
