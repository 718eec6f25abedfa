//! One value of a table on its way to a number, with what an error about it needs to say.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use crate::error::shorten::shorten;
use crate::{Error, ErrorKind};

/// A value, the column it stands in and the row.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) column: &'static str,
    pub(crate) text: &'a str,
    pub(crate) row: u64,
}

/// An integer that a cell can hold.
pub(crate) trait Number: FromStr<Err = ParseIntError> {
    const RANGE: &'static str;
}

impl Number for u64 {
    const RANGE: &'static str = "0 and 2^64-1";
}

impl Number for u32 {
    const RANGE: &'static str = "0 and 2^32-1";
}

impl Number for i64 {
    const RANGE: &'static str = "-2^63 and 2^63-1";
}

impl<'a> Cell<'a> {
    /// The number in the cell.
    pub(crate) fn number<N: Number>(self) -> Result<N, Error> {
        let text = self.text.trim_ascii();
        text.parse().map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::Empty => self.error(ErrorKind::MissingValue { column: self.column }),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => self.out_of_range::<N>(),
            _ if is_negative_number(text) => self.out_of_range::<N>(),
            _ => self.error(ErrorKind::NotANumber { column: self.column, value: shorten(text) }),
        })
    }

    /// The number in the cell, or nothing where the cell is empty.
    pub(crate) fn optional_number<N: Number>(self) -> Result<Option<N>, Error> {
        if self.text.trim_ascii().is_empty() { Ok(None) } else { self.number().map(Some) }
    }

    /// The address in the cell, decimal or in hex behind `0x`; nothing where the cell is empty.
    pub(crate) fn optional_address(self) -> Result<Option<u64>, Error> {
        let text = self.text.trim_ascii();
        let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) else {
            return self.optional_number();
        };
        // The parser would take a sign.
        let parsed = if digits.starts_with('+') { "" } else { digits };
        u64::from_str_radix(parsed, 16).map(Some).map_err(|error| match error.kind() {
            IntErrorKind::PosOverflow => self.out_of_range::<u64>(),
            _ => self.error(ErrorKind::NotANumber { column: self.column, value: shorten(text) }),
        })
    }

    /// The text in the cell, which may not be empty.
    pub(crate) fn required(self) -> Result<&'a str, Error> {
        if self.text.is_empty() {
            Err(self.error(ErrorKind::MissingValue { column: self.column }))
        } else {
            Ok(self.text)
        }
    }

    pub(crate) fn out_of_range<N: Number>(self) -> Error {
        let value = shorten(self.text.trim_ascii());
        self.error(ErrorKind::OutOfRange { column: self.column, value, range: N::RANGE })
    }

    pub(crate) fn error(self, kind: ErrorKind) -> Error {
        Error::at(self.row, kind)
    }
}

fn is_negative_number(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<N: Number>(text: &str) -> Result<N, ErrorKind> {
        Cell { column: "size", text, row: 7 }.number().map_err(|error| error.kind)
    }

    #[test]
    fn numbers_are_plain_whole_numbers_in_range() {
        assert_eq!(read::<u64>(" 12 ").unwrap(), 12);
        assert_eq!(read::<i64>("-9223372036854775808").unwrap(), i64::MIN);
        assert!(matches!(read::<u64>("-1"), Err(ErrorKind::OutOfRange { .. })));
        assert!(matches!(read::<u64>("18446744073709551616"), Err(ErrorKind::OutOfRange { .. })));
        assert!(matches!(read::<u32>("4294967296"), Err(ErrorKind::OutOfRange { .. })));
        for text in ["1.5", "0x10", "1e3", "-", "1_000", "١"] {
            assert!(matches!(read::<u64>(text), Err(ErrorKind::NotANumber { .. })), "{text}");
        }
        assert!(matches!(read::<u64>(" "), Err(ErrorKind::MissingValue { .. })));
    }

    #[test]
    fn addresses_are_decimal_or_hex() {
        let read = |text| Cell { column: "address", text, row: 7 }.optional_address().map_err(|error| error.kind);
        assert_eq!(read(" ").unwrap(), None);
        assert_eq!(read(" 4096 ").unwrap(), Some(4096));
        assert_eq!(read("0x7fAB").unwrap(), Some(0x7fab));
        assert_eq!(read("0XFFFFFFFFFFFFFFFF").unwrap(), Some(u64::MAX));
        assert!(matches!(read("0x10000000000000000"), Err(ErrorKind::OutOfRange { .. })));
        for text in ["0x", "0x+1", "0x-1", "0xg", "ff"] {
            assert!(matches!(read(text), Err(ErrorKind::NotANumber { .. })), "{text}");
        }
    }
}
