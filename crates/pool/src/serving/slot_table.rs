//! Serves a plan without the arena's lock, under that of the lane alone: one bit per slot says whether it is in use, and a block gets its slot if none of those
//! that share addresses with it is.
//!
//! A thread sets the slot's bit first and looks at the others afterwards, so of two threads that want the same memory at
//! least one sees the other; both may, and then both are placed online. Whoever closes the table clears `open`, waits for
//! those who are taking a slot, and then takes all bits away at once: of a giver and a closer, the one that clears a
//! slot's bit has the block.

#[cfg(test)]
mod fixtures;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock, PoisonError};

use lowtide_learn::{Cursor, Lane, Served, Slot, StepPlan};
use rustc_hash::FxHashMap;

use crate::pool::Request;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{Mutex, MutexGuard};

/// A word of bits on a line of its own, so that lanes do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU64);

/// One lane's way through the plan.
#[derive(Debug)]
#[repr(align(128))]
struct Follower {
    inner: Mutex<Following>,
}

#[derive(Debug)]
struct Following {
    cursor: Cursor,
    served: Served,
}

/// What came of asking for a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The block is at this offset.
    At(u64),
    /// The plan says to place it online.
    Online,
    /// The plan does not have it, or its place is taken.
    Missed,
}

/// What a table knows of a plan before it is served: made beside the program, because it takes time in proportion to the pairs
/// of slots that share addresses.
#[derive(Debug)]
pub(crate) struct SlotLayout {
    plan: Arc<StepPlan>,
    /// The lanes, apart from what changes about them.
    lanes: Vec<Lane>,
    /// The bit of each slot: slots of a lane share words with each other and with no one else.
    bit_of: Vec<u32>,
    words: usize,
    /// For each slot the words in which slots are that share addresses with it, and which of their bits.
    rivals: Vec<Box<[(u32, u64)]>>,
    /// The number of each offset where slots begin, that of each slot, and how many there are.
    begins: FxHashMap<u64, u32>,
    begin_of: Vec<u32>,
    places: u32,
    /// The slots by their offsets, and how far each of them and those before it reach.
    by_offset: Vec<(u64, u32)>,
    reach: Vec<u64>,
}

impl SlotLayout {
    /// The layout of `plan`.
    pub(crate) fn new(plan: Arc<StepPlan>) -> Self {
        let lanes: Vec<Lane> = plan.lanes().collect();
        let (bit_of, words) = bits(&plan, &lanes);
        let rivals = rivals(&plan, &bit_of);
        let (begins, begin_of, places) = begins(&plan, &lanes);
        let offset = |(slot, place): (&Slot, u32)| Some((slot.offset?.get(), place));
        let mut by_offset: Vec<(u64, u32)> = plan.slots.iter().zip(0..).filter_map(offset).collect();
        by_offset.sort_unstable();
        let mut furthest = 0;
        let reach = |&(offset, slot): &(u64, u32)| {
            furthest = furthest.max(offset + plan.slots[slot as usize].bytes.get());
            furthest
        };
        let reach = by_offset.iter().map(reach).collect();
        Self { plan, lanes, bit_of, words, rivals, begins, begin_of, places, by_offset, reach }
    }

    /// The slots that have something in common with a range.
    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = usize> + '_ {
        let behind = self.by_offset.partition_point(|&(offset, _)| offset < end);
        let reaching = (0..behind).rev().take_while(move |&place| self.reach[place] > start);
        let slots = reaching.map(|place| self.by_offset[place]);
        let ends = move |&(offset, slot): &(u64, u32)| offset + self.plan.slots[slot as usize].bytes.get() > start;
        slots.filter(ends).map(|(_, slot)| slot as usize)
    }

    pub(crate) fn plan(&self) -> &Arc<StepPlan> {
        &self.plan
    }
}

/// The slots of a plan that is served, and which of them are in use.
#[derive(Debug)]
pub(crate) struct SlotTable {
    layout: Arc<SlotLayout>,
    live: Vec<Word>,
    /// Which slot lies, or lay last, at each offset where slots begin.
    current: Vec<AtomicU32>,
    /// How many blocks that are not of this plan lie on a slot.
    blocked: Vec<AtomicU32>,
    /// For each lane, how far it has come.
    followers: Vec<Follower>,
    /// Allocations of lanes that the plan does not have.
    strays: AtomicU64,
    /// Read by takers under their lane's lock.
    open: AtomicBool,
    /// The bits that were set when it was closed.
    left: OnceLock<Box<[u64]>>,
    /// Which of the steps that the plan is for is open.
    turn: AtomicU32,
}

const NONE: u32 = u32::MAX;

impl SlotTable {
    /// A table for `plan`, nothing of which is in use.
    pub(crate) fn new(plan: Arc<StepPlan>) -> Self {
        Self::of(Arc::new(SlotLayout::new(plan)))
    }

