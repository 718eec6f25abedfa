//! Whether a program's blocks come and go, as in inference, or pile up and are then freed, as in training.

/// How many blocks are allocated from one sample to the next.
pub(super) const BLOCKS_BETWEEN_SAMPLES: u64 = 128;

const SAMPLES: usize = 8;

/// How many blocks were alive when it was last looked.
#[derive(Debug, Default)]
pub(super) struct Churn {
    alive: [usize; SAMPLES],
    taken: usize,
}

impl Churn {
    /// So many blocks are alive now.
    pub(super) fn sample(&mut self, alive: usize) {
        self.alive[self.taken % SAMPLES] = alive;
        self.taken += 1;
    }

    /// Whether about as many were alive in all of the last samples: of the blocks that were allocated meanwhile at most an eighth were
    /// alive together.
    pub(super) fn is_steady(&self) -> bool {
        let most = self.alive.iter().max().copied().unwrap_or_default();
        let least = self.alive.iter().min().copied().unwrap_or_default();
        self.taken >= SAMPLES && most - least <= BLOCKS_BETWEEN_SAMPLES as usize / 2
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
}
