//! The nouns of Lowtide: what a memory problem is, what a plan for it is, and what a recorded run is.
//!
//! Everything here is plain data and arithmetic. Nothing does I/O, reads a clock or solves anything; the
//! other crates turn files into these types, plans out of them, and pictures of both.
//!
//! ```
//! use lowtide_core::{Buffer, Bytes, Lifetime, Problem};
//!
//! let alive = |lower, upper| Lifetime { lower, upper };
//! let weights = Buffer::new("weights", alive(0, 9), "1.5KiB".parse()?);
//! let input = Buffer::new("input", alive(0, 3), Bytes::new(512));
//! let output = Buffer::new("output", alive(3, 9), Bytes::new(512));
//! assert!(!input.lifetime.overlaps(output.lifetime), "one may lie where the other was");
//! let problem = Problem::new(vec![weights, input, output]);
//! problem.check()?;
//! assert_eq!(problem.buffers[0].size.to_string(), "1.5 KiB");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bytes;
mod check;
mod device_memory;
mod explanation;
mod lifetime;
pub mod options;
mod plan;
pub mod preload;
mod problem;
pub mod random;
pub mod ranges;
mod trace;
mod usage;

pub use bytes::{Align, Bytes, ParseBytesError};
pub use device_memory::{ParseMemoryError, parse_device_memory};
pub use explanation::{
    Absence, Alike, Alive, Bond, Change, Ending, Explanation, Family, Late, Lateness, Measure, Moment, Release, Remedy,
};
pub use lifetime::{Gap, Lifetime, Window};
pub use plan::{Placement, Plan};
pub use problem::{Buffer, BufferIndex, Class, Pool, PoolIndex, Problem, ProblemError};
pub use trace::{
    Action, AddressRange, Block, BlockIndex, Event, ExtraColumn, RangeIndex, StepIndex, StreamId, TextIndex, ThreadId,
    Trace,
};
pub use usage::{Clock, Label, Layout, Origin, StepEnd, Usage};
