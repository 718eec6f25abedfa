//! Plans as files: an offset per buffer, from plan JSON or from any CSV with an id and an `offset` column, and
//! how they are matched to the problem that they answer.
//!
//! ```json
//! {
//!   "kind": "plan",
//!   "version": 1,
//!   "peak": 128,
//!   "lower_bound": 128,
//!   "proved": true,
//!   "pools": [{"name": "main", "capacity": 1024, "height": 128}],
//!   "buffers": [
//!     {"id": "a", "offset": 0, "size": 64, "lower": 0, "upper": 9},
//!     {"id": "b", "pool": "main", "offset": 64, "size": 64, "lower": 2, "upper": 9}
//!   ]
//! }
//! ```
//!
//! Only `kind`, `version`, `buffers` and an entry's `id` and `offset` must be there; other fields of the plan, such as
//! the solver, are passed over. An entry's `size`, `lower` and `upper` must be those of the problem where they are there;
//! its other fields are left to the problem.

use std::io::Read;

use lowtide_core::{Buffer, Bytes, Placement, Plan, PoolIndex, Problem};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::shorten::shorten;
use crate::json::{self, Document, Id, Object};
use crate::problem::Names;
use crate::reading::cell::Cell;
use crate::reading::fields::Fields;
use crate::reading::header::{self, Header};
use crate::reading::open::{Opened, open};
use crate::reading::records::Records;
use crate::{Error, ErrorKind};

/// A plan as its file states it, before it is matched to a problem.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PlanFile {
    /// Where each buffer goes, in the order of the file.
    pub entries: Vec<PlanEntry>,
    /// The peak that the file states; a CSV states none.
    pub peak: Option<Bytes>,
    /// The lower bound that the file states.
    pub lower_bound: Option<Bytes>,
    /// Whether the file states that its plan is proved optimal.
    pub proved: Option<bool>,
    /// The pools that the file states.
    pub pools: Vec<PlanPool>,
}

/// Where one buffer goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanEntry {
    /// The buffer's name.
    pub id: Box<str>,
    /// The pool's name; the buffer's own pool when absent.
    pub pool: Option<Box<str>>,
    /// Its first byte, from the start of the pool.
    pub offset: Bytes,
    /// Its size, where the file states it.
    pub size: Option<Bytes>,
    /// When it begins, where the file states it.
    pub lower: Option<i64>,
    /// When it ends, exclusively, where the file states it.
    pub upper: Option<i64>,
    /// The physical line in a CSV; in JSON the place in `buffers`, counted from one.
    pub row: u64,
}

/// What a plan states about a pool.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct PlanPool {
    /// Its name.
    pub name: Box<str>,
    /// The bytes it has; unlimited when absent.
    pub capacity: Option<Bytes>,
    /// The bytes that the plan needs of it.
    pub height: Bytes,
}

impl PlanFile {
    /// Reads a plan from JSON of kind `plan` or from CSV, either of them plain or gzip.
    pub fn read(reader: impl Read) -> Result<Self, Error> {
        match open(reader)? {
            Opened::Table(records) => read_table(records),
            Opened::Pickle(_) => Err(Error::new(ErrorKind::NotAPlan { what: "a memory snapshot" })),
            Opened::Html(..) => Err(Error::new(ErrorKind::NotAPlan { what: "a page" })),
            Opened::Json(text) => match json::kind(&text, "`plan`")? {
                Document::Plan => read_json(&text),
                Document::Problem => {
                    Err(Error::new(ErrorKind::WrongKind { found: "`problem`".to_owned(), expected: "`plan`" }))
                }
            },
        }
    }

