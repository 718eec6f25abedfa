//! Columns of numbers: seven bits a byte, the lowest first.

use crate::{Error, ErrorKind};

/// A signed number with its sign in the lowest bit.
pub(super) const fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The number that was folded.
pub(super) const fn unfold(folded: u64) -> i64 {
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

/// A column that is being written.
#[derive(Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn signed(&mut self, value: i64) {
        self.number(fold(value));
    }

    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }
}

/// A column that is being read.
pub(super) struct Reader<'a> {
    name: Box<str>,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(name: &str, bytes: &'a [u8]) -> Self {
        Self { name: name.into(), bytes }
    }

    pub fn number(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for place in 0..10 {
            let (&byte, rest) = self.bytes.split_first().ok_or_else(|| self.fault("ends too early"))?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault("holds a number of more than 64 bits"))
    }

    pub fn signed(&mut self) -> Result<i64, Error> {
        self.number().map(unfold)
    }

    pub fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = self.number()?;
        let taken = usize::try_from(length).ok().and_then(|length| self.bytes.split_at_checked(length));
        let (text, rest) = taken.ok_or_else(|| self.fault("ends too early"))?;
        self.bytes = rest;
        Ok(text)
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), Error> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.fault("holds more than it should")) }
    }

    pub fn fault(&self, what: &str) -> Error {
        Error::new(ErrorKind::BadUsage(format!("column `{}` {what}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_come_back() {
        let mut column = Writer::default();
        let numbers = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1]).chain([u64::MAX]);
        numbers.clone().for_each(|number| column.number(number));
        let signed = [0, -1, 1, i64::MIN, i64::MAX];
        for number in signed {
            column.signed(number);
        }
        let mut reader = Reader::new("x", &column.0);
        assert!(numbers.clone().all(|number| reader.number().unwrap() == number));
        assert!(signed.iter().all(|&number| reader.signed().unwrap() == number));
        reader.finish().unwrap();
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        assert!(Reader::new("x", &[0xff; 10]).number().is_err());
        assert!(Reader::new("x", &[0x80]).number().is_err());
    }
}
