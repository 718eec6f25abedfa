//! Strategies that serve blocks out of a [`Source`](lowtide_memory::Source), with or without a plan: the [`Arena`] for device
//! memory and the [`HostArena`] under a program's `malloc`, which share one serving machine (`serving`), and [`Segments`] for
//! memory that devices copy from and to. A [`Fleet`] is the devices of a process. Nothing here calls the system; placement
//! works on addresses as numbers.
//!
//! ```
//! use std::sync::Arc;
//!
//! use lowtide_core::Bytes;
//! use lowtide_memory::{Simulated, SimulatedOptions};
//! use lowtide_pool::{Arena, ArenaOptions, Pool, Request};
//!
//! let device = Arc::new(Simulated::new(SimulatedOptions::default())?);
//! let arena = Arena::new(device, ArenaOptions::default())?;
//! let block = arena.alloc(&Request::new(Bytes::new(3 << 20)))?;
//! assert_eq!(arena.stats().live, Bytes::new(3 << 20));
//! arena.free(block)?;
//! assert_eq!(arena.trim()?, Bytes::new(4 << 20), "memory comes in pages of 2 MiB");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
mod arena;
mod error;
mod fleet;
mod host;
mod pending;
mod pool;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
mod raw;
mod segments;
mod serving;
mod short_lock;
mod sync;

pub use arena::{Arena, ArenaOptions, LiveBlock, Start};
pub use error::Error;
pub use fleet::{Capture, CapturePool, DeviceStats, FailedFrees, Fleet, FleetOptions, Opener, Shortage};
pub use host::{Frozen, HostArena, HostArenaOptions, HostStats};
pub use pool::{Address, Pool, Request, Stats};
pub use segments::Segments;
