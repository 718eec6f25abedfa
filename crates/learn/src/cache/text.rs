//! The text of a remembered plan: a version, the lanes, a line per slot, and a checksum over all of it.

use std::fmt::Write;
use std::str::{FromStr, Lines, SplitAsciiWhitespace};

use lowtide_core::{Align, Bytes, StreamId, ThreadId};

use crate::Lane;
use crate::patterns::shape::{Life, Shape, ShapeSlot};
use crate::plan::step_plan::{Key, Signature, mix};
use crate::planning::timeline::{Layout, holds};

const VERSION: &str = "lowtide step plan 1";

/// More slots than this are not read.
const MOST_SLOTS: usize = 1 << 20;

const MOST_LANES: usize = 1 << 12;

const DAMAGED: &str = "it is damaged";

/// A plan as an earlier run made it.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub lanes: Vec<Lane>,
    pub shape: Shape,
    pub layout: Layout,
}

/// The text for a plan.
pub(crate) fn write(signature: Signature, lanes: &[Lane], shape: &Shape, layout: &Layout) -> String {
    let mut text = format!(
        "{VERSION}\nsignature {signature}\nheight {} bound {} proved {} coarseness {}\nlanes {}\n",
        layout.height.get(),
        layout.bound.get(),
        u8::from(layout.proved),
        layout.coarseness,
        lanes.len()
    );
    let mut line = |arguments: std::fmt::Arguments| {
        // Writing to a string cannot fail.
        let _ = text.write_fmt(arguments);
    };
    for lane in lanes {
        line(format_args!("{} {}\n", lane.thread.0, lane.stream.0));
    }
    line(format_args!("slots {}\n", shape.slots.len()));
    for (slot, offset) in shape.slots.iter().zip(&layout.offsets) {
        let (life, end, lane_end) = match slot.life {
            Life::Online => ("online", 0, 0),
            Life::Within { end, lane_end } => ("within", end, lane_end),
            Life::Wraps { end } => ("wraps", end, 0),
            Life::Straddles { end } => ("straddles", end, 0),
        };
        line(format_args!(
            "{} {} {} {life} {end} {lane_end} {} {}\n",
            slot.lane,
            slot.key.bytes.get(),
            slot.key.align,
            u8::from(slot.joined),
            offset.map_or(0, Bytes::get)
        ));
    }
    let checksum = checksum(&text);
    let _ = writeln!(text, "checksum {checksum:016x}");
    text
}

/// The plan that `text` holds, or what is wrong with it, as the end of a sentence.
pub(crate) fn read(text: &str) -> Result<Remembered, &'static str> {
    if text.lines().next() != Some(VERSION) {
        return Err("it is of another version");
    }
    let end = text.rfind("checksum ").ok_or("it is cut off")?;
    let (body, last) = text.split_at(end);
    if last != format!("checksum {:016x}\n", checksum(body)) {
        return Err(DAMAGED);
    }
    let (signature, remembered) = parse(body).ok_or(DAMAGED)?;
    let Remembered { lanes, shape, layout } = &remembered;
    let distinct = lanes.iter().collect::<std::collections::BTreeSet<_>>().len() == lanes.len();
    if !distinct || !shape.is_sound(lanes.len()) || !holds(shape, layout) {
        return Err("its plan does not hold");
    }
    if shape.plan(layout, lanes).signature != signature {
        return Err("its signature is that of another plan");
    }
    Ok(remembered)
}

fn checksum(text: &str) -> u64 {
    let word = |hash: u64, bytes: &[u8]| mix(hash, bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    text.as_bytes().chunks(8).fold(text.len() as u64, word)
}

fn parse(body: &str) -> Option<(Signature, Remembered)> {
    let mut lines = body.lines();
    lines.next()?;
    let mut words = words(&mut lines)?;
    named(&mut words, "signature")?;
    let signature = Signature(u64::from_str_radix(words.next()?, 16).ok()?);
    let mut words = self::words(&mut lines)?;
    let height = Bytes::new(count(&mut words, "height")?);
    let bound = Bytes::new(count(&mut words, "bound")?);
    let proved = count(&mut words, "proved")? == 1;
    let coarseness = count(&mut words, "coarseness")?.try_into().ok()?;
    let lane_count = count(&mut self::words(&mut lines)?, "lanes")? as usize;
    let lanes: Vec<Lane> = (0..lane_count.min(MOST_LANES + 1)).map(|_| lane(&mut lines)).collect::<Option<_>>()?;
    let slot_count = count(&mut self::words(&mut lines)?, "slots")? as usize;
    let rows: Vec<(ShapeSlot, Option<Bytes>)> =
        (0..slot_count.min(MOST_SLOTS + 1)).map(|_| slot(&mut lines)).collect::<Option<_>>()?;
    if lanes.len() > MOST_LANES || rows.len() > MOST_SLOTS || lines.next().is_some() {
        return None;
    }
    let (slots, offsets) = rows.into_iter().unzip();
    let layout = Layout { offsets, height, bound, proved, coarseness };
    Some((signature, Remembered { lanes, shape: Shape { slots }, layout }))
}

fn words<'a>(lines: &mut Lines<'a>) -> Option<SplitAsciiWhitespace<'a>> {
    lines.next().map(str::split_ascii_whitespace)
}

fn named(words: &mut SplitAsciiWhitespace, name: &str) -> Option<()> {
    (words.next()? == name).then_some(())
}

fn count(words: &mut SplitAsciiWhitespace, name: &str) -> Option<u64> {
    named(words, name)?;
    number(words)
}

fn number<T: FromStr>(words: &mut SplitAsciiWhitespace) -> Option<T> {
    words.next()?.parse().ok()
}

fn lane(lines: &mut Lines) -> Option<Lane> {
    let mut words = words(lines)?;
    Some(Lane { thread: ThreadId(number(&mut words)?), stream: StreamId(number(&mut words)?) })
}

fn slot(lines: &mut Lines) -> Option<(ShapeSlot, Option<Bytes>)> {
    let mut words = words(lines)?;
    let lane = number(&mut words)?;
    let key = Key { bytes: Bytes::new(number(&mut words)?), align: Align::new(number(&mut words)?)? };
    let life = words.next()?;
    let (end, lane_end) = (number(&mut words)?, number(&mut words)?);
    let life = match life {
        "online" => Life::Online,
        "within" => Life::Within { end, lane_end },
        "wraps" => Life::Wraps { end },
        "straddles" => Life::Straddles { end },
        _ => return None,
    };
    let joined = number::<u8>(&mut words)? == 1;
    let offset = Bytes::new(number(&mut words)?);
    Some((
        ShapeSlot { lane, key, life, joined },
        (!matches!(life, Life::Online | Life::Straddles { .. })).then_some(offset),
    ))
}
