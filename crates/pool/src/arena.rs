//! Lowtide's own strategy: addresses are taken once, memory is mapped under them in handles, and placement works on
//! offsets. Free memory that lies scattered is brought together by giving handles a second address, never by copying.

mod accounting;
mod address_set;
mod address_table;
mod call_budget;
mod call_time;
mod churn;
mod heap;
mod plan_memory;
mod recent_peak;
mod retiring;
mod sized_heaps;
mod state;
mod streams;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use lowtide_core::{Align, Bytes, StreamId};
use lowtide_learn::{LearnerOptions, Served};
use lowtide_memory::Source;

use crate::error::Error;
use crate::pool::{Address, Pool, Request, Stats, UNIT};
use crate::serving::{Found, Given, Published};
use crate::short_lock::ShortLock;
use state::State;

pub use call_budget::Start;

const UNIT_ALIGN: Align = match Align::new(UNIT) {
    Some(align) => align,
    None => Align::ONE,
};

/// How many handles are mapped in about a millisecond.
const HANDLES_AT_ONCE: NonZeroUsize = match NonZeroUsize::new(40) {
    Some(handles) => handles,
    None => NonZeroUsize::MIN,
};

/// How an arena weighs memory against driver calls.
#[derive(Clone, PartialEq, Debug)]
pub struct ArenaOptions {
    /// What may be reserved beyond the most that was in use lately, as a part of it, before handles are moved instead.
    pub slack: f64,
    /// How the first steps weigh memory against driver calls.
    pub start: Start,
    /// How many calls a later step may make, on average after a fast start, where they may also take only a hundredth of the program's time.
    /// Where they do not suffice, memory is taken instead.
    pub ration: u64,
    /// How to learn the steps of the program and plan them; without it, blocks are placed as they come.
    pub learner: Option<LearnerOptions>,
    /// How many handles of a plan are mapped at most when a step is closed, unless plans are made while the program waits anyway.
    pub handles_at_once: NonZeroUsize,
    /// After how many allocations to find steps by their period, until the program closes one itself; never, where there
    /// is none. What recurs while a program sets up is not a step: one that may close its steps is given time to.
    pub find_steps: Option<u64>,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        Self {
            slack: 0.006,
            start: Start::Tight { steps: 2 },
            ration: 240,
            learner: None,
            handles_at_once: HANDLES_AT_ONCE,
            find_steps: None,
        }
    }
}

impl ArenaOptions {
    /// For a program on a device: its first steps make few driver calls, and steps are found by their period only after so many allocations
    /// without one that it is taken not to train.
    pub fn on_device() -> Self {
        const PATIENCE: u64 = 1 << 15;
        Self { start: Start::Fast, find_steps: Some(PATIENCE), ..Self::default() }
    }
}

/// A block that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveBlock {
    /// Where it begins.
    pub address: Address,
    /// What was asked for.
    pub bytes: Bytes,
    /// The stream that it was asked for.
    pub stream: StreamId,
    /// Whether it was freed, and queued work of other streams still uses it.
    pub pending: bool,
}

/// The arena.
#[derive(Debug)]
pub struct Arena {
    state: ShortLock<State>,
    /// The plan that is served, if one is.
    served: Published,
}

impl Arena {
    /// An arena over `source`. Takes addresses, and memory only where an earlier run has left a plan.
    pub fn new(source: Arc<dyn Source>, options: ArenaOptions) -> Result<Self, Error> {
        let served = Published::default();
        let state = State::new(source, options, Arc::clone(&served))?;
        Ok(Self { state: ShortLock::new(state), served })
    }

    /// How many allocations had their place in a plan, and how many did not, in all steps that were closed.
    pub fn served(&self) -> Served {
        self.state().served()
    }

    /// What the learner had to say since the last call, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.state().warnings()
    }

    /// The program has asked for all the work of a step: while the device is busy with it, what would otherwise make the program wait is
    /// done now, for about so long at most.
    pub fn work_ahead(&self, longest: Duration) {
        let begun = self.state().now();
        // The lock is free between the parts.
        while {
            let mut state = self.state();
            state.now().saturating_sub(begun) < longest && state.map_ahead()
        } {}
    }

    /// The blocks that are in use, by address.
    pub fn blocks(&self) -> Vec<LiveBlock> {
        self.state().live_blocks()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Pool for Arena {
    fn alloc(&self, request: &Request) -> Result<Address, Error> {
        if request.bytes == Bytes::ZERO {
            return Err(Error::ZeroSize);
        }
        if !request.align.get().is_power_of_two() {
            return Err(Error::BadAlignment { align: request.align.get() });
        }
        let request = &Request { align: request.align.max(UNIT_ALIGN), ..*request };
        if self.served.exists()
            && let Some(served) = &*self.served.load()
        {
            match served.take(request) {
                Some(Found::At(offset)) => return Ok(served.address(offset)),
                Some(Found::Online | Found::Missed) => return self.state().place_online(request),
                None => {}
            }
        }
        self.state().alloc(request)
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        // Without the plan the lock finds a block of it as well.
        if !self.served.exists() {
            return self.state().free(address);
        }
        let given = self.served.load().as_ref().map_or(Given::No, |served| served.give(address));
        match given {
            Given::Yes => Ok(()),
            Given::Late(number) => {
                self.state().free_dropped(address, number);
                Ok(())
            }
            Given::No => self.state().free(address),
        }
    }

    fn record(&self, address: Address, stream: StreamId) -> Result<(), Error> {
        self.state().record(address, stream)
    }

    fn step(&self) {
        self.state().step();
    }

    fn trim(&self) -> Result<Bytes, Error> {
        self.state().trim()
    }

    fn stats(&self) -> Stats {
        self.state().stats()
    }
}
