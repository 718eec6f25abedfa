//! The program that speed is measured with: steps in which every thread asks for the same blocks in the same order, a few
//! alive at once, and the arenas and the rival that serve it.

use std::hint::black_box;
use std::sync::Arc;

use lowtide_core::ThreadId;
use lowtide_core::random::Random;
use lowtide_core::{Align, Bytes, StreamId};
use lowtide_learn::LearnerOptions;
use lowtide_memory::{Simulated, SimulatedOptions};
use lowtide_pool::{Address, Arena, ArenaOptions, Pool, Request};
use serde::Serialize;

use crate::Failure;

/// Blocks of a thread that are alive at once: each is freed when so many others were asked for.
pub(super) const ALIVE: usize = 8;
const ALIGN: u64 = 512;
const SMALLEST: u64 = 1 << 10;
/// The largest block is this many times the smallest.
const DOUBLINGS: u32 = 8;

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

    /// Makes it ready.
    pub fn open(self) -> Result<Opened, Failure> {
        let learner =
            (self == Self::Planned).then(|| LearnerOptions { background: false, ..LearnerOptions::default() });
        if self == Self::Malloc {
            return Ok(Opened { arena: None });
        }
        let failed = |error: &dyn std::fmt::Display| Failure::Fault(format!("the arena cannot be made: {error}"));
        let source = Simulated::new(SimulatedOptions::default()).map_err(|error| failed(&error))?;
        let options = ArenaOptions { learner, ..ArenaOptions::default() };
        let arena = Arena::new(Arc::new(source), options).map_err(|error| failed(&error))?;
        Ok(Opened { arena: Some(arena) })
    }
}

/// A server that is ready.
pub(super) struct Opened {
    arena: Option<Arena>,
}

/// A block, of whichever server.
pub(super) enum Held {
    Address(Address),
    Memory(Vec<u8>),
}

impl Opened {
    /// A block of `bytes` for `thread`.
    pub fn alloc(&self, bytes: u64, thread: usize) -> Result<Held, Failure> {
        let Some(arena) = &self.arena else {
            return Ok(Held::Memory(black_box(Vec::with_capacity(bytes as usize))));
        };
        let request = Request {
            bytes: Bytes::new(bytes),
            align: Align::new(ALIGN).unwrap_or(Align::ONE),
            stream: StreamId::default(),
            thread: ThreadId(thread as u64),
        };
        arena.alloc(&request).map(Held::Address).map_err(|error| fault(&error))
    }

    /// Takes a block back.
    pub fn free(&self, held: Held) -> Result<(), Failure> {
        match (held, &self.arena) {
            (Held::Address(address), Some(arena)) => arena.free(address).map_err(|error| fault(&error)),
            (Held::Memory(memory), _) => {
                drop(black_box(memory));
                Ok(())
            }
            (Held::Address(_), None) => Ok(()),
        }
    }

    /// Closes a step.
    pub fn step(&self) {
        if let Some(arena) = &self.arena {
            arena.step();
        }
    }

    /// Blocks that lay where a plan had them, and those that did not.
    pub fn served(&self) -> (u64, u64) {
        self.arena.as_ref().map_or((0, 0), |arena| {
            let served = arena.served();
            (served.hits, served.misses)
        })
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
}
