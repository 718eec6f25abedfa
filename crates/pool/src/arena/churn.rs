//! Whether a program's blocks come and go, as in inference, or pile up and are then freed, as in training.

/// How many blocks are allocated from one sample to the next: at least so many, and up to half as many again, so that samples and the program's
/// own rounds do not fall in step.
const BLOCKS_BETWEEN_SAMPLES: usize = 96;

const SAMPLES: usize = 8;

/// How far the numbers of blocks may be apart.
const MOST_APART: usize = 64;

/// How many blocks were alive at each of the last samples.
#[derive(Debug, Default)]
pub(super) struct Churn {
    alive: [usize; SAMPLES],
    taken: usize,
    /// Blocks until the next one.
    until: usize,
}

impl Churn {
    /// A block is allocated: whether it is time for a sample.
    pub(super) fn is_due(&mut self) -> bool {
        if self.until > 0 {
            self.until -= 1;
            return false;
        }
        self.until = BLOCKS_BETWEEN_SAMPLES + self.taken * 19 % (BLOCKS_BETWEEN_SAMPLES / 2);
        true
    }

    /// So many blocks are alive now.
    pub(super) fn sample(&mut self, alive: usize) {
        self.alive[self.taken % SAMPLES] = alive;
        self.taken += 1;
    }

    /// Whether about as many were alive at all of the last samples.
    pub(super) fn is_steady(&self) -> bool {
        let most = self.alive.iter().max().copied().unwrap_or_default();
        let least = self.alive.iter().min().copied().unwrap_or_default();
        self.taken >= SAMPLES && most - least <= MOST_APART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady(alive: impl IntoIterator<Item = usize>) -> bool {
        let mut churn = Churn::default();
        alive.into_iter().for_each(|alive| churn.sample(alive));
        churn.is_steady()
    }

    #[test]
    fn inference_is_steady_and_training_is_not() {
        assert!(is_steady((0..40).map(|number| 300 + 20 * (number % 3))));
        assert!(!is_steady((0..40).map(|number| 300 + 80 * (number % 6))), "forward and backward in turn");
        assert!(!is_steady((0..40).map(|number| 50 * number)), "a model that is built");
        assert!(!is_steady([300; 7]), "not long enough");
        assert!(is_steady((0..40).map(|number| if number < 10 { 100 * number } else { 900 })));
    }

    #[test]
    fn a_round_of_any_length_is_seen() {
        // A program that allocates so many blocks, frees them all, and begins again.
        for round in [128, 256, 512, 640, 1024, 2048] {
            let mut churn = Churn::default();
            for block in 0..40_000 {
                if churn.is_due() {
                    churn.sample(block % round);
                }
            }
            assert!(!churn.is_steady(), "{round}");
        }
    }
}