    /// A table for the plan of `layout`, nothing of which is in use.
    pub(crate) fn of(layout: Arc<SlotLayout>) -> Self {
        let plan = &layout.plan;
        let follower = |lane| {
            let mut cursor = Cursor::new(plan, lane);
            cursor.restart_in(plan, 0);
            let following = Following { cursor, served: Served::default() };
            Follower { inner: Mutex::new(following) }
        };
        Self {
            live: (0..layout.words).map(|_| Word::default()).collect(),
            current: (0..layout.places).map(|_| AtomicU32::new(NONE)).collect(),
            blocked: plan.slots.iter().map(|_| AtomicU32::new(0)).collect(),
            followers: layout.lanes.iter().copied().map(follower).collect(),
            strays: AtomicU64::new(0),
            open: AtomicBool::new(true),
            left: OnceLock::new(),
            turn: AtomicU32::new(0),
            layout,
        }
    }

    /// How many pairs of slots share addresses: what a table takes, in time and in memory.
    pub(crate) fn pairs_of_rivals(plan: &StepPlan) -> u64 {
        let mut ranges: Vec<(u64, u64)> =
            plan.slots.iter().filter_map(|slot| Some((slot.offset?.get(), slot.bytes.get()))).collect();
        ranges.sort_unstable();
        let (mut ends, mut pairs) = (BinaryHeap::new(), 0);
        for (start, bytes) in ranges {
            while ends.peek().is_some_and(|&Reverse(end)| end <= start) {
                ends.pop();
            }
            pairs += ends.len() as u64;
            ends.push(Reverse(start + bytes));
        }
        pairs
    }

    pub(crate) fn plan(&self) -> &Arc<StepPlan> {
        &self.layout.plan
    }

    /// Serves a request if its lane is one of the plan's and its place is free.
    pub(crate) fn take(&self, request: &Request) -> Found {
        let lane = Lane { thread: request.thread, stream: request.stream };
        let Some(place) = self.layout.lanes.iter().position(|&own| own == lane) else {
            self.strays.fetch_add(1, Relaxed);
            return Found::Missed;
        };
        let mut following = locked(&self.followers[place].inner);
        let found = match following.cursor.next(&self.layout.plan, request.bytes, request.align) {
            None => Found::Missed,
            Some(slot) => match self.layout.plan.slots[slot as usize].offset {
                None => Found::Online,
                Some(offset) if self.claim(slot) => Found::At(offset.get()),
                Some(_) => Found::Missed,
            },
        };
        match found {
            Found::Missed => following.served.misses += 1,
            Found::At(_) | Found::Online => following.served.hits += 1,
        }
        found
    }

    /// Sets a slot's bit if the slot is free. The caller has the lock of the slot's lane.
    fn claim(&self, slot: u32) -> bool {
        if !self.open.load(SeqCst) {
            return false;
        }
        let (word, bit) = place(self.layout.bit_of[slot as usize]);
        if self.live[word].0.fetch_or(bit, SeqCst) & bit != 0 {
            return false;
        }
        let free = self.blocked[slot as usize].load(SeqCst) == 0
            && self.layout.rivals[slot as usize]
                .iter()
                .all(|&(word, bits)| self.live[word as usize].0.load(SeqCst) & bits == 0);
        if free {
            self.current[self.layout.begin_of[slot as usize] as usize].store(slot, Relaxed);
        } else {
            self.live[word].0.fetch_and(!bit, SeqCst);
        }
        free
    }

    /// The slot that is in use at `offset`.
    pub(crate) fn at(&self, offset: u64) -> Option<&Slot> {
        self.slot_at(offset).filter(|&slot| self.is_live(slot)).map(|slot| &self.layout.plan.slots[slot as usize])
    }

    /// Takes a block back; says whether one was in use at `offset` that is not the closer's.
    pub(crate) fn give(&self, offset: u64) -> bool {
        let Some(slot) = self.slot_at(offset) else { return false };
        let (word, bit) = place(self.layout.bit_of[slot as usize]);
        self.live[word].0.fetch_and(!bit, SeqCst) & bit != 0
    }

    /// Whether a block was in use at `offset` when the table was closed.
    pub(crate) fn has_left(&self, offset: u64) -> bool {
        self.left.get().is_some() && self.at(offset).is_some()
    }

    /// Whether blocks of the plan begin at `offset`.
    pub(crate) fn knows(&self, offset: u64) -> bool {
        self.layout.begins.contains_key(&offset)
    }

    fn slot_at(&self, offset: u64) -> Option<u32> {
        let slot = self.current[*self.layout.begins.get(&offset)? as usize].load(Relaxed);
        (slot != NONE).then_some(slot)
    }

    /// Whether a slot is in use, or was when the table was closed.
    fn is_live(&self, slot: u32) -> bool {
        let (word, bit) = place(self.layout.bit_of[slot as usize]);
        let bits = self.left.get().map_or_else(|| self.live[word].0.load(SeqCst), |left| left[word]);
        bits & bit != 0
    }

    /// Keeps slots that share addresses with a foreign block from being served, or no longer.
    pub(crate) fn block(&self, start: u64, end: u64, blocked: bool) {
        for slot in self.layout.overlapping(start, end) {
            if blocked {
                self.blocked[slot].fetch_add(1, SeqCst);
            } else {
                self.blocked[slot].fetch_sub(1, SeqCst);
            }
        }
    }