    /// The plan for `problem` that the entries describe: each buffer of it exactly once, with the size and the life
    /// that the problem gives it where the file states these, and no other.
    ///
    /// Heights are those of the entries, whatever the file states; the bound and whether it is proved are what
    /// the file states, or zero and no. Whether the plan is valid is not looked at.
    pub fn place(&self, problem: &Problem) -> Result<Plan, Error> {
        let names = Names::of(problem);
        let mut placements: Vec<Option<Placement>> = vec![None; problem.buffers.len()];
        let mut heights = vec![Bytes::ZERO; problem.pools.len()];
        for entry in &self.entries {
            let error = |kind| Error::at(entry.row, kind);
            let unknown = || error(ErrorKind::UnknownBuffer { what: "the plan".to_owned(), id: shorten(&entry.id) });
            let index = names.get(&entry.id).ok_or_else(unknown)?;
            let buffer = problem.buffer(index);
            if let Some(differs) = entry.differs(buffer) {
                return Err(error(ErrorKind::OtherBuffer { id: shorten(&entry.id), differs }));
            }
            let pool = entry.pool(problem, buffer.pool)?;
            let end = entry.offset.checked_add(buffer.size).ok_or_else(|| error(ErrorKind::PlanTooLarge))?;
            heights[pool.get()] = heights[pool.get()].max(end);
            if placements[index.get()].replace(Placement { pool, offset: entry.offset }).is_some() {
                return Err(error(ErrorKind::PlacedTwice { id: shorten(&entry.id) }));
            }
        }
        let peak = heights.iter().try_fold(Bytes::ZERO, |sum, &height| sum.checked_add(height));
        if peak.is_none_or(|peak| i64::try_from(peak.get()).is_err()) {
            return Err(Error::new(ErrorKind::PlanTooLarge));
        }
        Ok(Plan {
            placements: all_placed(problem, placements)?,
            heights,
            lower_bound: self.lower_bound.unwrap_or_default(),
            proved: self.proved.unwrap_or_default(),
        })
    }
}

impl PlanEntry {
    /// In what the entry's buffer is another than `buffer`.
    fn differs(&self, buffer: &Buffer) -> Option<String> {
        let size = self.size.filter(|&size| size != buffer.size);
        let lower = self.lower.filter(|&lower| lower != buffer.lifetime.lower);
        let upper = self.upper.filter(|&upper| upper != buffer.lifetime.upper);
        let differences = [
            size.map(|size| format!("has size {} instead of {}", size.get(), buffer.size.get())),
            lower.map(|lower| format!("begins at {lower} instead of {}", buffer.lifetime.lower)),
            upper.map(|upper| format!("ends before {upper} instead of {}", buffer.lifetime.upper)),
        ];
        let differences: Vec<String> = differences.into_iter().flatten().collect();
        (!differences.is_empty()).then(|| differences.join(", "))
    }

    fn pool(&self, problem: &Problem, own: PoolIndex) -> Result<PoolIndex, Error> {
        let Some(name) = &self.pool else { return Ok(own) };
        let place = problem.pools.iter().position(|pool| pool.name == *name);
        place.map(PoolIndex::new).ok_or_else(|| {
            let what = format!("the plan's entry for `{}`", shorten(&self.id));
            Error::at(self.row, ErrorKind::UnknownPool { what, pool: shorten(name) })
        })
    }
}

fn all_placed(problem: &Problem, placements: Vec<Option<Placement>>) -> Result<Vec<Placement>, Error> {
    let mut missing = problem.buffers.iter().zip(&placements).filter(|(_, placement)| placement.is_none());
    match missing.next() {
        Some((buffer, _)) => {
            let kind = ErrorKind::MissingBuffers { count: 1 + missing.count(), first: shorten(&buffer.id) };
            Err(Error::new(kind))
        }
        None => Ok(placements.into_iter().flatten().collect()),
    }
}

fn read_table(mut records: Records<'_>) -> Result<PlanFile, Error> {
    let header = Header::read(&mut records)?;
    let id = header.require(header::ID)?;
    let offset = header.require(header::OFFSET)?;
    let pool = header.find(&["pool"])?;
    let stated = Stated::find(&header)?;
    header.require_unique()?;
    let mut entries = Vec::new();
    while records.advance_row(header.names().len())? {
        let (fields, row) = (records.fields(), records.row());
        let cell = |column, place| Cell { column, text: fields.get(place), row };
        entries.push(PlanEntry {
            id: cell("id", id).required()?.into(),
            pool: pool.map(|place| fields.get(place)).filter(|name| !name.is_empty()).map(Into::into),
            offset: Bytes::new(cell("offset", offset).number()?),
            size: stated.size.map_or(Ok(None), |place| cell("size", place).optional_number())?.map(Bytes::new),
            lower: stated.lower.map_or(Ok(None), |place| cell("lower", place).optional_number())?,
            upper: stated.upper(fields, row)?,
            row,
        });
    }
    Ok(PlanFile { entries, ..PlanFile::default() })
}

