//! Measures calls that are shorter than looking at a clock: the time of looking is measured first, and taken off.

use std::time::{Duration, Instant};

const LOOKS: u32 = 200;
const BATCHES: usize = 11;

/// Adds up how long calls take.
#[derive(Debug)]
pub(super) struct Stopwatch {
    overhead: Duration,
    total: Duration,
    laps: u64,
}

impl Stopwatch {
    /// A watch that knows what looking at it costs.
    pub(super) fn new() -> Self {
        let batch = || (0..LOOKS).map(|_| Instant::now().elapsed()).sum::<Duration>() / LOOKS;
        let mut batches: [Duration; BATCHES] = std::array::from_fn(|_| batch());
        batches.sort();
        Self { overhead: batches[BATCHES / 2], total: Duration::ZERO, laps: 0 }
    }

    /// Measures one call.
    pub(super) fn lap<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = call();
        self.total += start.elapsed();
        self.laps += 1;
        result
    }

    /// How many calls were measured.
    pub(super) fn laps(&self) -> u64 {
        self.laps
    }

    /// What they took together, in nanoseconds.
    pub(super) fn nanoseconds(&self) -> u64 {
        let looking = u128::from(self.laps) * self.overhead.as_nanos();
        self.total.as_nanos().saturating_sub(looking) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_the_watch_is_not_measured() {
        let mut watch = Stopwatch::new();
        (0..10_000).for_each(|_| watch.lap(|| {}));
        assert_eq!(watch.laps(), 10_000);
        assert!(watch.nanoseconds() < 10_000 * 1_000, "{}", watch.nanoseconds());
        let mut slow = Stopwatch::new();
        slow.lap(|| std::thread::sleep(Duration::from_millis(5)));
        assert!(slow.nanoseconds() >= 4_900_000, "{}", slow.nanoseconds());
    }
}
