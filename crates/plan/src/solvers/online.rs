//! The first plan: bodies in the order in which they begin, each in the hole it fills best. Sorts
//! once and takes a logarithmic step per body, so that even a million buffers have a plan at once.

use std::ops::Range;

use lowtide_core::ranges::FreeRuns;

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

/// Free runs below the top; everything from the top up is free.
struct Holes {
    free: FreeRuns,
    top: u64,
}

impl Holes {
    fn new(floor: u64) -> Self {
        Self { free: FreeRuns::new(), top: floor }
    }

    fn take(&mut self, size: u64, align: u64) -> u64 {
        let fits = |hole: &Range<u64>| align_up(hole.start, align) + size <= hole.end;
        let found = self.free.tightest(size).find(fits);
        if let Some(hole) = found {
            let offset = align_up(hole.start, align);
            self.free.carve(hole, offset..offset + size);
            return offset;
        }
        // The hole that ends at the top, if there is one, can grow.
        let last = self.free.ending_at(self.top);
        let offset = align_up(last.as_ref().map_or(self.top, |hole| hole.start), align);
        match last.filter(|_| offset < self.top) {
            Some(hole) => self.free.carve(hole, offset..self.top),
            None => self.free.insert(self.top..offset),
        }
        self.top = offset + size;
        offset
    }

    fn give(&mut self, offset: u64, size: u64) {
        self.free.insert(offset..offset + size);
    }
}
