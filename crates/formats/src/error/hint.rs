//! Remedies: what the caller can do about each kind of error, in words to print behind `hint:`.

use std::io;

use lowtide_core::ProblemError;

use crate::ErrorKind;
use crate::reading::open::{COMPRESSED, PROGRAM, SAVED};

impl ErrorKind {
    /// What the caller can do about it, in one sentence.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::IsADirectory => {
                "this is a folder; give one of the files in it"
            }
            Self::Unreadable(_) => "check that the file can be read",
            Self::Unwritable(_) => "check that the output can be written and that there is room for it",
            Self::TruncatedGzip => "copy or record the file again; the end of it is missing",
            Self::CorruptGzip(_) => "copy or record the file again; `gzip -t` tells whether a copy is whole",
            Self::LineTooLong { .. } => "check that this is a CSV file with one row per line",
            Self::FileTooLong { .. } | Self::TooManyRows { .. } => "split the file, for example by steps",
            Self::NotUtf8 => "save the file as UTF-8",
            Self::UnclosedQuote | Self::StrayQuote => {
                "put a field that holds a quote in quotes and write each quote in it twice"
            }
            Self::Empty => "a file without rows still needs its header, such as `id,lower,upper,size`",
            Self::UnknownHeader { .. } => "rename the columns, or convert the file to one of these headers",
            Self::OtherSeparator { separator: "semicolons" } => {
                "write commas; a spreadsheet can be told so when it saves, and `tr ';' ','` does it for a plain table"
            }
            Self::OtherSeparator { .. } => "write commas; `tr '\\t' ','` does it for a plain table",
            Self::DuplicateColumn { .. } => "remove or rename one of the two columns",
            Self::RaggedRow { .. } => "give the row one field per column; an empty field still needs its comma",
            Self::MissingValue { column: "offset" } | Self::MissingColumn { column: "offset", .. } => {
                "a plan has an offset for every buffer"
            }
            Self::MissingColumn { .. } => "add the column, or check the spelling of its name",
            Self::MissingValue { column: "id" } => {
                "give the row an id; that of a `step` row is its number, from 1 upwards"
            }
            Self::MissingValue { .. } => "fill in the value",
            // Only the id of a `step` row is a number.
            Self::NotANumber { column: "id", .. }
            | Self::OutOfRange { column: "id", .. }
            | Self::StepZero
            | Self::StepOutOfOrder { .. } => "number the steps from 1 upwards, in the `id` of their rows",
            Self::NotANumber { column: "address", .. } => "write addresses as whole numbers, or in hex as `0x7f00`",
            Self::NotANumber { .. } => "write a plain whole number, without a unit, point or separator",
            Self::OutOfRange { column: "lower" | "upper" | "end", .. } => {
                "check the number; a lifetime is given in events, such as the places of operators in their order"
            }
            Self::OutOfRange { column: "address", .. } => {
                "check the number; an address is that of the first byte, decimal or in hex"
            }
            Self::OutOfRange { column: "size" | "offset" | "bytes" | "alignment", .. } => {
                "check the number; sizes and offsets are bytes"
            }
            Self::OutOfRange { .. } => "check the number, and which column is which",
            Self::ZeroAlignment => "use 1 for no alignment, or leave the field empty",
            Self::BadGap { .. } => "write gaps as `lower-upper` or `lower-upper@first:end`, with spaces between them",
            Self::UnknownClass { .. } => "use `persistent` or `transient`, or leave the field empty",
            Self::UnknownEvent { .. } => "use alloc, free, done, step, record, event, wait, reserve, release or oom",
            Self::NotAllocated { .. } => "the trace must begin before the first allocation that it mentions",
            Self::FreedTwice { .. } => "remove one of the two rows, or add the `alloc` row between them",
            Self::AllocatedTwice { .. } => "add the missing `free` row, or give the new block another id",
            Self::DoneBeforeFree { .. } => "write the block's `free` row before its `done` row",
            Self::UnexpectedBytes { .. } => "leave the bytes of this row empty",
            Self::UnexpectedValue { .. } => "leave this column of the row empty",
            Self::BadJson(_) => "compare the file with the documented form",
            Self::UnknownBinary { what } if COMPRESSED.contains(what) => {
                "decompress it first; only gzip is read as it is"
            }
            Self::UnknownBinary { what: PROGRAM } => {
                "`lowtide record -- COMMAND` runs a program that uses PyTorch and writes a trace of it"
            }
            Self::UnknownBinary { what: SAVED } => "give what `torch.cuda.memory._dump_snapshot` wrote, or a trace",
            Self::UnknownBinary { .. } => {
                "give lifetimes or a trace as CSV, a problem or a plan as JSON, what \
                 `torch.cuda.memory._dump_snapshot` wrote, or a report"
            }
            Self::WrongKind { found, .. } if found == "missing" => {
                "add `\"kind\": \"problem\", \"version\": 1` to a problem that has the documented form"
            }
            Self::WrongKind { .. } => "give a file of the right kind, or set its `kind` field",
            Self::UnknownVersion { .. } => "set `version` to 1, or use a newer program",
            Self::UnknownBuffer { .. } => "check the spelling of the id",
            Self::UnknownPool { .. } => "add the pool to `pools`, or check the spelling of its name",
            Self::MissingBuffers { .. } | Self::PlanMismatch { .. } | Self::OtherBuffer { .. } => {
                "check that the plan was made for this problem"
            }
            Self::PlacedTwice { .. } => "remove one of the two entries",
            Self::PlanTooLarge => "check the offsets; they are bytes from the start of a pool",
            Self::NotExpressible { .. } => "write the problem as JSON",
            Self::ReservedField { .. } => "give the extra field another name",
            Self::NotAPlan { .. } => "give what `lowtide plan -o` wrote",
            Self::NoReport => "give a page that `lowtide report -o` wrote, or the file it was made from",
            Self::WatchPage => {
                "open it in a browser; `lowtide record -- COMMAND` writes a trace of what PyTorch allocates, which can be \
                 explained, reported and replayed"
            }
            Self::TruncatedReport => "copy or make the report again; the end of it is missing",
            Self::BadUsage(_) => "copy or make the file again; it was damaged, or made by another program",
            Self::RefusedOpcode { why: "can run code", .. } => {
                "give what `torch.cuda.memory._dump_snapshot` wrote; it holds only data, and this file must not be opened with \
                 Python"
            }
            Self::RefusedOpcode { .. } => {
                "give what `torch.cuda.memory._dump_snapshot` wrote; this is another pickle, or was damaged"
            }
            Self::BadPickle { fault, .. } => fault.hint(),
            Self::BadProblem(error) => problem_hint(error),
        }
    }
}

fn problem_hint(error: &ProblemError) -> &'static str {
    match error {
        ProblemError::DuplicateBuffer { .. } => "give every buffer an id of its own",
        ProblemError::TooLarge { .. } => "check the sizes, offsets and alignments; they are bytes",
        ProblemError::BackwardLifetime { .. } => "swap the two times, or check which column is which",
        ProblemError::BadGap { .. } => "gaps lie in order inside the lifetime, and windows inside the buffer",
        ProblemError::MisalignedPin { .. } => "move the offset to a multiple of the alignment, or drop one of them",
        ProblemError::UnknownIndex { .. } => "check what the relation names",
        ProblemError::BadPools(_) => "give pools names of their own, and let spills end somewhere",
        ProblemError::Contradiction { .. } => "drop or change the relation",
    }
}
