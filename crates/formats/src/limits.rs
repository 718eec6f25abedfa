//! How large an input may be. Whatever a reader is given, it stops at these with a named error.

/// The most bytes of one CSV record, its line break included.
pub const LINE: u64 = 1 << 20;

/// The most rows of a CSV file, its header aside.
pub const ROWS: u64 = 100_000_000;

/// The most bytes of a CSV text after decompression.
pub const CSV: u64 = 16 << 30;

/// The most bytes of a JSON text after decompression.
pub const JSON: u64 = 1 << 30;

/// The most bytes of a pickle after decompression.
pub const PICKLE: u64 = 16 << 30;

/// The most bytes of one text in a pickle.
pub const TEXT: u64 = 1 << 20;

/// The most distinct texts in a pickle.
pub const TEXTS: u64 = 16_000_000;

/// The most bytes of all distinct texts in a pickle, and of all stacks that are made of them.
pub const TEXT_BYTES: u64 = 256 << 20;

/// The most entries in the memo of a pickle.
pub const MEMO: u64 = 256 << 20;

/// The most values on the stack of a pickle.
pub const STACK: u64 = 16 << 20;

/// The most things of kinds that a snapshot has few of: open lists, pools, numbers in the memo of its pickle.
pub const OBJECTS: u64 = 1 << 20;

/// The most bytes of a usage file after decompression.
pub const USAGE: u64 = 4 << 30;

/// The most bytes of a report.
pub const REPORT: u64 = 1 << 30;
