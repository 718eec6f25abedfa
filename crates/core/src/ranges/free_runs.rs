//! Free memory as runs of addresses, found by place and by length.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Runs that neither touch nor overlap, by their starts and by their lengths.
#[derive(Clone, Default, Debug)]
pub struct FreeRuns {
    ends: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
}

impl FreeRuns {
    /// No run.
    pub const fn new() -> Self {
        Self { ends: BTreeMap::new(), by_length: BTreeSet::new() }
    }

    /// Adds a range that is in no run, and joins it with its neighbours.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        if let Some(after) = self.ends.get(&end).copied() {
            self.forget(end..after);
            end = after;
        }
        if let Some((&before, &own)) = self.ends.range(..start).next_back() {
            debug_assert!(own <= start, "a range is put in twice");
            if own == start {
                self.forget(before..own);
                start = before;
            }
        }
        self.keep(start..end);
    }

    /// Takes out a range that lies in one run.
    pub fn remove(&mut self, range: Range<u64>) {
        let Some(run) = self.containing(range.start) else {
            debug_assert!(false, "a range is taken out that is in no run");
            return;
        };
        self.carve(run, range);
    }

    /// Takes `part` out of `run`, which is one of the runs: [`remove`](Self::remove) for those who have the run already.
    pub fn carve(&mut self, run: Range<u64>, part: Range<u64>) {
        debug_assert!(run.start <= part.start && part.end <= run.end, "a range is taken out beyond its run");
        self.forget(run.clone());
        self.keep(run.start..part.start);
        self.keep(part.end..run.end);
    }

    /// The run that `at` lies in.
    pub fn containing(&self, at: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ends.range(..=at).next_back()?;
        (at < end).then_some(start..end)
    }

    /// The run that ends right before `end`.
    pub fn ending_at(&self, end: u64) -> Option<Range<u64>> {
        let (&start, &own) = self.ends.range(..end).next_back()?;
        (own == end).then_some(start..end)
    }

    /// Runs that are at least so long, the shortest first, of equals the lowest.
    pub fn tightest(&self, length: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.by_length.range((length, 0)..).map(|&(length, start)| start..start + length)
    }

    /// The runs, the longest first, of equals the highest.
    pub fn longest(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.by_length.iter().rev().map(|&(length, start)| start..start + length)
    }

    /// The runs that have something in common with `range`, whole, from the lowest on.
    pub fn overlapping(&self, range: &Range<u64>) -> impl DoubleEndedIterator<Item = Range<u64>> + use<'_> {
        let first = self.containing(range.start).map_or(range.start, |run| run.start);
        let end = if range.is_empty() { first } else { range.end };
        self.ends.range(first..end).map(|(&start, &end)| start..end)
    }

    /// The runs from the lowest on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn keep(&mut self, run: Range<u64>) {
        if !run.is_empty() {
            self.ends.insert(run.start, run.end);
            self.by_length.insert((run.end - run.start, run.start));
        }
    }

    fn forget(&mut self, run: Range<u64>) {
        self.ends.remove(&run.start);
        self.by_length.remove(&(run.end - run.start, run.start));
    }
}
