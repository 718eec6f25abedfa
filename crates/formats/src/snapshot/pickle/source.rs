//! The bytes of a pickle, a buffer at a time: numbers and short texts are taken out of the buffer where they lie, and
//! nothing is allocated for a length that is only claimed.

use std::io::{ErrorKind, Read};

use super::fault::{Halt, PickleFault};
use crate::limits;

const BUFFER: usize = 128 << 10;
/// How much of a line is kept; the rest of it is only for the person who wrote it.
const LINE: usize = 200;

/// A reader that counts.
pub(crate) struct Source<'a> {
    reader: Box<dyn Read + 'a>,
    buffer: Box<[u8]>,
    position: usize,
    end: usize,
    /// The bytes that were read and have left the buffer.
    behind: u64,
    /// A text that did not lie in the buffer as a whole.
    spill: Vec<u8>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(reader: Box<dyn Read + 'a>) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Self { reader, buffer, position: 0, end: 0, behind: 0, spill: Vec::new() }
    }

    /// The place of the next byte.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.behind + self.position as u64
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Halt> {
        if self.position == self.end && !self.refill()? {
            return Err(PickleFault::Truncated.into());
        }
        let byte = self.buffer[self.position];
        self.position += 1;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Halt> {
        if let Some(array) = self.buffer[self.position..self.end].first_chunk::<N>() {
            let array = *array;
            self.position += N;
            return Ok(array);
        }
        let mut array = [0; N];
        for byte in &mut array {
            *byte = self.byte()?;
        }
        Ok(array)
    }

    /// The next `length` bytes, which must be within the limit of a text.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&[u8], Halt> {
        if self.end - self.position >= length {
            self.position += length;
            return Ok(&self.buffer[self.position - length..self.position]);
        }
        self.spill.clear();
        while self.spill.len() < length {
            if self.position == self.end && !self.refill()? {
                return Err(PickleFault::Truncated.into());
            }
            let part = (length - self.spill.len()).min(self.end - self.position);
            self.spill.extend_from_slice(&self.buffer[self.position..self.position + part]);
            self.position += part;
        }
        Ok(&self.spill)
    }

    /// The beginning of the text up to the next line break, or up to where it gets too long or the bytes end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.len() < LINE
            && let Ok(byte) = self.byte()
            && byte != b'\n'
        {
            line.push(byte);
        }
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Whether nothing follows.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Halt> {
        Ok(self.position == self.end && !self.refill()?)
    }

    /// Replaces the buffer, all of which was taken; `false` at the end.
    #[cold]
    fn refill(&mut self) -> Result<bool, Halt> {
        self.behind += self.end as u64;
        (self.position, self.end) = (0, 0);
        if self.behind > limits::PICKLE {
            return Err(PickleFault::TooLong { limit: limits::PICKLE }.into());
        }
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(read) => {
                    self.end = read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Halt::reading(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte at a time, as the slowest of readers.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let one = buffer.len().min(1);
            self.0.read(&mut buffer[..one])
        }
    }

    #[test]
    fn what_lies_across_buffers_is_put_together() {
        let mut source = Source::new(Box::new(Slow(b"abcdefgh\nxy")));
        assert_eq!(source.byte().unwrap(), b'a');
        assert_eq!(source.array::<3>().unwrap(), *b"bcd");
        assert_eq!(source.bytes(2).unwrap(), b"ef");
        assert_eq!(source.line(), "gh");
        assert_eq!(source.offset(), 9);
        let truncated = source.bytes(3).unwrap_err();
        assert_eq!(truncated.fault(), Some(PickleFault::Truncated));
        assert!(source.is_at_end().unwrap());
    }
}
