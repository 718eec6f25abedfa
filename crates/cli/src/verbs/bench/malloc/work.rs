//! What runs under an allocator: the threads of a program, and what they took. It allocates nothing but its blocks while it
//! is measured.

use std::hint::black_box;
use std::mem;
use std::sync::Barrier;
use std::time::Instant;

use lowtide_memory::system::files::own;
use serde::{Deserialize, Serialize};

use super::exchange::{End, Exchange};
use super::program::{Program, Sizes};
use crate::Failure;
use crate::program::resources::Who;

/// Memory that nobody has written to.
pub(super) type Block = Vec<u8>;

/// Bytes that are written at the start of a block, beside its last.
const WRITTEN: usize = 256;

/// What one process took.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Processor nanoseconds of the process, user and system, for one turn of a thread.
    pub cpu_ns: f64,
    /// Nanoseconds from one turn of a thread to its next.
    pub wall_ns: f64,
    /// Minor faults for one turn of a thread.
    pub faults: f64,
    /// The most that was resident, from the start of the process.
    pub peak_rss_bytes: f64,
}

/// Runs `program` in this process, and measures so many turns of each thread, after a tenth as many.
pub(super) fn measure(program: &Program, turns: usize) -> Result<Sample, Failure> {
    let exchange = program.crosses.then(Exchange::new);
    let gate = Barrier::new(program.threads);
    // Taken by the first thread while the others wait.
    let reading = |thread: usize| {
        gate.wait();
        let reading = if thread == 0 { Reading::now() } else { None };
        gate.wait();
        reading
    };
    let run = |thread: usize| {
        let mut worker = Worker::new(program, thread, exchange.as_ref().map(|exchange| exchange.end(thread)));
        worker.run(turns / 10);
        let before = reading(thread);
        worker.run(turns);
        before.zip(reading(thread))
    };
    let run = &run;
    // The first thread is the process's own, so that a program of one thread is one for its allocator too.
    let readings = std::thread::scope(|scope| {
        for thread in 1..program.threads {
            scope.spawn(move || run(thread));
        }
        run(0)
    });
    let untold = || Failure::Fault("the system does not tell what this process used".to_owned());
    let (before, after) = readings.ok_or_else(untold)?;
    let turns_of_all = (program.threads * turns) as f64;
    Ok(Sample {
        cpu_ns: 1e9 * (after.cpu_seconds - before.cpu_seconds) / turns_of_all,
        wall_ns: 1e9 * after.at.duration_since(before.at).as_secs_f64() / turns as f64,
        faults: (after.faults - before.faults) as f64 / turns_of_all,
        peak_rss_bytes: own::memory().peak.get() as f64,
    })
}

/// What the process has taken until some time.
struct Reading {
    at: Instant,
    cpu_seconds: f64,
    faults: u64,
}

impl Reading {
    fn now() -> Option<Self> {
        Some(Self { at: Instant::now(), cpu_seconds: Who::Own.cpu_seconds()?, faults: Who::Own.minor_faults()? })
    }
}

/// A thread of the program.
struct Worker<'a> {
    sizes: Sizes,
    blocks: Vec<Block>,
    /// Where its blocks are freed, if not here.
    end: Option<End<'a>>,
}

impl<'a> Worker<'a> {
    /// Allocates the blocks that it keeps.
    fn new(program: &Program, thread: usize, end: Option<End<'a>>) -> Self {
        let mut sizes = program.sizes(thread);
        let blocks = (0..program.blocks).map(|_| written(sizes.draw())).collect();
        Self { sizes, blocks, end }
    }

    /// Replaces a random block so often.
    fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            let place = self.sizes.place(self.blocks.len());
            let freed = mem::take(&mut self.blocks[place]);
            match &mut self.end {
                Some(end) => end.give(freed),
                None => drop(freed),
            }
            self.blocks[place] = written(self.sizes.draw());
        }
        if let Some(end) = &mut self.end {
            end.finish();
        }
    }
}

/// A block with its start and its end written.
fn written(bytes: usize) -> Block {
    let mut block: Block = black_box(Vec::with_capacity(bytes));
    let memory = block.spare_capacity_mut();
    memory.iter_mut().take(WRITTEN).for_each(|byte| _ = byte.write(1));
    if let Some(last) = memory.last_mut() {
        last.write(1);
    }
    black_box(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::bench::malloc::program::PROGRAMS;

    #[test]
    fn every_program_comes_to_an_end_with_numbers() {
        for program in &PROGRAMS {
            let sample = measure(program, 300).unwrap();
            assert!(sample.wall_ns > 0.0 && sample.cpu_ns >= 0.0, "{}: {sample:?}", program.name);
            assert!(sample.peak_rss_bytes > 1e6, "{}: {sample:?}", program.name);
        }
    }

    #[test]
    fn a_thread_keeps_as_many_blocks_as_it_began_with() {
        let mut worker = Worker::new(&PROGRAMS[0], 0, None);
        worker.run(1000);
        assert_eq!(worker.blocks.len(), PROGRAMS[0].blocks);
        assert!(worker.blocks.iter().all(|block| (33_000..=41_000).contains(&block.capacity())));
    }
}
