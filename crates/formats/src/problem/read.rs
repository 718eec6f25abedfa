//! Problem JSON to [`Problem`]: buffers with everything that binds them. The documents that stand here are the
//! schema; a field that is not in them is refused, so that a misspelt relation cannot go unnoticed.
//!
//! ```json
//! {
//!   "kind": "problem",
//!   "version": 1,
//!   "buffers": [
//!     {"id": "a", "lower": 0, "upper": 9, "size": 64, "alignment": 16, "offset": 0, "class": "persistent"},
//!     {"id": "b", "lower": 2, "upper": 9, "size": 64, "pool": "fast",
//!      "gaps": [{"lower": 4, "upper": 6, "window": {"lower": 0, "upper": 16}}]}
//!   ],
//!   "aliases": [["a", "c"]],
//!   "may_share": [["a", "d"]],
//!   "contiguous": [["e", "f", "g"]],
//!   "pools": [{"name": "fast", "capacity": 1024, "spill": "slow"}, {"name": "slow"}]
//! }
//! ```
//!
//! Only `kind`, `version`, `buffers` and a buffer's `id`, `lower`, `upper` and `size` must be there. Ids may be
//! whole numbers. Without `pools` there is one without a limit, called `main`; without `pool` a buffer belongs to
//! the first.

use std::collections::HashMap;
use std::fmt;

use lowtide_core::{Align, Buffer, BufferIndex, Bytes, Class, Gap, Lifetime, Pool, PoolIndex, Problem, Window};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use crate::error::shorten::shorten;
use crate::json::{self, Id, Object};
use crate::{Error, ErrorKind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProblemDocument {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "version")]
    _version: u64,
    buffers: Vec<Object<BufferDocument>>,
    #[serde(default)]
    aliases: Vec<Vec<Id>>,
    #[serde(default)]
    may_share: Vec<Pair>,
    #[serde(default)]
    contiguous: Vec<Vec<Id>>,
    #[serde(default)]
    pools: Vec<Object<PoolDocument>>,
}

/// Two ids in a list.
struct Pair(Id, Id);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairVisitor)
    }
}

struct PairVisitor;

