//! [`Usage`] to a usage file, leaving out the columns that would say nothing.

use std::io::Write;
use std::ops::ControlFlow;

use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::{Align, BufferIndex, Bytes, Class, Clock, Layout, PoolIndex, StreamId, Usage};

use super::MAGIC;
use super::columns::{Writer, fold};
use super::header::{Header, LayoutHeader, PoolHeader};
use crate::{Error, ErrorKind, limits};

/// Writes `usage` of the run called `name` with remarks about it, compressed. Reading it gives the same again, but for
/// relations of fewer than two buffers, which bind nothing; what would be too large to be read is not written.
pub fn write_usage(name: &str, notes: &[String], usage: &Usage, out: impl Write) -> Result<(), Error> {
    let mut header = header(name, notes, usage);
    let columns = columns(usage, &mut header);
    header.columns = columns.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
    let readings = header.clock.map_or(0, |(_, readings)| readings);
    for (count, limit) in
        [(header.buffers, limits::BUFFERS), (header.longest() as u64, limits::BUFFERS), (readings, limits::READINGS)]
    {
        if count > limit {
            return Err(Error::new(ErrorKind::TooManyRows { limit }));
        }
    }
    let header = serde_json::to_vec(&header).map_err(Error::writing)?;
    let body: usize = columns.iter().map(|(_, bytes)| bytes.len()).sum();
    let whole = MAGIC.len() + size_of::<u32>() + header.len() + body;
    for (length, limit) in [(header.len(), limits::USAGE_HEADER), (whole, limits::USAGE)] {
        if length as u64 > limit {
            return Err(Error::new(ErrorKind::FileTooLong { limit }));
        }
    }
    let length = header.len() as u32;
    let mut out = GzEncoder::new(out, Compression::new(7));
    let length = length.to_le_bytes();
    let parts = [MAGIC, &length, &header].into_iter().chain(columns.iter().map(|(_, bytes)| &**bytes));
    for part in parts {
        out.write_all(part).map_err(Error::writing)?;
    }
    out.finish().map(drop).map_err(Error::writing)
}

fn header(name: &str, notes: &[String], usage: &Usage) -> Header {
    let problem = &usage.problem;
    let number = |index: &BufferIndex| index.get() as u64;
    let sets = |sets: &[Vec<BufferIndex>]| -> Vec<Vec<u64>> {
        sets.iter().filter(|set| set.len() > 1).map(|set| set.iter().map(number).collect()).collect()
    };
    let mut header = Header::new(name, notes, problem.buffers.len());
    header.pools = problem
        .pools
        .iter()
        .map(|pool| PoolHeader {
            name: pool.name.clone(),
            capacity: pool.capacity.map(Bytes::get),
            spill: pool.spill.map(|pool| pool.get() as u64),
        })
        .collect();
    header.aliases = sets(&problem.aliases);
    header.contiguous = sets(&problem.contiguous);
    header.may_share = problem.may_share.iter().map(|(a, b)| [number(a), number(b)]).collect();
    for (place, buffer) in (0..).zip(&problem.buffers) {
        header.pins.extend(buffer.pin.map(|pin| [place, pin.get()]));
        header.gaps.extend(buffer.gaps.iter().map(|gap| {
            let stays = gap.window.map(|window| [window.lower.get(), window.upper.get()]);
            (place, gap.lifetime.lower, gap.lifetime.upper, stays)
        }));
    }
    header.texts.clone_from(&usage.texts);
    header.steps = usage.steps.iter().map(|end| (end.step.0, end.at)).collect();
    header.reserved = usage.reserved.iter().map(|&(time, bytes)| (time, bytes.get())).collect();
    header.clock_every = usage.clock.as_ref().map_or(1, |clock| clock.every);
    header.clock = usage.clock.as_ref().map(|clock| (clock.first, clock.readings.len() as u64));
    header.layouts = usage.layouts.iter().map(layout_header).collect();
    header
}

fn layout_header(Layout { origin, plan }: &Layout) -> LayoutHeader {
    LayoutHeader {
        origin: origin.name().to_owned(),
        heights: plan.heights.iter().map(|height| height.get()).collect(),
        lower_bound: plan.lower_bound.get(),
        proved: plan.proved,
    }
}

