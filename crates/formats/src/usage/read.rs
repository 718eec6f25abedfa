//! A usage file to [`Usage`], checked so that whatever was read can be used: every index names something, every
//! column has its length, and the problem makes sense.

use std::collections::HashMap;
use std::io::Read;

use lowtide_core::{
    Align, Buffer, BufferIndex, Bytes, Class, Clock, Gap, Label, Layout, Lifetime, Origin, Placement, Plan, Pool,
    PoolIndex, Problem, StepEnd, StepIndex, StreamId, TextIndex, Usage, Window,
};

use super::columns::{Reader, unfold};
use super::header::{Header, LayoutHeader};
use super::{MAGIC, Run};
use crate::{Error, ErrorKind, decompress, json, limits};

/// Reads what [`write_usage`](super::write_usage) wrote.
pub(crate) fn read(reader: impl Read) -> Result<Run, Error> {
    let mut bytes = Vec::new();
    let text = decompress(reader)?;
    text.take(limits::USAGE + 1).read_to_end(&mut bytes).map_err(|error| Error::reading(error, None))?;
    if bytes.len() as u64 > limits::USAGE {
        return Err(Error::new(ErrorKind::FileTooLong { limit: limits::USAGE }));
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Run, Error> {
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| fault("it does not begin as one"))?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(|| fault("it ends within its header"))?;
    let length = u32::from_le_bytes(*length) as usize;
    let (header, rest) = rest.split_at_checked(length).ok_or_else(|| fault("it ends within its header"))?;
    let header: Header = json::read(header)?;
    let mut columns = Columns::split(&header, rest)?;
    let usage = usage(&header, &mut columns)?;
    columns.finish()?;
    usage.problem.check().map_err(|error| Error::problem(error, |_| None))?;
    Ok(Run { name: header.name, usage })
}

fn fault(what: &str) -> Error {
    Error::new(ErrorKind::BadUsage(what.to_owned()))
}

/// The columns by name, and how many values those about buffers have.
struct Columns<'a> {
    bytes: HashMap<&'a str, &'a [u8]>,
    count: usize,
}

impl<'a> Columns<'a> {
    fn split(header: &'a Header, mut rest: &'a [u8]) -> Result<Self, Error> {
        let mut bytes = HashMap::new();
        for (name, length) in &header.columns {
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            let (column, behind) = rest.split_at_checked(length).ok_or_else(|| fault("it ends within its columns"))?;
            if bytes.insert(&**name, column).is_some() {
                return Err(fault("it has a column twice"));
            }
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(fault("it goes on behind its columns"));
        }
        let count = usize::try_from(header.buffers).unwrap_or(usize::MAX);
        // Each buffer has at least a byte in the column of its beginning.
        if bytes.get("lower").map_or(0, |column| column.len()) < count {
            return Err(fault("column `lower` ends too early"));
        }
        Ok(Self { bytes, count })
    }

    fn take(&mut self, name: &str) -> Option<&'a [u8]> {
        self.bytes.remove(name)
    }

    fn required(&mut self, name: &'static str) -> Result<Reader<'a>, Error> {
        self.take(name)
            .map(|bytes| Reader::new(name, bytes))
            .ok_or_else(|| fault(&format!("it has no column `{name}`")))
    }

    /// A number per buffer, `usual` where there is no such column.
    fn numbers(&mut self, name: &'static str, usual: u64) -> Result<Vec<u64>, Error> {
        let Some(bytes) = self.take(name) else { return Ok(vec![usual; self.count]) };
        numbers(Reader::new(name, bytes), self.count)
    }

    fn finish(self) -> Result<(), Error> {
        match self.bytes.keys().next() {
            None => Ok(()),
            Some(name) => Err(fault(&format!("it has a column `{}` without a meaning", crate::shorten::shorten(name)))),
        }
    }
}

fn numbers(mut reader: Reader<'_>, count: usize) -> Result<Vec<u64>, Error> {
    let values = (0..count).map(|_| reader.number()).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(values)
}

fn differences(mut reader: Reader<'_>, count: usize) -> Result<Vec<i64>, Error> {
    let mut before = 0_i64;
    let next = |reader: &mut Reader<'_>| -> Result<i64, Error> {
        before = before.checked_add(reader.signed()?).ok_or_else(|| reader.fault("leaves 64 bits"))?;
        Ok(before)
    };
    let mut next = next;
    let values = (0..count).map(|_| next(&mut reader)).collect::<Result<_, _>>()?;
    reader.finish()?;
    Ok(values)
}

