//! What was there before the first event. The history of a snapshot is a ring: blocks that are freed in it without
//! having begun in it, or that stand in the segments without any event, are older; so are segments.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use lowtide_core::Bytes;
use lowtide_core::ranges::{RangeMap, RangeSet};

use super::occupancy::{Missing, Occupancy, Occupant};
use crate::snapshot::contents::words::Word;
use crate::snapshot::contents::{ABSENT, Contents, EventRecord, SegmentRecord};
use crate::snapshot::note::Note;

/// The largest address that a snapshot can state.
const LAST_ADDRESS: u64 = i64::MAX as u64;

/// One device of the snapshot.
#[derive(Debug, Default)]
pub(crate) struct Device {
    /// Its events.
    pub(crate) events: Range<u32>,
    /// Its segments, by their places, in the order of their addresses.
    segments: Vec<u32>,
    /// What it released while events were recorded.
    released: RangeSet,
    pub(crate) ranges: Vec<RangeBefore>,
    pub(crate) blocks: Vec<BlockBefore>,
    /// Whether its events tell when the device finished with blocks; recordings may leave that out.
    pub(crate) has_completions: bool,
    /// Whether some block of it certainly ends: an event says so, or its address is given out again.
    has_ends: bool,
    /// How often an address was given out again although nobody had let go of what was there.
    lost_frees: u64,
    /// The events that let go of blocks with which the device has not finished at the end.
    pub(crate) pending: HashSet<u32>,
}

/// Whether the trace of these devices will have rows that say when a device finished with a block.
pub(crate) fn has_done_rows(devices: &BTreeMap<u32, Device>) -> bool {
    let has_completions = devices.values().any(|device| device.has_completions);
    has_completions && devices.values().any(|device| device.has_ends || !device.has_completions)
}

/// Memory that was reserved before the first event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RangeBefore {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) stack: u32,
}

/// A block that began before the first event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockBefore {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) stack: u32,
    /// Whether the program had let go of it already.
    pub(crate) is_freed: bool,
}

/// The devices by their numbers, with what was there before their first events.
pub(crate) fn find(contents: &Contents, notes: &mut Vec<Note>) -> BTreeMap<u32, Device> {
    let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
    let traces = contents.root.devices.start as usize..contents.root.devices.end as usize;
    for (device, events) in contents.traces[traces].iter().enumerate().filter(|(_, events)| !events.is_empty()) {
        devices.entry(device as u32).or_default().events = events.clone();
    }
    for segment in contents.root.segments.clone() {
        devices.entry(contents.segments[segment as usize].device).or_default().segments.push(segment);
    }
    let mut differences = Differences::default();
    for device in devices.values_mut() {
        device.segments.sort_by_key(|&segment| contents.segments[segment as usize].address);
        device.find_ranges(contents, &mut differences);
        device.find_blocks(contents, &mut differences);
    }
    differences.tell(&devices, notes);
    devices
}

impl Device {
    /// How many rows will stand for it; more where only other devices tell when they finish with blocks.
    pub(crate) fn rows(&self) -> u64 {
        let before = self.ranges.len() + 2 * self.blocks.len();
        (before + self.events.len()) as u64 + 2 * self.lost_frees
    }

    fn segments<'a>(&'a self, contents: &'a Contents) -> impl Iterator<Item = &'a SegmentRecord> {
        self.segments.iter().map(|&segment| &contents.segments[segment as usize])
    }

