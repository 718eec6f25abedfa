//! How long the hooks take, where somebody wants to know: a sum, and a histogram of nanoseconds in steps of an eighth.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const CELLS: usize = 256;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// The times of one hook.
pub(crate) struct Times {
    cells: [AtomicU64; CELLS],
    total: AtomicU64,
}

pub(crate) static ALLOC: Times = Times::new();
pub(crate) static FREE: Times = Times::new();
pub(crate) static RECORD: Times = Times::new();

/// Measures from now on, or no more.
pub(crate) fn enable(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Runs `work` and notes what it took.
pub(crate) fn timed<T>(times: &Times, work: impl FnOnce() -> T) -> T {
    if !ENABLED.load(Ordering::Relaxed) {
        return work();
    }
    let start = Instant::now();
    let outcome = work();
    times.note(start.elapsed().as_nanos() as u64);
    outcome
}

impl Times {
    const fn new() -> Self {
        Self { cells: [const { AtomicU64::new(0) }; CELLS], total: AtomicU64::new(0) }
    }

    fn note(&self, nanoseconds: u64) {
        self.cells[cell(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// What all measured calls took together.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The time that a part of all calls did not exceed, to an eighth; nothing where none was measured.
    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let counts: Vec<u64> = self.cells.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let wanted = (all as f64 * part).ceil() as u64;
        let mut seen = 0;
        let found = counts.iter().position(|count| {
            seen += count;
            seen >= wanted.max(1)
        });
        found.filter(|_| all > 0).map(upper)
    }
}

/// Eight cells for each power of two.
fn cell(nanoseconds: u64) -> usize {
    if nanoseconds < 8 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2();
    let eighth = (nanoseconds >> (power - 3)) & 7;
    (((power - 2) as usize) * 8 + eighth as usize).min(CELLS - 1)
}

/// The most that falls into a cell.
fn upper(cell: usize) -> u64 {
    if cell < 8 {
        return cell as u64;
    }
    let (power, eighth) = (cell / 8 + 2, cell % 8);
    ((8 + eighth as u64 + 1) << (power - 3)) - 1
}
