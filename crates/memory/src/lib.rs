//! Where memory comes from. A [`Source`] hands out addresses, puts memory under them and takes it back; it knows
//! nothing of blocks, tensors or plans. This is the only crate that speaks to the operating system or a driver.

mod calls;
mod clock;
pub mod cuda;
mod error;
mod expanse;
mod extents;
mod failing;
mod file;
mod forward;
mod host;
mod ledger;
mod limited;
mod mapper;
mod pages;
mod pieces;
pub mod process;
mod simulated;
mod slots;
mod source;
mod worker;

pub use calls::{Calls, Counter};
pub use clock::Lag;
pub use error::Error;
pub use expanse::Expanse;
pub use failing::{CallKind, FailPlan, FailWhen, Failing, Failure};
pub use file::ScratchFile;
pub use host::{Host, HostOptions, Pages, Placement};
pub use limited::Limited;
pub use simulated::{Simulated, SimulatedOptions};
pub use source::{Description, Mark, Source, Span};
pub use worker::Worker;
