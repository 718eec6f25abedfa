//! Where the order of lanes is relied on: the borders between sections of a [`Shape`].

use lowtide_core::Bytes;

use crate::patterns::shape::{Life, Shape};

/// The coarsest way to cut: one section for all, so that every lane is planned by itself.
pub(crate) const COARSEST: u32 = 3;

/// The part of the most bytes that may reach over a border of a race, by coarseness.
const PARTS: [u64; 2] = [4, 16];

/// Places between two borders.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Section {
    pub start: usize,
    pub end: usize,
}

impl Section {
    /// Whether lanes race in it.
    pub fn is_race(self) -> bool {
        self.end - self.start > 1
    }
}

/// The section of each place. With a coarseness of zero every border is kept that is certain; with more, of those at
/// the ends of races, only the ones that little reaches over; with the coarsest, none.
pub(crate) fn sections(shape: &Shape, coarseness: u32) -> Vec<Section> {
    let mut joined: Vec<bool> = shape.slots.iter().map(|slot| slot.joined).collect();
    match (coarseness as usize).checked_sub(1).map(|step| PARTS.get(step)) {
        None => {}
        Some(Some(part)) => widen(&mut joined, &crossing(shape), *part),
        Some(None) => joined.fill(true),
    }
    let mut sections = Vec::with_capacity(joined.len());
    for run in joined.chunk_by(|joined, _| *joined) {
        let start = sections.len();
        let section = Section { start, end: start + run.len() };
        sections.resize(section.end, section);
    }
    sections
}

/// The bytes that live on both sides of the border behind each place, of what lives within the step.
fn crossing(shape: &Shape) -> Vec<u64> {
    let mut changes = vec![0_u64; shape.slots.len() + 1];
    for (place, slot) in shape.slots.iter().enumerate() {
        if let Life::Within { end, .. } = slot.life
            && slot.key.bytes <= Bytes::new(u64::MAX / 2)
        {
            let last = end as usize - 1;
            changes[place] = changes[place].wrapping_add(slot.key.bytes.get());
            changes[last] = changes[last].wrapping_sub(slot.key.bytes.get());
        }
    }
    let mut live = 0_u64;
    let count = shape.slots.len();
    let sum = |change: &u64| {
        live = live.wrapping_add(*change);
        live
    };
    changes[..count].iter().map(sum).collect()
}

/// Makes races reach on both sides to the next border that at most a `part` of the most bytes cross.
fn widen(joined: &mut [bool], crossing: &[u64], part: u64) {
    let most = crossing.iter().max().map_or(0, |most| most / part);
    for place in 1..joined.len() {
        joined[place] |= joined[place - 1] && crossing[place] > most;
    }
    for place in (1..joined.len()).rev() {
        joined[place - 1] |= joined[place] && crossing[place - 1] > most;
    }
}
