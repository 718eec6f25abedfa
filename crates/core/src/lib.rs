//! The nouns of Lowtide: what a memory problem is, what a plan for it is, and what a recorded run is.
//!
//! Everything here is plain data and arithmetic. Nothing does I/O, reads a clock or solves anything; the
//! other crates turn files into these types, plans out of them, and pictures of both.
#![forbid(unsafe_code)]

mod bytes;
mod check;
mod explanation;
mod lifetime;
pub mod options;
mod plan;
mod problem;
pub mod random;
pub mod ranges;
mod trace;
mod usage;

pub use bytes::{Align, Bytes, ParseBytesError};
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