fn usage(header: &Header, columns: &mut Columns<'_>) -> Result<Usage, Error> {
    let problem = problem(header, columns)?;
    let labels = labels(header, columns, &problem)?;
    let clock = clock(header, columns)?;
    let layouts = header.layouts.iter().enumerate();
    let layouts =
        layouts.map(|(place, layout)| read_layout(place, layout, columns, &problem)).collect::<Result<_, _>>()?;
    let ascends = |times: &[i64]| times.is_sorted();
    if !ascends(&header.steps.iter().map(|step| step.1).collect::<Vec<_>>())
        || !ascends(&header.reserved.iter().map(|held| held.0).collect::<Vec<_>>())
    {
        return Err(fault("its steps or what was held are out of order"));
    }
    Ok(Usage {
        problem,
        labels,
        texts: header.texts.iter().map(|text| text.as_str().into()).collect(),
        clock,
        steps: header.steps.iter().map(|&(step, at)| StepEnd { step: StepIndex(step), at }).collect(),
        reserved: header.reserved.iter().map(|&(time, bytes)| (time, Bytes::new(bytes))).collect(),
        layouts,
    })
}

fn problem(header: &Header, columns: &mut Columns<'_>) -> Result<Problem, Error> {
    let count = columns.count;
    let ids = ids(columns)?;
    let lower = differences(columns.required("lower")?, count)?;
    let length = numbers(columns.required("length")?, count)?;
    let size = numbers(columns.required("size")?, count)?;
    let align = columns.numbers("align", 1)?;
    let persistent = columns.numbers("persistent", 0)?;
    let pool = columns.numbers("pool", 0)?;
    let mut buffers = Vec::with_capacity(count);
    for (place, id) in ids.into_iter().enumerate() {
        let upper = i64::try_from(length[place]).ok().and_then(|length| lower[place].checked_add(length));
        let lifetime = Lifetime { lower: lower[place], upper: upper.ok_or_else(|| fault("a life leaves 64 bits"))? };
        let mut buffer = Buffer::new(id, lifetime, Bytes::new(size[place]));
        buffer.align = Align::new(align[place]).ok_or_else(|| fault("an alignment is 0"))?;
        buffer.class = if persistent[place] == 0 { Class::Transient } else { Class::Persistent };
        buffer.pool = pool_index(pool[place], header)?;
        buffers.push(buffer);
    }
    for &[place, offset] in &header.pins {
        buffers[index(place, count)?.get()].pin = Some(Bytes::new(offset));
    }
    for &(place, lower, upper, stays) in &header.gaps {
        let window = stays.map(|[lower, upper]| Window { lower: Bytes::new(lower), upper: Bytes::new(upper) });
        buffers[index(place, count)?.get()].gaps.push(Gap { lifetime: Lifetime { lower, upper }, window });
    }
    let sets = |sets: &[Vec<u64>]| -> Result<Vec<Vec<BufferIndex>>, Error> {
        sets.iter().map(|set| set.iter().map(|&place| index(place, count)).collect()).collect()
    };
    let pair = |&[a, b]: &[u64; 2]| Ok((index(a, count)?, index(b, count)?));
    let pools = header.pools.iter().map(|pool| {
        let spill = pool.spill.map(|spill| pool_index(spill, header)).transpose()?;
        Ok(Pool { name: pool.name.clone(), capacity: pool.capacity.map(Bytes::new), spill })
    });
    Ok(Problem {
        buffers,
        aliases: sets(&header.aliases)?,
        may_share: header.may_share.iter().map(pair).collect::<Result<_, Error>>()?,
        contiguous: sets(&header.contiguous)?,
        pools: pools.collect::<Result<_, Error>>()?,
    })
}

fn index(place: u64, count: usize) -> Result<BufferIndex, Error> {
    let place = usize::try_from(place).ok().filter(|&place| place < count);
    place.map(BufferIndex::new).ok_or_else(|| fault("it names a buffer that is not there"))
}

fn pool_index(place: u64, header: &Header) -> Result<PoolIndex, Error> {
    let place = usize::try_from(place).ok().filter(|&place| place < header.pools.len());
    place.map(PoolIndex::new).ok_or_else(|| fault("it names a pool that is not there"))
}