/// The columns that say something, with their names; fills in the streams of `header`.
fn columns(usage: &Usage, header: &mut Header) -> Vec<(String, Vec<u8>)> {
    let buffers = &usage.problem.buffers;
    let labels = &usage.labels;
    let mut columns: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, column: Option<Writer>| {
        columns.extend(column.map(|column| (name.to_owned(), column.0)));
    };
    add("id", ids(usage));
    let begins = buffers.iter().map(|buffer| buffer.lifetime.lower as u64);
    add("lower", Some(differences(begins)));
    add("length", Some(numbers(buffers.iter().map(|buffer| buffer.lifetime.length()))));
    let sizes = in_units("size", buffers.iter().map(|buffer| buffer.size.get()), header);
    add("size", Some(numbers(sizes)));
    add("align", unless_all(buffers.iter().map(|buffer| buffer.align.get()), Align::ONE.get()));
    add("persistent", unless_all(buffers.iter().map(|buffer| u64::from(buffer.class == Class::Persistent)), 0));
    add("pool", unless_all(buffers.iter().map(|buffer| buffer.pool.get() as u64), 0));
    let one_up = |text: Option<lowtide_core::TextIndex>| text.map_or(0, |text| u64::from(text.0) + 1);
    add("category", unless_all(labels.iter().map(|label| one_up(label.category)), 0));
    add("site", unless_all(labels.iter().map(|label| one_up(label.site)), 0));
    let mut streams = vec![StreamId::default()];
    streams.extend(labels.iter().map(|label| label.stream).filter(|&stream| stream != StreamId::default()));
    streams[1..].sort_unstable();
    streams.dedup();
    let place = |stream: StreamId| match streams[1..].binary_search(&stream) {
        Ok(place) => place as u64 + 1,
        Err(_) => 0,
    };
    add("stream", unless_all(labels.iter().map(|label| place(label.stream)), 0));
    let freed = labels.iter().zip(buffers).map(|(label, buffer)| {
        label.freed.map_or(0, |freed| fold(freed.wrapping_sub(buffer.lifetime.lower)).wrapping_add(1))
    });
    add("freed", unless_all(freed, 0));
    let mut readings = |clock: &Clock| differences(in_units("clock", clock.readings.iter().copied(), header));
    add("clock", usage.clock.as_ref().map(&mut readings));
    for (place, layout) in usage.layouts.iter().enumerate() {
        let placements = &layout.plan.placements;
        let name = format!("offset {place}");
        let offsets = in_units(&name, placements.iter().map(|placement| placement.offset.get()), header);
        add(&name, Some(differences(offsets)));
        let moved = placements.iter().zip(buffers).any(|(placement, buffer)| placement.pool != buffer.pool);
        let pools = numbers(placements.iter().map(|placement| PoolIndex::get(placement.pool) as u64));
        add(&format!("pool {place}"), moved.then_some(pools));
    }
    header.streams = streams[1..].iter().map(|stream| stream.0.to_string().into()).collect();
    columns
}

/// Each id as how much it has in common with the one before, and the rest; nothing where they count up from zero.
fn ids(usage: &Usage) -> Option<Writer> {
    let ids = || usage.problem.buffers.iter().map(|buffer| &*buffer.id);
    if ids().enumerate().all(|(place, id)| id == place.to_string()) {
        return None;
    }
    let mut column = Writer::default();
    let mut before: &[u8] = b"";
    for id in ids().map(str::as_bytes) {
        let common = id.iter().zip(before).take_while(|(a, b)| a == b).count();
        column.number(common as u64);
        column.text(&id[common..]);
        before = id;
    }
    Some(column)
}

fn numbers(values: impl Iterator<Item = u64>) -> Writer {
    let mut column = Writer::default();
    values.for_each(|value| column.number(value));
    column
}

/// The values as multiples of the largest number that divides them all, which `header` tells.
fn in_units<'a>(
    column: &str,
    values: impl Iterator<Item = u64> + Clone + 'a,
    header: &mut Header,
) -> impl Iterator<Item = u64> + 'a {
    let common = values.clone().try_fold(0, |common, value| match divisor(common, value) {
        1 => ControlFlow::Break(()),
        common => ControlFlow::Continue(common),
    });
    let unit = common.continue_value().unwrap_or(1).max(1);
    if unit > 1 {
        header.units.insert(column.to_owned(), unit);
    }
    values.map(move |value| value / unit)
}

/// The greatest common divisor; the other where one is zero.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn differences(values: impl Iterator<Item = u64>) -> Writer {
    let mut column = Writer::default();
    let mut before = 0_u64;
    for value in values {
        column.signed(value.wrapping_sub(before) as i64);
        before = value;
    }
    column
}

fn unless_all(values: impl Iterator<Item = u64> + Clone, usual: u64) -> Option<Writer> {
    if values.clone().all(|value| value == usual) { None } else { Some(numbers(values)) }
}