    fn events<'a>(&self, contents: &'a Contents) -> impl DoubleEndedIterator<Item = EventRecord> + use<'a> {
        self.events.clone().filter_map(|event| contents.events.get(event as usize))
    }

    /// The pool that an address belongs to, as far as the segments tell: not where the address was released meanwhile.
    pub(crate) fn pool(&self, contents: &Contents, address: u64) -> u32 {
        let after = self.segments.partition_point(|&segment| contents.segments[segment as usize].address <= address);
        let last = after.checked_sub(1).map(|last| &contents.segments[self.segments[last] as usize]);
        let segment = last.filter(|segment| address - segment.address < segment.bytes);
        segment.filter(|_| !self.released.contains(address)).map_or(ABSENT, |segment| segment.pool)
    }

    /// Goes back from the segments at the end through what was reserved and released.
    fn find_ranges(&mut self, contents: &Contents, differences: &mut Differences) {
        let mut reserved = RangeMap::new();
        for &SegmentRecord { address, bytes, stream, stack, .. } in self.segments(contents) {
            differences.odd_segments += u64::from(reserved.insert(address..address + bytes, (stream, stack)) > 0);
        }
        for EventRecord { action, address, bytes, stream, .. } in self.events(contents).rev() {
            let range = || address..address + bytes;
            let fits = match Word::at(action) {
                Some(Word::SegmentFree | Word::SegmentUnmap) => {
                    self.released.insert(range());
                    reserved.insert(range(), (stream, ABSENT)) == 0
                }
                Some(Word::SegmentAlloc | Word::SegmentMap) => reserved.remove(range()) == bytes,
                _ => true,
            };
            differences.odd_segments += u64::from(!fits);
        }
        let before = |(range, &(stream, stack)): (Range<u64>, _)| RangeBefore {
            address: range.start,
            bytes: range.end - range.start,
            stream,
            stack,
        };
        self.ranges = reserved.iter().map(before).collect();
    }

    /// Goes through the events, then compares what they leave alive with the segments.
    fn find_blocks(&mut self, contents: &Contents, differences: &mut Differences) {
        let mut walk = Walk::default();
        self.blocks.extend(self.events(contents).filter_map(|event| walk.older_block(event)));
        for block in &mut self.blocks {
            block.is_freed &= !walk.lacks_requests;
        }
        let at_the_end = self.blocks_at_the_end(contents);
        let known: HashSet<u64> = at_the_end.iter().map(|block| block.address).collect();
        self.find_pending(contents, &walk, &at_the_end);
        self.blocks.extend(at_the_end.into_iter().filter(|block| walk.is_older(block, differences)));
        self.blocks.sort_by_key(|block| block.address);
        self.has_completions = walk.has_completions(&known);
        self.lost_frees = walk.lost_frees;
        self.has_ends = walk.has_completion || walk.lost_frees > 0;
        walk.compare(&known, self.has_completions, differences);
    }

    /// Goes back through the events to those that let go of what the segments have as pending.
    fn find_pending(&mut self, contents: &Contents, walk: &Walk, at_the_end: &[BlockBefore]) {
        let is_pending = |block: &&BlockBefore| {
            block.is_freed && matches!(walk.occupancy.at(block.address), Some(Occupant::Freed(_)))
        };
        let mut addresses: HashSet<u64> = at_the_end.iter().filter(is_pending).map(|block| block.address).collect();
        let mut lets_go = |event: &u32| {
            let event = contents.events.get(*event as usize);
            let event = event.filter(|event| event.action == Word::FreeRequested.place());
            event.is_some_and(|event| addresses.remove(&event.address))
        };
        self.pending = self.events.clone().rev().filter(&mut lets_go).collect();
    }

    /// The blocks of the segments that are in use.
    fn blocks_at_the_end(&self, contents: &Contents) -> Vec<BlockBefore> {
        let mut blocks = Vec::new();
        for segment in self.segments(contents) {
            let mut next = segment.address;
            for block in segment.blocks.clone().filter_map(|block| contents.blocks.get(block as usize)) {
                let address = block.address.unwrap_or(next);
                next = (address + block.bytes).min(LAST_ADDRESS);
                let is_freed = match Word::at(block.state) {
                    Some(Word::ActiveAllocated) => false,
                    Some(Word::ActivePendingFree | Word::ActiveAwaitingFree) => true,
                    _ => continue,
                };
                let (bytes, stream, stack) = (block.requested, segment.stream, block.stack);
                blocks.push(BlockBefore { address, bytes, stream, stack, is_freed });
            }
        }
        blocks
    }
}

/// The way through the events of a device, with the bytes of what stands at each address.
#[derive(Default)]
struct Walk {
    occupancy: Occupancy<u64>,
    /// Whether the device finished with a block that nobody had let go of: such events were left out of the recording.
    lacks_requests: bool,
    has_completion: bool,
    /// Whether an address was given out again although the device had not finished with what was there.
    lacks_completion: bool,
    /// How often an address was given out again although nobody had let go of what was there.
    lost_frees: u64,
}

