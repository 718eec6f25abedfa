//! The first row of a CSV file: it says what kind of file this is and where each column stands. Names are
//! compared without regard to case and surrounding space.

use std::collections::HashMap;

use super::records::Records;
use crate::error::shorten::{shorten, shorten_message};
use crate::{Error, ErrorKind};

/// The names that a buffer's id goes by.
pub(crate) const ID: &[&str] = &["id", "buffer", "buffer_id"];
/// The names that the begin of a lifetime goes by.
pub(crate) const LOWER: &[&str] = &["lower", "begin", "start"];
/// The names that the end of a lifetime goes by; `end` is inclusive.
pub(crate) const UPPER: &[&str] = &["upper", "end"];
/// The name of a buffer's size.
pub(crate) const SIZE: &[&str] = &["size"];
/// The name of a buffer's offset.
pub(crate) const OFFSET: &[&str] = &["offset"];

const EXPECTED: &str = "`id,lower,upper,size` (lifetimes) or `event,id,bytes,stream` (a trace)";

/// What a CSV file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Lifetimes,
    Trace,
}

/// The columns of a CSV file.
pub(crate) struct Header {
    raw: String,
    names: Vec<String>,
    places: HashMap<String, usize>,
    duplicate: Option<(usize, usize)>,
    row: u64,
    carriage_return: bool,
}

impl Header {
    /// Reads the first record.
    pub(crate) fn read(records: &mut Records<'_>) -> Result<Self, Error> {
        if !records.advance()? {
            return Err(Error::new(ErrorKind::Empty));
        }
        let names: Vec<String> = records.fields().iter().map(|name| name.trim().to_owned()).collect();
        let mut places = HashMap::with_capacity(names.len());
        let mut duplicate = None;
        for (place, name) in names.iter().enumerate() {
            let first = places.insert(name.to_ascii_lowercase(), place);
            duplicate = duplicate.or(first.map(|first| (first, place)));
        }
        let carriage_return = records.ends_with_carriage_return();
        Ok(Self { raw: records.raw().to_owned(), names, places, duplicate, row: records.row(), carriage_return })
    }

    /// The header as it stands in the file.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// The line break of the file.
    pub(crate) fn line_break(&self) -> &'static str {
        if self.carriage_return { "\r\n" } else { "\n" }
    }

    /// The columns' names in order, without surrounding space.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of the one column that goes by one of `names`.
    pub(crate) fn find(&self, names: &[&str]) -> Result<Option<usize>, Error> {
        let mut found = names.iter().filter_map(|&name| self.places.get(name).copied());
        let place = found.next();
        if let (Some(first), Some(second)) = (place, found.next()) {
            return Err(self.same_meaning(first, second));
        }
        Ok(place)
    }

    /// As [`find`](Self::find), where the column must be there.
    pub(crate) fn require(&self, names: &[&'static str]) -> Result<usize, Error> {
        self.find(names)?.ok_or_else(|| {
            Error::at(self.row, ErrorKind::MissingColumn { column: names[0], found: shorten_message(&self.raw) })
        })
    }

    /// Refuses a header with two columns of one name. Comes after the question what the file is: the first row of
    /// a table without a header often has the same value twice.
    pub(crate) fn require_unique(&self) -> Result<(), Error> {
        self.duplicate.map_or(Ok(()), |(first, second)| Err(self.same_meaning(first, second)))
    }

    fn same_meaning(&self, first: usize, second: usize) -> Error {
        let [first, second] = [first, second].map(|place| shorten(&self.names[place]));
        Error::at(self.row, ErrorKind::DuplicateColumn { first, second })
    }

    /// Whether the column at `place` is called `name`.
    pub(crate) fn is_named(&self, place: usize, name: &str) -> bool {
        self.names[place].eq_ignore_ascii_case(name)
    }

    /// What the file holds. A header that lacks one column of a kind is taken for that kind, so that its reader
    /// can name the column.
    pub(crate) fn dialect(&self) -> Result<Dialect, Error> {
        let has = |names: &[&str]| names.iter().any(|&name| self.places.contains_key(name));
        let dialect = if has(&["event"]) && has(&["id"]) {
            Dialect::Trace
        } else if [ID, LOWER, UPPER, SIZE].into_iter().filter(|names| has(names)).count() >= 3 {
            Dialect::Lifetimes
        } else if let Some(separator) = self.other_separator() {
            return Err(Error::at(self.row, ErrorKind::OtherSeparator { separator }));
        } else {
            let kind = ErrorKind::UnknownHeader { found: shorten_message(&self.raw), expected: EXPECTED };
            return Err(Error::at(self.row, kind));
        };
        self.require_unique()?;
        Ok(dialect)
    }

    /// What separates the columns of a header that is one column by its commas.
    fn other_separator(&self) -> Option<&'static str> {
        let count = |letter| self.raw.matches(letter).count();
        let others = [(';', "semicolons"), ('\t', "tabs")];
        others.into_iter().find(|&(letter, _)| self.names.len() == 1 && count(letter) >= 2).map(|(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<Header, Error> {
        Header::read(&mut Records::new(Box::new(text.as_bytes())))
    }

    #[test]
    fn the_header_tells_the_kinds_apart() {
        let dialect = |text| header(text).unwrap().dialect();
        assert_eq!(dialect("id,lower,upper,size").unwrap(), Dialect::Lifetimes);
        assert_eq!(dialect(" Size ,END,begin,Buffer_ID").unwrap(), Dialect::Lifetimes);
        assert_eq!(dialect("id,lower,size").unwrap(), Dialect::Lifetimes, "its reader names the missing column");
        assert_eq!(dialect("time_ns,event,id,bytes").unwrap(), Dialect::Trace);
    }

    #[test]
    fn an_unknown_header_is_named_beside_those_expected() {
        let error = header("tick,kind,id,size,phase,op").unwrap().dialect().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown header `tick,kind,id,size,phase,op`; expected `id,lower,upper,size` (lifetimes) or \
             `event,id,bytes,stream` (a trace)"
        );
        assert_eq!(error.row, Some(1));
    }

    #[test]
    fn other_separators_than_commas_are_named() {
        for (text, expected) in [("id;lower;upper;size", "semicolons"), ("event\tid\tbytes\tstream", "tabs")] {
            let error = header(text).unwrap().dialect().unwrap_err();
            assert!(matches!(error.kind, ErrorKind::OtherSeparator { separator } if separator == expected), "{error}");
        }
    }

    #[test]
    fn a_table_without_a_header_is_not_blamed_for_equal_values() {
        let error = header("0,0,4,8").unwrap().dialect().unwrap_err();
        assert!(matches!(error.kind, ErrorKind::UnknownHeader { .. }));
    }

    #[test]
    fn two_columns_of_one_meaning_are_refused() {
        let error = header("id,lower,upper,size,Note,note").unwrap().dialect().unwrap_err();
        assert_eq!(error.to_string(), "columns `Note` and `note` mean the same");
        let error = header("id,buffer,lower,upper,size").unwrap().find(ID).unwrap_err();
        assert_eq!(error.to_string(), "columns `id` and `buffer` mean the same");
    }
}
