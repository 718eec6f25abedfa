//! The first look at an input: decompress it and tell a table from JSON, a page or a pickle by its first
//! character.

use std::io::{Cursor, Read};

use crate::records::Records;
use crate::{Error, ErrorKind, decompress, limits, snapshot};

/// How far the first character may be from the start: blank lines may precede it.
const SNIFF_BYTES: u64 = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input whose kind is not yet known.
pub(crate) enum Opened<'a> {
    Table(Records<'a>),
    Json(Vec<u8>),
    Pickle(Box<dyn Read + 'a>),
    /// A page: its beginning, and what follows.
    Html(Vec<u8>, Box<dyn Read + 'a>),
}

pub(crate) fn open<'a>(reader: impl Read + 'a) -> Result<Opened<'a>, Error> {
    let mut text = decompress(reader)?;
    let mut start = Vec::new();
    if let Err(error) = text.by_ref().take(SNIFF_BYTES).read_to_end(&mut start) {
        let row = start.split(|&byte| byte == b'\n').count() as u64;
        return Err(Error::reading(error, Some(row)));
    }
    if start.first() == Some(&snapshot::FIRST_BYTE) {
        return Ok(Opened::Pickle(Box::new(Cursor::new(start).chain(text))));
    }
    let first = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start).trim_ascii_start().first().copied();
    if matches!(first, Some(b'{' | b'[')) {
        return read_json(start, text, limits::JSON).map(Opened::Json);
    }
    if first == Some(b'<') {
        return Ok(Opened::Html(start, Box::new(text)));
    }
    Ok(Opened::Table(Records::new(Box::new(Cursor::new(start).chain(text)))))
}

/// The whole text without a byte order mark.
fn read_json(start: Vec<u8>, rest: impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut text = start;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    rest.take(limit + 1).read_to_end(&mut text).map_err(|error| Error::reading(error, None))?;
    if text.len() as u64 > limit {
        return Err(Error::new(ErrorKind::FileTooLong { limit }));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_first_character_behind_blank_lines() {
        for text in ["{}", " \n {", "\u{feff}\n[", "\u{feff}{"] {
            assert!(matches!(open(text.as_bytes()), Ok(Opened::Json(_))), "{text:?}");
        }
        for text in ["", "id", "\n\nid,{"] {
            assert!(matches!(open(text.as_bytes()), Ok(Opened::Table(_))), "{text:?}");
        }
    }

    #[test]
    fn json_that_never_ends_is_left_at_its_limit() {
        let error = read_json(b"{".to_vec(), std::io::repeat(b' '), 100).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::FileTooLong { limit: 100 }));
        assert_eq!(read_json(b"{}".to_vec(), std::io::empty(), 2).unwrap(), b"{}");
    }
}
