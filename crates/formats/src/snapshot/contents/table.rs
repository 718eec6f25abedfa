//! Values kept once each and known by their place, and stacks likewise: what millions of events share.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use rustc_hash::FxHashMap;

/// Distinct values in the order in which they first appear.
#[derive(Debug)]
pub(crate) struct Table<T> {
    items: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Table<T> {
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        *self.places.entry(item).or_insert_with(|| {
            self.items.push(item);
            self.items.len() as u32 - 1
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn get(&self, place: u32) -> T {
        self.items[place as usize]
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Forgets what is needed only to add more.
    pub(crate) fn close(&mut self) {
        self.places = HashMap::new();
    }
}

/// Distinct lists of frames.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<u32>,
    ends: Vec<usize>,
    /// By a hash that no input can foresee; of stacks whose hashes collide, the later ones are at the next keys.
    places: FxHashMap<u64, u32>,
    hasher: RandomState,
}

impl Stacks {
    pub(crate) fn intern(&mut self, frames: &[u32]) -> u32 {
        let mut key = self.hasher.hash_one(frames);
        while let Some(&place) = self.places.get(&key) {
            if self.get(place) == frames {
                return place;
            }
            key = key.wrapping_add(1);
        }
        let place = self.ends.len() as u32;
        self.frames.extend_from_slice(frames);
        self.ends.push(self.frames.len());
        self.places.insert(key, place);
        place
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The frames of all of them together.
    pub(crate) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The frames of a stack, the innermost first.
    pub(crate) fn get(&self, place: u32) -> &[u32] {
        let place = place as usize;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.frames[start..self.ends[place]]
    }

    /// Forgets what is needed only to add more.
    pub(crate) fn close(&mut self) {
        self.places = FxHashMap::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_share_a_place() {
        let mut stacks = Stacks::default();
        let places = [&[1, 2][..], &[1], &[1, 2], &[]].map(|frames| stacks.intern(frames));
        assert_eq!(places, [0, 1, 0, 2]);
        assert_eq!((stacks.get(0), stacks.get(1), stacks.get(2)), (&[1, 2][..], &[1][..], &[][..]));
    }
}
