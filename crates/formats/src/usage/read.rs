//! A usage file to [`Usage`], checked so that whatever was read can be used: every index names something, every
//! column has its length, and the problem makes sense.

use std::io::Read;

use lowtide_core::{
    Align, Buffer, BufferIndex, Bytes, Class, Clock, Gap, Label, Lifetime, Pool, PoolIndex, Problem, StepEnd,
    StepIndex, StreamId, TextIndex, Usage, Window,
};

use super::columns::{Reader, unfold};
use super::header::Header;
use super::values::{Columns, Values};
use super::{MAGIC, Run, layouts};
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
    let length = u32::from_le_bytes(*length);
    if u64::from(length) > limits::USAGE_HEADER {
        return Err(Error::new(ErrorKind::FileTooLong { limit: limits::USAGE_HEADER }));
    }
    let (header, rest) = rest.split_at_checked(length as usize).ok_or_else(|| fault("it ends within its header"))?;
    let mut header: Header = json::read(header)?;
    let texts = std::mem::take(&mut header.texts);
    let mut columns = Columns::split(&header, rest)?;
    let problem = problem(&header, &mut columns)?;
    problem.check().map_err(|error| Error::problem(error, |_| None))?;
    let usage = Usage {
        labels: labels(&header, texts.len(), &mut columns, &problem)?,
        texts,
        clock: clock(&header, &mut columns)?,
        steps: steps(&header)?,
        reserved: reserved(&header)?,
        layouts: layouts::read(&header, &mut columns, &problem)?,
        problem,
    };
    Ok(Run { name: header.name, notes: header.notes, usage })
}

pub(super) fn fault(what: &str) -> Error {
    Error::new(ErrorKind::BadUsage(what.to_owned()))
}

fn problem(header: &Header, columns: &mut Columns<'_>) -> Result<Problem, Error> {
    let count = columns.count();
    let mut problem = Problem { buffers: buffers(header, columns)?, ..Problem::new(Vec::new()) };
    for &[place, offset] in &header.pins {
        problem.buffers[index(place, count)?.get()].pin = Some(Bytes::new(offset));
    }
    for &(place, lower, upper, stays) in &header.gaps {
        let window = stays.map(|[lower, upper]| Window { lower: Bytes::new(lower), upper: Bytes::new(upper) });
        problem.buffers[index(place, count)?.get()].gaps.push(Gap { lifetime: Lifetime { lower, upper }, window });
    }
    let set = |set: &Vec<u64>| -> Result<Vec<BufferIndex>, Error> {
        if set.len() < 2 {
            return Err(fault("it binds fewer than two buffers to each other"));
        }
        set.iter().map(|&place| index(place, count)).collect()
    };
    let pair = |&[a, b]: &[u64; 2]| Ok((index(a, count)?, index(b, count)?));
    let pool = |pool: &super::header::PoolHeader| -> Result<Pool, Error> {
        let spill = pool.spill.map(|spill| pool_index(spill, header.pools.len())).transpose()?;
        Ok(Pool { name: pool.name.clone(), capacity: pool.capacity.map(Bytes::new), spill })
    };
    problem.aliases = header.aliases.iter().map(set).collect::<Result<_, _>>()?;
    problem.may_share = header.may_share.iter().map(pair).collect::<Result<_, Error>>()?;
    problem.contiguous = header.contiguous.iter().map(set).collect::<Result<_, _>>()?;
    problem.pools = header.pools.iter().map(pool).collect::<Result<_, _>>()?;
    Ok(problem)
}

fn buffers(header: &Header, columns: &mut Columns<'_>) -> Result<Vec<Buffer>, Error> {
    let ids = ids(columns)?;
    let mut lower = columns.differences("lower")?;
    let mut length = columns.required("length")?;
    let mut size = columns.required("size")?;
    let mut align = columns.optional("align", 1)?;
    let mut persistent = columns.optional("persistent", 0)?;
    let mut pool = columns.optional("pool", 0)?;
    let mut buffers = Vec::with_capacity(columns.count());
    for id in ids {
        let lower = lower.next()? as i64;
        let upper = lower.checked_add_unsigned(length.next()?).ok_or_else(|| fault("a life leaves 64 bits"))?;
        let mut buffer = Buffer::new(id, Lifetime { lower, upper }, Bytes::new(size.next()?));
        buffer.align = Align::new(align.next()?).ok_or_else(|| fault("an alignment is 0"))?;
        buffer.class = if persistent.next()? == 0 { Class::Transient } else { Class::Persistent };
        buffer.pool = pool_index(pool.next()?, header.pools.len())?;
        buffers.push(buffer);
    }
    [lower, length, size, align, persistent, pool].into_iter().try_for_each(Values::finish)?;
    Ok(buffers)
}

