//! The strategies that the checks are run over.

#![expect(
    clippy::unnecessary_wraps,
    clippy::needless_pass_by_value,
    reason = "some strategies can fail, and most keep the source"
)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lowtide_learn::LearnerOptions;
use lowtide_pool::program::Watching;
use lowtide_pool::{Arena, ArenaOptions, Error, Pool, Segments};
use lowtide_replay::{Caching, Expandable, TorchOptions};

use crate::adaptors::{HostArenaPool, RecordsItsStream};

pub type Made = Result<Box<dyn Pool>, Error>;

pub fn caching(source: Arc<Watching>) -> Made {
    Ok(Box::new(Caching::new(source, TorchOptions::default())))
}

pub fn expandable(source: Arc<Watching>) -> Made {
    Ok(Box::new(Expandable::new(source, TorchOptions::default())))
}

pub fn arena(source: Arc<Watching>) -> Made {
    Ok(Box::new(Arena::new(source, ArenaOptions::default())?))
}

/// Programs are many and short: their plans need not be the best.
fn learner(background: bool) -> Option<LearnerOptions> {
    Some(LearnerOptions { background, time_limit: Duration::from_millis(20), ..LearnerOptions::default() })
}

/// Plans while a step is closed, so that every plan is served.
pub fn planned(source: Arc<Watching>) -> Made {
    Ok(Box::new(Arena::new(source, ArenaOptions { learner: learner(false), ..ArenaOptions::default() })?))
}

pub fn planned_in_the_background(source: Arc<Watching>) -> Made {
    let options =
        ArenaOptions { learner: learner(true), handles_at_once: NonZeroUsize::MIN, ..ArenaOptions::default() };
    Ok(Box::new(Arena::new(source, options)?))
}

pub fn planned_by_its_period(source: Arc<Watching>) -> Made {
    let options = ArenaOptions { learner: learner(false), find_steps: Some(0), ..ArenaOptions::default() };
    Ok(Box::new(Arena::new(source, options)?))
}

/// As a program has it on a device, but that plans are made while a step is closed.
pub fn planned_after_a_fast_start(source: Arc<Watching>) -> Made {
    Ok(Box::new(Arena::new(source, ArenaOptions { learner: learner(false), ..ArenaOptions::on_device() })?))
}

/// Segments know nothing of the stream that a block is asked for: whoever copies from it records that.
pub fn segments(source: Arc<Watching>) -> Made {
    Ok(Box::new(RecordsItsStream(Segments::new(source))))
}

/// The arena under a program's `malloc`, which has memory of its own.
pub fn host_arena(source: Arc<Watching>) -> Made {
    HostArenaPool::open(None, &source)
}

pub fn host_arena_planned(source: Arc<Watching>) -> Made {
    HostArenaPool::open(learner(false), &source)
}
