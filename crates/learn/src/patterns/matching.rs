//! Where the allocations of a recording are among the slots of a pattern, where new ones go, and where frees are.

use crate::steps::recording::{Recording, Track};

/// Which slots the allocations of a recording are.
#[derive(Debug)]
pub(crate) struct Matching {
    /// The lane of the pattern that each lane of the recording is, if any.
    pub lanes: Vec<Option<usize>>,
    /// The place of each allocation's slot, if it has one.
    pub slots: Vec<Option<u32>>,
    /// How many have one.
    pub count: usize,
}

/// Behind how many slots each allocation without a slot goes: behind what came before it in any lane where the next slot
/// of its own lane is not passed by that, else behind what came before it in its own lane.
pub(crate) fn anchors(recording: &Recording, matching: &Matching) -> Vec<u32> {
    let mut next = vec![u32::MAX; recording.lanes.len()];
    let mut limits = vec![u32::MAX; recording.allocs.len()];
    for (index, alloc) in recording.allocs.iter().enumerate().rev() {
        limits[index] = next[alloc.lane as usize];
        if let Some(slot) = matching.slots[index] {
            next[alloc.lane as usize] = slot;
        }
    }
    let mut behind = vec![0; recording.lanes.len()];
    let mut last = 0;
    let anchor = |(index, limit): (usize, u32)| {
        let lane = recording.allocs[index].lane as usize;
        last = match matching.slots[index] {
            Some(slot) => slot + 1,
            None if last.max(behind[lane]) <= limit => last.max(behind[lane]),
            None => behind[lane],
        };
        behind[lane] = last;
        last
    };
    limits.into_iter().enumerate().map(anchor).collect()
}

/// Where blocks end that are freed before an allocation.
pub(crate) struct Ends<'a> {
    /// For each allocation and the end of the step: a place behind all that came before it.
    pub any: Vec<u32>,
    tracks: Vec<Track>,
    places: &'a [u32],
}

impl<'a> Ends<'a> {
    /// Ends in a recording whose allocations are at `places` of `end` slots.
    pub fn new(recording: &Recording, places: &'a [u32], end: usize) -> Self {
        let mut any = Vec::with_capacity(places.len() + 1);
        let mut passed = 0;
        for &place in places {
            any.push(passed.max(place));
            passed = passed.max(place + 1);
        }
        any.push(end as u32);
        Self { any, tracks: recording.tracks(), places }
    }

    /// The place of the first allocation of `lane` that is not before allocation `before`.
    pub fn of_lane(&self, lane: u32, before: u32) -> Option<u32> {
        let track = &self.tracks[lane as usize].places;
        track.get(track.partition_point(|&index| index < before)).map(|&index| self.places[index as usize])
    }
}
