//! Plays a recorded run on a strategy over a simulated device: what the strategy would have reserved, what it would have
//! asked of the driver, how fast it serves, and where it would have run out of memory. No device is needed.

//!
//! ```
//! use lowtide_core::{Action, Block, BlockIndex, Bytes, Event, TextIndex, Trace};
//! use lowtide_replay::{ReplayOptions, Strategy, replay};
//! use std::ops::ControlFlow;
//!
//! let block = BlockIndex(0);
//! let trace = Trace {
//!     texts: vec!["activation".into()],
//!     blocks: vec![Block { name: TextIndex(0), bytes: Bytes::new(3 << 20), address: None }],
//!     events: vec![Event::new(Action::Alloc { block }), Event::new(Action::Free { block })],
//!     ..Trace::default()
//! };
//! let played = replay(&trace, &Strategy::arena(), &ReplayOptions::default(), &mut |_| ControlFlow::Continue(()))?;
//! assert_eq!(played.peak_reserved, Bytes::new(4 << 20));
//! # Ok::<(), lowtide_replay::ReplayError>(())
//! ```

#![forbid(unsafe_code)]

mod counts;
mod error;
mod outcome;
mod player;
mod script;
mod stopwatch;
mod strategy;
mod sweep;
mod torch;

use std::num::NonZeroU64;
use std::ops::ControlFlow;

use lowtide_core::{Bytes, Trace};

pub use error::ReplayError;
pub use outcome::{DeviceReplay, PlanUse, Refusal, Replay, Warm};
pub use script::is_repeating;
pub use strategy::Strategy;
pub use sweep::{Setting, Sweep, SweepProgress, sweep};
pub use torch::{Caching, Expandable, OptionError, TorchOptions};

/// The smallest page of a simulated device.
const SMALLEST_PAGE: Bytes = Bytes::new(4096);

/// The largest page of a simulated device.
const LARGEST_PAGE: Bytes = Bytes::new(1 << 40);

/// The device that a run is played on, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayOptions {
    /// The memory that each device has; no limit where there is none.
    pub device_memory: Option<Bytes>,
    /// What a device maps at once: a power of two from 4 KiB to 1 TiB.
    pub page: Bytes,
    /// How often the closed steps are played. What the first step makes and no closed step frees is made once; what else
    /// a round leaves is freed before the next. Rows behind the last closed step follow the last round; a `done` among
    /// them that is about an earlier one happens at its end.
    pub repeat: NonZeroU64,
    /// Whether the strategy does not hear where steps end, as under a program that marks none: it has to find them.
    pub unmarked: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { device_memory: None, page: Bytes::new(2 << 20), repeat: NonZeroU64::MIN, unmarked: false }
    }
}

impl ReplayOptions {
    fn check(&self) -> Result<(), ReplayError> {
        if self.page.get().is_power_of_two() && (SMALLEST_PAGE..=LARGEST_PAGE).contains(&self.page) {
            Ok(())
        } else {
            Err(ReplayError::BadPage { page: self.page, smallest: SMALLEST_PAGE, largest: LARGEST_PAGE })
        }
    }
}

/// How far a replay has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayProgress {
    /// Rows that were played.
    pub played: u64,
    /// Rows there are to play, repetitions included.
    pub of: u64,
}

/// Looks at a replay from time to time, and may end it.
pub type Watch<'a> = &'a mut dyn FnMut(ReplayProgress) -> ControlFlow<()>;

/// Plays `trace` on `strategy` over a simulated device, or one for each device of the trace.
///
/// Rows are played in order, at the time they have; in a trace without times they are 20 µs apart. Time that the
/// strategy waits for queued work moves all later rows. In a trace with `done` rows a block that is freed serves its
/// stream again at once where no block is asked for between its `free` and its `done`; otherwise another stream used
/// it, until its `done` row or, without one, for good. In a trace without them work is done 100 ms after it was
/// queued. `record` rows are passed on. Blocks of no bytes are left out, and so are rows about marks between streams,
/// about the recorded allocator's own memory and about its failures.
///
/// Ends at the first block that does not fit, with what was seen until then.
pub fn replay(
    trace: &Trace,
    strategy: &Strategy,
    options: &ReplayOptions,
    watch: Watch<'_>,
) -> Result<Replay, ReplayError> {
    options.check()?;
    let script = script::Script::new(trace, options.repeat)?;
    player::play(&script, strategy, options, watch)
}
