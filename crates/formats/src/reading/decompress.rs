//! Any text input may be gzip: the first two bytes tell. Faults of the compressed stream are told apart from
//! those of the reader under it.

use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

use crate::Error;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The text of `reader`, decompressed when it is gzip and as it is otherwise.
pub fn decompress<R: Read>(mut reader: R) -> Result<Decompressed<R>, Error> {
    let mut start = Vec::new();
    reader.by_ref().take(2).read_to_end(&mut start).map_err(|error| Error::reading(error, None))?;
    let is_gzip = start == GZIP_MAGIC;
    let whole = Cursor::new(start).chain(reader);
    Ok(Decompressed(if is_gzip {
        Inner::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(whole))))
    } else {
        Inner::Plain(whole)
    }))
}

/// What [`decompress`] returns.
pub struct Decompressed<R>(Inner<R>);

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

enum Inner<R> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Whole<R>>>>),
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Plain(reader) => reader.read(buffer),
            Inner::Gzip(decoder) => decoder.read(buffer).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other(GzipFault::Truncated),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    io::Error::other(GzipFault::Corrupt(error.to_string()))
                }
                _ => error,
            }),
        }
    }
}

/// What is wrong with a gzip stream, as the payload of an [`io::Error`].
#[derive(Debug)]
pub(crate) enum GzipFault {
    Truncated,
    Corrupt(String),
}

impl fmt::Display for GzipFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated gzip data"),
            Self::Corrupt(why) => write!(f, "damaged gzip data: {why}"),
        }
    }
}

impl std::error::Error for GzipFault {}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::ErrorKind;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<String, Error> {
        let mut text = String::new();
        decompress(bytes)?.read_to_string(&mut text).map_err(|error| Error::reading(error, None))?;
        Ok(text)
    }

    #[test]
    fn plain_and_gzip_text_read_the_same() {
        for text in ["", "x", "some text"] {
            assert_eq!(read(text.as_bytes()).unwrap(), text);
            assert_eq!(read(&gzip(text.as_bytes())).unwrap(), text);
        }
    }

    #[test]
    fn several_gzip_members_are_one_text() {
        assert_eq!(read(&[gzip(b"one "), gzip(b"two")].concat()).unwrap(), "one two");
    }

    #[test]
    fn truncated_and_damaged_streams_have_names() {
        let whole = gzip(b"some text that is long enough to be cut");
        for end in 2..whole.len() {
            let error = read(&whole[..end]).unwrap_err();
            assert!(matches!(error.kind, ErrorKind::TruncatedGzip), "cut at {end}: {error:?}");
        }
        let mut damaged = whole.clone();
        let last = damaged.len() - 5;
        damaged[last] ^= 1;
        assert!(matches!(read(&damaged).unwrap_err().kind, ErrorKind::CorruptGzip(_)));
        let trailed = [whole, b"rubbish behind the end".to_vec()].concat();
        assert!(matches!(read(&trailed).unwrap_err().kind, ErrorKind::CorruptGzip(_)));
    }
}
