//! The header of a usage file: everything that there is little of.

use serde::{Deserialize, Serialize};

use crate::json::VERSION;

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub kind: String,
    pub version: u64,
    pub name: String,
    pub buffers: u64,
    pub pools: Vec<PoolHeader>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Vec<u64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_share: Vec<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contiguous: Vec<Vec<u64>>,
    /// Buffer, first event, event after the last, and the bytes that stay where some do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<(u64, i64, i64, Option<[u64; 2]>)>,
    /// Buffer and offset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
    /// Streams in decimal; the column of streams counts from one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<String>,
    /// Step and the event that closes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, i64)>,
    /// From which event on how much was held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<(i64, u64)>,
    /// The event of the first reading, and how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<(i64, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<LayoutHeader>,
    /// Names and lengths in bytes.
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
    pub fn new(name: &str, buffers: usize) -> Self {
        Self {
            kind: "usage".to_owned(),
            version: VERSION,
            name: name.to_owned(),
            buffers: buffers as u64,
            pools: Vec::new(),
            aliases: Vec::new(),
            may_share: Vec::new(),
            contiguous: Vec::new(),
            gaps: Vec::new(),
            pins: Vec::new(),
            texts: Vec::new(),
            streams: Vec::new(),
            steps: Vec::new(),
            reserved: Vec::new(),
            clock: None,
            layouts: Vec::new(),
            columns: Vec::new(),
        }
    }
}