/// Where a table states what the problem states too.
struct Stated {
    size: Option<usize>,
    lower: Option<usize>,
    upper: Option<usize>,
    inclusive: bool,
}

impl Stated {
    fn find(header: &Header) -> Result<Self, Error> {
        let upper = header.find(header::UPPER)?;
        Ok(Self {
            size: header.find(header::SIZE)?,
            lower: header.find(header::LOWER)?,
            upper,
            inclusive: upper.is_some_and(|place| header.is_named(place, "end")),
        })
    }

    fn upper(&self, fields: &Fields, row: u64) -> Result<Option<i64>, Error> {
        let Some(place) = self.upper else { return Ok(None) };
        let cell = Cell { column: if self.inclusive { "end" } else { "upper" }, text: fields.get(place), row };
        let Some(written) = cell.optional_number::<i64>()? else { return Ok(None) };
        let upper = if self.inclusive { written.checked_add(1) } else { Some(written) };
        upper.map(Some).ok_or_else(|| cell.out_of_range::<i64>())
    }
}

#[derive(Deserialize)]
struct PlanDocument<'a> {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "version")]
    _version: u64,
    peak: Option<Bytes>,
    lower_bound: Option<Bytes>,
    proved: Option<bool>,
    #[serde(default)]
    pools: Vec<Object<PlanPool>>,
    #[serde(borrow)]
    buffers: Vec<Object<EntryDocument<'a>>>,
}

#[derive(Deserialize)]
struct EntryDocument<'a> {
    id: Id,
    pool: Option<Box<str>>,
    /// Any text at first, here and below, so that a bad one is reported with the place of its entry.
    #[serde(borrow, default)]
    offset: Option<&'a RawValue>,
    #[serde(borrow, default)]
    size: Option<&'a RawValue>,
    #[serde(borrow, default)]
    lower: Option<&'a RawValue>,
    #[serde(borrow, default)]
    upper: Option<&'a RawValue>,
}

/// A value as the cell of a table would have it.
fn written(value: Option<&RawValue>) -> &str {
    value.map_or("", RawValue::get)
}

/// Reads a JSON text whose kind and version are known.
pub(crate) fn read_json(text: &[u8]) -> Result<PlanFile, Error> {
    let document: PlanDocument<'_> = json::read(text)?;
    let entry = |(row, Object(EntryDocument { id: Id(id), pool, offset, size, lower, upper }))| {
        let offset = Cell { column: "offset", text: written(offset), row }.number().map(Bytes::new)?;
        let size = Cell { column: "size", text: written(size), row }.optional_number()?.map(Bytes::new);
        let lower = Cell { column: "lower", text: written(lower), row }.optional_number()?;
        let upper = Cell { column: "upper", text: written(upper), row }.optional_number()?;
        Ok(PlanEntry { id, pool, offset, size, lower, upper, row })
    };
    Ok(PlanFile {
        entries: (1..).zip(document.buffers).map(entry).collect::<Result<_, Error>>()?,
        peak: document.peak,
        lower_bound: document.lower_bound,
        proved: document.proved,
        pools: document.pools.into_iter().map(|Object(pool)| pool).collect(),
    })
}

#[cfg(test)]
mod tests {
    use lowtide_core::{Buffer, Lifetime, Pool};

    use super::*;

    fn problem() -> Problem {
        let mut problem =
            Problem::new(["a", "b"].map(|id| Buffer::new(id, Lifetime { lower: 0, upper: 4 }, Bytes::new(8))).into());
        problem.pools.push(Pool::unlimited("slow"));
        problem
    }

    fn place(text: &str) -> Result<Plan, Error> {
        PlanFile::read(text.as_bytes())?.place(&problem())
    }

    #[test]
    fn a_table_with_ids_and_offsets_is_a_plan() {
        let plan = place("note,OFFSET,buffer,pool\nx,8,b,slow\ny,0,a,\n").unwrap();
        assert_eq!(plan.heights, [Bytes::new(8), Bytes::new(16)]);
        assert_eq!(plan.placements[1], Placement { pool: PoolIndex::new(1), offset: Bytes::new(8) });
        assert_eq!((plan.lower_bound, plan.proved), (Bytes::ZERO, false));
    }

