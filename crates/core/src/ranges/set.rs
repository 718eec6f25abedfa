//! A set of numbers as ranges that neither touch nor overlap.

use std::collections::BTreeMap;
use std::ops::Range;

use super::common;

/// A set of numbers below [`u64::MAX`], kept as ranges. Neighbours are joined as they come in.
///
/// Every operation takes time that grows with the logarithm of the number of ranges, and with the ranges it meets.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeSet {
    /// Ends by starts.
    ends: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Nothing.
    pub const fn new() -> Self {
        Self { ends: BTreeMap::new() }
    }

    /// Adds a range; how much of it was not there.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (mut joined, mut known) = (range.clone(), 0);
        while let Some((&start, &end)) = self.ends.range(..=joined.end).next_back()
            && end >= joined.start
        {
            known += common(&(start..end), &range);
            joined = joined.start.min(start)..joined.end.max(end);
            self.ends.remove(&start);
        }
        self.ends.insert(joined.start, joined.end);
        range.end - range.start - known
    }

    /// Takes a range out; how much of it was there.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
            && !range.is_empty()
        {
            removed += common(&(start..end), &range);
            self.ends.remove(&start);
            if start < range.start {
                self.ends.insert(start, range.start);
            }
            if range.end < end {
                self.ends.insert(range.end, end);
            }
        }
        removed
    }

    /// Takes `length` numbers out of the lowest range that has so many, from its start on; where that is.
    pub fn take_lowest(&mut self, length: u64) -> Option<u64> {
        let start = self.iter().find(|range| range.end - range.start >= length)?.start;
        self.remove(start..start + length);
        Some(start)
    }

    /// The range that `at` lies in.
    pub fn containing(&self, at: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ends.range(..=at).next_back()?;
        (at < end).then_some(start..end)
    }

    /// Whether `at` is in it.
    pub fn contains(&self, at: u64) -> bool {
        self.containing(at).is_some()
    }

    /// Whether all of a range is in it.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.containing(range.start).is_some_and(|found| range.end <= found.end)
    }

    /// The range that ends right before `end`.
    pub fn ending_at(&self, end: u64) -> Option<Range<u64>> {
        let (&start, &own) = self.ends.range(..end).next_back()?;
        (own == end).then_some(start..end)
    }

    /// The ranges that have something in common with `range`, whole, from the lowest on.
    pub fn overlapping(&self, range: &Range<u64>) -> impl DoubleEndedIterator<Item = Range<u64>> + use<'_> {
        let first = self.containing(range.start).map_or(range.start, |found| found.start);
        let end = if range.is_empty() { first } else { range.end };
        self.ends.range(first..end).map(|(&start, &end)| start..end)
    }

    /// The parts of `range` that are not in it, from the lowest on.
    pub fn gaps(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let (mut from, end) = (range.start, range.end);
        let last = std::iter::once(end..end);
        let between = self.overlapping(range).chain(last).map(move |found| {
            let gap = from..found.start.min(end);
            from = found.end;
            gap
        });
        between.filter(|gap| !gap.is_empty())
    }

    /// The ranges from the lowest on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// How many numbers are in it.
    pub fn total(&self) -> u64 {
        self.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl Extend<Range<u64>> for RangeSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}
