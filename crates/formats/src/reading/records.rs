//! The CSV reader: one record at a time, in bounded memory, each with the physical line it begins on. Rows that
//! are too long, too many, ragged, badly quoted or not UTF-8 are refused here, so that the readers above see
//! only sound fields.

use std::io::{BufRead, BufReader, Read};

use super::fields::Fields;
use crate::{Error, ErrorKind, limits};

const READ_BYTES: usize = 64 << 10;
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The records of a CSV text, header included.
pub(crate) struct Records<'a> {
    source: BufReader<Box<dyn Read + 'a>>,
    raw: String,
    fields: Fields,
    row: u64,
    lines: u64,
    bytes: u64,
    count: u64,
    carriage_return: bool,
    row_limit: u64,
}

impl<'a> Records<'a> {
    pub(crate) fn new(source: Box<dyn Read + 'a>) -> Self {
        Self {
            source: BufReader::with_capacity(READ_BYTES, source),
            raw: String::new(),
            fields: Fields::default(),
            row: 0,
            lines: 0,
            bytes: 0,
            count: 0,
            carriage_return: false,
            row_limit: limits::ROWS,
        }
    }

    /// The line that the record begins on, counted from one.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The record as it stands in the file, without its line break.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether the record's line break was that of DOS.
    pub(crate) fn ends_with_carriage_return(&self) -> bool {
        self.carriage_return
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Moves to the next record; `false` at the end. Blank lines are skipped.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if !self.read_record()? {
                return Ok(false);
            }
            if self.raw.trim_ascii().is_empty() {
                continue;
            }
            self.count += 1;
            if self.count > self.row_limit + 1 {
                return Err(self.error(ErrorKind::TooManyRows { limit: self.row_limit }));
            }
            let split = self.fields.split(&self.raw);
            return split.map(|()| true).map_err(|_| self.error(ErrorKind::StrayQuote));
        }
    }

    /// As [`advance`](Self::advance), for the rows under a header of `columns` fields.
    pub(crate) fn advance_row(&mut self, columns: usize) -> Result<bool, Error> {
        if !self.advance()? {
            return Ok(false);
        }
        let found = self.fields.len();
        if found == columns { Ok(true) } else { Err(self.error(ErrorKind::RaggedRow { found, expected: columns })) }
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::at(self.row, kind)
    }

    /// Reads lines until quotes are balanced; `false` at the end of the text.
    fn read_record(&mut self) -> Result<bool, Error> {
        let mut raw = std::mem::take(&mut self.raw).into_bytes();
        raw.clear();
        self.row = self.lines + 1;
        let mut open = false;
        loop {
            let start = raw.len();
            let room = limits::LINE - start as u64;
            let read = (&mut self.source).take(room + 1).read_until(b'\n', &mut raw);
            let read = read.map_err(|error| Error::reading(error, Some(self.lines + 1)))? as u64;
            if read == 0 {
                return if open { Err(self.error(ErrorKind::UnclosedQuote)) } else { Ok(false) };
            }
            self.lines += 1;
            self.bytes += read;
            if read > room {
                let kind = if open { ErrorKind::UnclosedQuote } else { ErrorKind::LineTooLong { limit: limits::LINE } };
                return Err(self.error(kind));
            }
            if self.bytes > limits::CSV {
                return Err(self.error(ErrorKind::FileTooLong { limit: limits::CSV }));
            }
            open = raw[start..].iter().fold(open, |open, &byte| open ^ (byte == b'"'));
            if !open {
                break;
            }
        }
        self.finish(raw)
    }

    fn finish(&mut self, mut raw: Vec<u8>) -> Result<bool, Error> {
        self.carriage_return = raw.ends_with(b"\r\n");
        let line_break = if self.carriage_return { 2 } else { usize::from(raw.ends_with(b"\n")) };
        raw.truncate(raw.len() - line_break);
        self.raw = String::from_utf8(raw).map_err(|_| self.error(ErrorKind::NotUtf8))?;
        if self.row == 1 && self.raw.starts_with(BYTE_ORDER_MARK) {
            self.raw.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(u64, Vec<String>)>, Error> {
        let mut records = Records::new(Box::new(text.as_bytes()));
        let mut rows = Vec::new();
        while records.advance()? {
            rows.push((records.row(), records.fields().iter().map(str::to_owned).collect()));
        }
        Ok(rows)
    }

    #[test]
    fn rows_carry_their_physical_line() {
        let text = "\u{feff}a,b\r\n\r\n  \n1,2\n\"x\ny\",3\n4,5";
        let rows = rows(text).unwrap();
        let lines: Vec<u64> = rows.iter().map(|(row, _)| *row).collect();
        assert_eq!(lines, [1, 4, 5, 7]);
        assert_eq!(rows[0].1, ["a", "b"]);
        assert_eq!(rows[2].1, ["x\ny", "3"]);
    }

    #[test]
    fn an_open_quote_is_reported_where_its_record_begins() {
        let error = rows("a,b\n1,\"2\n3,4\n5,6\n").unwrap_err();
        assert!(matches!(error, Error { row: Some(2), kind: ErrorKind::UnclosedQuote }));
        let endless = format!("a,b\n1,\"{}", "2\n".repeat(1 << 20));
        assert!(matches!(rows(&endless).unwrap_err(), Error { row: Some(2), kind: ErrorKind::UnclosedQuote }));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let limit = limits::LINE as usize;
        assert_eq!(rows(&format!("a\n{}\n", "x".repeat(limit - 1))).unwrap().len(), 2);
        let error = rows(&format!("a\n{}\n", "x".repeat(limit))).unwrap_err();
        assert!(matches!(error, Error { row: Some(2), kind: ErrorKind::LineTooLong { .. } }));
    }

    #[test]
    fn rows_are_counted_without_the_header_and_blank_lines() {
        let mut records = Records { row_limit: 2, ..Records::new(Box::new(&b"a\n\n1\n2\n3\n"[..])) };
        for _ in 0..3 {
            assert!(records.advance().unwrap());
        }
        let error = records.advance().unwrap_err();
        assert!(matches!(error, Error { row: Some(5), kind: ErrorKind::TooManyRows { limit: 2 } }));
    }
}
