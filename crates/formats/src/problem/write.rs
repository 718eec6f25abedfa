//! [`Problem`] to problem JSON, leaving out what is as it would be without being said.

use std::io::Write;

use lowtide_core::{Align, Buffer, BufferIndex, Bytes, Class, Gap, PoolIndex, Problem};
use serde::Serialize;

use crate::{Error, json};

/// Writes `problem` as JSON; reading it gives the same problem again. It must pass its own check.
pub fn write_problem(problem: &Problem, out: impl Write) -> Result<(), Error> {
    let id = |index: &BufferIndex| &*problem.buffer(*index).id;
    let sets = |sets: &'_ [Vec<BufferIndex>]| sets.iter().map(|set| set.iter().map(id).collect()).collect();
    let pool_name = |pool: PoolIndex| &*problem.pools[pool.get()].name;
    let buffer = |buffer| WrittenBuffer::new(buffer, (problem.pools.len() > 1).then_some(pool_name));
    let document = WrittenProblem {
        kind: "problem",
        version: json::VERSION,
        buffers: problem.buffers.iter().map(buffer).collect(),
        aliases: sets(&problem.aliases),
        may_share: problem.may_share.iter().map(|(a, b)| (id(a), id(b))).collect(),
        contiguous: sets(&problem.contiguous),
        pools: problem
            .pools
            .iter()
            .map(|pool| WrittenPool { name: &pool.name, capacity: pool.capacity, spill: pool.spill.map(pool_name) })
            .collect(),
    };
    json::write(&document, out)
}

#[derive(Serialize)]
struct WrittenProblem<'a> {
    kind: &'static str,
    version: u64,
    buffers: Vec<WrittenBuffer<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_share: Vec<(&'a str, &'a str)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contiguous: Vec<Vec<&'a str>>,
    pools: Vec<WrittenPool<'a>>,
}

#[derive(Serialize)]
struct WrittenBuffer<'a> {
    id: &'a str,
    lower: i64,
    upper: i64,
    size: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<Align>,
    #[serde(skip_serializing_if = "<[Gap]>::is_empty")]
    gaps: &'a [Gap],
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
}

impl<'a> WrittenBuffer<'a> {
    fn new(buffer: &'a Buffer, pool_name: Option<impl Fn(PoolIndex) -> &'a str>) -> Self {
        Self {
            id: &buffer.id,
            lower: buffer.lifetime.lower,
            upper: buffer.lifetime.upper,
            size: buffer.size,
            alignment: Some(buffer.align).filter(|&align| align != Align::ONE),
            gaps: &buffer.gaps,
            offset: buffer.pin,
            class: Some(buffer.class).filter(|&class| class != Class::default()),
            pool: pool_name.map(|name| name(buffer.pool)),
        }
    }
}

#[derive(Serialize)]
struct WrittenPool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill: Option<&'a str>,
}
