//! Free memory as runs of addresses, found by size and by place. Neighbours merge as they are put in.

use std::collections::{BTreeMap, BTreeSet};

/// Runs that neither touch nor overlap.
#[derive(Debug, Default)]
pub(crate) struct FreeRuns {
    by_start: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl FreeRuns {
    /// Adds a range that is in no run.
    pub(crate) fn insert(&mut self, mut start: u64, mut bytes: u64) {
        if bytes == 0 {
            return;
        }
        if let Some((&before, &length)) = self.by_start.range(..start).next_back() {
            debug_assert!(before + length <= start, "a range is put in twice");
            if before + length == start {
                self.forget(before, length);
                start = before;
                bytes += length;
            }
        }
        if let Some(&length) = self.by_start.get(&(start + bytes)) {
            self.forget(start + bytes, length);
            bytes += length;
        }
        self.keep(start, bytes);
    }

    /// Takes out a range that lies in one run.
    pub(crate) fn remove(&mut self, start: u64, bytes: u64) {
        let Some((run, length)) = self.around(start) else {
            debug_assert!(false, "a range is taken out that is in no run");
            return;
        };
        debug_assert!(start + bytes <= run + length, "a range is taken out beyond its run");
        self.forget(run, length);
        self.keep(run, start - run);
        self.keep(start + bytes, run + length - start - bytes);
    }

    /// Takes `bytes` out of the lowest run that is long enough.
    pub(crate) fn take_lowest(&mut self, bytes: u64) -> Option<u64> {
        let (start, _) = self.iter().find(|&(_, length)| length >= bytes)?;
        self.remove(start, bytes);
        Some(start)
    }

    /// The run that `at` lies in.
    pub(crate) fn around(&self, at: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.by_start.range(..=at).next_back()?;
        (at < start + length).then_some((start, length))
    }

    /// The run that ends right before `end`.
    pub(crate) fn ending_at(&self, end: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.by_start.range(..end).next_back()?;
        (start + length == end).then_some((start, length))
    }

    /// Runs of at least `bytes`, the smallest first.
    pub(crate) fn tightest(&self, bytes: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_size.range((bytes, 0)..).map(|&(length, start)| (start, length))
    }

    /// The runs, the longest first.
    pub(crate) fn longest(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_size.iter().rev().map(|&(length, start)| (start, length))
    }

    /// The runs that share addresses with a range, from the lowest on.
    pub(crate) fn over(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.by_start.range(..start).next_back().filter(move |(run, length)| **run + **length > start);
        before.into_iter().chain(self.by_start.range(start..end)).map(|(&run, &length)| (run, length))
    }

    /// The runs from the lowest address on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(&start, &length)| (start, length))
    }

    fn keep(&mut self, start: u64, bytes: u64) {
        if bytes > 0 {
            self.by_start.insert(start, bytes);
            self.by_size.insert((bytes, start));
        }
    }

    fn forget(&mut self, start: u64, bytes: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(bytes, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(runs: &FreeRuns) -> Vec<(u64, u64)> {
        runs.iter().collect()
    }

    #[test]
    fn neighbours_merge_on_both_sides() {
        let mut runs = FreeRuns::default();
        runs.insert(0, 10);
        runs.insert(20, 10);
        runs.insert(10, 10);
        assert_eq!(all(&runs), [(0, 30)]);
    }

    #[test]
    fn taking_from_the_middle_leaves_two_runs() {
        let mut runs = FreeRuns::default();
        runs.insert(0, 30);
        runs.remove(10, 5);
        assert_eq!(all(&runs), [(0, 10), (15, 15)]);
        assert_eq!(runs.tightest(11).next(), Some((15, 15)));
        assert_eq!(runs.around(12), None);
        assert_eq!(runs.ending_at(10), Some((0, 10)));
    }
}
