//! Free memory as runs of addresses, found by place and by length.

use std::ops::Range;

use super::sorted::{Entry, Position, Sorted};

/// A run, by its start.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
}

impl Run {
    fn range(self) -> Range<u64> {
        self.start..self.end
    }

    fn length(self) -> Length {
        Length(u128::from(self.end - self.start) << 64 | u128::from(self.start))
    }
}

impl Entry for Run {
    type Key = u64;

    fn key(&self) -> u64 {
        self.start
    }

    fn weight(&self) -> u64 {
        self.end - self.start
    }
}

/// A run, by its length and then by its start: both in one number.
#[derive(Clone, Copy, Debug)]
struct Length(u128);

impl Length {
    /// Before all runs that are so long.
    fn least(length: u64) -> u128 {
        u128::from(length) << 64
    }

    fn range(self) -> Range<u64> {
        let (length, start) = ((self.0 >> 64) as u64, self.0 as u64);
        start..start + length
    }
}

impl Entry for Length {
    type Key = u128;

    fn key(&self) -> u128 {
        self.0
    }
}

/// Runs that neither touch nor overlap, by their starts and by their lengths.
///
/// Operations take time that grows with the logarithm of the number of runs, with the runs that they yield, and with a few
/// hundredths of their number: runs are kept in chunks, all of which are moved or looked at now and then.
#[derive(Clone, Default, Debug)]
pub struct FreeRuns {
    runs: Sorted<Run>,
    lengths: Sorted<Length>,
}

impl FreeRuns {
    /// No run.
    pub const fn new() -> Self {
        Self { runs: Sorted::new(), lengths: Sorted::new() }
    }

    /// Adds a range that is in no run, and joins it with its neighbours.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { start, end } = range;
        let behind = self.runs.lower(start);
        let before = self.runs.before(behind);
        let lower = before.and_then(|at| self.runs.get(at));
        debug_assert!(lower.is_none_or(|lower| lower.end <= start), "a range is put in twice");
        let lower = lower.filter(|lower| lower.end == start);
        let upper = self.runs.get(behind).filter(|upper| upper.start == end);
        let joined = Run { start: lower.map_or(start, |run| run.start), end: upper.map_or(end, |run| run.end) };
        match (before.zip(lower), upper) {
            (Some((at, lower)), Some(upper)) => {
                self.lengths.remove(upper.length().0);
                self.lengths.replace(lower.length().0, joined.length());
                self.runs.replace_at(at, joined);
                self.runs.remove_at(behind);
            }
            (Some((at, lower)), None) => {
                self.lengths.replace(lower.length().0, joined.length());
                self.runs.replace_at(at, joined);
            }
            (None, Some(upper)) => {
                self.lengths.replace(upper.length().0, joined.length());
                self.runs.replace_at(behind, joined);
            }
            (None, None) => {
                self.lengths.insert(joined.length());
                self.runs.insert_at(behind, joined);
            }
        }
    }

    /// Takes out a range that lies in one run.
    pub fn remove(&mut self, range: Range<u64>) {
        let Some((at, run)) = self.find(range.start) else {
            debug_assert!(false, "a range is taken out that is in no run");
            return;
        };
        self.cut(at, run, &range);
    }

    /// Takes `part` out of `run`, which is one of the runs: [`remove`](Self::remove) for those who have the run already.
    pub fn carve(&mut self, run: Range<u64>, part: Range<u64>) {
        self.cut(self.runs.lower(run.start), Run { start: run.start, end: run.end }, &part);
    }

    /// The run that `at` lies in.
    pub fn containing(&self, at: u64) -> Option<Range<u64>> {
        self.find(at).map(|(_, run)| run.range())
    }

    /// The run that ends right before `end`.
    pub fn ending_at(&self, end: u64) -> Option<Range<u64>> {
        let before = self.runs.before(self.runs.lower(end))?;
        self.runs.get(before).filter(|run| run.end == end).map(Run::range)
    }

    /// Runs that are at least so long, the shortest first, of equals the lowest.
    pub fn tightest(&self, length: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.lengths.between(self.lengths.lower(Length::least(length)), self.lengths.end()).map(Length::range)
    }

    /// The lowest run that is at least so long.
    pub fn lowest(&self, length: u64) -> Option<Range<u64>> {
        self.runs.first_weighing(length).map(Run::range)
    }

    /// The runs, the longest first, of equals the highest.
    pub fn longest(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.lengths.iter().rev().map(Length::range)
    }

    /// The runs that have something in common with `range`, whole, from the lowest on.
    pub fn overlapping(&self, range: &Range<u64>) -> impl DoubleEndedIterator<Item = Range<u64>> + use<'_> {
        let first = self.find(range.start).map_or_else(|| self.runs.lower(range.start), |(at, _)| at);
        let end = if range.is_empty() { first } else { self.runs.lower(range.end) };
        self.runs.between(first, end).map(Run::range)
    }

    /// The runs from the lowest on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(Run::range)
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The run that an address lies in, and where it is.
    fn find(&self, address: u64) -> Option<(Position, Run)> {
        let at = self.runs.before(self.runs.upper(address))?;
        let run = self.runs.get(at).filter(|run| address < run.end)?;
        Some((at, run))
    }

    /// Takes `part` out of the run at a position.
    fn cut(&mut self, at: Position, run: Run, part: &Range<u64>) {
        debug_assert!(run.start <= part.start && part.end <= run.end, "a range is taken out beyond its run");
        let lower = Some(Run { start: run.start, end: part.start }).filter(|run| run.start < run.end);
        let upper = Some(Run { start: part.end, end: run.end }).filter(|run| run.start < run.end);
        match (lower, upper) {
            (None, None) => {
                self.lengths.remove(run.length().0);
                self.runs.remove_at(at);
            }
            (Some(rest), None) | (None, Some(rest)) => {
                self.lengths.replace(run.length().0, rest.length());
                self.runs.replace_at(at, rest);
            }
            (Some(lower), Some(upper)) => {
                self.lengths.replace(run.length().0, lower.length());
                self.lengths.insert(upper.length());
                self.runs.replace_at(at, lower);
                self.runs.insert(upper);
            }
        }
    }
}
