//! Every way in which an input can be wrong, each with what a message about it needs.

use std::io;

use lowtide_core::ProblemError;

use super::shorten::shorten_message;
use crate::PickleFault;

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The reader failed.
    #[error("cannot read: {0}")]
    Unreadable(#[source] io::Error),
    /// The writer failed.
    #[error("cannot write: {0}")]
    Unwritable(#[source] io::Error),
    /// A gzip stream ends before its data does.
    #[error("the gzip data ends too early")]
    TruncatedGzip,
    /// A gzip stream is damaged, or something else follows it.
    #[error("the gzip data is damaged: {0}")]
    CorruptGzip(String),
    /// A record is longer than a line may be.
    #[error("the line is longer than {limit} bytes")]
    LineTooLong {
        /// The most bytes that a line may have.
        limit: u64,
    },
    /// The text is longer than a file of its kind may be.
    #[error("the text is longer than {limit} bytes")]
    FileTooLong {
        /// The most bytes that it may have.
        limit: u64,
    },
    /// There are more rows than a file may have.
    #[error("there are more than {limit} rows")]
    TooManyRows {
        /// The most rows that a file may have.
        limit: u64,
    },
    /// The text is not UTF-8.
    #[error("the line is not UTF-8 text")]
    NotUtf8,
    /// A quoted field is not closed.
    #[error("a quoted field begins here and does not end")]
    UnclosedQuote,
    /// A quote stands inside a field that does not begin with one, or text follows a closing quote.
    #[error("a quote stands in the middle of a field")]
    StrayQuote,
    /// There is no text at all.
    #[error("the file is empty")]
    Empty,
    /// The header is of no kind that can be read.
    #[error("unknown header `{found}`; expected {expected}")]
    UnknownHeader {
        /// The header of the file.
        found: String,
        /// The headers that would do.
        expected: &'static str,
    },
    /// The columns are not separated by commas.
    #[error("the columns are separated by {separator}, not by commas")]
    OtherSeparator {
        /// What stands between them.
        separator: &'static str,
    },
    /// Something that is no text, and no pickle of a kind that can be read.
    #[error("this is {what}, which is none of the files that can be read")]
    UnknownBinary {
        /// What it is.
        what: &'static str,
    },
    /// A column that must be there is not.
    #[error("column `{column}` is missing from the header `{found}`")]
    MissingColumn {
        /// The column.
        column: &'static str,
        /// The header of the file.
        found: String,
    },
    /// Two columns have one meaning.
    #[error("columns `{first}` and `{second}` mean the same")]
    DuplicateColumn {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A row has more or fewer fields than the header.
    #[error("the row has {found} fields, the header has {expected}")]
    RaggedRow {
        /// The fields of the row.
        found: usize,
        /// The fields of the header.
        expected: usize,
    },
    /// A value that must be there is not.
    #[error("`{column}` has no value")]
    MissingValue {
        /// The column or field.
        column: &'static str,
    },
    /// A value is no whole number.
    #[error("`{column}` is `{value}`, which is not a whole number")]
    NotANumber {
        /// The column or field.
        column: &'static str,
        /// Its value, shortened.
        value: String,
    },
    /// A number is negative or too large.
    #[error("`{column}` is {value}, which is not between {range}")]
    OutOfRange {
        /// The column or field.
        column: &'static str,
        /// Its value, shortened.
        value: String,
        /// What it may be.
        range: &'static str,
    },
    /// An alignment is zero.
    #[error("the alignment is 0")]
    ZeroAlignment,
    /// A gap is not of the form `lower-upper` or `lower-upper@lower:upper`.
    #[error("`{value}` is not a gap")]
    BadGap {
        /// The gap, shortened.
        value: String,
    },
    /// A class is neither `persistent` nor `transient`.
    #[error("`{value}` is not a class")]
    UnknownClass {
        /// The class, shortened.
        value: String,
    },
    /// A trace has a row of a kind that does not exist.
    #[error("`{value}` is not an event")]
    UnknownEvent {
        /// The kind, shortened.
        value: String,
    },
    /// A row is about a block that is not alive.
    #[error("`{event}` of `{id}`, which is not allocated")]
    NotAllocated {
        /// The kind of row.
        event: &'static str,
        /// The block's name, shortened.
        id: String,
    },
    /// A block is freed that was freed before.
    #[error("`{id}` is freed twice")]
    FreedTwice {
        /// The block's name, shortened.
        id: String,
    },
    /// A block is allocated under a name that is still in use.
    #[error("`{id}` is allocated again before it was freed")]
    AllocatedTwice {
        /// The block's name, shortened.
        id: String,
    },
    /// The device is done with a block that the program still holds.
    #[error("`done` of `{id}`, which was not freed")]
    DoneBeforeFree {
        /// The block's name, shortened.
        id: String,
    },
    /// A row other than `alloc` and `oom` has bytes that are not its block's.
    #[error("`{event}` has {bytes} bytes, which is not what its block has")]
    UnexpectedBytes {
        /// The kind of row.
        event: &'static str,
        /// The bytes it gives.
        bytes: u64,
    },
    /// A row has an id though it is about no block, or an address that is not its block's.
    #[error("`{event}` has the {column} `{value}`, which is not its own")]
    UnexpectedValue {
        /// The kind of row.
        event: &'static str,
        /// The column.
        column: &'static str,
        /// Its value, shortened.
        value: String,
    },
    /// Step numbers do not grow.
    #[error("step {step} does not come after step {last}")]
    StepOutOfOrder {
        /// The step.
        step: u64,
        /// The step before it; 0 when there is none.
        last: u64,
    },
    /// A step has the number 0.
    #[error("there is no step 0; steps count from 1")]
    StepZero,
    /// The text is no JSON, or not of the documented form.
    #[error("{0}")]
    BadJson(String),
    /// The JSON is of another kind than what is asked for.
    #[error("the JSON's `kind` is {found}; expected {expected}")]
    WrongKind {
        /// The kind of the file, shortened.
        found: String,
        /// The kinds that would do.
        expected: &'static str,
    },
    /// The JSON is of a version that this program does not know.
    #[error("the JSON's `version` is {found}; this program reads version 1")]
    UnknownVersion {
        /// The version of the file, shortened.
        found: String,
    },
    /// A relation, or a plan, names a buffer that the problem does not have.
    #[error("{what} names buffer `{id}`, which does not exist")]
    UnknownBuffer {
        /// Who names it.
        what: String,
        /// The name, shortened.
        id: String,
    },
    /// Something names a pool that the problem does not have.
    #[error("{what} names pool `{pool}`, which does not exist")]
    UnknownPool {
        /// Who names it.
        what: String,
        /// The name, shortened.
        pool: String,
    },
    /// A plan has no offset for some buffers.
    #[error("the plan has no offset for {count} of the buffers; the first is `{first}`")]
    MissingBuffers {
        /// How many are missing.
        count: usize,
        /// The first of them, shortened.
        first: String,
    },
    /// A plan places a buffer twice.
    #[error("the plan places buffer `{id}` twice")]
    PlacedTwice {
        /// The buffer, shortened.
        id: String,
    },
    /// A plan gives a buffer another size or another life than the problem does.
    #[error("buffer `{id}` is not the one of the problem: in the plan it {differs}")]
    OtherBuffer {
        /// The buffer, shortened.
        id: String,
        /// What differs.
        differs: String,
    },
    /// The pools of a plan add up to more than 63 bits hold.
    #[error("the plan's offsets and sizes add up to more than 2^63-1 bytes")]
    PlanTooLarge,
    /// A plan is for another number of buffers than the problem has.
    #[error("the plan has {placements} placements, the problem has {buffers} buffers")]
    PlanMismatch {
        /// The placements of the plan.
        placements: usize,
        /// The buffers of the problem.
        buffers: usize,
    },
    /// A problem has something that a file of this kind cannot hold.
    #[error("lifetimes CSV cannot hold {what}")]
    NotExpressible {
        /// What it cannot hold.
        what: &'static str,
    },
    /// An extra field of a plan has the name of a field with a meaning.
    #[error("`{name}` is a field of its own and cannot be an extra one")]
    ReservedField {
        /// The name.
        name: String,
    },
    /// Something else where a plan is asked for.
    #[error("this is {what}, not a plan")]
    NotAPlan {
        /// What it is.
        what: &'static str,
    },
    /// A page that is no report of Lowtide.
    #[error("this page is not a report of Lowtide")]
    NoReport,
    /// A page about a program that was watched: it has no blocks, only how much memory there was over time.
    #[error("this is a page of `lowtide watch`: it has the memory over time, but no tensor and no block")]
    WatchPage,
    /// A report that ends before its data does.
    #[error("the report ends too early")]
    TruncatedReport,
    /// A usage file, or one inside a report, is not of the documented form.
    #[error("this is no usage file that can be read: {0}")]
    BadUsage(String),
    /// A pickle uses what a memory snapshot is not made of; nothing of it was carried out.
    #[error("the pickle uses {opcode} at byte {byte}, which {why}")]
    RefusedOpcode {
        /// The opcode's name, with what it names.
        opcode: String,
        /// Where it stands.
        byte: u64,
        /// Why it is refused.
        why: &'static str,
    },
    /// A pickle is damaged, or no memory snapshot.
    #[error("{fault}, at byte {byte}")]
    BadPickle {
        /// What is wrong.
        fault: PickleFault,
        /// Where.
        byte: u64,
    },
    /// The file was read, but what it asks makes no sense.
    #[error("{}", shorten_message(&.0.to_string()))]
    BadProblem(ProblemError),
}
