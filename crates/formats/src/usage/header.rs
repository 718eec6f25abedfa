//! The header of a usage file: everything that there is little of.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::json::VERSION;
use crate::limits;

#[derive(Serialize, Deserialize, Default)]
pub(super) struct Header {
    pub kind: String,
    pub version: u64,
    pub name: String,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub buffers: u64,
    #[serde(deserialize_with = "list")]
    pub pools: Vec<PoolHeader>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Vec<u64>>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub may_share: Vec<[u64; 2]>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub contiguous: Vec<Vec<u64>>,
    /// Buffer, first event, event after the last, and the bytes that stay where some do.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<(u64, i64, i64, Option<[u64; 2]>)>,
    /// Buffer and offset.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<[u64; 2]>,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<Box<str>>,
    /// Streams in decimal; the column of streams counts from one.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Box<str>>,
    /// Step and the event that closes it.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, i64)>,
    /// From which event on how much was held.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<(i64, u64)>,
    /// The event of the first reading, and how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<(i64, u64)>,
    /// Events between two readings of the clock.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub clock_every: u32,
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<LayoutHeader>,
    /// What the values of columns are multiples of, where that is more than one.
    #[serde(default, deserialize_with = "units", skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, u64>,
    /// Names and lengths in bytes.
    #[serde(deserialize_with = "list")]
    pub columns: Vec<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PoolHeader {
    pub name: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LayoutHeader {
    pub origin: String,
    pub heights: Vec<u64>,
    pub lower_bound: u64,
    pub proved: bool,
}

impl Header {
    pub fn new(name: &str, notes: &[String], buffers: usize) -> Self {
        Self {
            kind: "usage".to_owned(),
            version: VERSION,
            name: name.to_owned(),
            notes: notes.to_vec(),
            buffers: buffers as u64,
            ..Self::default()
        }
    }

    /// The length of its longest list.
    pub fn longest(&self) -> usize {
        let relations = [self.aliases.len(), self.may_share.len(), self.contiguous.len(), self.gaps.len()];
        let labels = [self.pools.len(), self.pins.len(), self.texts.len(), self.streams.len()];
        let others = [self.notes.len(), self.steps.len(), self.reserved.len(), self.layouts.len()];
        relations.into_iter().chain(labels).chain(others).max().unwrap_or(0)
    }
}

/// A list of no more entries than one may have.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if list.len() as u64 >= limits::BUFFERS {
                    return Err(A::Error::custom(format_args!("a list of more than {} entries", limits::BUFFERS)));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_seq(List(PhantomData))
}

/// Units by the names of columns; no more than there can be columns.
fn units<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, u64>, D::Error> {
    struct Units;

    impl<'de> Visitor<'de> for Units {
        type Value = BTreeMap<String, u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("units by columns")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            const MOST: usize = 1_000;
            let mut units = BTreeMap::new();
            while let Some((column, unit)) = entries.next_entry()? {
                units.insert(column, unit);
                if units.len() > MOST {
                    return Err(A::Error::custom(format_args!("more than {MOST} units")));
                }
            }
            Ok(units)
        }
    }

    deserializer.deserialize_map(Units)
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one(value: &u32) -> bool {
    *value == 1
}
