//! Who serves the programs that speed is measured with, and the one that is made of steps: every thread asks for the same
//! blocks in the same order, a few alive at once.

use std::hint::black_box;
use std::sync::Arc;

use lowtide_core::ThreadId;
use lowtide_core::random::Random;
use lowtide_core::{Align, Bytes, StreamId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{Simulated, SimulatedOptions, Source};
use lowtide_pool::{Address, Arena, ArenaOptions, Fleet, FleetOptions, Pool, Request};
use lowtide_replay::TorchOptions;
use serde::Serialize;

use crate::Failure;

/// Blocks of a thread that are alive at once: each is freed when so many others were asked for.
pub(super) const ALIVE: usize = 8;
const ALIGN: u64 = 512;
const SMALLEST: u64 = 1 << 10;
/// The largest block is this many times the smallest.
const DOUBLINGS: u32 = 8;
/// The device of a fleet that serves.
const DEVICE: u32 = 0;

/// Who serves the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Server {
    /// The arena, from a plan.
    Planned,
    /// The arena, each block placed as it comes.
    Arena,
    /// The system's own, for the same sizes.
    Malloc,
}

impl Server {
    pub const ALL: [Self; 3] = [Self::Planned, Self::Arena, Self::Malloc];

    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Arena => "arena",
            Self::Malloc => "malloc",
        }
    }

    /// Makes it ready for a program of steps, by the arena's own functions.
    pub fn open(self) -> Result<Opened, Failure> {
        if self == Self::Malloc {
            return Ok(Opened::Malloc);
        }
        let failed = |error: &dyn std::fmt::Display| Failure::Fault(format!("the arena cannot be made: {error}"));
        let source = Simulated::new(SimulatedOptions::default()).map_err(|error| failed(&error))?;
        let options = ArenaOptions { learner: self.learner(false), ..ArenaOptions::default() };
        Arena::new(Arc::new(source), options)
            .map(|arena| Opened::Arena(Box::new(arena)))
            .map_err(|error| failed(&error))
    }

    /// Makes it ready as a framework's hooks find it: by all that they call, with the settings of a long run.
    pub fn open_hooked(self) -> Opened {
        if self == Self::Malloc {
            return Opened::Malloc;
        }
        let arena = ArenaOptions { learner: self.learner(true), ..ArenaOptions::on_device() };
        let options = SimulatedOptions { real_time: true, ..SimulatedOptions::default() };
        let open = move |_| Simulated::new(options.clone()).map(|device| Arc::new(device) as Arc<dyn Source>);
        let options = FleetOptions { arena, ..FleetOptions::default() };
        let fleet = Fleet::new(Box::new(open), |source| TorchOptions::default().pool(source), options);
        Opened::Fleet(Box::new(fleet))
    }

    fn learner(self, background: bool) -> Option<LearnerOptions> {
        (self == Self::Planned).then(|| LearnerOptions { background, ..LearnerOptions::default() })
    }
}

/// A server that is ready.
pub(super) enum Opened {
    Arena(Box<Arena>),
    Fleet(Box<Fleet>),
    Malloc,
}

/// A block, of whichever server.
pub(super) enum Held {
    Address(Address, Bytes),
    Memory(Vec<u8>),
}

impl Opened {
    /// A block of `bytes` for `thread`.
    pub fn alloc(&self, bytes: u64, thread: usize) -> Result<Held, Failure> {
        let request = Request {
            bytes: Bytes::new(bytes),
            align: Align::new(ALIGN).unwrap_or(Align::ONE),
            stream: StreamId::default(),
            thread: ThreadId(thread as u64),
        };
        let served = match self {
            Self::Malloc => return Ok(Held::Memory(black_box(Vec::with_capacity(bytes as usize)))),
            Self::Arena(arena) => arena.alloc(&request),
            Self::Fleet(fleet) => fleet.alloc_in(DEVICE, &request, None),
        };
        served.map(|address| Held::Address(address, request.bytes)).map_err(|error| fault(&error))
    }

    /// Takes a block back.
    pub fn free(&self, held: Held) -> Result<(), Failure> {
        match (held, self) {
            (Held::Address(address, _), Self::Arena(arena)) => arena.free(address).map_err(|error| fault(&error)),
            (Held::Address(address, bytes), Self::Fleet(fleet)) => {
                fleet.free(DEVICE, address, bytes).map_err(|error| fault(&error))
            }
            (Held::Memory(memory), _) => {
                drop(black_box(memory));
                Ok(())
            }
            (Held::Address(..), Self::Malloc) => Ok(()),
        }
    }

    /// Closes a step.
    pub fn step(&self) {
        match self {
            Self::Arena(arena) => arena.step(),
            Self::Fleet(fleet) => fleet.step(),
            Self::Malloc => {}
        }
    }

    /// Blocks that lay where a plan had them, and those that did not.
    pub fn served(&self) -> (u64, u64) {
        let served = match self {
            Self::Arena(arena) => arena.served(),
            Self::Fleet(fleet) => fleet.stats(DEVICE).map(|stats| stats.served).unwrap_or_default(),
            Self::Malloc => return (0, 0),
        };
        (served.hits, served.misses)
    }

    /// Handles that were created, mapped, unmapped or given back, where the driver is asked through a fleet.
    pub fn driver_calls(&self) -> Option<u64> {
        let Self::Fleet(fleet) = self else { return None };
        fleet.stats(DEVICE).map(|stats| stats.calls.handles())
    }
}

fn fault(error: &lowtide_pool::Error) -> Failure {
    Failure::Fault(format!("the arena did not serve the benchmark's program: {error}"))
}

/// The sizes that a thread asks for in a step, the same every time: from 1 to 256 KiB, all magnitudes alike.
pub(super) fn sizes(count: usize, thread: usize) -> Vec<u64> {
    let mut random = Random::new(thread as u64);
    (0..count)
        .map(|_| {
            let scale = SMALLEST << random.below(u64::from(DOUBLINGS));
            scale + random.below(scale)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_asks_for_the_same_each_time_and_for_other_sizes_than_the_next() {
        assert_eq!(sizes(50, 0), sizes(50, 0));
        assert_ne!(sizes(50, 0), sizes(50, 1));
        assert!(sizes(1000, 3).iter().all(|size| (1 << 10..1 << 18).contains(size)));
    }

    #[test]
    fn every_server_serves() {
        for server in Server::ALL {
            let opened = server.open().unwrap();
            let held = opened.alloc(4096, 1).unwrap();
            opened.free(held).unwrap();
            opened.step();
        }
    }

    #[test]
    fn what_hooks_find_counts_what_it_asks_of_the_driver() {
        for server in Server::ALL {
            let opened = server.open_hooked();
            let held = opened.alloc(4096, 0).unwrap();
            opened.free(held).unwrap();
            assert_eq!(opened.driver_calls().is_some_and(|calls| calls > 0), server != Server::Malloc);
        }
    }
}
