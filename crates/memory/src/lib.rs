//! Where memory comes from. A [`Source`] hands out addresses, puts memory under them and takes it back; it knows
//! nothing of blocks, tensors or plans. This is the only crate that speaks to the operating system or a driver.
//!
//! ```
//! use lowtide_core::Bytes;
//! use lowtide_memory::{Host, HostOptions, Pages, Source, Span};
//!
//! let memory = Host::new(&HostOptions { pages: Pages::Transparent, ..HostOptions::default() });
//! let range = memory.reserve(Bytes::new(64 << 20))?;
//! let part = Span::new(range.start, Bytes::new(4 << 20));
//! memory.commit(part)?;
//! assert_eq!(memory.calls().committed, part.bytes);
//! memory.decommit(part)?;
//! memory.release(range)?;
//! # Ok::<(), lowtide_memory::Error>(())
//! ```

mod adaptors;
mod calls;
pub mod cuda;
mod error;
mod file;
mod host;
mod mapper;
mod simulated;
mod slots;
mod source;
pub mod system;

pub use adaptors::{CallKind, FailPlan, FailWhen, Failing, Failure, Limited};
pub use calls::{Calls, Counter};
pub use error::Error;
pub use file::ScratchFile;
pub use host::{Expanse, Host, HostOptions, Pages, Placement};
pub use simulated::{Lag, Simulated, SimulatedOptions};
pub use source::{Description, Mark, Source, Span};
pub use system::process;
pub use system::worker::Worker;
