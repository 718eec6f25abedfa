//! How long a block takes on one thread: every pair of asking for one and freeing another is measured on its own, and
//! the time of looking at the clock taken off. A plan serves the steps of the first program; the others never repeat, and
//! are served by all that a framework's hooks call.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::program::{ALIVE, Opened, Server, sizes};
use super::stepless::Stepless;
use crate::Failure;
use crate::console::progress;
use crate::planning::solving::was_interrupted;

/// Pairs that are measured of the program of steps, and of each of the others.
const PAIRS: usize = 1_000_000;
const STEPLESS_PAIRS: usize = 50_000;
const PAIRS_OF_A_STEP: usize = 200;
/// Steps before anything is measured: a plan is served by then.
const WARM_UP: usize = 20;
/// Pairs before anything is measured of a program without steps: the sizes have been seen, and where it has run for long, nobody looks for steps
/// any more.
const STEPLESS_WARM_UP: usize = 2_000;
const LONG_WARM_UP: usize = 300_000;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Program {
    /// Steps that repeat.
    Steps,
    /// A block of one size, again and again.
    OneSize,
    /// Many blocks alive, of sizes that never come again.
    RandomSizes,
    /// The same, when it has run for long.
    RandomSizesLater,
}

impl Program {
    const ALL: [Self; 4] = [Self::Steps, Self::OneSize, Self::RandomSizes, Self::RandomSizesLater];

    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::OneSize => "one size",
            Self::RandomSizes => "400 alive, random sizes",
            Self::RandomSizesLater => "the same, after 300,000 blocks",
        }
    }

    /// What a server is to reach.
    fn target(self, server: Server) -> Option<Target> {
        match (self, server) {
            (Self::Steps, Server::Planned) => Some(Target { p50_ns: 150, p99_ns: Some(1_000) }),
            (Self::OneSize, Server::Planned | Server::Arena) => Some(Target { p50_ns: 600, p99_ns: None }),
            (Self::RandomSizes | Self::RandomSizesLater, Server::Planned | Server::Arena) => {
                Some(Target { p50_ns: 1_000, p99_ns: None })
            }
            _ => None,
        }
    }
}

/// What one server takes for a pair, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub program: Program,
    pub server: Server,
    pub pairs: usize,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub mean_ns: f64,
    pub longest_ns: u64,
    /// The part of the blocks that a plan had, while it was measured.
    pub hit_rate: Option<f64>,
    /// Handles that were created, mapped, unmapped or given back while it was measured.
    pub driver_calls: Option<u64>,
    pub target: Option<Target>,
}

/// What is to be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Target {
    pub p50_ns: u64,
    pub p99_ns: Option<u64>,
}

/// Measures every program on every server; ends early after Ctrl-C.
pub(super) fn measure() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for program in Program::ALL {
        for server in Server::ALL {
            if was_interrupted() {
                return Ok(rows);
            }
            let _line = progress::Doing::new(&format!("measuring the latency of {}", server.name()));
            rows.push(match program {
                Program::Steps => measure_steps(server)?,
                Program::OneSize => measure_stepless(program, Stepless::one_size(), server)?,
                Program::RandomSizes | Program::RandomSizesLater => {
                    measure_stepless(program, Stepless::random_sizes(), server)?
                }
            });
        }
    }
    Ok(rows)
}

fn measure_steps(server: Server) -> Result<Row, Failure> {
    let opened = server.open()?;
    let sizes = sizes(PAIRS_OF_A_STEP, 0);
    let mut ignored = Vec::new();
    for _ in 0..WARM_UP {
        step(&opened, &sizes, &mut ignored)?;
        ignored.clear();
    }
    let before = Counted::of(&opened);
    let mut times = Vec::with_capacity(PAIRS);
    while times.len() < PAIRS && !was_interrupted() {
        step(&opened, &sizes, &mut times)?;
    }
    Ok(before.row(Program::Steps, server, &opened, &times))
}

fn measure_stepless(program: Program, mut stepless: Stepless, server: Server) -> Result<Row, Failure> {
    let opened = server.open_hooked();
    stepless.begin(&opened)?;
    let warm_up = if program == Program::RandomSizesLater { LONG_WARM_UP } else { STEPLESS_WARM_UP };
    for _ in 0..warm_up {
        stepless.turn(&opened)?;
    }
    let before = Counted::of(&opened);
    let mut times = Vec::with_capacity(STEPLESS_PAIRS);
    while times.len() < STEPLESS_PAIRS && !was_interrupted() {
        times.push(stepless.turn(&opened)?);
    }
    let row = before.row(program, server, &opened, &times);
    stepless.end(&opened)?;
    Ok(row)
}

/// What a server had counted before it was measured.
struct Counted {
    hits: u64,
    misses: u64,
    driver_calls: Option<u64>,
}

impl Counted {
    fn of(opened: &Opened) -> Self {
        let (hits, misses) = opened.served();
        Self { hits, misses, driver_calls: opened.driver_calls() }
    }

    /// What was measured since, as a row.
    fn row(&self, program: Program, server: Server, opened: &Opened, times: &[Duration]) -> Row {
        let after = Self::of(opened);
        let overhead = clock_time();
        let mut times: Vec<u64> = times.iter().map(|time| time.saturating_sub(overhead).as_nanos() as u64).collect();
        times.sort_unstable();
        let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
        let (hits, misses) = (after.hits - self.hits, after.misses - self.misses);
        Row {
            program,
            server,
            pairs: times.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            mean_ns: times.iter().sum::<u64>() as f64 / times.len().max(1) as f64,
            longest_ns: times.last().copied().unwrap_or_default(),
            hit_rate: (server == Server::Planned).then(|| hits as f64 / (hits + misses).max(1) as f64),
            driver_calls: after.driver_calls.zip(self.driver_calls).map(|(after, before)| after - before),
            target: program.target(server),
        }
    }
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
