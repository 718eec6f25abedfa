//! Trace CSV: one event of a recorded run per row, read and written whole or, by a recorder, row by row.

mod live_blocks;
mod read;
mod rows;
mod write;

pub(crate) use read::read;
pub use rows::{TraceRow, TraceRows, gzip_member};
pub use write::{write_trace, write_trace_gzip};
