//! Random problems of any size: short and long lives mixed so that about the same number of buffers is
//! alive at any time. The same numbers give the same problem everywhere.

use std::str::FromStr;

use lowtide_core::random::Random;
use lowtide_core::{Buffer, Bytes, Lifetime, Problem};

/// How large a made problem is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Synthetic {
    /// How many buffers it has.
    pub buffers: u32,
    /// About how many of them are alive at once, away from the start and the end.
    pub alive: u32,
}

/// Alive at once unless given.
const DEFAULT_ALIVE: u32 = 5_000;

/// The most buffers of a made problem.
const MOST_BUFFERS: u32 = 100_000_000;

impl FromStr for Synthetic {
    type Err = String;

    /// Reads `N` or `N:ALIVE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.parse::<u32>().ok().filter(|number| (1..=MOST_BUFFERS).contains(number));
            number.ok_or_else(|| format!("`{text}` is not a number from 1 to {MOST_BUFFERS}; write N or N:ALIVE"))
        };
        let (buffers, alive) = match text.split_once(':') {
            None => (number(text)?, None),
            Some((buffers, alive)) => (number(buffers)?, Some(number(alive)?)),
        };
        let alive = alive.unwrap_or_else(|| DEFAULT_ALIVE.min(buffers));
        if alive > buffers {
            return Err(format!("{alive} of {buffers} buffers cannot be alive at once"));
        }
        Ok(Self { buffers, alive })
    }
}

/// Of ten buffers, this many live long: about four times the average, so that the others live a fifth of it.
const LONG_OF_TEN: u64 = 2;

impl Synthetic {
    /// The problem that `seed` gives: one buffer begins at every event; sizes are multiples of 512 bytes up to
    /// 64 MiB, as many between any size and its double.
    pub fn problem(self, seed: u64) -> Problem {
        let mut shapes = Shapes(Random::new(seed));
        let buffer = |index: u32| {
            let lower = i64::from(index);
            let upper = lower + shapes.length(u64::from(self.alive)) as i64;
            Buffer::new(index.to_string(), Lifetime { lower, upper }, shapes.size())
        };
        Problem::new((0..self.buffers).map(buffer).collect())
    }
}

const UNIT: u64 = 512;
/// 64 MiB are 512 bytes doubled this often.
const DOUBLINGS: u64 = 17;

/// How long buffers live and how large they are.
struct Shapes(Random);

impl Shapes {
    /// How many events a buffer lives: `mean` on average, never none.
    fn length(&mut self, mean: u64) -> u64 {
        let is_long = self.0.below(10) < LONG_OF_TEN;
        // Evenly from 1 to about twice the average of its kind: 0.8 · 0.2 + 0.2 · 4.2 = 1.
        let twice = if is_long { mean * 42 / 5 } else { mean * 2 / 5 };
        1 + self.0.below(twice.max(1))
    }

    fn size(&mut self) -> Bytes {
        let least = 1 << self.0.below(DOUBLINGS);
        Bytes::new(UNIT * (least + self.0.below(least + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_alive_at_once_is_about_what_was_asked_for() {
        let problem = Synthetic { buffers: 50_000, alive: 500 }.problem(1);
        let alive_at = |time: i64| {
            problem
                .buffers
                .iter()
                .filter(|buffer| buffer.lifetime.lower <= time && time < buffer.lifetime.upper)
                .count()
        };
        for time in [10_000, 25_000, 40_000] {
            let alive = alive_at(time);
            assert!((400..600).contains(&alive), "{alive} at {time}");
        }
    }

    #[test]
    fn sizes_are_multiples_of_512_over_the_whole_range() {
        let problem = Synthetic { buffers: 20_000, alive: 10 }.problem(2);
        let sizes: Vec<u64> = problem.buffers.iter().map(|buffer| buffer.size.get()).collect();
        assert!(sizes.iter().all(|size| size.is_multiple_of(512) && (512..=64 << 20).contains(size)));
        assert!(sizes.iter().any(|&size| size < 1024) && sizes.iter().any(|&size| size > 60 << 20));
        problem.check().unwrap();
    }

    #[test]
    fn a_seed_gives_the_same_problem_again_and_another_one_another() {
        let made = |seed| Synthetic { buffers: 100, alive: 10 }.problem(seed);
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }

    #[test]
    fn sizes_of_problems_are_read_and_checked() {
        let read = |text: &str| text.parse::<Synthetic>();
        assert_eq!(read("1000000"), Ok(Synthetic { buffers: 1_000_000, alive: 5_000 }));
        assert_eq!(read("100"), Ok(Synthetic { buffers: 100, alive: 100 }));
        assert_eq!(read("100:7"), Ok(Synthetic { buffers: 100, alive: 7 }));
        for text in ["", "0", "x", "5:", ":5", "5:6", "-1", "99999999999"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
