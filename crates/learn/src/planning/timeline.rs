//! From a [`Shape`] to offsets.
//!
//! Places of the shape are the ticks. Where lanes race, that is between two borders at which the order was the same in
//! every step, no order across lanes is relied on: what a lane allocates and frees there is planned by itself, in its
//! own order, and becomes one block that lives from border to border; whatever reaches over a border lives up to the
//! next one. So every interleaving that keeps the borders is served, and where nothing races nothing is lost. Borders
//! that much reaches over cost more than they give: where lanes race, plans with fewer
//! [`sections`](crate::planning::sections) are tried as well.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lowtide_core::{Align, Buffer, Bytes, Gap, Lifetime, Problem};
use lowtide_plan::{Options, SolveError, Verdict, lower_bound, solve, validate};

use crate::patterns::shape::{Life, Shape};
use crate::planning::replan::Carried;
use crate::planning::sections::{COARSEST, Section, sections};

/// Where the slots of a shape go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// In the shape's order; nowhere where a slot is not planned.
    pub offsets: Vec<Option<Bytes>>,
    pub height: Bytes,
    pub bound: Bytes,
    pub proved: bool,
    /// Which borders it keeps; see [`sections`].
    pub coarseness: u32,
}

/// A coarser plan is taken where it is higher by at most one part in so many.
const WORTH: u64 = 64;

/// How long a better plan is looked for at least. Most are found in a fraction of that, and a plan saves nothing until it is served.
const TIME_NEAR_BOUND: Duration = Duration::from_millis(100);

/// How hard to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort<'a> {
    pub time_limit: Duration,
    pub threads: NonZeroUsize,
    pub cancel: &'a AtomicBool,
}

/// Places every slot of `shape` that is planned.
pub(crate) fn place(shape: &Shape, effort: Effort) -> Result<Layout, SolveError> {
    place_around(shape, &[], effort)
}

/// Places every slot of `shape` that is planned where blocks of earlier steps lie. A block that is an instance of a slot
/// is there until the slot's instances are freed, and the slot has its place; any other block stays.
pub(crate) fn place_around(shape: &Shape, carried: &[Carried], effort: Effort) -> Result<Layout, SolveError> {
    if !shape.slots.iter().any(|slot| slot.joined) {
        return place_between(shape, 0, carried, effort);
    }
    let effort = Effort { time_limit: effort.time_limit / (COARSEST + 1), ..effort };
    let mut best = place_between(shape, 0, carried, effort)?;
    for coarseness in 1..=COARSEST {
        let other = place_between(shape, coarseness, carried, effort)?;
        // What relies on less order misses less, and lanes that share no memory do not slow each other down.
        let enough = best.height.get() + best.height.get() / WORTH;
        let none = best.height == Bytes::ZERO;
        if other.height > Bytes::ZERO && (none || other.height.get() <= enough) {
            best = other;
        }
    }
    Ok(best)
}

fn place_between(shape: &Shape, coarseness: u32, carried: &[Carried], effort: Effort) -> Result<Layout, SolveError> {
    let timeline = Timeline::new(shape, coarseness);
    let planned: usize = timeline.races.values().map(Vec::len).sum::<usize>() + timeline.alone.len();
    let share = |slots: usize| Effort {
        time_limit: effort.time_limit.mul_f64(slots.max(1) as f64 / planned.max(1) as f64),
        ..effort
    };
    let mut buffers: Vec<Buffer> = timeline.alone.iter().map(|(_, buffer)| buffer.clone()).collect();
    let stays = timeline.pin(&mut buffers, shape, carried);
    let mut bounds = buffers.clone();
    let mut racing = Vec::new();
    let mut proved = true;
    for ((section, lane), members) in &timeline.races {
        let problem = Problem::new(members.iter().map(|(_, buffer)| buffer.clone()).collect());
        let inner = best(&problem, share(members.len()))?;
        proved &= inner.proved;
        let life = lifetime(section.start, section.end);
        let align = members.iter().try_fold(Align::ONE, |all, (_, one)| all.checked_common_multiple(one.align));
        let block = |height: Bytes| Buffer {
            align: align.unwrap_or(Align::ONE),
            ..Buffer::new(format!("race {} of lane {lane}", section.start), life, height)
        };
        buffers.push(block(inner.height));
        bounds.push(block(inner.bound));
        racing.push((members, inner.offsets));
    }
    let count = buffers.len();
    buffers.extend(stays.iter().cloned());
    bounds.extend(stays);
    let outer = best(&Problem::new(buffers), share(timeline.alone.len() + timeline.races.len()))?;
    let mut offsets = vec![None; shape.slots.len()];
    if outer.offsets.len() < count {
        return Ok(Layout { offsets, height: Bytes::ZERO, bound: Bytes::ZERO, proved: false, coarseness });
    }
    for ((slot, _), &offset) in timeline.alone.iter().zip(&outer.offsets) {
        offsets[*slot] = Some(offset);
    }
    for ((members, inner), &floor) in racing.iter().zip(&outer.offsets[timeline.alone.len()..]) {
        for ((slot, _), &offset) in members.iter().zip(inner) {
            offsets[*slot] = Some(floor + offset);
        }
    }
    let bound = if racing.is_empty() { outer.bound } else { lower_bound(&Problem::new(bounds))? };
    Ok(Layout { offsets, height: outer.height, bound, proved: proved && outer.proved, coarseness })
}

