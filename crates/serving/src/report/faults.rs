//! Page faults per step, before a plan is served and from then on. Steps that the program closes are counted as it closes
//! them; steps that are found by their period, whenever the service takes a sample.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lowtide_pool::{HostArena, HostStats};

use crate::process::lifecycle;
use crate::serving::large;
use crate::system::process;

/// A step, and how many faults there had been when it was closed.
struct Sample {
    taken: AtomicBool,
    step: AtomicU64,
    faults: AtomicU64,
}

impl Sample {
    const fn new() -> Self {
        Self { taken: AtomicBool::new(false), step: AtomicU64::new(0), faults: AtomicU64::new(0) }
    }

    fn take(&self, step: u64, faults: u64) {
        self.step.store(step, Ordering::Relaxed);
        self.faults.store(faults, Ordering::Relaxed);
        self.taken.store(true, Ordering::Release);
    }

    fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    fn get(&self) -> Option<(u64, u64)> {
        self.is_taken().then(|| (self.step.load(Ordering::Relaxed), self.faults.load(Ordering::Relaxed)))
    }
}

/// The first step, the last without a plan, the first with one, and the last.
static FIRST: Sample = Sample::new();
static UNPLANNED: Sample = Sample::new();
static PLANNED: Sample = Sample::new();
static LAST: Sample = Sample::new();
/// How many steps the program has closed.
static MARKED: AtomicU64 = AtomicU64::new(0);

/// The program closes a step.
pub(crate) fn step() {
    MARKED.fetch_add(1, Ordering::Relaxed);
    if let Some(stats) = large::call(lifecycle::serving(), |arena| {
        arena.step();
        arena.stats()
    }) {
        sample(&stats);
    }
}

/// How many steps the program has closed.
pub(crate) fn marked() -> u64 {
    MARKED.load(Ordering::Relaxed)
}

/// The service takes a sample.
pub(crate) fn sample_period(arena: &HostArena) {
    let stats = arena.stats();
    // Before there are any steps, the program sets up.
    if marked() == 0 && stats.steps > 0 {
        sample(&stats);
    }
}

fn sample(stats: &HostStats) {
    let (step, faults) = (stats.steps, process::usage().minor);
    if LAST.get().is_some_and(|(last, _)| last == step) {
        return;
    }
    if !FIRST.is_taken() {
        FIRST.take(step, faults);
    }
    match stats.planned_from {
        Some(from) if step >= from => {
            if !PLANNED.is_taken() {
                PLANNED.take(step, faults);
            }
        }
        _ => UNPLANNED.take(step, faults),
    }
    LAST.take(step, faults);
}

/// Faults per step before a plan was served, and since; none where too few steps were seen to say.
pub(crate) fn per_step() -> (Option<f64>, Option<f64>) {
    let between = |from: Option<(u64, u64)>, to: Option<(u64, u64)>| {
        let ((first, before), (last, after)) = (from?, to?);
        (last > first).then(|| after.saturating_sub(before) as f64 / (last - first) as f64)
    };
    let planned = PLANNED.get();
    (between(FIRST.get(), UNPLANNED.get()).or_else(|| between(FIRST.get(), planned)), between(planned, LAST.get()))
}

/// A forked child begins anew.
pub(crate) fn forget() {
    for sample in [&FIRST, &UNPLANNED, &PLANNED, &LAST] {
        sample.taken.store(false, Ordering::Release);
    }
    MARKED.store(0, Ordering::Relaxed);
}
