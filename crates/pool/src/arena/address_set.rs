//! A set of whole pages of a range of addresses, a bit for each: whether a long block has one of them is seen in a few words.

use std::ops::Range;

/// Pages by their offsets, all of one size.
#[derive(Debug)]
pub(super) struct AddressSet {
    shift: u32,
    words: Vec<u64>,
}

impl AddressSet {
    /// No page; each has `bytes`, a power of two.
    pub(super) fn new(bytes: u64) -> Self {
        Self { shift: bytes.max(1).ilog2(), words: Vec::new() }
    }

    /// Adds all pages of a range that has only whole ones.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        for page in self.pages(&range) {
            let word = (page / 64) as usize;
            if self.words.len() <= word {
                self.words.resize(word + 1, 0);
            }
            self.words[word] |= 1 << (page % 64);
        }
    }

    /// Takes all pages of a range out.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        for page in self.pages(&range) {
            if let Some(word) = self.words.get_mut((page / 64) as usize) {
                *word &= !(1 << (page % 64));
            }
        }
    }

    /// The lowest offset of a range that lies on a page of the set.
    #[inline]
    pub(super) fn first_in(&self, range: Range<u64>) -> Option<u64> {
        let Range { start: first, end } = self.pages(&range);
        let mut at = (first / 64) as usize;
        let mut word = self.words.get(at)? & u64::MAX << (first % 64);
        while word == 0 {
            at += 1;
            if at as u64 * 64 >= end {
                return None;
            }
            word = *self.words.get(at)?;
        }
        let page = at as u64 * 64 + u64::from(word.trailing_zeros());
        Some(range.start.max(page << self.shift)).filter(|&offset| offset < range.end)
    }

    /// The pages that a range touches.
    fn pages(&self, range: &Range<u64>) -> Range<u64> {
        range.start >> self.shift..range.end.next_multiple_of(1 << self.shift) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_offset_on_a_page_of_the_set_is_found(
            changes in prop::collection::vec((any::<bool>(), 0..300_u64, 0..90_u64), 0..40),
            asked in prop::collection::vec((0..400_000_u64, 0..100_000_u64), 1..40),
        ) {
            const PAGE: u64 = 1024;
            let mut set = AddressSet::new(PAGE);
            let mut model = BTreeSet::new();
            for (inserts, page, pages) in changes {
                let range = page * PAGE..(page + pages) * PAGE;
                if inserts {
                    set.insert(range);
                    model.extend(page..page + pages);
                } else {
                    set.remove(range);
                    model.retain(|known| !(page..page + pages).contains(known));
                }
            }
            for (start, length) in asked {
                let expected = (start..start + length).find(|at| model.contains(&(at / PAGE)));
                prop_assert_eq!(set.first_in(start..start + length), expected, "{} {}", start, length);
            }
        }
    }
}
