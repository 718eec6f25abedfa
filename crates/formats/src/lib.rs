//! Files to nouns and back: lifetimes CSV, trace CSV, PyTorch memory snapshots, problem JSON, plan files, usage files
//! and the reports that carry them, each plain or gzip.
//!
//! Readers work over any [`Read`](std::io::Read), stop at fixed [`limits`] and refuse what they do not understand
//! with an [`Error`] that has a row and a remedy. Nothing here opens a path, solves or allocates for others.

mod cell;
mod decompress;
mod error;
mod fields;
mod gaps;
mod header;
mod hint;
mod html;
mod input;
mod interner;
mod json;
mod ledger;
mod lifetimes;
mod lifetimes_write;
pub mod limits;
mod open;
mod plan_file;
mod plan_write;
mod problem_json;
mod problem_write;
mod raw_rows;
mod records;
mod shorten;
mod snapshot;
mod trace_read;
mod trace_rows;
mod trace_write;
mod usage;

pub use decompress::{Decompressed, decompress};
pub use error::{Error, ErrorKind};
pub use html::{USAGE_ELEMENT, usage_element};
pub use input::Input;
pub use lifetimes::Lifetimes;
pub use lifetimes_write::{write_lifetimes, write_plan_csv};
pub use plan_file::{PlanEntry, PlanFile, PlanPool};
pub use plan_write::write_plan;
pub use problem_write::write_problem;
pub use snapshot::{Note, PickleFault, Snapshot};
pub use trace_rows::{TraceRow, TraceRows, gzip_member};
pub use trace_write::{write_trace, write_trace_gzip};
pub use usage::{Run, write_usage};
