//! The plan of a step: a slot per allocation, in order, and what a [`Cursor`](crate::Cursor) needs to follow a lane of
//! it.

use std::fmt;

use lowtide_core::{Align, Bytes, StreamId};

use crate::Lane;

/// How many allocations in a row tell a place in a lane.
pub(crate) const GRAM: usize = 4;

/// What two steps share that have the same allocations: a stable hash of the sizes and alignments, in order within each
/// lane, whatever the lanes are called and however they interleave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Signature(pub u64);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Signature {
    /// The signature of `slots`.
    pub fn of(slots: &[Slot]) -> Self {
        let mut lanes: Vec<(Lane, u64)> = Vec::new();
        for slot in slots {
            let place = lanes.iter().position(|&(lane, _)| lane == slot.lane).unwrap_or_else(|| {
                lanes.push((slot.lane, 0));
                lanes.len() - 1
            });
            lanes[place].1 = slot.key().mixed_into(lanes[place].1);
        }
        let mut hashes: Vec<u64> = lanes.into_iter().map(|(_, hash)| hash).collect();
        hashes.sort_unstable();
        Self(hashes.into_iter().fold(slots.len() as u64, mix))
    }
}

/// What an allocation is known by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub bytes: Bytes,
    pub align: Align,
}

impl Key {
    /// `hash` with this behind it.
    pub fn mixed_into(self, hash: u64) -> u64 {
        mix(mix(hash, self.bytes.get()), self.align.get())
    }
}

/// `hash` with `value` behind it; the same everywhere and in every version.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// The hash of a few allocations in a row.
pub(crate) fn gram(keys: impl IntoIterator<Item = Key>) -> u64 {
    keys.into_iter().fold(0, |hash, key| key.mixed_into(hash))
}

/// One allocation of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Who asks.
    pub lane: Lane,
    /// For how much; the plan keeps this much rounded up to the alignment.
    pub bytes: Bytes,
    /// With which alignment.
    pub align: Align,
    /// Where it goes, from the start of the plan's memory; nowhere, where it is to be placed online because it may
    /// outlive the step.
    pub offset: Option<Bytes>,
}

impl Slot {
    pub(crate) fn key(&self) -> Key {
        Key { bytes: self.bytes, align: self.align }
    }
}

/// Where the allocations of a step go.
#[derive(Clone, Debug)]
pub struct StepPlan {
    /// What it is a plan for.
    pub signature: Signature,
    /// The allocations in order; within a lane the order is certain.
    pub slots: Vec<Slot>,
    /// The bytes that all offsets together need.
    pub height: Bytes,
    /// No plan for the step needs less.
    pub bound: Bytes,
    /// Whether no plan can be lower.
    pub proved: bool,
    /// How many steps in a row it is for.
    pub steps: u32,
    pub(crate) lanes: Vec<LaneList>,
    /// Which slots' blocks live into the next step and are replaced there.
    pub(crate) renewed: Vec<bool>,
}

/// The slots of one lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneList {
    pub lane: Lane,
    /// Each allocation's key and slot.
    pub entries: Vec<(Key, u32)>,
    /// The hash of every [`GRAM`] allocations in a row and the place of the last of them, sorted.
    pub grams: Vec<(u64, u32)>,
}

impl StepPlan {
    /// A plan of `slots`; offsets are taken as they are.
    pub fn new(slots: Vec<Slot>, height: Bytes, bound: Bytes, proved: bool) -> Self {
        let mut lanes: Vec<LaneList> = Vec::new();
        for (index, slot) in slots.iter().enumerate() {
            let place = lanes.iter().position(|list| list.lane == slot.lane).unwrap_or_else(|| {
                lanes.push(LaneList { lane: slot.lane, entries: Vec::new(), grams: Vec::new() });
                lanes.len() - 1
            });
            lanes[place].entries.push((slot.key(), index as u32));
        }
        for list in &mut lanes {
            let hash = |(first, window): (usize, &[(Key, u32)])| {
                (gram(window.iter().map(|entry| entry.0)), (first + GRAM - 1) as u32)
            };
            list.grams = list.entries.windows(GRAM).enumerate().map(hash).collect();
            list.grams.sort_unstable();
        }
        let renewed = vec![false; slots.len()];
        Self { signature: Signature::of(&slots), slots, height, bound, proved, steps: 1, lanes, renewed }
    }

    /// The same plan with every place `floor` higher.
    pub(crate) fn raised(&self, floor: Bytes) -> Self {
        let mut raised = self.clone();
        for offset in raised.slots.iter_mut().filter_map(|slot| slot.offset.as_mut()) {
            *offset += floor;
        }
        (raised.height, raised.bound) = (self.height + floor, self.bound + floor);
        raised
    }

    /// Whether a slot's block lives into the next step and is replaced there.
    pub fn is_renewed(&self, slot: u32) -> bool {
        self.renewed.get(slot as usize).copied().unwrap_or(false)
    }

    /// The streams of the lanes, each once.
    pub fn streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<StreamId> = self.lanes().map(|lane| lane.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// The lanes, in the order in which they first allocate.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        self.lanes.iter().map(|list| list.lane)
    }
}
