//! Lowtide's own strategy: addresses are taken once, memory is mapped under them in handles, and placement works on
//! offsets. Free memory that lies scattered is brought together by giving handles a second address, never by copying.

mod books;
mod building;
mod ground;
mod heap;
mod learning;
mod placing;
mod runs;
mod serving;
mod stage;
mod staging;
mod state;
mod streams;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use lowtide_core::{Align, Bytes, StreamId};
use lowtide_memory::Source;

use crate::error::Error;
use crate::learner::{LearnerOptions, Served};
use crate::pool::{Address, Pool, Request, Stats};
use serving::{Given, Serving};
use stage::Found;
use state::State;

/// Every block begins at a multiple of this.
const UNIT: u64 = 512;

const UNIT_ALIGN: Align = match Align::new(UNIT) {
    Some(align) => align,
    None => Align::ONE,
};

/// How an arena weighs memory against driver calls.
#[derive(Clone, PartialEq, Debug)]
pub struct ArenaOptions {
    /// What may be reserved beyond the most that was ever in use, as a part of it, before handles are moved instead.
    pub slack: f64,
    /// How many handles may be made, mapped, unmapped or given back in a step after the second. Where they do not
    /// suffice, memory is taken instead.
    pub ration: u64,
    /// How to learn the steps of the program and plan them; without it, blocks are placed as they come.
    pub learner: Option<LearnerOptions>,
    /// Whether to find steps by their period until the program closes one itself. A program that will close its steps
    /// is learned faster without: what recurs while it sets up is not a step.
    pub find_steps: bool,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        Self { slack: 0.006, ration: 240, learner: None, find_steps: false }
    }
}

/// The arena.
#[derive(Debug)]
pub struct Arena {
    state: Mutex<State>,
    /// The plan that is served, if one is.
    serving: Arc<ArcSwapOption<Serving>>,
}

impl Arena {
    /// An arena over `source`. Takes addresses, and memory only where an earlier run has left a plan.
    pub fn new(source: Arc<dyn Source>, options: ArenaOptions) -> Result<Self, Error> {
        let serving = Arc::new(ArcSwapOption::empty());
        let state = State::new(source, options, Arc::clone(&serving))?;
        Ok(Self { state: Mutex::new(state), serving })
    }

    /// How many allocations had their place in a plan, and how many did not, in all steps that were closed.
    pub fn served(&self) -> Served {
        self.state().served()
    }

    /// What the learner had to say since the last call, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.state().warnings()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some(serving) = &*self.serving.load() {
            match serving.take(request) {
                Some(Found::At(offset)) => return Ok(serving.address(offset)),
                Some(Found::Online | Found::Missed) => return self.state().place_online(request),
                None => {}
            }
        }
        self.state().alloc(request)
    }

    fn free(&self, address: Address) -> Result<(), Error> {
        let given = self.serving.load().as_ref().map_or(Given::No, |serving| serving.give(address));
        match given {
            Given::Yes => Ok(()),
            Given::Late(number) => {
                self.state().forget(address, number);
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
