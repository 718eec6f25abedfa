//! What the pickle may refer to again: four bytes per entry, since snapshots put every dict, list and text there.

use super::fault::{Halt, PickleFault};
use super::value::Value;
use crate::limits;
use crate::snapshot::contents::chunks::Chunks;

/// The memo.
#[derive(Default)]
pub(crate) struct Memo {
    entries: Chunks<u32>,
    /// Whole numbers, which no known writer puts here.
    numbers: Vec<i64>,
}

impl Memo {
    /// Adds `value` as the next entry and returns its number.
    pub(crate) fn push(&mut self, value: Value) -> Result<u32, Halt> {
        let number = self.entries.len();
        if number as u64 >= limits::MEMO {
            return Err(PickleFault::TooMany { what: "entries in the memo", limit: limits::MEMO }.into());
        }
        let packed = self.pack(value)?;
        self.entries.push(packed);
        Ok(number as u32)
    }

    /// As [`push`](Self::push), where the pickle says which number it expects.
    pub(crate) fn push_as(&mut self, index: u32, value: Value) -> Result<u32, Halt> {
        let expected = self.entries.len();
        if index as usize != expected {
            return Err(PickleFault::MemoOutOfOrder { index, expected }.into());
        }
        self.push(value)
    }

    /// Replaces an entry by what became of it.
    pub(crate) fn settle(&mut self, entry: u32, value: Value) -> Result<(), Halt> {
        let packed = self.pack(value)?;
        self.entries.set(entry as usize, packed);
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<Value> {
        match Value::unpack(self.entries.get(index as usize)?) {
            Ok(value) => Some(value),
            Err(number) => self.numbers.get(number).copied().map(Value::Whole),
        }
    }

    fn pack(&mut self, value: Value) -> Result<u32, Halt> {
        if let Value::Whole(number) = value {
            let place = self.numbers.len();
            if place as u64 >= limits::OBJECTS {
                return Err(PickleFault::TooMany { what: "numbers in the memo", limit: limits::OBJECTS }.into());
            }
            self.numbers.push(number);
            return Ok(place as u32);
        }
        value.pack().ok_or_else(|| PickleFault::TooMany { what: "objects", limit: 1 << 27 }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_numbered_in_order_and_settle_on_what_they_become() {
        let mut memo = Memo::default();
        assert_eq!(memo.push(Value::OpenDict(None)).unwrap(), 0);
        assert_eq!(memo.push_as(1, Value::Whole(-7)).unwrap(), 1);
        memo.settle(0, Value::Frame(3)).unwrap();
        assert_eq!((memo.get(0), memo.get(1)), (Some(Value::Frame(3)), Some(Value::Whole(-7))));
        assert_eq!(memo.get(2), None);
        let far = memo.push_as(u32::MAX, Value::EmptyList).unwrap_err();
        assert_eq!(far.fault(), Some(PickleFault::MemoOutOfOrder { index: u32::MAX, expected: 2 }));
        assert!(memo.push_as(0, Value::EmptyList).is_err(), "no entry is replaced");
    }
}
