//! Strategies that serve blocks out of a [`Source`](lowtide_memory::Source): Lowtide's arena, models of what others do,
//! and adaptors that wrap any of them. Nothing here calls the system; placement works on addresses as numbers.

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
mod sync;

pub use arena::{Arena, ArenaOptions, LiveBlock};
pub use error::Error;
pub use fleet::{Capture, CapturePool, DeviceStats, Fleet, FleetOptions, Opener, Shortage};
pub use host::{Frozen, HostArena, HostArenaOptions, HostStats};
pub use pool::{Address, Pool, Request, Stats};
pub use segments::Segments;
