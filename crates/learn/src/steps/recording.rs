//! What one step did: its allocations in order, and before which allocation each was freed. Frees need no place of their
//! own, since two blocks can only come into each other's way where one is allocated.

use crate::plan::step_plan::Key;
use crate::{Lane, Ticket};

/// When a block was freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Not yet.
    Alive,
    /// Before this allocation of its own step, or at its end.
    Within(u32),
    /// Before this allocation of the step after it, or at its end.
    Next(u32),
}

/// One allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Watched {
    pub key: Key,
    /// The place of its lane in [`Recording::lanes`].
    pub lane: u32,
    pub end: End,
}

/// One step.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// What tells it from the last ones, as tickets carry it.
    pub number: u32,
    /// The lanes in the order in which they first allocated.
    pub lanes: Vec<Lane>,
    pub allocs: Vec<Watched>,
    last_lane: usize,
}

impl Recording {
    /// An empty recording.
    pub fn new(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// Takes an allocation.
    pub fn alloc(&mut self, lane: Lane, key: Key) -> Ticket {
        if self.lanes.get(self.last_lane) != Some(&lane) {
            self.last_lane = self.lanes.iter().position(|&known| known == lane).unwrap_or_else(|| {
                self.lanes.push(lane);
                self.lanes.len() - 1
            });
        }
        let ticket = Ticket(u64::from(self.number) << 32 | self.allocs.len() as u64);
        self.allocs.push(Watched { key, lane: self.last_lane as u32, end: End::Alive });
        ticket
    }

    /// Says when the block of `ticket` was freed, where it is one of this step and was not freed before.
    pub fn free(&mut self, ticket: Ticket, end: End) {
        if (ticket.0 >> 32) as u32 == self.number
            && let Some(block) = self.allocs.get_mut(ticket.0 as u32 as usize)
            && block.end == End::Alive
        {
            block.end = end;
        }
    }

    /// The allocations of each lane in order: their keys, and their places among all.
    pub fn tracks(&self) -> Vec<Track> {
        let mut tracks = vec![Track::default(); self.lanes.len()];
        for (place, alloc) in self.allocs.iter().enumerate() {
            tracks[alloc.lane as usize].push(alloc.key, place);
        }
        tracks
    }
}

/// A lane's allocations in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Track {
    pub keys: Vec<Key>,
    /// Where each stands among the allocations of all lanes.
    pub places: Vec<u32>,
}

impl Track {
    /// Adds the next allocation.
    pub fn push(&mut self, key: Key, place: usize) {
        self.keys.push(key);
        self.places.push(place as u32);
    }
}
