//! How long a block takes on one thread: every pair of asking for one and freeing another is measured on its own, and
//! the time of looking at the clock taken off.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::program::{ALIVE, Opened, Server, sizes};
use crate::Failure;
use crate::console::progress;
use crate::planning::solving::was_interrupted;

/// Pairs that are measured.
const PAIRS: usize = 1_000_000;
const PAIRS_OF_A_STEP: usize = 200;
/// Steps before anything is measured: a plan is served by then.
const WARM_UP: usize = 20;

/// What is to be reached from a plan.
const TARGET: Target = Target { p50_ns: 150, p99_ns: 1_000 };

/// What one server takes for a pair, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub server: Server,
    pub pairs: usize,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub mean_ns: f64,
    /// The part of the blocks that a plan had, while it was measured.
    pub hit_rate: Option<f64>,
    pub target: Option<Target>,
}

/// What is to be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Target {
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// Measures every server; ends early after Ctrl-C.
pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for server in Server::ALL {
        if was_interrupted() {
            break;
        }
        let _line = progress::Doing::new(&format!("measuring the latency of {}", server.name()));
        rows.push(row(server)?);
    }
    Ok(rows)
}

fn row(server: Server) -> Result<Row, Failure> {
    let opened = server.open()?;
    let sizes = sizes(PAIRS_OF_A_STEP, 0);
    let mut ignored = Vec::new();
    for _ in 0..WARM_UP {
        step(&opened, &sizes, &mut ignored)?;
        ignored.clear();
    }
    let before = opened.served();
    let mut times: Vec<Duration> = Vec::with_capacity(PAIRS);
    while times.len() < PAIRS && !was_interrupted() {
        step(&opened, &sizes, &mut times)?;
    }
    let after = opened.served();
    let overhead = clock_time();
    let mut times: Vec<u64> = times.iter().map(|time| time.saturating_sub(overhead).as_nanos() as u64).collect();
    times.sort_unstable();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    let (hits, misses) = (after.0 - before.0, after.1 - before.1);
    Ok(Row {
        server,
        pairs: times.len(),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        mean_ns: times.iter().sum::<u64>() as f64 / times.len().max(1) as f64,
        hit_rate: (server == Server::Planned).then(|| hits as f64 / (hits + misses).max(1) as f64),
        target: (server == Server::Planned).then_some(TARGET),
    })
}

/// Plays a step, and measures every pair in which a block is asked for and one is freed.
fn step(opened: &Opened, sizes: &[u64], times: &mut Vec<Duration>) -> Result<(), Failure> {
    let mut alive = VecDeque::with_capacity(ALIVE + 1);
    for &bytes in sizes {
        let oldest = if alive.len() == ALIVE { alive.pop_front() } else { None };
        let start = Instant::now();
        let held = opened.alloc(bytes, 0)?;
        if let Some(oldest) = oldest {
            opened.free(oldest)?;
            times.push(start.elapsed());
        }
        alive.push_back(held);
    }
    alive.into_iter().try_for_each(|held| opened.free(held))?;
    opened.step();
    Ok(())
}

/// What looking at the clock twice takes.
fn clock_time() -> Duration {
    const LOOKS: u32 = 1_000;
    let batch = || (0..LOOKS).map(|_| Instant::now().elapsed()).sum::<Duration>() / LOOKS;
    let mut batches: Vec<Duration> = (0..21).map(|_| batch()).collect();
    batches.sort();
    batches[batches.len() / 2]
}
