//! What there is to say when memory runs out: how much is missing, who holds the rest, and what would help.

use std::collections::BTreeMap;
use std::fmt;

use lowtide_core::Bytes;
use lowtide_memory::Source as _;

use super::device::Device;
use crate::arena::LiveBlock;

/// How many groups of blocks are named.
const NAMED: usize = 8;

/// How many cells the map has.
const CELLS: usize = 64;

/// A request that a device refused, and the state it was in.
#[derive(Clone, PartialEq, Debug)]
pub struct Shortage {
    /// The device's number.
    pub device: u32,
    /// What was asked for.
    pub asked: Bytes,
    /// What the program holds.
    pub live: Bytes,
    /// What is freed, and still used by queued work of other streams.
    pub pending: Bytes,
    /// What is taken of the device.
    pub reserved: Bytes,
    /// The limit that is set, where one is.
    pub limit: Option<Bytes>,
    /// The memory that the device has, where that is known.
    pub capacity: Option<Bytes>,
    /// The blocks in use by size: how many of each, the most bytes first.
    pub groups: Vec<(Bytes, u64)>,
    /// What part of each stretch of the addresses in use is in use, lowest first.
    pub map: Vec<f64>,
}

impl Shortage {
    pub(super) fn new(device: &Device, asked: Bytes) -> Self {
        let blocks = device.arena.blocks();
        let stats = device.stats();
        Self {
            device: device.number,
            asked,
            live: stats.requested,
            pending: blocks.iter().filter(|block| block.pending).map(|block| block.bytes).sum(),
            reserved: stats.reserved,
            limit: device.source.limit(),
            capacity: device.source.describe().capacity,
            groups: groups(&blocks),
            map: map(&blocks),
        }
    }

    /// What is reserved and holds no block.
    pub fn unused(&self) -> Bytes {
        self.reserved.saturating_sub(self.live + self.pending)
    }

    /// What the device has that this process has not taken: other processes hold it, or nobody could map it.
    fn elsewhere(&self) -> Option<Bytes> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.reserved))
    }
}

fn groups(blocks: &[LiveBlock]) -> Vec<(Bytes, u64)> {
    let mut counts: BTreeMap<Bytes, u64> = BTreeMap::new();
    for block in blocks {
        *counts.entry(block.bytes).or_default() += 1;
    }
    let mut groups: Vec<(Bytes, u64)> = counts.into_iter().collect();
    groups.sort_by_key(|&(bytes, count)| std::cmp::Reverse(bytes.get().saturating_mul(count)));
    groups
}

/// Stretches without a block for more than this are left out of the map: nothing need be mapped there.
const GAP: u64 = 1 << 30;

fn map(blocks: &[LiveBlock]) -> Vec<f64> {
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(blocks.len());
    let (mut place, mut end) = (0u64, None);
    for block in blocks {
        let gap = end.map_or(0, |end: u64| block.address.0.saturating_sub(end));
        place += if gap > GAP { 0 } else { gap };
        spans.push((place, place + block.bytes.get()));
        place += block.bytes.get();
        end = Some(block.address.0 + block.bytes.get());
    }
    let cell = place.div_ceil(CELLS as u64).max(1);
    let mut cells = vec![0u64; place.div_ceil(cell) as usize];
    for (start, end) in spans {
        for index in start / cell..=(end.saturating_sub(1) / cell).max(start / cell) {
            let (from, to) = (index * cell, (index + 1) * cell);
            if let Some(filled) = cells.get_mut(index as usize) {
                *filled += end.min(to).saturating_sub(start.max(from));
            }
        }
    }
    cells.into_iter().map(|filled| filled as f64 / cell as f64).collect()
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory on device {}: no room for {} more", self.device, self.asked)?;
        write!(f, "\n  in use {}, reserved {}", self.live, self.reserved)?;
        if let Some(limit) = self.limit {
            write!(f, ", limit {limit}")?;
        }
        if let Some(capacity) = self.capacity {
            write!(f, ", the device has {capacity}")?;
        }
        write!(f, "\n  fragmentation: {} of what is reserved hold no block", self.unused())?;
        if self.pending > Bytes::ZERO {
            write!(f, "; {} are freed and still used by other streams", self.pending)?;
        }
        if !self.map.is_empty() {
            let shade = |&part: &f64| match part {
                part if part < 0.125 => ' ',
                part if part < 0.375 => '░',
                part if part < 0.625 => '▒',
                part if part < 0.875 => '▓',
                _ => '█',
            };
            write!(f, "\n  map of what is alive, by address: [{}]", self.map.iter().map(shade).collect::<String>())?;
        }
        for &(bytes, count) in self.groups.iter().take(NAMED) {
            let total = Bytes::new(bytes.get().saturating_mul(count));
            write!(f, "\n    {total} in {count} of {bytes}")?;
        }
        if self.groups.len() > NAMED {
            let rest = &self.groups[NAMED..];
            let total = rest.iter().map(|&(bytes, count)| bytes.get().saturating_mul(count)).sum();
            write!(f, "\n    {} in {} smaller groups", Bytes::new(total), rest.len())?;
        }
        self.remedies(f)
    }
}

impl Shortage {
    fn remedies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(limit) = self.limit {
            let needed = (self.live + self.pending).checked_add(self.asked).unwrap_or(self.asked);
            write!(f, "\nhint: a limit of {needed} would hold what is alive and this block; it is {limit}")?;
        } else if let Some(elsewhere) = self.elsewhere().filter(|&elsewhere| elsewhere > self.asked) {
            write!(f, "\nhint: {elsewhere} of the device are outside this process's reach: look for other processes")?;
        }
        write!(
            f,
            "\nhint: a smaller batch, or checkpointing, lowers what is alive; `lowtide record` shows who holds it"
        )
    }
}