fn index(place: u64, count: usize) -> Result<BufferIndex, Error> {
    let place = usize::try_from(place).ok().filter(|&place| place < count);
    place.map(BufferIndex::new).ok_or_else(|| fault("it names a buffer that is not there"))
}

pub(super) fn pool_index(place: u64, pools: usize) -> Result<PoolIndex, Error> {
    let place = usize::try_from(place).ok().filter(|&place| place < pools);
    place.map(PoolIndex::new).ok_or_else(|| fault("it names a pool that is not there"))
}

fn ids(columns: &mut Columns<'_>) -> Result<Vec<Box<str>>, Error> {
    let count = columns.count();
    let Some(bytes) = columns.take("id") else { return Ok((0..count).map(|place| place.to_string().into()).collect()) };
    let mut reader = Reader::new("id", bytes);
    let mut ids = Vec::with_capacity(count);
    let mut id: Vec<u8> = Vec::new();
    let mut total = 0;
    for _ in 0..count {
        let common = usize::try_from(reader.number()?).ok().filter(|&common| common <= id.len());
        id.truncate(common.ok_or_else(|| reader.fault("takes more of an id than there is"))?);
        id.extend_from_slice(reader.text()?);
        if id.len() as u64 > limits::LINE {
            return Err(Error::new(ErrorKind::LineTooLong { limit: limits::LINE }));
        }
        // What ids have in common takes no room in the file, but does in memory.
        total += id.len() as u64;
        if total > limits::USAGE {
            return Err(Error::new(ErrorKind::FileTooLong { limit: limits::USAGE }));
        }
        ids.push(std::str::from_utf8(&id).map_err(|_| Error::new(ErrorKind::NotUtf8))?.into());
    }
    reader.finish()?;
    Ok(ids)
}

fn labels(header: &Header, texts: usize, columns: &mut Columns<'_>, problem: &Problem) -> Result<Vec<Label>, Error> {
    let mut category = columns.optional("category", 0)?;
    let mut site = columns.optional("site", 0)?;
    let mut stream = columns.optional("stream", 0)?;
    let mut freed = columns.optional("freed", 0)?;
    let streams: Vec<StreamId> = header
        .streams
        .iter()
        .map(|stream| stream.parse().map(StreamId).map_err(|_| fault("a stream is not a number")))
        .collect::<Result<_, _>>()?;
    let text = |place: u64| match place.checked_sub(1) {
        None => Ok(None),
        Some(place) if place < texts as u64 => Ok(Some(TextIndex(place as u32))),
        Some(_) => Err(fault("it names a text that is not there")),
    };
    let mut labels = Vec::with_capacity(problem.buffers.len());
    for life in problem.buffers.iter().map(|buffer| buffer.lifetime) {
        let stream = match stream.next()?.checked_sub(1) {
            None => StreamId::default(),
            Some(known) => {
                let known = usize::try_from(known).ok().and_then(|known| streams.get(known));
                *known.ok_or_else(|| fault("it names a stream that is not there"))?
            }
        };
        let freed = freed.next()?.checked_sub(1).map(|after| life.lower.wrapping_add(unfold(after)));
        if freed.is_some_and(|freed| freed >= life.upper) {
            return Err(fault("a buffer is freed after its end"));
        }
        labels.push(Label { category: text(category.next()?)?, site: text(site.next()?)?, stream, freed });
    }
    [category, site, stream, freed].into_iter().try_for_each(Values::finish)?;
    Ok(labels)
}

fn clock(header: &Header, columns: &mut Columns<'_>) -> Result<Option<Clock>, Error> {
    let Some((first, count)) = header.clock else { return Ok(None) };
    if count > limits::READINGS {
        return Err(Error::new(ErrorKind::TooManyRows { limit: limits::READINGS }));
    }
    let mut column = columns.readings("clock", count as usize)?;
    let mut readings = Vec::with_capacity(count as usize);
    for _ in 0..count {
        readings.push(column.next()?);
    }
    column.finish()?;
    if !readings.is_sorted() {
        return Err(fault("its clock runs backwards"));
    }
    if header.clock_every == 0 {
        return Err(fault("its clock is read every 0 events"));
    }
    Ok(Some(Clock { first, every: header.clock_every, readings }))
}

fn steps(header: &Header) -> Result<Vec<StepEnd>, Error> {
    if !header.steps.is_sorted_by_key(|step| step.1) {
        return Err(fault("its steps are out of order"));
    }
    Ok(header.steps.iter().map(|&(step, at)| StepEnd { step: StepIndex(step), at }).collect())
}

fn reserved(header: &Header) -> Result<Vec<(i64, Bytes)>, Error> {
    if !header.reserved.is_sorted_by_key(|held| held.0) {
        return Err(fault("what was held is out of order"));
    }
    Ok(header.reserved.iter().map(|&(time, bytes)| (time, Bytes::new(bytes))).collect())
}
