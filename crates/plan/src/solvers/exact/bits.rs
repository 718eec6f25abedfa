//! A set of small numbers as a bitmap that is quick to walk. The crate `fixedbitset` has no way to the next or last member
//! from some place on, which is what the search asks for all the time.

/// A subset of `0..length`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub fn new(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)] }
    }

    pub fn set(&mut self, index: u32, value: bool) {
        let (word, bit) = (&mut self.words[index as usize / 64], 1 << (index % 64));
        if value { *word |= bit } else { *word &= !bit }
    }

    /// Takes out everything in `from..to`.
    pub fn clear(&mut self, from: u32, to: u32) {
        let mut at = from;
        while at < to {
            let word_end = (at / 64 + 1) * 64;
            let end = word_end.min(to);
            let width = end - at;
            let mask = if width == 64 { u64::MAX } else { ((1 << width) - 1) << (at % 64) };
            self.words[at as usize / 64] &= !mask;
            at = end;
        }
    }

    /// The smallest member in `from..to`.
    pub fn first_in(&self, from: u32, to: u32) -> Option<u32> {
        if from >= to {
            return None;
        }
        let mut word = from / 64;
        let mut bits = self.words[word as usize] & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                let found = word * 64 + bits.trailing_zeros();
                return (found < to).then_some(found);
            }
            word += 1;
            if word * 64 >= to {
                return None;
            }
            bits = self.words[word as usize];
        }
    }

    /// The largest member in `from..=to`.
    pub fn last_in(&self, from: u32, to: u32) -> Option<u32> {
        let mut word = to / 64;
        let mut bits = self.words[word as usize] & (u64::MAX >> (63 - to % 64));
        loop {
            if bits != 0 {
                let found = word * 64 + 63 - bits.leading_zeros();
                return (found >= from).then_some(found);
            }
            if word == 0 || word * 64 <= from {
                return None;
            }
            word -= 1;
            bits = self.words[word as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            members in prop::collection::btree_set(0_u32..300, 0..60),
            (from, to) in (0_u32..300, 0_u32..300),
        ) {
            let mut bits = Bits::new(300);
            for &member in &members {
                bits.set(member, true);
            }
            prop_assert_eq!(bits.first_in(from, to), members.iter().copied().find(|m| (from..to).contains(m)));
            let below = members.iter().copied().rfind(|&member| from <= member && member <= to);
            prop_assert_eq!(bits.last_in(from, to), below);
            bits.clear(from, to);
            let left: BTreeSet<u32> = members.into_iter().filter(|m| !(from..to).contains(m)).collect();
            let kept: BTreeSet<u32> = (0..300).filter(|&at| bits.first_in(at, at + 1).is_some()).collect();
            prop_assert_eq!(kept, left);
        }
    }
}
