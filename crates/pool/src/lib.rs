//! Strategies that serve blocks out of a [`Source`](lowtide_memory::Source): Lowtide's arena, models of what others do,
//! and adaptors that wrap any of them. Nothing here calls the system; placement works on addresses as numbers.

pub mod adaptors;
mod arena;
mod error;
mod fleet;
mod host;
mod learner;
mod pool;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
mod raw;
mod replay;
mod segments;
mod sync;
mod torch;

pub use arena::{Arena, ArenaOptions, Living};
pub use error::Error;
pub use fleet::{Capture, DeviceStats, Fleet, FleetOptions, Opener, Shortage};
pub use host::{Frozen, HostArena, HostArenaOptions, HostStats};
pub use learner::{
    Advice, Carried, Cursor, Lane, Learner, LearnerOptions, PeriodFinder, Served, SettingError, Signature, Slot,
    StepPlan, Ticket,
};
pub use pool::{Address, Pool, Request, Stats, ThreadId};
pub use replay::{
    DeviceReplay, PlanUse, Refusal, Replay, ReplayError, ReplayOptions, ReplayProgress, Setting, Strategy, Sweep,
    SweepProgress, Warm, Watch, is_repeating, replay, sweep,
};
pub use segments::Segments;
pub use torch::{Caching, Expandable, OptionError, TorchOptions};