impl Walk {
    /// The block that an event speaks of, where it began before all events.
    fn older_block(&mut self, event: EventRecord) -> Option<BlockBefore> {
        let EventRecord { action, address, bytes, stream, .. } = event;
        let is_freed = match Word::at(action)? {
            Word::Alloc => {
                let held = self.occupancy.begin(address, bytes);
                self.lacks_completion |= matches!(held, Some(Occupant::Freed(_)));
                self.lost_frees += u64::from(matches!(held, Some(Occupant::Live(_))));
                return None;
            }
            Word::FreeRequested if self.occupancy.free(address) == Err(Missing::Untouched) => {
                self.occupancy.put(address, Occupant::Freed(bytes));
                false
            }
            Word::FreeCompleted => {
                self.has_completion = true;
                let ended = self.occupancy.end(address);
                self.lacks_requests |= ended.is_ok_and(|ended| ended.was_live);
                if ended != Err(Missing::Untouched) {
                    return None;
                }
                self.occupancy.put(address, Occupant::Gone);
                true
            }
            _ => return None,
        };
        Some(BlockBefore { address, bytes, stream, stack: ABSENT, is_freed })
    }

    /// Whether no event spoke of a block that the segments have; otherwise it is compared with what the events left.
    fn is_older(&mut self, block: &BlockBefore, differences: &mut Differences) -> bool {
        let is_same = match self.occupancy.at(block.address) {
            None => {
                self.occupancy.put(block.address, Occupant::Live(block.bytes));
                return true;
            }
            Some(Occupant::Live(bytes)) => bytes == block.bytes && (!block.is_freed || self.lacks_requests),
            Some(Occupant::Freed(bytes)) => bytes == block.bytes && block.is_freed,
            Some(Occupant::Gone) => false,
        };
        if !is_same {
            differences.not_in_events.add(block.bytes);
        }
        false
    }

    /// What the events leave at addresses where the segments have nothing.
    fn left<'a>(&'a self, known: &'a HashSet<u64>) -> impl Iterator<Item = Occupant<u64>> + 'a {
        self.occupancy.iter().filter(|(address, _)| !known.contains(address)).map(|(_, held)| held)
    }

    /// Whether the events tell when the device finished with blocks: not where none does and some should.
    fn has_completions(&self, known: &HashSet<u64>) -> bool {
        let is_missing = self.lacks_completion || self.left(known).any(|held| matches!(held, Occupant::Freed(_)));
        self.has_completion || !is_missing
    }

    fn compare(&self, known: &HashSet<u64>, has_completions: bool, differences: &mut Differences) {
        for held in self.left(known) {
            match held {
                Occupant::Live(bytes) => differences.not_in_segments.add(bytes),
                Occupant::Freed(bytes) if has_completions => differences.not_in_segments.add(bytes),
                Occupant::Freed(_) | Occupant::Gone => {}
            }
        }
    }
}

/// How many blocks, and how large together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Amount {
    count: u64,
    bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Both, where there is any block.
    pub(crate) fn some(self) -> Option<(u64, Bytes)> {
        (self.count > 0).then_some((self.count, Bytes::new(self.bytes)))
    }
}

/// What events and segments disagree about.
#[derive(Default)]
struct Differences {
    odd_segments: u64,
    not_in_segments: Amount,
    not_in_events: Amount,
}

impl Differences {
    fn tell(&self, devices: &BTreeMap<u32, Device>, notes: &mut Vec<Note>) {
        let mut before = Amount::default();
        devices.values().flat_map(|device| &device.blocks).for_each(|block| before.add(block.bytes));
        if devices.values().all(|device| device.events.is_empty()) {
            notes.push(Note::NoHistory);
        } else {
            notes.extend(before.some().map(|(count, bytes)| Note::BlocksBefore { count, bytes }));
        }
        notes.extend(self.not_in_segments.some().map(|(count, bytes)| Note::NotInSegments { count, bytes }));
        notes.extend(self.not_in_events.some().map(|(count, bytes)| Note::NotInEvents { count, bytes }));
        if self.odd_segments > 0 {
            notes.push(Note::OddSegments { count: self.odd_segments });
        }
    }
}