impl<'de> Visitor<'de> for PairVisitor {
    type Value = Pair;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pair of ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pair, A::Error> {
        let (first, second) = (list.next_element()?, list.next_element()?);
        let mut count = usize::from(first.is_some()) + usize::from(second.is_some());
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        match (first, second) {
            (Some(first), Some(second)) if count == 2 => Ok(Pair(first, second)),
            _ => Err(A::Error::custom(format!("a may-share pair has two ids, this one has {count}"))),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferDocument {
    id: Id,
    lower: i64,
    upper: i64,
    size: Bytes,
    #[serde(default)]
    alignment: Align,
    #[serde(default)]
    gaps: Vec<Object<GapDocument>>,
    offset: Option<Bytes>,
    #[serde(default)]
    class: Class,
    pool: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GapDocument {
    lower: i64,
    upper: i64,
    window: Option<Object<WindowDocument>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowDocument {
    lower: Bytes,
    upper: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolDocument {
    name: Box<str>,
    capacity: Option<Bytes>,
    spill: Option<Box<str>>,
}

/// Reads a JSON text whose kind and version are known.
pub(crate) fn read(text: &[u8]) -> Result<Problem, Error> {
    let document: ProblemDocument = json::read(text)?;
    let (pools, places) = pools(document.pools)?;
    let buffers =
        document.buffers.into_iter().map(|Object(document)| buffer(document, &places)).collect::<Result<_, _>>()?;
    let mut problem = Problem { pools, ..Problem::new(buffers) };
    let relations = [document.aliases.is_empty(), document.may_share.is_empty(), document.contiguous.is_empty()];
    if relations.contains(&false) {
        let names = Names::of(&problem);
        let aliases = names.sets("alias set", &document.aliases)?;
        let contiguous = names.sets("contiguous group", &document.contiguous)?;
        let may_share = document
            .may_share
            .iter()
            .enumerate()
            .map(|(number, Pair(a, b))| {
                Ok((names.find("may-share pair", number, a)?, names.find("may-share pair", number, b)?))
            })
            .collect::<Result<_, Error>>()?;
        problem = Problem { aliases, may_share, contiguous, ..problem };
    }
    problem.check().map_err(|error| Error::problem(error, |_| None))?;
    Ok(problem)
}

/// The pools, and where each stands by name.
fn pools(documents: Vec<Object<PoolDocument>>) -> Result<(Vec<Pool>, PoolPlaces), Error> {
    let places: PoolPlaces =
        documents.iter().enumerate().map(|(place, Object(pool))| (pool.name.clone(), PoolIndex::new(place))).collect();
    if documents.is_empty() {
        let main = Pool::unlimited("main");
        return Ok((vec![main], PoolPlaces::from([("main".into(), PoolIndex::default())])));
    }
    let pool = |Object(PoolDocument { name, capacity, spill })| {
        let spill =
            spill.map(|target| find_pool(&places, &target, || format!("pool `{}`", shorten(&name)))).transpose()?;
        Ok(Pool { name, capacity, spill })
    };
    let pools = documents.into_iter().map(pool).collect::<Result<_, Error>>()?;
    Ok((pools, places))
}

type PoolPlaces = HashMap<Box<str>, PoolIndex>;

fn find_pool(places: &PoolPlaces, name: &str, what: impl FnOnce() -> String) -> Result<PoolIndex, Error> {
    let found = places.get(name).copied();
    found.ok_or_else(|| Error::new(ErrorKind::UnknownPool { what: what(), pool: shorten(name) }))
}

fn buffer(document: BufferDocument, pools: &PoolPlaces) -> Result<Buffer, Error> {
    let Id(id) = document.id;
    let pool = match document.pool {
        None => PoolIndex::default(),
        Some(name) => find_pool(pools, &name, || format!("buffer `{}`", shorten(&id)))?,
    };
    let gap = |Object(GapDocument { lower, upper, window })| Gap {
        lifetime: Lifetime { lower, upper },
        window: window.map(|Object(WindowDocument { lower, upper })| Window { lower, upper }),
    };
    Ok(Buffer {
        id,
        size: document.size,
        align: document.alignment,
        lifetime: Lifetime { lower: document.lower, upper: document.upper },
        gaps: document.gaps.into_iter().map(gap).collect(),
        pin: document.offset,
        class: document.class,
        pool,
    })
}

/// The buffers of a problem by name.
pub(crate) struct Names<'a>(HashMap<&'a str, BufferIndex>);

impl<'a> Names<'a> {
    pub(crate) fn of(problem: &'a Problem) -> Self {
        Self(problem.indices().zip(&problem.buffers).map(|(index, buffer)| (&*buffer.id, index)).collect())
    }

    pub(crate) fn get(&self, id: &str) -> Option<BufferIndex> {
        self.0.get(id).copied()
    }

    fn find(&self, relation: &str, number: usize, Id(id): &Id) -> Result<BufferIndex, Error> {
        self.get(id).ok_or_else(|| {
            Error::new(ErrorKind::UnknownBuffer { what: format!("{relation} {number}"), id: shorten(id) })
        })
    }

    fn sets(&self, relation: &str, sets: &[Vec<Id>]) -> Result<Vec<Vec<BufferIndex>>, Error> {
        let set = |(number, set): (usize, &Vec<Id>)| set.iter().map(|id| self.find(relation, number, id)).collect();
        sets.iter().enumerate().map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(fields: &str) -> Result<Problem, Error> {
        let buffers = r#"[{"id":"a","lower":0,"upper":4,"size":8},{"id":7,"lower":0,"upper":4,"size":8}]"#;
        read(format!(r#"{{"kind":"problem","version":1,"buffers":{buffers}{fields}}}"#).as_bytes())
    }

    #[test]
    fn without_pools_there_is_one_without_a_limit() {
        let problem = problem("").unwrap();
        assert_eq!(problem.pools, [Pool::unlimited("main")]);
        assert_eq!(&*problem.buffers[1].id, "7");
    }

    #[test]
    fn relations_name_buffers_and_pools_by_id() {
        let fields = r#","aliases":[["a",7]],"may_share":[[7,"a"]],"contiguous":[["a"]],
            "pools":[{"name":"fast","capacity":64,"spill":"slow"},{"name":"slow"}]"#;
        let problem = problem(fields).unwrap();
        let at = BufferIndex::new;
        assert_eq!(problem.aliases, [vec![at(0), at(1)]]);
        assert_eq!(problem.may_share, [(at(1), at(0))]);
        assert_eq!(problem.pools[0].spill, Some(PoolIndex::new(1)));
    }

    #[test]
    fn what_a_relation_names_must_exist() {
        for (fields, message) in [
            (r#","aliases":[[],["a","b"]]"#, "alias set 1 names buffer `b`, which does not exist"),
            (r#","may_share":[["a",8]]"#, "may-share pair 0 names buffer `8`, which does not exist"),
            (r#","pools":[{"name":"x","spill":"y"}]"#, "pool `x` names pool `y`, which does not exist"),
        ] {
            assert_eq!(problem(fields).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_pair_that_is_none_is_told_in_words_of_the_file() {
        for (pair, message) in [
            (r#"["a",7,"a"]"#, "a may-share pair has two ids, this one has 3 at line"),
            (r#"["a"]"#, "a may-share pair has two ids, this one has 1 at line"),
            (r#""a""#, "invalid type: string \"a\", expected a pair of ids at line"),
        ] {
            let error = problem(&format!(r#","may_share":[{pair}]"#)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = read(br#"{"kind":"problem","version":1,"buffers":[]} x"#).unwrap_err().to_string();
        assert!(error.starts_with("there is more text behind the end of the JSON at line 1"), "{error}");
    }

    #[test]
    fn fields_that_are_not_documented_are_refused_where_they_stand() {
        let error = problem(",\n\"alias\":[]").unwrap_err();
        assert_eq!(error.row, Some(2));
        assert!(error.to_string().starts_with("unknown field `alias`"), "{error}");
    }
}
