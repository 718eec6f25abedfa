//! The first look at an input: decompress it and tell a table from JSON, a page or a pickle by its first
//! character.

use std::io::{Cursor, Read};

use super::decompress;
use super::records::Records;
use crate::{Error, ErrorKind, limits, snapshot};

/// How far the first character may be from the start: blank lines may precede it.
const SNIFF_BYTES: u64 = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
/// How many bytes of a text are in its header, and so never zero.
const TOLD_BY: usize = 16;
const OLD_PICKLE: &str = "a pickle of protocol 0 or 1";
pub(crate) const PROGRAM: &str = "a program or a library";
pub(crate) const SAVED: &str = "a zip archive, as `torch.save` writes it";
/// Files that other programs compress.
pub(crate) const COMPRESSED: [&str; 3] = ["compressed by zstd", "compressed by xz", "compressed by bzip2"];
/// What other files begin with.
const KNOWN: [(&[u8], &str); 14] = [
    (b"PK\x03\x04", SAVED),
    (b"\x7fELF", PROGRAM),
    (b"\x28\xb5\x2f\xfd", COMPRESSED[0]),
    (b"\xfd7zXZ\0", COMPRESSED[1]),
    (b"BZh", COMPRESSED[2]),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3\0", "an SQLite database, as Nsight Systems exports it"),
    (b"\x89PNG", "a PNG image"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"(dp", OLD_PICKLE),
    (b"(lp", OLD_PICKLE),
    (b"}q", OLD_PICKLE),
    (b"]q", OLD_PICKLE),
];

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
    if let Some(what) = known_binary(&start) {
        return Err(Error::new(ErrorKind::UnknownBinary { what }));
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

/// What a file is that can be none of the inputs, where its first bytes tell.
fn known_binary(start: &[u8]) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)).map(|&(_, what)| what);
    known.or_else(|| (!is_text(start)).then_some("a binary file"))
}

/// Text has no zeros, and hardly any other bytes that only steer a terminal.
fn is_text(start: &[u8]) -> bool {
    if start.first() == Some(&snapshot::FIRST_BYTE) || UTF_16.iter().any(|mark| start.starts_with(mark)) {
        return true;
    }
    let is_control = |&&byte: &&u8| byte < b' ' && !byte.is_ascii_whitespace();
    !start.iter().take(TOLD_BY).any(|&byte| byte == 0) && start.iter().filter(is_control).count() * 20 <= start.len()
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
    fn files_of_other_programs_are_named() {
        for (start, expected) in [
            (&b"PK\x03\x04\x14\0"[..], "a zip archive, as `torch.save` writes it"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\r", "a PNG image"),
            (b"\x7fELF\x02\x01\x01\0", "a program or a library"),
            (b"\x28\xb5\x2f\xfd\x04", "compressed by zstd"),
            (b"\x01\x02\x03\x04\x05binary\x06", "a binary file"),
            (b"\0\x01", "a binary file"),
            (b"(dp0\nVsegments\n", "a pickle of protocol 0 or 1"),
            (b"}q\0(X", "a pickle of protocol 0 or 1"),
        ] {
            let error = open(start).err().map(|error| error.kind);
            assert!(matches!(error, Some(ErrorKind::UnknownBinary { what }) if what == expected), "{error:?}");
        }
    }

    #[test]
    fn json_that_never_ends_is_left_at_its_limit() {
        let error = read_json(b"{".to_vec(), std::io::repeat(b' '), 100).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::FileTooLong { limit: 100 }));
        assert_eq!(read_json(b"{}".to_vec(), std::io::empty(), 2).unwrap(), b"{}");
    }
}
