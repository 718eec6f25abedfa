//! Programs that no plan can serve: they have no steps, and what they ask for does not come again. In every turn a block
//! is freed and another is asked for.

use std::time::{Duration, Instant};

use lowtide_core::random::Random;

use super::program::{Held, Opened};
use crate::Failure;

/// Blocks of random sizes that are alive at once.
const ALIVE: usize = 400;
const ONE_SIZE: u64 = 1 << 20;
const SMALLEST: u64 = 512;
const LARGEST: u64 = 32 << 20;

/// A program without steps, in the middle of its work.
pub(super) struct Stepless {
    random: Random,
    sizes: Sizes,
    alive: Vec<Option<Held>>,
}

#[derive(Clone, Copy)]
enum Sizes {
    One,
    /// All magnitudes alike.
    Random,
}

impl Stepless {
    /// One block at a time, always of one size.
    pub fn one_size() -> Self {
        Self::new(Sizes::One, 1)
    }

    /// Many blocks from 512 bytes to 32 MiB; in each turn any of them is freed.
    pub fn random_sizes() -> Self {
        Self::new(Sizes::Random, ALIVE)
    }

    fn new(sizes: Sizes, alive: usize) -> Self {
        Self { random: Random::new(1), sizes, alive: (0..alive).map(|_| None).collect() }
    }

    /// Asks for the blocks that are alive at first.
    pub fn begin(&mut self, opened: &Opened) -> Result<(), Failure> {
        for place in 0..self.alive.len() {
            let bytes = self.bytes();
            self.alive[place] = Some(opened.alloc(bytes, 0)?);
        }
        Ok(())
    }

    /// Frees a block and asks for another; how long both took.
    pub fn turn(&mut self, opened: &Opened) -> Result<Duration, Failure> {
        let place = self.random.below(self.alive.len() as u64) as usize;
        let bytes = self.bytes();
        let freed = self.alive[place].take();
        let start = Instant::now();
        freed.map_or(Ok(()), |held| opened.free(held))?;
        let held = opened.alloc(bytes, 0)?;
        let time = start.elapsed();
        self.alive[place] = Some(held);
        Ok(time)
    }

    /// Frees all blocks.
    pub fn end(&mut self, opened: &Opened) -> Result<(), Failure> {
        self.alive.iter_mut().filter_map(Option::take).try_for_each(|held| opened.free(held))
    }

    fn bytes(&mut self) -> u64 {
        match self.sizes {
            Sizes::One => ONE_SIZE,
            Sizes::Random => {
                let doublings = (LARGEST / SMALLEST) as f64;
                (SMALLEST as f64 * doublings.powf(self.random.fraction())) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::bench::pool::program::Server;

    #[test]
    fn random_sizes_have_all_magnitudes_and_seldom_come_again() {
        let mut program = Stepless::random_sizes();
        let mut sizes: Vec<u64> = (0..10_000).map(|_| program.bytes()).collect();
        sizes.sort_unstable();
        assert!(sizes[0] >= SMALLEST && sizes[9_999] <= LARGEST, "{} to {}", sizes[0], sizes[9_999]);
        assert!(sizes[1_000] < 4 * SMALLEST && sizes[9_000] > LARGEST / 4, "{} and {}", sizes[1_000], sizes[9_000]);
        sizes.dedup();
        assert!(sizes.len() > 9_000, "{} sizes", sizes.len());
    }

    #[test]
    fn a_program_frees_what_it_asked_for() {
        for mut program in [Stepless::one_size(), Stepless::random_sizes()] {
            let opened = Server::Arena.open_hooked();
            program.begin(&opened).unwrap();
            for _ in 0..100 {
                program.turn(&opened).unwrap();
            }
            program.end(&opened).unwrap();
            let Opened::Fleet(fleet) = opened else { panic!("hooks call a fleet") };
            assert_eq!(fleet.stats(0).map(|stats| stats.requested.get()), Some(0));
        }
    }
}
