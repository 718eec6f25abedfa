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

/// The most events, blocks, segments and annotations of a snapshot together.
pub const RECORDS: u64 = 30_000_000;

/// The most frames of one stack in a snapshot.
pub const FRAMES_OF_A_STACK: u64 = 4_096;

/// The most frames of all distinct stacks in a snapshot together.
pub const FRAMES: u64 = 64 << 20;

/// The most devices of a snapshot.
pub const DEVICES: u64 = 4_096;

/// The most entries in the memo of a pickle.
pub const MEMO: u64 = 256 << 20;

/// The most values on the stack of a pickle.
pub const STACK: u64 = 16 << 20;

/// The most things of kinds that a snapshot has few of: open lists, pools, numbers in the memo of its pickle.
pub const OBJECTS: u64 = 1 << 20;

/// The most bytes of a usage file after decompression.
pub const USAGE: u64 = 1 << 30;

/// The most bytes of the header of a usage file.
pub const USAGE_HEADER: u64 = 256 << 20;

/// The most buffers in a usage file, and the most entries of each list in its header.
pub const BUFFERS: u64 = 20_000_000;

/// The most readings of the clock in a usage file.
pub const READINGS: u64 = 2 * BUFFERS;

/// The most runs in a report.
pub const RUNS: usize = 2;

/// The most bytes of a report.
pub const REPORT: u64 = 1 << 30;
