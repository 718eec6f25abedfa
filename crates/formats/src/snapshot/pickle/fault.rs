//! What can be wrong inside a pickle, apart from opcodes that are refused: damage, tricks, and values that are not
//! what a memory snapshot has in their place.

use std::io;

use crate::{Error, ErrorKind};

/// What is wrong with the inside of a pickle.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PickleFault {
    /// The bytes end before the pickle does.
    #[error("the pickle ends too early")]
    Truncated,
    /// More follows behind the end of the pickle.
    #[error("there is more behind the end of the pickle")]
    Trailing,
    /// The pickle is longer than one may be.
    #[error("the pickle is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that it may have.
        limit: u64,
    },
    /// The protocol is one that no snapshot is written in.
    #[error("the pickle is of protocol {version}; 2 to 5 can be read")]
    Protocol {
        /// Its number.
        version: u8,
    },
    /// An opcode takes more values than there are.
    #[error("{opcode} finds no value to work on")]
    Underflow {
        /// The opcode's name.
        opcode: &'static str,
    },
    /// An opcode looks for a mark that was not set.
    #[error("{opcode} finds no mark")]
    NoMark {
        /// The opcode's name.
        opcode: &'static str,
    },
    /// Keys and values do not come in pairs.
    #[error("a dict is given a key without a value")]
    OddItems,
    /// An opcode finds another thing than the container it fills.
    #[error("{opcode} fills {found}")]
    NotAContainer {
        /// The opcode's name.
        opcode: &'static str,
        /// What it finds.
        found: &'static str,
    },
    /// A container is inside itself, or is filled after it was used.
    #[error("a list or dict is used before it is complete; it may contain itself")]
    Recursive,
    /// A record is in two lists, or not in the order in which it was made.
    #[error("a record of the snapshot is used twice, or out of order")]
    UsedTwice,
    /// The memo has nothing under a number.
    #[error("the memo has no entry {index}")]
    UnknownMemo {
        /// The number.
        index: u32,
    },
    /// An entry of the memo has another number than the next one.
    #[error("memo entry {index} comes where {expected} should")]
    MemoOutOfOrder {
        /// The number it has.
        index: u32,
        /// The next number.
        expected: usize,
    },
    /// A text is longer than one may be.
    #[error("a text of {length} bytes is longer than {limit}")]
    TextTooLong {
        /// What it claims.
        length: u64,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// A whole number has more digits than one may have.
    #[error("a whole number takes {length} bytes, more than {limit}")]
    NumberTooLong {
        /// What it claims.
        length: i64,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// There is more of something than a pickle may have.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The most that there may be.
        limit: u64,
    },
    /// The pickle is sound, but no memory snapshot.
    #[error("this is a pickle of {found}, not a memory snapshot with `segments`")]
    NotASnapshot {
        /// What it holds.
        found: &'static str,
    },
    /// A record lacks what it must have.
    #[error("{record} has no `{key}`")]
    MissingKey {
        /// The kind of record.
        record: &'static str,
        /// What it lacks.
        key: &'static str,
    },
    /// A record has a value of another type than it must be.
    #[error("`{key}` of {record} is {found}, not {expected}")]
    WrongType {
        /// The kind of record.
        record: &'static str,
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A number of a record is negative or too large.
    #[error("`{key}` of {record} is {value}, which is not between 0 and {most}")]
    OutOfRange {
        /// The kind of record.
        record: &'static str,
        /// The key.
        key: &'static str,
        /// What it is.
        value: i64,
        /// The most that it may be.
        most: i64,
    },
}

impl PickleFault {
    /// What the caller can do about it, in one sentence.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Truncated => "copy or record the snapshot again; the end of it is missing",
            Self::Trailing => "give one pickle per file, as `torch.cuda.memory._dump_snapshot` writes it",
            Self::TooLong { .. } | Self::TooMany { .. } | Self::TextTooLong { .. } | Self::NumberTooLong { .. } => {
                "record less, for example with `max_entries` of `_record_memory_history`"
            }
            Self::Protocol { .. } | Self::NotASnapshot { .. } => {
                "give a file that `torch.cuda.memory._dump_snapshot` wrote"
            }
            _ => "copy or record the snapshot again; PyTorch does not write this",
        }
    }
}

/// Why the machine stopped; in a box, since what nearly never happens must not slow down what does.
#[derive(Debug)]
pub(crate) struct Halt(Box<Cause>);

#[derive(Debug)]
enum Cause {
    Fault(PickleFault),
    Refused { opcode: String, why: &'static str },
    Read(io::Error),
}

impl From<PickleFault> for Halt {
    #[cold]
    fn from(fault: PickleFault) -> Self {
        Self(Box::new(Cause::Fault(fault)))
    }
}

impl Halt {
    /// At an opcode that is not carried out: its name with what it names, and why not.
    pub(crate) fn refused(opcode: String, why: &'static str) -> Self {
        Self(Box::new(Cause::Refused { opcode, why }))
    }

    /// Where the reader failed.
    pub(crate) fn reading(error: io::Error) -> Self {
        Self(Box::new(Cause::Read(error)))
    }

    /// The error about the opcode at `byte`.
    pub(crate) fn at(self, byte: u64) -> Error {
        match *self.0 {
            Cause::Fault(fault) => Error::new(ErrorKind::BadPickle { fault, byte }),
            Cause::Refused { opcode, why } => Error::new(ErrorKind::RefusedOpcode { opcode, byte, why }),
            Cause::Read(error) => Error::reading(error, None),
        }
    }

    #[cfg(test)]
    pub(crate) fn fault(self) -> Option<PickleFault> {
        match *self.0 {
            Cause::Fault(fault) => Some(fault),
            Cause::Refused { .. } | Cause::Read(_) => None,
        }
    }
}
