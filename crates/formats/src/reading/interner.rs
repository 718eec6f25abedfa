//! Texts kept once each, in the order in which they first appear.

use std::hash::{BuildHasher, RandomState};

use lowtide_core::TextIndex;
use rustc_hash::FxHashMap;

/// Gives equal texts one index, without a second copy of any of them.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Vec<Box<str>>,
    /// By a hash that no input can foresee; of texts whose hashes collide, the later ones are at the next keys.
    places: FxHashMap<u64, TextIndex>,
    hasher: RandomState,
}

/// More texts than a trace can hold.
#[derive(Debug)]
pub(crate) struct TooManyTexts;

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> Result<TextIndex, TooManyTexts> {
        let mut key = self.hasher.hash_one(text);
        while let Some(&index) = self.places.get(&key) {
            if *self.texts[index.0 as usize] == *text {
                return Ok(index);
            }
            key = key.wrapping_add(1);
        }
        let index = self.append(text)?;
        self.places.insert(key, index);
        Ok(index)
    }

    /// Adds a text that is known to be new and will not be asked for by its contents.
    pub(crate) fn append(&mut self, text: &str) -> Result<TextIndex, TooManyTexts> {
        let index = TextIndex(u32::try_from(self.texts.len()).map_err(|_| TooManyTexts)?);
        self.texts.push(text.into());
        Ok(index)
    }

    pub(crate) fn get(&self, index: TextIndex) -> &str {
        &self.texts[index.0 as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn into_texts(self) -> Vec<Box<str>> {
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_an_index() {
        let mut interner = Interner::default();
        let indices: Vec<u32> = ["a", "b", "a", ""].iter().map(|text| interner.intern(text).unwrap().0).collect();
        assert_eq!(indices, [0, 1, 0, 2]);
        assert_eq!(interner.into_texts(), ["a".into(), "b".into(), "".into()]);
    }
}
