//! How many blocks a second are served to more and more threads, all of one stream: steps in which every thread does its
//! part at the same time, measured from the first start to the last end. They are compared with one thread that does all of the same parts
//! in turn: it has as many blocks alive, and no other thread to wait for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::program::{ALIVE, Held, Opened, Server, sizes};
use crate::Failure;
use crate::console::progress;
use crate::planning::solving::was_interrupted;

const PAIRS_OF_A_STEP: usize = 2_000;
/// Steps before anything is measured: a plan is served by then.
const WARM_UP: usize = 6;
const MEASURED: usize = 200;

/// What one server does for so many threads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub server: Server,
    pub threads: usize,
    pub pairs_per_second: f64,
    /// Over one thread that does the same work.
    pub speedup: f64,
    /// The part of the blocks that a plan had, of all since there was one.
    pub hit_rate: Option<f64>,
    /// The speed-up to reach from a plan.
    pub target: Option<f64>,
}

/// Measures every server with 1, 2, 4, … threads up to as many as there are processors; ends early after Ctrl-C.
pub(super) fn measure(processors: usize) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for server in Server::ALL {
        for threads in counts(processors) {
            if was_interrupted() {
                return Ok(rows);
            }
            let _line = progress::Doing::new(&format!("measuring {threads} threads on {}", server.name()));
            let (pairs_per_second, hit_rate) = throughput(server, threads, 1)?;
            let alone = if threads > 1 { throughput(server, 1, threads)?.0 } else { pairs_per_second };
            // What was cut off says nothing.
            if was_interrupted() {
                return Ok(rows);
            }
            let target = match threads {
                2 => Some(1.6),
                8 => Some(4.0),
                _ => None,
            };
            rows.push(Row {
                server,
                threads,
                pairs_per_second,
                speedup: pairs_per_second / alone,
                hit_rate: hit_rate.filter(|_| server == Server::Planned),
                target: target.filter(|_| server == Server::Planned),
            });
        }
    }
    Ok(rows)
}

/// Powers of two up to `processors`, and that.
fn counts(processors: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        (0..usize::BITS).map(|power| 1 << power).take_while(|&count| count < processors).collect();
    counts.push(processors.max(1));
    counts
}

/// Pairs a second, with so many parts to each thread, in a step than which a tenth of the steps are faster, so that what else the machine
/// does counts little; and the part of the blocks that a plan had.
fn throughput(server: Server, threads: usize, parts: usize) -> Result<(f64, Option<f64>), Failure> {
    let opened = server.open()?;
    let field = Field {
        opened: &opened,
        gate: Gate::new(threads),
        parts,
        spans: Mutex::new(Vec::new()),
        steps: Mutex::new(Vec::new()),
        is_ended: AtomicBool::new(false),
    };
    let shared = &field;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || shared.run(thread))).collect();
        let own = shared.run(0);
        let joined = others.into_iter().map(|other| {
            other.join().unwrap_or_else(|_| Err(Failure::Fault("a thread of the benchmark panicked".to_owned())))
        });
        joined.fold(own, Result::and)
    })?;
    let mut steps = field.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
    steps.sort();
    let fast = steps.get(steps.len() / 10).copied().unwrap_or(Duration::MAX);
    let (hits, misses) = opened.served();
    let hit_rate = (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64);
    Ok(((threads * parts * PAIRS_OF_A_STEP) as f64 / fast.as_secs_f64(), hit_rate))
}

/// What the threads share.
struct Field<'a> {
    opened: &'a Opened,
    gate: Gate,
    /// How many parts each thread does in turn.
    parts: usize,
    /// When each thread began and ended its part of the step.
    spans: Mutex<Vec<(Instant, Instant)>>,
    /// How long each step took.
    steps: Mutex<Vec<Duration>>,
    is_ended: AtomicBool,
}

impl Field<'_> {
    /// Plays all steps as `thread`. A thread that fails lets the others come to the end of the step.
    fn run(&self, thread: usize) -> Result<(), Failure> {
        let mut parts: Vec<Part> = (0..self.parts).map(|part| Part::new(thread * self.parts + part)).collect();
        let mut result = Ok(());
        for step in 0..WARM_UP + MEASURED {
            self.gate.pass();
            let start = Instant::now();
            result = self.burst(&mut parts);
            self.spans.lock().unwrap_or_else(PoisonError::into_inner).push((start, Instant::now()));
            if result.is_err() || was_interrupted() {
                self.is_ended.store(true, Ordering::SeqCst);
            }
            self.gate.pass();
            if thread == 0 {
                self.close(step);
            }
            if self.is_ended.load(Ordering::SeqCst) {
                break;
            }
        }
        result
    }

    /// A pair of each part in turn, until all are done.
    fn burst(&self, parts: &mut [Part]) -> Result<(), Failure> {
        for pair in 0..PAIRS_OF_A_STEP {
            for part in &mut *parts {
                part.alive.push_back(self.opened.alloc(part.sizes[pair], part.thread)?);
                if part.alive.len() > ALIVE
                    && let Some(oldest) = part.alive.pop_front()
                {
                    self.opened.free(oldest)?;
                }
            }
        }
        parts.iter_mut().flat_map(|part| part.alive.drain(..)).try_for_each(|held| self.opened.free(held))
    }

    fn close(&self, step: usize) {
        self.opened.step();
        let spans = std::mem::take(&mut *self.spans.lock().unwrap_or_else(PoisonError::into_inner));
        let first = spans.iter().map(|&(start, _)| start).min();
        let last = spans.iter().map(|&(_, end)| end).max();
        if let (Some(first), Some(last)) = (first, last)
            && step >= WARM_UP
        {
            self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(last - first);
        }
    }
}

/// What one thread of a program does in a step.
struct Part {
    thread: usize,
    sizes: Vec<u64>,
    /// What is alive, the oldest first.
    alive: VecDeque<Held>,
}

impl Part {
    fn new(thread: usize) -> Self {
        Self { thread, sizes: sizes(PAIRS_OF_A_STEP, thread), alive: VecDeque::with_capacity(ALIVE + 1) }
    }
}

/// Lets threads pass all at once. They wait awake, so that none begins late because it was woken late.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
    opened: AtomicUsize,
}

impl Gate {
    /// Looks at the gate before the processor is left to others.
    const LOOKS: u32 = 10_000;

    fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0), opened: AtomicUsize::new(0) }
    }

    fn pass(&self) {
        let before = self.opened.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Release);
            self.opened.store(before + 1, Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.opened.load(Ordering::Acquire) == before {
            looks += 1;
            if looks < Self::LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_the_processors() {
        assert_eq!([counts(1), counts(2), counts(6)], [vec![1], vec![1, 2], vec![1, 2, 4, 6]]);
    }

    #[test]
    fn nobody_passes_a_gate_before_all_have_come() {
        let (gate, passed) = (Gate::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..100 {
                        gate.pass();
                        passed.fetch_add(1, Ordering::SeqCst);
                        gate.pass();
                        assert_eq!(passed.load(Ordering::SeqCst), 3 * (round + 1));
                    }
                });
            }
        });
    }
}