fn ids(columns: &mut Columns<'_>) -> Result<Vec<Box<str>>, Error> {
    let count = columns.count;
    let Some(bytes) = columns.take("id") else { return Ok((0..count).map(|place| place.to_string().into()).collect()) };
    let mut reader = Reader::new("id", bytes);
    let mut ids = Vec::with_capacity(count);
    let mut id: Vec<u8> = Vec::new();
    for _ in 0..count {
        let common = usize::try_from(reader.number()?).ok().filter(|&common| common <= id.len());
        id.truncate(common.ok_or_else(|| reader.fault("takes more of an id than there is"))?);
        id.extend_from_slice(reader.text()?);
        if id.len() as u64 > limits::LINE {
            return Err(Error::new(ErrorKind::LineTooLong { limit: limits::LINE }));
        }
        ids.push(std::str::from_utf8(&id).map_err(|_| Error::new(ErrorKind::NotUtf8))?.into());
    }
    reader.finish()?;
    Ok(ids)
}

fn labels(header: &Header, columns: &mut Columns<'_>, problem: &Problem) -> Result<Vec<Label>, Error> {
    let category = columns.numbers("category", 0)?;
    let site = columns.numbers("site", 0)?;
    let stream = columns.numbers("stream", 0)?;
    let freed = columns.numbers("freed", 0)?;
    let streams: Vec<StreamId> = header
        .streams
        .iter()
        .map(|stream| stream.parse().map(StreamId).map_err(|_| fault("a stream is not a number")))
        .collect::<Result<_, _>>()?;
    let text = |place: u64| match place.checked_sub(1) {
        None => Ok(None),
        Some(place) if place < header.texts.len() as u64 => Ok(Some(TextIndex(place as u32))),
        Some(_) => Err(fault("it names a text that is not there")),
    };
    let label = |place: usize| -> Result<Label, Error> {
        let stream = match (stream[place] as usize).checked_sub(1) {
            None => StreamId::default(),
            Some(known) => *streams.get(known).ok_or_else(|| fault("it names a stream that is not there"))?,
        };
        let life = problem.buffers[place].lifetime;
        let freed = freed[place].checked_sub(1).map(|after| life.lower.checked_add(unfold(after)));
        let freed = freed.map(|freed| freed.filter(|&freed| freed < life.upper));
        let freed = freed.map(|freed| freed.ok_or_else(|| fault("a buffer is freed after its end"))).transpose()?;
        Ok(Label { category: text(category[place])?, site: text(site[place])?, stream, freed })
    };
    (0..problem.buffers.len()).map(label).collect()
}

fn clock(header: &Header, columns: &mut Columns<'_>) -> Result<Option<Clock>, Error> {
    let Some((first, count)) = header.clock else { return Ok(None) };
    let reader = columns.required("clock")?;
    let count = usize::try_from(count).ok().filter(|&count| count as u64 <= limits::USAGE);
    let readings = differences(reader, count.ok_or_else(|| fault("its clock has too many readings"))?)?;
    if !readings.is_sorted() || readings.first().is_some_and(|&first| first < 0) {
        return Err(fault("its clock runs backwards"));
    }
    Ok(Some(Clock { first, readings: readings.into_iter().map(|time| time as u64).collect() }))
}

fn read_layout(
    place: usize,
    header: &LayoutHeader,
    columns: &mut Columns<'_>,
    problem: &Problem,
) -> Result<Layout, Error> {
    let origins = [Origin::Recorded, Origin::Unshared, Origin::Greedy, Origin::Planned];
    let origin = origins.into_iter().find(|origin| origin.name() == header.origin);
    let count = columns.count;
    let offsets = columns.take(&format!("offset {place}")).ok_or_else(|| fault("a layout has no offsets"))?;
    let offsets = differences(Reader::new("offset", offsets), count)?;
    let pools = match columns.take(&format!("pool {place}")) {
        Some(bytes) => numbers(Reader::new("pool", bytes), count)?,
        None => problem.buffers.iter().map(|buffer| buffer.pool.get() as u64).collect(),
    };
    let placement = |(offset, pool): (i64, u64)| {
        let offset = u64::try_from(offset).map_err(|_| fault("an offset is negative"))?;
        let pool = usize::try_from(pool).ok().filter(|&pool| pool < problem.pools.len());
        let pool = pool.map(PoolIndex::new).ok_or_else(|| fault("it names a pool that is not there"))?;
        Ok(Placement { pool, offset: Bytes::new(offset) })
    };
    if header.heights.len() != problem.pools.len() || header.heights.iter().any(|&height| height > i64::MAX as u64) {
        return Err(fault("a layout has not a height for each pool"));
    }
    let plan = Plan {
        placements: offsets.into_iter().zip(pools).map(placement).collect::<Result<_, Error>>()?,
        heights: header.heights.iter().map(|&height| Bytes::new(height)).collect(),
        lower_bound: Bytes::new(header.lower_bound),
        proved: header.proved,
    };
    Ok(Layout { origin: origin.ok_or_else(|| fault("it has a layout of unknown origin"))?, plan })
}
