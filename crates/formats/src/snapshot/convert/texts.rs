//! The texts of the trace. Blocks are named by running numbers, which are millions; they are told from their own form
//! and so need no place in a table.

use std::collections::HashMap;

use lowtide_core::TextIndex;

use crate::reading::interner::{Interner, TooManyTexts};

/// Texts once each, in the order in which they first appear.
#[derive(Default)]
pub(crate) struct Texts {
    interner: Interner,
    /// The names that were given, by their numbers.
    names: Vec<TextIndex>,
    /// Texts that are numbers which no name has had yet.
    numbers: HashMap<u32, TextIndex>,
}

impl Texts {
    /// The next name.
    pub(crate) fn name(&mut self) -> Result<TextIndex, TooManyTexts> {
        let number = u32::try_from(self.names.len()).map_err(|_| TooManyTexts)?;
        let name = match self.numbers.remove(&number) {
            Some(text) => text,
            None => self.interner.append(&number.to_string())?,
        };
        self.names.push(name);
        Ok(name)
    }

    pub(crate) fn intern(&mut self, text: &str) -> Result<TextIndex, TooManyTexts> {
        let Some(number) = plain_number(text) else { return self.interner.intern(text) };
        if let Some(&name) = self.names.get(number as usize) {
            return Ok(name);
        }
        if let Some(&text) = self.numbers.get(&number) {
            return Ok(text);
        }
        let index = self.interner.append(text)?;
        self.numbers.insert(number, index);
        Ok(index)
    }

    pub(crate) fn into_texts(self) -> Vec<Box<str>> {
        self.interner.into_texts()
    }
}

/// The number that a text is, where it is what that number is written as.
fn plain_number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_a_number_is_the_name_of_that_number() {
        let mut texts = Texts::default();
        let mut intern = |text: &str| texts.intern(text).unwrap().0;
        assert_eq!([intern("2"), intern("a"), intern("00"), intern("2")], [0, 1, 2, 0]);
        let names: Vec<u32> = (0..4).map(|_| texts.name().unwrap().0).collect();
        assert_eq!(names, [3, 4, 0, 5]);
        assert_eq!([texts.intern("1").unwrap().0, texts.intern("3").unwrap().0], [4, 5]);
        let texts: Vec<_> = texts.into_texts();
        assert_eq!(texts.iter().map(|text| &**text).collect::<Vec<_>>(), ["2", "a", "00", "0", "1", "3"]);
    }
}
