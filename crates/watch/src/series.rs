//! Samples over time, in bounded memory however long that is: once there are many entries, neighbours are put
//! together. An entry keeps its lowest and its highest moment, so that no peak is lost.

use crate::{Point, Sample};

/// The most entries; a power of two.
const MOST: usize = 4096;

/// Samples in order.
#[derive(Debug, Default)]
pub struct Series {
    entries: Vec<Entry>,
    /// How many samples an entry is made of.
    each: u64,
    /// How many are in the last entry.
    filled: u64,
    /// How many there were in all.
    pub samples: u64,
}

/// Some samples behind each other.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When the first was taken, in seconds.
    pub from: f64,
    /// When the last was taken.
    pub to: f64,
    /// When least was the processes' own.
    low: (f64, u64),
    /// When most was.
    high: (f64, u64),
    /// The sample with the most memory.
    pub most: Sample,
    /// The last.
    pub last: Sample,
}

impl Entry {
    fn of(at: f64, sample: Sample) -> Self {
        let own = (at, sample.own());
        Self { from: at, to: at, low: own, high: own, most: sample, last: sample }
    }

    fn join(&mut self, next: &Self) {
        self.to = next.to;
        self.last = next.last;
        if next.low.1 < self.low.1 {
            self.low = next.low;
        }
        if next.high.1 > self.high.1 {
            self.high = next.high;
        }
        if next.most.total() > self.most.total() {
            self.most = next.most;
        }
    }
}

impl Series {
    /// Adds a sample that was taken at `at` seconds, later than everything before.
    pub fn push(&mut self, at: f64, sample: Sample) {
        self.samples += 1;
        let entry = Entry::of(at, sample);
        match self.entries.last_mut() {
            Some(last) if self.filled < self.each => {
                last.join(&entry);
                self.filled += 1;
            }
            _ => {
                if self.entries.len() == MOST {
                    self.thin();
                }
                self.entries.push(entry);
                self.filled = 1;
                self.each = self.each.max(1);
            }
        }
    }

    fn thin(&mut self) {
        let joined = self.entries.chunks(2).map(|pair| {
            let mut entry = pair[0];
            if let Some(next) = pair.get(1) {
                entry.join(next);
            }
            entry
        });
        self.entries = joined.collect();
        self.each *= 2;
    }

    /// The entries in order, at most 4,096.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was the processes' own: the lowest and highest of each entry.
    pub fn own(&self) -> Vec<Point> {
        let point = |(at, value): (f64, u64)| Point { at, value: value as f64 };
        let of_entry = |entry: &Entry| {
            let (low, high) = (point(entry.low), point(entry.high));
            match low.at.total_cmp(&high.at) {
                std::cmp::Ordering::Less => vec![low, high],
                std::cmp::Ordering::Equal => vec![low],
                std::cmp::Ordering::Greater => vec![high, low],
            }
        };
        self.entries.iter().flat_map(of_entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_bounded_and_no_peak_is_lost() {
        let mut series = Series::default();
        for n in 0..1_000_000_u64 {
            let own = if n == 123_456 { 1 << 40 } else { 1000 + n % 10 };
            series.push(n as f64, Sample { anonymous: own, resident: own, ..Sample::default() });
        }
        assert!(series.entries().len() <= MOST && series.entries().len() > MOST / 4);
        assert_eq!(series.samples, 1_000_000);
        assert!(series.entries().iter().any(|entry| entry.most.resident == 1 << 40));
        let own = series.own();
        assert!(own.iter().any(|point| point.value as u64 == 1 << 40 && point.at as u64 == 123_456));
        assert!(own.is_sorted_by(|a, b| a.at < b.at));
        assert_eq!(series.entries().last().unwrap().to as u64, 999_999);
        assert!(series.entries().windows(2).all(|pair| pair[0].to < pair[1].from));
    }
}
