//! Values for ranges that do not overlap.

use std::collections::BTreeMap;
use std::ops::Range;

use super::common;

/// A value for each of some ranges. Neighbours stay apart, also those of one value.
///
/// Every operation takes time that grows with the logarithm of the number of ranges, and with the ranges it meets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeMap<V> {
    /// Ends and values by starts.
    entries: BTreeMap<u64, (u64, V)>,
}

impl<V> Default for RangeMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> RangeMap<V> {
    /// Nothing.
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// The range that `at` lies in, with its value.
    pub fn containing(&self, at: u64) -> Option<(Range<u64>, &V)> {
        let (&start, &(end, ref value)) = self.entries.range(..=at).next_back()?;
        (at < end).then_some((start..end, value))
    }

    /// Whether `at` has a value.
    pub fn contains(&self, at: u64) -> bool {
        self.containing(at).is_some()
    }

    /// The ranges that have something in common with `range`, whole, from the lowest on.
    pub fn overlapping(&self, range: &Range<u64>) -> impl DoubleEndedIterator<Item = (Range<u64>, &V)> + use<'_, V> {
        let first = self.containing(range.start).map_or(range.start, |(found, _)| found.start);
        let end = if range.is_empty() { first } else { range.end };
        self.entries.range(first..end).map(|(&start, (end, value))| (start..*end, value))
    }

    /// The ranges from the lowest on, with their values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Range<u64>, &V)> + ExactSizeIterator {
        self.entries.iter().map(|(&start, (end, value))| (start..*end, value))
    }

    /// Whether nothing has a value.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<V: Clone> RangeMap<V> {
    /// Gives a range a value, whatever it had before; how much of it had one.
    pub fn insert(&mut self, range: Range<u64>, value: V) -> u64 {
        let replaced = self.remove(range.clone());
        if !range.is_empty() {
            self.entries.insert(range.start, (range.end, value));
        }
        replaced
    }

    /// Takes the values of a range away; how much of it had one.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some((&start, &(end, _))) = self.entries.range(..range.end).next_back()
            && end > range.start
            && !range.is_empty()
            && let Some((_, value)) = self.entries.remove(&start)
        {
            removed += common(&(start..end), &range);
            if start < range.start {
                self.entries.insert(start, (range.start, value.clone()));
            }
            if range.end < end {
                self.entries.insert(range.end, (end, value));
            }
        }
        removed
    }
}