/// Whether `layout` keeps apart what may be alive together, as [`place`] would have it.
pub(crate) fn holds(shape: &Shape, layout: &Layout) -> bool {
    let timeline = Timeline::new(shape, layout.coarseness);
    let inner = timeline.races.values();
    let floors_and_ends = |members: &Vec<(usize, Buffer)>| -> Option<(Bytes, Bytes)> {
        let mut span: Option<(Bytes, Bytes)> = None;
        for (slot, buffer) in members {
            let offset = layout.offsets[*slot]?;
            let end = offset.checked_add(buffer.size)?;
            let (floor, top) = span.unwrap_or((offset, end));
            span = Some((floor.min(offset), top.max(end)));
        }
        span
    };
    let mut buffers: Vec<Buffer> = timeline.alone.iter().map(|(_, buffer)| buffer.clone()).collect();
    let mut offsets: Vec<Option<Bytes>> = timeline.alone.iter().map(|(slot, _)| layout.offsets[*slot]).collect();
    for ((section, lane), members) in &timeline.races {
        let Some((floor, top)) = floors_and_ends(members) else { return false };
        let name = format!("race {} of lane {lane}", section.start);
        buffers.push(Buffer::new(name, lifetime(section.start, section.end), top - floor));
        offsets.push(Some(floor));
    }
    let apart = |buffers: Vec<Buffer>, offsets: Vec<Option<Bytes>>| {
        let problem = Problem::new(buffers);
        let Some(offsets) = offsets.into_iter().collect::<Option<Vec<Bytes>>>() else { return false };
        problem.check().is_ok() && validated(&problem, &offsets, layout.height)
    };
    let planned = timeline.alone.iter().chain(inner.clone().flatten()).map(|(slot, _)| *slot);
    let mut is_planned = vec![false; shape.slots.len()];
    planned.for_each(|slot| is_planned[slot] = true);
    layout.offsets.iter().zip(is_planned).all(|(offset, planned)| offset.is_some() == planned)
        && layout.bound <= layout.height
        && apart(buffers, offsets)
        && inner.into_iter().all(|members| {
            let own = members.iter().map(|(_, buffer)| buffer.clone()).collect();
            apart(own, members.iter().map(|(slot, _)| layout.offsets[*slot]).collect())
        })
}

fn validated(problem: &Problem, offsets: &[Bytes], most: Bytes) -> bool {
    let pool = lowtide_core::PoolIndex::default();
    let placements = offsets.iter().map(|&offset| lowtide_core::Placement { pool, offset }).collect();
    let ends = problem.buffers.iter().zip(offsets).map(|(buffer, offset)| offset.checked_add(buffer.size));
    let Some(ends) = ends.collect::<Option<Vec<Bytes>>>() else { return false };
    let height = ends.into_iter().max().unwrap_or(Bytes::ZERO);
    let plan = lowtide_core::Plan { placements, heights: vec![height], lower_bound: Bytes::ZERO, proved: false };
    height <= most && validate(problem, &plan) == Verdict::Valid
}

struct Placed {
    offsets: Vec<Bytes>,
    height: Bytes,
    bound: Bytes,
    proved: bool,
}

