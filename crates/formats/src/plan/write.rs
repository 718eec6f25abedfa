//! Plans to JSON: the headline first, then the pools, then one line per buffer.

use std::io::Write;

use lowtide_core::{Buffer, Bytes, Placement, Plan, Pool, Problem};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind, json};

const RESERVED: [&str; 7] = ["kind", "version", "peak", "lower_bound", "proved", "pools", "buffers"];

/// Writes the plan for `problem` as JSON, with `extra` fields such as the solver's name beside the headline.
pub fn write_plan(problem: &Problem, plan: &Plan, extra: &Map<String, Value>, out: impl Write) -> Result<(), Error> {
    let (placements, buffers) = (plan.placements.len(), problem.buffers.len());
    if placements != buffers || plan.heights.len() != problem.pools.len() {
        return Err(Error::new(ErrorKind::PlanMismatch { placements, buffers }));
    }
    if let Some(name) = RESERVED.into_iter().find(|&name| extra.contains_key(name)) {
        return Err(Error::new(ErrorKind::ReservedField { name: name.to_owned() }));
    }
    let document = WrittenPlan {
        kind: "plan",
        version: json::VERSION,
        peak: plan.peak(),
        lower_bound: plan.lower_bound,
        proved: plan.proved,
        extra,
        pools: problem
            .pools
            .iter()
            .zip(&plan.heights)
            .map(|(pool, &height)| WrittenPool { name: &pool.name, capacity: pool.capacity, height })
            .collect(),
        buffers: WrittenEntries { problem, plan },
    };
    json::write(&document, out)
}

#[derive(Serialize)]
struct WrittenPlan<'a> {
    kind: &'static str,
    version: u64,
    peak: Bytes,
    lower_bound: Bytes,
    proved: bool,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
    pools: Vec<WrittenPool<'a>>,
    buffers: WrittenEntries<'a>,
}

#[derive(Serialize)]
struct WrittenPool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Bytes>,
    height: Bytes,
}

struct WrittenEntries<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
}

impl Serialize for WrittenEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { problem, plan } = self;
        let pairs = problem.buffers.iter().zip(&plan.placements);
        serializer.collect_seq(pairs.map(|(buffer, placement)| WrittenEntry::new(&problem.pools, buffer, placement)))
    }
}

#[derive(Serialize)]
struct WrittenEntry<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    offset: Bytes,
    size: Bytes,
    lower: i64,
    upper: i64,
}

impl<'a> WrittenEntry<'a> {
    fn new(pools: &'a [Pool], buffer: &'a Buffer, placement: &Placement) -> Self {
        Self {
            id: &buffer.id,
            pool: (pools.len() > 1).then(|| &*pools[placement.pool.get()].name),
            offset: placement.offset,
            size: buffer.size,
            lower: buffer.lifetime.lower,
            upper: buffer.lifetime.upper,
        }
    }
}
