//! Something known of ranges of addresses that do not overlap.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for some ranges.
#[derive(Clone, Debug)]
pub(super) struct Ranges<T> {
    /// By their starts: the end, and the value.
    entries: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<T: Clone> Ranges<T> {
    /// Gives a range a value, whatever was known of it before.
    pub(super) fn set(&mut self, range: &Range<u64>, value: T) {
        self.clear(range);
        if !range.is_empty() {
            self.entries.insert(range.start, (range.end, value));
        }
    }

    /// Forgets what is known of a range.
    pub(super) fn clear(&mut self, range: &Range<u64>) {
        let met: Vec<u64> = self.overlapping(range).map(|(met, _)| met.start).collect();
        for start in met {
            let Some((end, value)) = self.entries.remove(&start) else { continue };
            if start < range.start {
                self.entries.insert(start, (range.start, value.clone()));
            }
            if end > range.end {
                self.entries.insert(range.end, (end, value));
            }
        }
    }

    /// What is known of parts of a range.
    pub(super) fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, &T)> + use<'_, T> {
        let before = self.entries.range(..range.start).next_back();
        let first = before.filter(|&(_, &(end, _))| end > range.start).map_or(range.start, |(&start, _)| start);
        let last = if range.is_empty() { first } else { range.end };
        self.entries.range(first..last).map(|(&start, (end, value))| (start..*end, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ranges: &Ranges<char>) -> Vec<(Range<u64>, char)> {
        ranges.overlapping(&(0..u64::MAX)).map(|(range, &value)| (range, value)).collect()
    }

    #[test]
    fn a_range_that_is_set_cuts_what_it_overlaps() {
        let mut ranges = Ranges::default();
        ranges.set(&(0..10), 'a');
        ranges.set(&(4..6), 'b');
        ranges.set(&(8..12), 'c');
        assert_eq!(all(&ranges), [(0..4, 'a'), (4..6, 'b'), (6..8, 'a'), (8..12, 'c')]);
        ranges.clear(&(3..9));
        assert_eq!(all(&ranges), [(0..3, 'a'), (9..12, 'c')]);
    }

    #[test]
    fn what_only_touches_does_not_overlap() {
        let mut ranges = Ranges::default();
        ranges.set(&(4..8), 'a');
        assert_eq!(ranges.overlapping(&(0..4)).count() + ranges.overlapping(&(8..9)).count(), 0);
        assert_eq!(ranges.overlapping(&(7..9)).count() + ranges.overlapping(&(5..6)).count(), 2);
        assert_eq!(ranges.overlapping(&(5..5)).count(), 0);
    }
}
