//! How large an input may be. Whatever a reader is given, it stops at these with a named error.

/// The most bytes of one CSV record, its line break included.
pub const LINE: u64 = 1 << 20;

/// The most rows of a CSV file, its header aside.
pub const ROWS: u64 = 100_000_000;

/// The most bytes of a CSV text after decompression.
pub const CSV: u64 = 16 << 30;

/// The most bytes of a JSON text after decompression.
pub const JSON: u64 = 1 << 30;