fn best(problem: &Problem, effort: Effort) -> Result<Placed, SolveError> {
    let options = Options {
        time_limit: Some(effort.time_limit),
        time_near_bound: Some(TIME_NEAR_BOUND),
        threads: effort.threads,
        ..Options::new(effort.cancel)
    };
    let outcome = solve(problem, &options, &|_| {})?;
    // Where nothing is pinned there is always a plan.
    Ok(outcome.plan.map_or(
        Placed { offsets: Vec::new(), height: Bytes::ZERO, bound: Bytes::ZERO, proved: true },
        |plan| Placed {
            offsets: plan.placements.iter().map(|placement| placement.offset).collect(),
            height: plan.peak(),
            bound: plan.lower_bound,
            proved: plan.proved,
        },
    ))
}

/// Buffers of a shape, each with its slot.
struct Timeline {
    /// Those that are placed against all others.
    alone: Vec<(usize, Buffer)>,
    /// Those of one lane that live and die where lanes race.
    races: BTreeMap<(Section, u32), Vec<(usize, Buffer)>>,
}

impl Timeline {
    fn new(shape: &Shape, coarseness: u32) -> Self {
        let mut timeline = Self { alone: Vec::new(), races: BTreeMap::new() };
        let count = shape.slots.len();
        let sections = sections(shape, coarseness);
        // Where something ends that ends somewhere inside a section.
        let border = |end: u32| match sections.get(end as usize) {
            Some(section) if section.start < end as usize => section.end,
            _ => end as usize,
        };
        for (place, slot) in shape.slots.iter().enumerate() {
            let Some(size) = slot.key.bytes.checked_align_up(slot.key.align) else { continue };
            let section = sections[place];
            let buffer =
                |life: Lifetime| Buffer { align: slot.key.align, ..Buffer::new(place.to_string(), life, size) };
            match slot.life {
                Life::Online | Life::Straddles { .. } => {}
                Life::Within { end, lane_end } if end as usize <= section.end && section.is_race() => {
                    let life = lifetime(place, (lane_end as usize).min(section.end));
                    timeline.races.entry((section, slot.lane)).or_default().push((place, buffer(life)));
                }
                Life::Within { end, .. } => {
                    timeline.alone.push((place, buffer(lifetime(section.start, border(end)))));
                }
                Life::Wraps { end } => {
                    timeline.alone.push((place, wrapped(&buffer, border(end)..section.start, count)));
                }
            }
        }
        timeline
    }
}

impl Timeline {
    /// Pins the buffers of slots where their instances lie, and makes buffers of what stays.
    fn pin(&self, buffers: &mut [Buffer], shape: &Shape, carried: &[Carried]) -> Vec<Buffer> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for block in carried {
            let wraps = |slot: &u32| {
                shape.slots.get(*slot as usize).is_some_and(|slot| matches!(slot.life, Life::Wraps { .. }))
            };
            let slot = block.slot.filter(wraps);
            let alone = slot.and_then(|slot| self.alone.binary_search_by_key(&(slot as usize), |one| one.0).ok());
            match alone {
                Some(place) if buffers[place].size == block.bytes => buffers[place].pin = Some(block.offset),
                _ => ranges.push((block.offset.get(), block.offset.get() + block.bytes.get())),
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let touches = next.0 == range.1;
            if touches {
                range.1 = next.1;
            }
            touches
        });
        let whole = lifetime(0, shape.slots.len());
        ranges
            .into_iter()
            .map(|(start, end)| Buffer {
                pin: Some(Bytes::new(start)),
                ..Buffer::new(format!("stays at {start}"), whole, Bytes::new(end - start))
            })
            .collect()
    }
}

/// A buffer that lives outside of `away`, which is empty where it lives always.
fn wrapped(buffer: &dyn Fn(Lifetime) -> Buffer, away: Range<usize>, count: usize) -> Buffer {
    if away.start == 0 {
        return buffer(lifetime(away.end, count));
    }
    let mut whole = buffer(lifetime(0, count));
    if !away.is_empty() {
        whole.gaps.push(Gap { lifetime: lifetime(away.start, away.end), window: None });
    }
    whole
}

fn lifetime(start: usize, end: usize) -> Lifetime {
    Lifetime { lower: start as i64, upper: end.max(start) as i64 }
}