    #[test]
    fn json_states_more_than_offsets_and_keeps_what_it_has_no_name_for() {
        let text = r#"{"kind":"plan","version":1,"peak":99,"lower_bound":8,"proved":true,"solver":"best",
            "buffers":[{"id":"a","offset":0,"size":8},{"id":"b","offset":8,"pool":"main"}]}"#;
        let file = PlanFile::read(text.as_bytes()).unwrap();
        assert_eq!(file.peak, Some(Bytes::new(99)));
        let plan = file.place(&problem()).unwrap();
        assert_eq!(plan.peak(), Bytes::new(16), "heights are those of the entries");
        assert_eq!((plan.lower_bound, plan.proved), (Bytes::new(8), true));
    }

    #[test]
    fn every_buffer_is_placed_exactly_once() {
        for (rows, row, message) in [
            ("a,0\n", None, "the plan has no offset for 1 of the buffers; the first is `b`"),
            ("a,0\nb,8\nc,9\n", Some(4), "the plan names buffer `c`, which does not exist"),
            ("a,0\na,0\nb,0\n", Some(3), "the plan places buffer `a` twice"),
            ("a,0\nb,18446744073709551615\n", Some(3), "the plan's offsets and sizes add up to more than 2^63-1 bytes"),
            ("a,0\nb,9223372036854775807\n", None, "the plan's offsets and sizes add up to more than 2^63-1 bytes"),
            ("a,0\nb,\n", Some(3), "`offset` has no value"),
        ] {
            let error = place(&format!("id,offset\n{rows}")).unwrap_err();
            assert_eq!((error.row, error.to_string().as_str()), (row, message));
        }
        let error = place("id,offset,pool\na,0,none\n").unwrap_err();
        assert_eq!(error.to_string(), "the plan's entry for `a` names pool `none`, which does not exist");
    }

    #[test]
    fn a_buffer_of_another_size_or_life_is_another_buffer() {
        let other = |rows: &str| place(rows).map_err(|error| (error.row, error.to_string())).unwrap_err();
        let differs = |differs: &str| format!("buffer `b` is not the one of the problem: in the plan it {differs}");
        assert!(place("Buffer,START,End,size,offset\na,0,3,8,0\nb,0,3,8,8\n").is_ok(), "`end` is inclusive");
        assert!(place("id,size,offset,upper\na,,0,\nb,8,8,4\n").is_ok(), "what is not stated does not differ");
        assert_eq!(other("id,size,offset\na,8,0\nb,9,8\n"), (Some(3), differs("has size 9 instead of 8")));
        let row = "id,begin,end,offset\na,0,3,0\nb,-1,4,8\n";
        assert_eq!(other(row), (Some(3), differs("begins at -1 instead of 0, ends before 5 instead of 4")));
        let entries = r#"[{"id":"a","offset":0},{"id":"b","offset":8,"size":7,"lower":0,"upper":4}]"#;
        let json = format!(r#"{{"kind":"plan","version":1,"buffers":{entries}}}"#);
        assert_eq!(other(&json), (Some(2), differs("has size 7 instead of 8")));
        assert_eq!(other(&json.replace(":7,", ":\"8\",")).1, r#"`size` is `"8"`, which is not a whole number"#);
    }

    #[test]
    fn a_bad_offset_in_json_is_reported_with_the_place_of_its_entry() {
        for (offset, message) in [
            ("null", "`offset` has no value"),
            ("-1", "`offset` is -1, which is not between 0 and 2^64-1"),
            ("1.5", "`offset` is `1.5`, which is not a whole number"),
            ("[]", "`offset` is `[]`, which is not a whole number"),
            (r#""8""#, r#"`offset` is `"8"`, which is not a whole number"#),
        ] {
            let entries = format!(r#"[{{"id":"a","offset":0}},{{"id":"b","offset":{offset}}}]"#);
            let error = place(&format!(r#"{{"kind":"plan","version":1,"buffers":{entries}}}"#)).unwrap_err();
            assert_eq!((error.row, error.to_string().as_str()), (Some(2), message));
        }
        let error = place(r#"{"kind":"plan","version":1,"buffers":[{"id":"a"}]}"#).unwrap_err();
        assert!(matches!(error, Error { row: Some(1), kind: ErrorKind::MissingValue { column: "offset" } }));
    }
}
