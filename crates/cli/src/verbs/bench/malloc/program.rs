//! The programs that are measured: how many threads keep how many blocks, and of which sizes.

use lowtide_core::random::Random;

/// A program that does not repeat.
#[derive(PartialEq, Debug)]
pub(super) struct Program {
    /// What it is asked for by.
    pub number: usize,
    pub name: &'static str,
    pub threads: usize,
    /// Blocks that each thread keeps.
    pub blocks: usize,
    /// The smallest block, and the largest.
    pub smallest: u64,
    pub largest: u64,
    /// Whether each block is freed by the other one of two threads.
    pub crosses: bool,
    /// Turns of each thread that take about 0.3 s.
    pub turns: usize,
}

const KB: u64 = 1000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// All of them, each at the place before its number.
pub(super) const PROGRAMS: [Program; 7] = [
    Program {
        number: 1,
        name: "1 thread, 33-41 KB, 20 blocks",
        threads: 1,
        blocks: 20,
        smallest: 33 * KB,
        largest: 41 * KB,
        crosses: false,
        turns: 1_500_000,
    },
    Program {
        number: 2,
        name: "1 thread, 32-256 KiB, 200 blocks",
        threads: 1,
        blocks: 200,
        smallest: 32 * KIB,
        largest: 256 * KIB,
        crosses: false,
        turns: 1_000_000,
    },
    Program {
        number: 3,
        name: "2 threads, 32-256 KiB, 200 blocks each",
        threads: 2,
        blocks: 200,
        smallest: 32 * KIB,
        largest: 256 * KIB,
        crosses: false,
        turns: 400_000,
    },
    Program {
        number: 4,
        name: "2 threads, 32 KiB-1 MiB, 100 blocks each, each block freed by the other thread",
        threads: 2,
        blocks: 100,
        smallest: 32 * KIB,
        largest: MIB,
        crosses: true,
        turns: 200_000,
    },
    Program {
        number: 5,
        name: "2 threads, 256 KiB-8 MiB, 40 blocks each",
        threads: 2,
        blocks: 40,
        smallest: 256 * KIB,
        largest: 8 * MIB,
        crosses: false,
        turns: 150_000,
    },
    Program {
        number: 6,
        name: "8 threads, 32-256 KiB, 50 blocks each",
        threads: 8,
        blocks: 50,
        smallest: 32 * KIB,
        largest: 256 * KIB,
        crosses: false,
        turns: 150_000,
    },
    Program {
        number: 7,
        name: "1 thread, 16 B-16 KiB, 1000 blocks",
        threads: 1,
        blocks: 1000,
        smallest: 16,
        largest: 16 * KIB,
        crosses: false,
        turns: 4_000_000,
    },
];

impl Program {
    /// The sizes that a thread asks for.
    pub fn sizes(&self, thread: usize) -> Sizes {
        let [low, high] = [self.smallest, self.largest + 1].map(|bytes| (bytes as f64).ln());
        Sizes {
            random: Random::new(thread as u64),
            low,
            span: high - low,
            smallest: self.smallest,
            largest: self.largest,
        }
    }
}

/// Random sizes, all magnitudes alike; the same ones every time.
pub(super) struct Sizes {
    random: Random,
    /// Logarithms: of the smallest, and of how many times that the largest is.
    low: f64,
    span: f64,
    smallest: u64,
    largest: u64,
}

impl Sizes {
    /// The next size.
    pub fn draw(&mut self) -> usize {
        let bytes = (self.low + self.span * self.random.fraction()).exp() as u64;
        bytes.clamp(self.smallest, self.largest) as usize
    }

    /// Any of so many places.
    pub fn place(&mut self, places: usize) -> usize {
        self.random.below(places as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_all_magnitudes_and_seldom_come_again() {
        for program in &PROGRAMS {
            let mut sizes = program.sizes(0);
            let mut drawn: Vec<u64> = (0..10_000).map(|_| sizes.draw() as u64).collect();
            drawn.sort_unstable();
            assert!(drawn[0] >= program.smallest && drawn[9_999] <= program.largest, "{}", program.name);
            for tenths in 1..10 {
                let expected = (program.smallest as f64)
                    * ((program.largest + 1) as f64 / program.smallest as f64).powf(tenths as f64 / 10.0);
                let ratio = drawn[tenths * 1000] as f64 / expected;
                assert!((0.75..1.33).contains(&ratio), "{}: {tenths} tenths are below {ratio}×", program.name);
            }
            drawn.dedup();
            assert!(drawn.len() > 4_000, "{}: {} sizes", program.name, drawn.len());
        }
    }

    #[test]
    fn every_thread_has_sizes_of_its_own_and_the_same_each_time() {
        let drawn = |thread| {
            let mut sizes = PROGRAMS[2].sizes(thread);
            [(); 20].map(|()| sizes.draw())
        };
        assert_eq!(drawn(0), drawn(0));
        assert_ne!(drawn(0), drawn(1));
    }
}
