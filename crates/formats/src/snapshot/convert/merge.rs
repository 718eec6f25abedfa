//! The events of all devices in order of time. Within a device they stay in the order in which they were recorded, even
//! where their times fall.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::before::Device;
use crate::snapshot::contents::chunks::Chunks;
use crate::snapshot::contents::{EventRecord, UNRECORDED};

/// Events with the device each belongs to; they are given back as they are taken.
pub(crate) struct Merge {
    events: Chunks<EventRecord>,
    rest: BTreeMap<u32, Range<u32>>,
    /// The time and the device of the next event of each device.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
}

/// An event in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Merged {
    pub(crate) device: u32,
    /// The event's place.
    pub(crate) place: u32,
    /// The latest time that the device had come to.
    pub(crate) reached_us: u64,
    pub(crate) event: EventRecord,
}

impl Merge {
    pub(crate) fn new(events: Chunks<EventRecord>, devices: &BTreeMap<u32, Device>) -> Self {
        let rest = devices.iter().map(|(&device, state)| (device, state.events.clone())).collect();
        let mut merge = Self { events, rest, heads: BinaryHeap::new() };
        for &device in devices.keys() {
            merge.line_up(device, 0);
        }
        merge
    }

    /// Puts the next event of a device that has come to `reached` among the heads.
    fn line_up(&mut self, device: u32, reached: u64) {
        let next = self.rest.get(&device).filter(|rest| !rest.is_empty()).map(|rest| rest.start as usize);
        if let Some(event) = next.and_then(|next| self.events.get(next)) {
            let time = if event.time_us == UNRECORDED { reached } else { event.time_us.max(reached) };
            self.heads.push(Reverse((time, device)));
        }
    }
}

impl Iterator for Merge {
    type Item = Merged;

    fn next(&mut self) -> Option<Merged> {
        let Reverse((reached_us, device)) = self.heads.pop()?;
        let place = self.rest.get_mut(&device)?.next()?;
        let event = self.events.take(place as usize)?;
        self.line_up(device, reached_us);
        Some(Merged { device, place, reached_us, event })
    }
}
