//! A step that recurs, put together from every recording of it: which allocations it has, in which order as far as that
//! is certain, and when each is freed at the latest. What a recording adds is merged in; what no longer comes is left
//! out of the [`Shape`] that is planned, and forgotten after some time.

use lowtide_core::Bytes;
use rustc_hash::FxHashMap;

use crate::Lane;
use crate::patterns::align::{common, least_apart, pair_lanes};
use crate::patterns::matching::{Ends, Matching, anchors};
use crate::patterns::shape::{Life, Shape, ShapeSlot};
use crate::plan::step_plan::Key;
use crate::steps::recording::{End, Recording, Track};

/// Two steps are the same pattern when this share of their allocations is, in parts of a hundred.
const ALIKE: usize = 90;

/// A slot that was not seen in so many recordings is forgotten.
const FORGOTTEN: u32 = 8;

/// Lanes of two patterns with more differences than this are not worth comparing.
const MOST_APART: usize = 1024;

/// When a slot is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// In its own step, as far as was seen.
    Within,
    /// Not in its own step; no more is known.
    Open,
    /// In the next step, before this place.
    Wraps(u32),
    /// Freed in the next step at a place behind its own, so that two of it are alive for a while.
    Straddles(u32),
    /// Later.
    Persistent,
}

#[derive(Clone, Copy, Debug)]
struct PatternSlot {
    lane: u32,
    key: Key,
    fate: Fate,
    /// The last place before which it was seen freed in its own step, of any lane and of its own.
    end: u32,
    lane_end: u32,
    /// See [`ShapeSlot::joined`].
    joined: bool,
    /// In how many recordings it was.
    seen: u32,
    /// In how many of the last it was not.
    unseen: u32,
}

impl PatternSlot {
    /// Whether it is expected: it was in the last recording, or in more than one and not too long ago.
    fn is_expected(&self) -> bool {
        self.unseen == 0 || self.seen > 1 && self.unseen < FORGOTTEN
    }
}

/// A step that recurs.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    lanes: Vec<Lane>,
    slots: Vec<PatternSlot>,
}

impl Pattern {
    /// The pattern that `recording` is by itself, and the place of each of its allocations.
    pub fn new(recording: &Recording) -> (Self, Vec<u32>) {
        let mut pattern = Self::default();
        let nothing =
            Matching { lanes: vec![None; recording.lanes.len()], slots: vec![None; recording.allocs.len()], count: 0 };
        let places = pattern.merge(recording, &nothing);
        (pattern, places)
    }

    /// The pattern that was planned as `shape`.
    pub fn restored(lanes: Vec<Lane>, shape: &Shape) -> Self {
        let count = shape.slots.len() as u32;
        let restore = |slot: &ShapeSlot| {
            let (fate, end, lane_end) = match slot.life {
                Life::Online => (Fate::Open, count, count),
                Life::Within { end, lane_end } => (Fate::Within, end, lane_end),
                Life::Wraps { end } => (Fate::Wraps(end), count, count),
                Life::Straddles { end } => (Fate::Straddles(end), count, count),
            };
            PatternSlot { lane: slot.lane, key: slot.key, fate, end, lane_end, joined: slot.joined, seen: 2, unseen: 0 }
        };
        Self { lanes, slots: shape.slots.iter().map(restore).collect() }
    }

