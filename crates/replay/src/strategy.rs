//! Which strategies a run can be played on, and the pool that each of them is.

use std::sync::Arc;
use std::time::Duration;

use lowtide_learn::{LearnerOptions, Served};
use lowtide_memory::Source;
use lowtide_pool::{Arena, ArenaOptions, Error, Pool, Start};

use super::outcome::PlanUse;
use crate::torch::{Caching, Expandable, TorchOptions};

/// A strategy with its options.
#[derive(Clone, PartialEq, Debug)]
pub enum Strategy {
    /// Lowtide's arena, which places every block as it comes.
    Arena(ArenaOptions),
    /// Lowtide's arena, which learns the steps and serves a plan for those that recur.
    Planned(ArenaOptions),
    /// PyTorch's native caching allocator.
    Caching(TorchOptions),
    /// PyTorch's expandable segments.
    Expandable(TorchOptions),
}

impl Strategy {
    /// The arena as it is.
    pub fn arena() -> Self {
        Self::Arena(ArenaOptions::default())
    }

    /// The arena with a learner that plans in the thread that closes a step, with time to do so on a busy machine.
    pub fn planned() -> Self {
        let time_limit = Duration::from_secs(4);
        let learner = LearnerOptions { time_limit, background: false, ..LearnerOptions::default() };
        Self::Planned(ArenaOptions { learner: Some(learner), ..ArenaOptions::default() })
    }

    /// The same with another start, where it is Lowtide's. After a fast one steps are found as late as on a device.
    #[must_use]
    pub fn starting(mut self, start: Start) -> Self {
        if let Self::Arena(options) | Self::Planned(options) = &mut self {
            options.start = start;
            if start == Start::Fast {
                options.find_steps = ArenaOptions::on_device().find_steps;
            }
        }
        self
    }

    /// What PyTorch uses with `options`: [`Expandable`](Self::Expandable) where
    /// [they say so](TorchOptions::expandable_segments), else [`Caching`](Self::Caching).
    pub fn torch(options: TorchOptions) -> Self {
        if options.expandable_segments() { Self::Expandable(options) } else { Self::Caching(options) }
    }

    /// The name that people choose it by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Arena(_) => "arena",
            Self::Planned(_) => "planned",
            Self::Caching(_) => "caching",
            Self::Expandable(_) => "expandable",
        }
    }

    /// Its pool over `source`; steps are found by their period where the run `closes_steps` nowhere.
    pub(super) fn open(&self, source: Arc<dyn Source>, closes_steps: bool) -> Result<Running, Error> {
        Ok(match self {
            Self::Arena(options) => Running::Plain(Box::new(Arena::new(source, options.clone())?)),
            Self::Planned(options) => {
                let find_steps = options.find_steps.or((!closes_steps).then_some(0));
                let options = ArenaOptions { find_steps, ..options.clone() };
                Running::Learning(Box::new(Arena::new(source, options)?))
            }
            Self::Caching(options) => Running::Plain(Box::new(Caching::new(source, options.clone()))),
            Self::Expandable(options) => Running::Plain(Box::new(Expandable::new(source, options.clone()))),
        })
    }
}

/// A strategy at work.
#[derive(Debug)]
pub(super) enum Running {
    Plain(Box<dyn Pool>),
    Learning(Box<Arena>),
}

impl Running {
    pub(super) fn pool(&self) -> &dyn Pool {
        match self {
            Self::Plain(pool) => &**pool,
            Self::Learning(arena) => &**arena,
        }
    }

    /// How often the plan was kept to, where the strategy makes one.
    pub(super) fn plan_use(&self) -> Option<PlanUse> {
        let Self::Learning(arena) = self else { return None };
        let Served { hits, misses } = arena.served();
        Some(PlanUse { hits, misses })
    }
}
