//! Files to nouns and back: lifetimes CSV, trace CSV, PyTorch memory snapshots, problem JSON, plan files, usage files
//! and the reports that carry them, each plain or gzip.
//!
//! Readers work over any [`Read`](std::io::Read), stop at fixed [`limits`] and refuse what they do not understand
//! with an [`Error`] that has a row and a remedy. Nothing here opens a path, solves or allocates for others.
//!
//! ```
//! use lowtide_formats::{Input, write_problem};
//!
//! let table = "id,lower,upper,size\na,0,3,64\nb,2,5,32\n";
//! let Input::Lifetimes(lifetimes) = Input::read(table.as_bytes())? else { panic!("another format") };
//! assert_eq!(lifetimes.problem.buffers.len(), 2);
//! let mut json = Vec::new();
//! write_problem(&lifetimes.problem, &mut json)?;
//! assert!(matches!(Input::read(&*json)?, Input::Problem(problem) if problem == lifetimes.problem));
//!
//! let error = Input::read("id,lower,upper,size\na,0,3,12x\n".as_bytes()).unwrap_err();
//! assert_eq!(error.row, Some(2));
//! # Ok::<(), lowtide_formats::Error>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod input;
mod json;
mod lifetimes;
pub mod limits;
mod plan;
mod problem;
mod reading;
mod snapshot;
mod trace;
mod usage;

pub use error::{Error, ErrorKind};
pub use input::Input;
pub use lifetimes::{Lifetimes, write_lifetimes, write_plan_csv};
pub use plan::{PlanEntry, PlanFile, PlanPool, write_plan};
pub use problem::write_problem;
pub use reading::{Decompressed, decompress};
pub use snapshot::{Note, PickleFault, Snapshot};
pub use trace::{TraceRow, TraceRows, gzip_member, write_trace, write_trace_gzip};
pub use usage::{Run, USAGE_ELEMENT, usage_element, write_usage};