    /// The names that lanes had when they were last seen.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// How many allocations are expected.
    pub fn length(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_expected()).count()
    }

    /// How much is expected of which nobody knows how long it lives: it was alive when the last recording ended.
    pub fn unknown(&self) -> Bytes {
        let open = self.slots.iter().filter(|slot| slot.is_expected() && slot.fate == Fate::Open);
        open.map(|slot| slot.key.bytes).sum()
    }

    fn tracks(&self) -> Vec<Track> {
        let mut tracks = vec![Track::default(); self.lanes.len()];
        for (place, slot) in self.slots.iter().enumerate() {
            tracks[slot.lane as usize].push(slot.key, place);
        }
        tracks
    }

    /// Whether a recording with these sizes, so many of each, can be like it: told much faster than whether it is.
    pub fn can_match(&self, sizes: &FxHashMap<Key, u32>) -> bool {
        let mut left = FxHashMap::default();
        let shared = self.slots.iter().filter(|slot| {
            let left = left.entry(slot.key).or_insert_with(|| sizes.get(&slot.key).copied().unwrap_or(0));
            let any = *left > 0;
            *left -= u32::from(any);
            any
        });
        shared.count() * 100 >= self.length() * ALIKE
    }

    /// Finds `recording` in it, lane by lane.
    pub fn matching(&self, recording: &Recording, tracks: &[Track]) -> Matching {
        let own = self.tracks();
        let lanes = pair_lanes((&self.lanes, &own), (&recording.lanes, tracks));
        let mut slots = vec![None; recording.allocs.len()];
        let mut count = 0;
        for (track, other) in tracks.iter().zip(&lanes) {
            let Some(own) = other.map(|lane| &own[lane]) else { continue };
            let most = own.keys.len().max(track.keys.len()) * (100 - ALIKE) / 50 + 2 * FORGOTTEN as usize;
            for (mine, theirs) in common(&own.keys, &track.keys, most) {
                slots[track.places[theirs as usize] as usize] = Some(own.places[mine as usize]);
                count += 1;
            }
        }
        Matching { lanes, slots, count }
    }

    /// Whether a recording that matches like this is one of this pattern.
    pub fn is_like(&self, matching: &Matching) -> bool {
        matching.count * 100 >= self.length().max(matching.slots.len()) * ALIKE
    }

    /// Whether a recording that matches like this has nearly all of this pattern and may have more.
    pub fn is_within(&self, matching: &Matching) -> bool {
        matching.count * 100 >= self.length() * ALIKE && matching.count > 0
    }

    /// Gives lanes the names that they have in `recording`, and says whether any is new.
    pub fn rename(&mut self, recording: &Recording, matching: &Matching) -> bool {
        let mut renamed = false;
        for (&name, lane) in recording.lanes.iter().zip(&matching.lanes) {
            let Some(lane) = lane.filter(|&lane| self.lanes[lane] != name) else { continue };
            renamed = true;
            // No two lanes may have one name.
            match self.lanes.iter().position(|&known| known == name) {
                Some(other) => self.lanes.swap(lane, other),
                None => self.lanes[lane] = name,
            }
        }
        renamed
    }

    /// Takes a recording in, and says where each of its allocations now is.
    pub fn merge(&mut self, recording: &Recording, matching: &Matching) -> Vec<u32> {
        let lanes = self.take_lanes(recording, matching);
        let mut places = self.insert(recording, matching, &lanes);
        for slot in &mut self.slots {
            slot.unseen += 1;
        }
        for &place in &places {
            let slot = &mut self.slots[place as usize];
            slot.unseen = 0;
            slot.seen = slot.seen.saturating_add(1);
        }
        self.join(&places);
        self.take_ends(recording, &places);
        let kept = self.keep(|slot| slot.unseen < FORGOTTEN);
        for place in &mut places {
            *place = kept[*place as usize];
        }
        places
    }

    /// The pattern's lane of each lane of the recording, new ones added.
    fn take_lanes(&mut self, recording: &Recording, matching: &Matching) -> Vec<u32> {
        self.rename(recording, matching);
        let add = |(&name, &lane): (&Lane, &Option<usize>)| {
            lane.unwrap_or_else(|| {
                self.lanes.push(name);
                self.lanes.len() - 1
            }) as u32
        };
        recording.lanes.iter().zip(&matching.lanes).map(add).collect()
    }

    /// Puts allocations that have no slot behind the one that came before them, if the order of their lane allows, and
    /// says where every allocation is.
    fn insert(&mut self, recording: &Recording, matching: &Matching, lanes: &[u32]) -> Vec<u32> {
        let behind = anchors(recording, matching);
        let mut added: Vec<(u32, u32)> = Vec::new();
        for (index, anchor) in behind.iter().enumerate() {
            if matching.slots[index].is_none() {
                added.push((*anchor, index as u32));
            }
        }
        if added.is_empty() {
            return matching.slots.iter().map(|slot| slot.unwrap_or(0)).collect();
        }
        added.sort_unstable();
        let mut places: Vec<u32> = vec![0; recording.allocs.len()];
        let mut moved: Vec<u32> = Vec::with_capacity(self.slots.len() + 1);
        let mut merged: Vec<PatternSlot> = Vec::with_capacity(self.slots.len() + added.len());
        let mut added = added.into_iter().peekable();
        // An anchor of n means behind n slots.
        for before in 0..=self.slots.len() {
            let joined = before > 0 && before < self.slots.len() && self.slots[before - 1].joined;
            while let Some((_, index)) = added.next_if(|&(anchor, _)| anchor as usize == before) {
                let alloc = recording.allocs[index as usize];
                places[index as usize] = merged.len() as u32;
                let lane = lanes[alloc.lane as usize];
                merged.push(PatternSlot {
                    lane,
                    key: alloc.key,
                    fate: Fate::Within,
                    end: 0,
                    lane_end: 0,
                    joined,
                    seen: 0,
                    unseen: 0,
                });
            }
            moved.push(merged.len() as u32);
            merged.extend(self.slots.get(before));
        }
        self.slots = merged;
        for slot in self.slots.iter_mut().filter(|slot| slot.seen > 0) {
            slot.moved(&moved);
        }
        for (place, slot) in places.iter_mut().zip(&matching.slots) {
            if let Some(slot) = slot {
                *place = moved[*slot as usize];
            }
        }
        places
    }

    /// Marks the borders across which allocations at `places`, in the order in which they came, are out of order.
    fn join(&mut self, places: &[u32]) {
        let mut crossings = vec![0_i32; self.slots.len() + 1];
        let mut furthest = 0;
        for &place in places {
            if place < furthest {
                crossings[place as usize] += 1;
                crossings[furthest as usize] -= 1;
            }
            furthest = furthest.max(place);
        }
        let mut open = 0;
        for (slot, crossing) in self.slots.iter_mut().zip(crossings) {
            open += crossing;
            slot.joined |= open > 0;
        }
    }

    /// Takes from a recording, whose allocations are at `places`, when blocks were freed.
    fn take_ends(&mut self, recording: &Recording, places: &[u32]) {
        let ends = Ends::new(recording, places, self.slots.len());
        let count = self.slots.len() as u32;
        for (index, alloc) in recording.allocs.iter().enumerate() {
            let slot = &mut self.slots[places[index] as usize];
            match alloc.end {
                End::Within(before) => {
                    slot.end = slot.end.max(ends.any[before as usize]);
                    slot.lane_end = slot.lane_end.max(ends.of_lane(alloc.lane, before).unwrap_or(count));
                    if slot.fate == Fate::Open {
                        slot.fate = Fate::Within;
                    }
                }
                End::Alive | End::Next(_) if slot.fate == Fate::Within => slot.fate = Fate::Open,
                End::Alive | End::Next(_) => {}
            }
        }
    }

    /// Takes from the step `before` what became in `recording`, the step after it whose allocations are at `places`, of
    /// blocks that were alive between them. Where that step was of another pattern, only what fills a gap in what is
    /// known.
    pub fn take_wraps(&mut self, before: &Recording, recording: &Recording, places: &[u32], same: bool) {
        if before.allocs.iter().all(|alloc| matches!(alloc.end, End::Within(_))) {
            return;
        }
        let (earlier, later) = (before.tracks(), recording.tracks());
        let lanes = pair_lanes((&before.lanes, &earlier), (&recording.lanes, &later));
        let ends = Ends::new(recording, places, self.slots.len());
        for (track, other) in later.iter().zip(lanes) {
            let Some(other) = other.map(|lane| &earlier[lane]) else { continue };
            let most = if same || least_apart(&other.keys, &track.keys) <= MOST_APART { usize::MAX } else { 0 };
            for (old, new) in common(&other.keys, &track.keys, most) {
                let index = track.places[new as usize];
                let slot = &mut self.slots[places[index as usize] as usize];
                match (before.allocs[other.places[old as usize] as usize].end, slot.fate) {
                    (_, Fate::Within) | (End::Within(_), _) => {}
                    (End::Next(end), Fate::Wraps(known)) if end <= index => {
                        slot.fate = Fate::Wraps(known.max(ends.any[end as usize]));
                    }
                    (End::Next(end), Fate::Open) if end <= index => slot.fate = Fate::Wraps(ends.any[end as usize]),
                    (End::Next(end), Fate::Straddles(known)) => {
                        slot.fate = Fate::Straddles(known.max(ends.any[end as usize]));
                    }
                    (End::Next(end), Fate::Open | Fate::Wraps(_)) => {
                        slot.fate = Fate::Straddles(ends.any[end as usize].max(places[index as usize] + 1));
                    }
                    (End::Next(end), Fate::Persistent) if end <= index => {}
                    _ if same => slot.fate = Fate::Persistent,
                    _ => {}
                }
            }
        }
    }

    /// Drops slots and says where each place is then: where the next one that is kept is.
    fn keep(&mut self, keep: impl Fn(&PatternSlot) -> bool) -> Vec<u32> {
        let (slots, moved) = kept(&self.slots, keep);
        self.slots = slots;
        moved
    }

    /// Where each slot is among those that are expected, if it is one.
    #[cfg(test)]
    pub fn expected_places(&self) -> Vec<Option<u32>> {
        let mut count = 0..;
        self.slots.iter().map(|slot| slot.is_expected().then(|| count.next()).flatten()).collect()
    }

    /// What is to be planned: the slots that are expected.
    pub fn shape(&self) -> Shape {
        let (slots, _) = kept(&self.slots, PatternSlot::is_expected);
        let shaped = |slot: &PatternSlot| {
            let life = match slot.fate {
                Fate::Within => Life::Within { end: slot.end, lane_end: slot.lane_end },
                Fate::Wraps(end) => Life::Wraps { end },
                Fate::Straddles(end) => Life::Straddles { end },
                Fate::Open | Fate::Persistent => Life::Online,
            };
            ShapeSlot { lane: slot.lane, key: slot.key, life, joined: slot.joined }
        };
        Shape { slots: slots.iter().map(shaped).collect() }
    }
}

impl PatternSlot {
    /// Follows places to where they are now.
    fn moved(&mut self, places: &[u32]) {
        self.end = places[self.end as usize];
        self.lane_end = places[self.lane_end as usize];
        if let Fate::Wraps(end) | Fate::Straddles(end) = &mut self.fate {
            *end = places[*end as usize];
        }
    }
}

/// The slots that are kept, and where each place is then. A border is certain where any of the borders was that it
/// replaces.
fn kept(slots: &[PatternSlot], keep: impl Fn(&PatternSlot) -> bool) -> (Vec<PatternSlot>, Vec<u32>) {
    let mut moved = Vec::with_capacity(slots.len() + 1);
    let mut left: Vec<PatternSlot> = Vec::with_capacity(slots.len());
    for slot in slots {
        moved.push(left.len() as u32);
        if keep(slot) {
            left.push(*slot);
        } else if let Some(last) = left.last_mut() {
            last.joined &= slot.joined;
        }
    }
    moved.push(left.len() as u32);
    if let Some(last) = left.last_mut() {
        last.joined = false;
    }
    for slot in &mut left {
        slot.moved(&moved);
    }
    (left, moved)
}