    /// What is in use, or was when the table was closed: the slots, in order.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.layout.plan.slots.iter().enumerate();
        slots
            .filter(|(index, _)| self.layout.bit_of[*index] != NONE && self.is_live(*index as u32))
            .map(|(_, slot)| slot)
    }

    /// Serves no more. What is [in use](Self::in_use) is the caller's from now on, and cannot be given back here.
    pub(crate) fn close(&self) {
        self.pause();
        self.left.get_or_init(|| self.live.iter().map(|word| word.0.swap(0, SeqCst)).collect());
    }

    /// Serves nothing until it is told to go on: when this returns, nobody is about to take a slot.
    pub(crate) fn pause(&self) {
        self.open.store(false, SeqCst);
        for follower in &self.followers {
            drop(locked(&follower.inner));
        }
    }

    /// Serves again.
    pub(crate) fn resume(&self) {
        self.open.store(true, SeqCst);
    }

    /// The same as [`close`](Self::close) of a table that [was paused](Self::pause), in a process in which no other thread is
    /// left: locks that others had stay locked.
    pub(crate) fn close_alone(&self) {
        self.left.get_or_init(|| self.live.iter().map(|word| word.0.swap(0, SeqCst)).collect());
    }

    /// How the step that is open goes.
    pub(crate) fn served(&self) -> Served {
        let strays = Served { hits: 0, misses: self.strays.load(Relaxed) };
        self.followers.iter().fold(strays, |all, follower| {
            let served = locked(&follower.inner).served;
            Served { hits: all.hits + served.hits, misses: all.misses + served.misses }
        })
    }

    /// Begins a new step and says how the last one went.
    pub(crate) fn restart(&self) -> Served {
        let mut all = Served { hits: 0, misses: self.strays.swap(0, Relaxed) };
        let turn = (self.turn.load(Relaxed) + 1) % self.layout.plan.steps.max(1);
        self.turn.store(turn, Relaxed);
        for follower in &self.followers {
            let mut following = locked(&follower.inner);
            following.cursor.restart_in(&self.layout.plan, turn);
            let served = std::mem::take(&mut following.served);
            all.hits += served.hits;
            all.misses += served.misses;
        }
        all
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn place(bit: u32) -> (usize, u64) {
    (bit as usize / 64, 1 << (bit % 64))
}

/// Gives every planned slot a bit. Each lane begins a new word.
fn bits(plan: &StepPlan, lanes: &[Lane]) -> (Vec<u32>, usize) {
    let mut bit_of = vec![NONE; plan.slots.len()];
    let mut next = 0_u32;
    for &lane in lanes {
        for (slot, bit) in plan.slots.iter().zip(&mut bit_of).filter(|(slot, _)| slot.lane == lane) {
            if slot.offset.is_some() {
                *bit = next;
                next += 1;
            }
        }
        next = next.next_multiple_of(64);
    }
    (bit_of, next as usize / 64)
}

/// Numbers the offsets at which slots begin, and says which number each slot has and how many there are. Numbers of
/// offsets that different lanes use first are so far apart that lanes do not slow each other down.
fn begins(plan: &StepPlan, lanes: &[Lane]) -> (FxHashMap<u64, u32>, Vec<u32>, u32) {
    const APART: u32 = 32;
    let (mut begins, mut next) = (FxHashMap::default(), 0);
    let mut begin_of = vec![NONE; plan.slots.len()];
    for &lane in lanes {
        for (slot, begin) in plan.slots.iter().zip(&mut begin_of).filter(|(slot, _)| slot.lane == lane) {
            let Some(offset) = slot.offset else { continue };
            *begin = *begins.entry(offset.get()).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        next = (next + APART).next_multiple_of(APART);
    }
    (begins, begin_of, next)
}

/// For each slot, who shares addresses with it.
fn rivals(plan: &StepPlan, bit_of: &[u32]) -> Vec<Box<[(u32, u64)]>> {
    let mut sorted: Vec<(u64, u64, u32)> = plan
        .slots
        .iter()
        .enumerate()
        .filter_map(|(index, slot)| {
            let offset = slot.offset?.get();
            Some((offset, offset + slot.bytes.get(), index as u32))
        })
        .collect();
    sorted.sort_unstable();
    let mut masks: Vec<FxHashMap<u32, u64>> = vec![FxHashMap::default(); plan.slots.len()];
    let mut alive: Vec<(u64, u32)> = Vec::new();
    for (start, end, slot) in sorted {
        alive.retain(|&(other_end, _)| other_end > start);
        for &(_, other) in &alive {
            for (one, two) in [(slot, other), (other, slot)] {
                let (word, bit) = place(bit_of[two as usize]);
                *masks[one as usize].entry(word as u32).or_default() |= bit;
            }
        }
        alive.push((end, slot));
    }
    masks.into_iter().map(|mask| mask.into_iter().collect()).collect()
}
