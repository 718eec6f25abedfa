//! The first plan: bodies in the order in which they begin, each in the hole it fills best. Takes time
//! proportional to the input, so that even a million buffers have a plan at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::prepare::strip::{Strip, align_up};

/// Places every unpinned body above whatever is pinned, as a box around all its pieces.
pub(crate) fn place(strip: &Strip) -> Vec<u64> {
    let floor = strip.floor.max(strip.pinned_height());
    let free = |&body: &usize| strip.bodies[body].pin.is_none() && !strip.pieces(body).is_empty();
    let mut events: Vec<(u32, bool, u32)> = Vec::with_capacity(2 * strip.len());
    for body in (0..strip.len()).filter(free) {
        let hull = strip.hull(body);
        events.push((hull.start, true, body as u32));
        events.push((hull.end, false, body as u32));
    }
    // At one border, what ends makes room before anything begins; of those that begin, the largest first.
    events.sort_unstable_by_key(|&(section, begins, body)| {
        (section, begins, std::cmp::Reverse(strip.bodies[body as usize].size), body)
    });
    let mut offsets: Vec<u64> =
        strip.bodies.iter().map(|body| body.pin.unwrap_or_else(|| align_up(strip.floor, body.align))).collect();
    let mut holes = Holes::new(floor);
    for (_, begins, body) in events {
        let shape = &strip.bodies[body as usize];
        if begins {
            offsets[body as usize] = holes.take(shape.size, shape.align);
        } else {
            holes.give(offsets[body as usize], shape.size);
        }
    }
    offsets
}

/// Free ranges below the top, by address and by size; everything from the top up is free.
struct Holes {
    by_start: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    top: u64,
}

impl Holes {
    fn new(floor: u64) -> Self {
        Self { by_start: BTreeMap::new(), by_size: BTreeSet::new(), top: floor }
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.by_start.insert(start, end);
            self.by_size.insert((end - start, start));
        }
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let end = self.by_start.remove(&start)?;
        self.by_size.remove(&(end - start, start));
        Some(end)
    }

    fn take(&mut self, size: u64, align: u64) -> u64 {
        let fits = |&&(length, start): &&(u64, u64)| align_up(start, align) + size <= start + length;
        let found = self.by_size.range((size, 0)..).find(fits).copied();
        if let Some((_, start)) = found
            && let Some(end) = self.remove(start)
        {
            let offset = align_up(start, align);
            self.insert(start, offset);
            self.insert(offset + size, end);
            return offset;
        }
        // The hole that ends at the top, if there is one, can grow.
        let last = self.by_start.last_key_value().filter(|&(_, &end)| end == self.top).map(|(&start, _)| start);
        let start = last.unwrap_or(self.top);
        self.remove(start);
        let offset = align_up(start, align);
        self.insert(start, offset);
        self.top = offset + size;
        offset
    }

    fn give(&mut self, offset: u64, size: u64) {
        let (mut start, mut end) = (offset, offset + size);
        if let Some(after) = self.remove(end) {
            end = after;
        }
        let before = self.by_start.range(..start).next_back().filter(|&(_, &end)| end == start).map(|(&from, _)| from);
        if let Some(from) = before {
            self.remove(from);
            start = from;
        }
        self.insert(start, end);
    }
}
