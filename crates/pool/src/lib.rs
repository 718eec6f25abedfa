//! Strategies that serve blocks out of a [`Source`](lowtide_memory::Source): Lowtide's arena, models of what others do,
//! and adaptors that wrap any of them. Nothing here calls the system; placement works on addresses as numbers.

mod error;
mod pool;
mod torch;

pub use error::Error;
pub use pool::{Address, Pool, Request, Stats, ThreadId};
pub use torch::{Caching, Expandable, OptionError, TorchOptions};
