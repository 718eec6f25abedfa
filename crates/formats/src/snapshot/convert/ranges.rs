//! Sets of addresses that do not overlap, from which parts can be taken: what a device had reserved at some moment.

use std::collections::BTreeMap;

/// Ranges by their first address, each with what is to be known of it.
#[derive(Debug)]
pub(crate) struct Ranges<T> {
    /// The first address beyond each range, and what is known.
    by_start: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { by_start: BTreeMap::new() }
    }
}

impl<T: Copy> Ranges<T> {
    /// Adds a range; whether nothing of it was there.
    pub(crate) fn add(&mut self, address: u64, bytes: u64, known: T) -> bool {
        let was_free = self.cut(address, bytes) == 0;
        if bytes > 0 {
            self.by_start.insert(address, (address + bytes, known));
        }
        was_free
    }

    /// Removes a range; whether all of it was there.
    pub(crate) fn remove(&mut self, address: u64, bytes: u64) -> bool {
        self.cut(address, bytes) == bytes
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        self.by_start.range(..=address).next_back().is_some_and(|(_, &(end, _))| address < end)
    }

    /// First address, bytes, and what is known, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, T)> {
        self.by_start.iter().map(|(&start, &(end, known))| (start, end - start, known))
    }

    /// How many bytes of a range were there; they no longer are.
    fn cut(&mut self, address: u64, bytes: u64) -> u64 {
        let cut_end = address + bytes;
        let mut removed = 0;
        while let Some((&start, &(end, known))) = self.by_start.range(..cut_end).next_back()
            && end > address
        {
            self.by_start.remove(&start);
            removed += end.min(cut_end) - start.max(address);
            if end > cut_end {
                self.by_start.insert(cut_end, (end, known));
            }
            if start < address {
                self.by_start.insert(start, (address, known));
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ranges: &Ranges<char>) -> Vec<(u64, u64, char)> {
        ranges.iter().collect()
    }

    #[test]
    fn parts_are_taken_from_the_middle_and_across_neighbours() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(10, 10, 'a') && ranges.add(20, 10, 'b'));
        assert!(ranges.remove(12, 3));
        assert_eq!(shown(&ranges), [(10, 2, 'a'), (15, 5, 'a'), (20, 10, 'b')]);
        assert!(ranges.remove(18, 4));
        assert_eq!(shown(&ranges), [(10, 2, 'a'), (15, 3, 'a'), (22, 8, 'b')]);
        assert!(!ranges.remove(0, 100), "not all of it was there");
        assert_eq!(shown(&ranges), []);
    }

    #[test]
    fn what_is_added_over_others_replaces_them() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(0, 8, 'a'));
        assert!(!ranges.add(4, 8, 'b'));
        assert_eq!(shown(&ranges), [(0, 4, 'a'), (4, 8, 'b')]);
        assert!(ranges.contains(0) && ranges.contains(11) && !ranges.contains(12));
        assert!(ranges.add(50, 0, 'c') && !ranges.contains(50));
    }
}
