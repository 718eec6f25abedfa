//! What all JSON files have in common: objects with a `kind` and a `version`, ids that may be written as numbers,
//! and a layout with one buffer per line.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

use crate::error::shorten::shorten;
use crate::{Error, ErrorKind};

/// The version that is read and written.
pub(crate) const VERSION: u64 = 1;

/// What a JSON file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Document {
    Problem,
    Plan,
}

#[derive(serde::Deserialize)]
struct Probe<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    version: Option<&'a RawValue>,
}

/// Which document a JSON text is, where its version is known; `expected` names those that would do.
pub(crate) fn kind(text: &[u8], expected: &'static str) -> Result<Document, Error> {
    let probe: Probe<'_> = read(text)?;
    let kind = match probe.kind.as_deref() {
        Some("problem") => Document::Problem,
        Some("plan") => Document::Plan,
        other => {
            let found = other.map_or_else(|| "missing".to_owned(), |kind| format!("`{}`", shorten(kind)));
            return Err(Error::new(ErrorKind::WrongKind { found, expected }));
        }
    };
    match probe.version {
        Some(version) if version.get().parse() == Ok(VERSION) => Ok(kind),
        other => {
            let found = other.map_or_else(|| "missing".to_owned(), |version| shorten(version.get()));
            Err(Error::new(ErrorKind::UnknownVersion { found }))
        }
    }
}

/// A `T` that is written as an object. A derived reader alone would also take a list of its fields in order,
/// which no document here is meant to be.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Reads a whole text as a `T`.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map(|Object(document)| document).map_err(|error| Error::json(&error))
}

/// A buffer's id: a text, or a whole number that stands for its digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Id(pub(crate) Box<str>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id, which is a text that is not empty or a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
        if text.is_empty() { Err(E::invalid_value(de::Unexpected::Str(text), &self)) } else { Ok(Id(text.into())) }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
        Ok(Id(number.to_string().into()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id(number.to_string().into()))
    }
}

/// Writes `document` with one field per line, and one line per item of a list among these.
pub(crate) fn write(document: &impl Serialize, out: impl Write) -> Result<(), Error> {
    let mut serializer = Serializer::with_formatter(BufWriter::new(out), LineLayout::default());
    document.serialize(&mut serializer).map_err(Error::writing)?;
    serializer.into_inner().flush().map_err(Error::writing)
}

/// Lines for the outer two levels, so that a message's line number says which buffer is meant.
#[derive(Default)]
struct LineLayout {
    depth: usize,
    list_has_items: bool,
}

impl Formatter for LineLayout {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"\n}\n" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        begin_item(out, first, (self.depth == 1).then_some("\n  "))
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.depth == 2 {
            self.list_has_items = false;
        }
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let is_outer = self.depth == 2;
        self.depth -= 1;
        out.write_all(if is_outer && self.list_has_items { b"\n  ]" } else { b"]" })
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        let is_outer = self.depth == 2;
        self.list_has_items |= is_outer;
        begin_item(out, first, is_outer.then_some("\n    "))
    }
}

fn begin_item<W: ?Sized + Write>(out: &mut W, first: bool, line: Option<&str>) -> io::Result<()> {
    out.write_all(match (first, line) {
        (true, _) => b"",
        (false, Some(_)) => b",",
        (false, None) => b", ",
    })?;
    out.write_all(line.unwrap_or_default().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_line_per_field_and_per_item() {
        let document = serde_json::json!({"a": [{"x": [1, 2], "y": {}}, 3], "b": [], "c": {"d": [1]}});
        let mut out = Vec::new();
        write(&document, &mut out).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), document);
        let text = String::from_utf8(out).unwrap();
        let expected =
            "{\n  \"a\": [\n    {\"x\": [1, 2], \"y\": {}},\n    3\n  ],\n  \"b\": [],\n  \"c\": {\"d\": [1]}\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn ids_are_texts_or_whole_numbers() {
        let read = |text| serde_json::from_str::<Id>(text).map(|id| id.0.to_string());
        assert_eq!(read("\"a\\n\"").unwrap(), "a\n");
        assert_eq!(read("7").unwrap(), "7");
        assert_eq!(read("-7").unwrap(), "-7");
        for text in ["\"\"", "1.5", "null", "[]", "99999999999999999999"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn kinds_and_versions_that_are_unknown_have_names() {
        let kind = |text: &str| kind(text.as_bytes(), "`problem`").map_err(|error| error.kind);
        assert_eq!(kind(r#"{"kind":"plan","version":1,"x":[]}"#).unwrap(), Document::Plan);
        assert!(matches!(kind(r#"{"kind":"graph","version":1}"#), Err(ErrorKind::WrongKind { .. })));
        assert!(matches!(kind("{}"), Err(ErrorKind::WrongKind { .. })));
        assert!(matches!(kind(r#"{"kind":"plan","version":2}"#), Err(ErrorKind::UnknownVersion { .. })));
        assert!(matches!(kind(r#"{"kind":"plan"}"#), Err(ErrorKind::UnknownVersion { .. })));
        assert!(matches!(kind(r#"["plan", 1]"#), Err(ErrorKind::BadJson(_))));
    }
}
