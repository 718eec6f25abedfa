//! From a recorded run to its [`Usage`]: the problem, what is known of each buffer, and, where the recording has
//! addresses, where everything lay.

use std::ops::Range;

use lowtide_core::ranges::RangeSet;
use lowtide_core::{
    Action, AddressRange, BlockIndex, Buffer, Bytes, Clock, Label, Layout, Origin, Placement, Plan, Problem, StepEnd,
    StepIndex, TextIndex, Trace, Usage,
};

use crate::recorded::lifetimes::{self, Devices, StepError};

/// How the whole run used memory.
pub fn run_usage(trace: &Trace) -> Usage {
    usage(trace, 0..trace.events.len())
}

/// How one step used memory, what was there before it included.
pub fn step_usage(trace: &Trace, wanted: StepIndex) -> Result<Usage, StepError> {
    lifetimes::step_range(trace, wanted).map(|range| usage(trace, range))
}

/// Every buffer of `problem` in bytes of its own, at the next offset that suits it. Whatever binds buffers to each other
/// or to an offset is left out of account.
pub fn unshared(problem: &Problem) -> Plan {
    let mut heights = vec![Bytes::ZERO; problem.pools.len()];
    let place = |buffer: &Buffer| {
        let height = &mut heights[buffer.pool.get()];
        let offset = Bytes::new(height.get().next_multiple_of(buffer.align.get()));
        *height = offset + buffer.size;
        Placement { pool: buffer.pool, offset }
    };
    let placements = problem.buffers.iter().map(place).collect();
    Plan { placements, heights, lower_bound: Bytes::ZERO, proved: false }
}

fn usage(trace: &Trace, range: Range<usize>) -> Usage {
    let (problem, blocks) = lifetimes::problem_of(trace, range.clone());
    let mut labels = labels(trace, &problem, &blocks);
    let texts = texts_of(trace, &mut labels);
    let layouts = recorded(trace, &range, &problem, &blocks).into_iter().collect();
    let within = |row: &usize| range.contains(row);
    let steps = trace.steps().map(|(step, rows)| (step, rows.end - 1)).filter(|(_, row)| within(row));
    Usage {
        labels,
        texts,
        clock: clock(trace, &range),
        steps: steps.map(|(step, row)| StepEnd { step, at: row as i64 }).collect(),
        reserved: reserved(trace, &range),
        layouts,
        problem,
    }
}

fn labels(trace: &Trace, problem: &Problem, blocks: &[BlockIndex]) -> Vec<Label> {
    let mut of_block = vec![Label::default(); trace.blocks.len()];
    for (row, event) in trace.events.iter().enumerate() {
        match event.action {
            Action::Alloc { block } => {
                let label = &mut of_block[block.0 as usize];
                *label = Label { category: event.category, site: event.site, stream: event.stream, freed: None };
            }
            Action::Free { block } => of_block[block.0 as usize].freed = Some(row as i64),
            _ => {}
        }
    }
    let with_end = |(buffer, block): (usize, &BlockIndex)| {
        let mut label = of_block[block.0 as usize];
        let end = problem.buffers[buffer].lifetime.upper;
        label.freed = label.freed.filter(|&freed| freed < end);
        label
    };
    blocks.iter().enumerate().map(with_end).collect()
}

/// The texts of categories and sites, which `labels` then refer to: a trace has many more, its names above all.
fn texts_of(trace: &Trace, labels: &mut [Label]) -> Vec<Box<str>> {
    let mut texts = Vec::new();
    let mut places: Vec<Option<TextIndex>> = vec![None; trace.texts.len()];
    for text in labels.iter_mut().flat_map(|label| [&mut label.category, &mut label.site]).flatten() {
        *text = *places[text.0 as usize].get_or_insert_with(|| {
            texts.push(trace.text(*text).into());
            TextIndex(texts.len() as u32 - 1)
        });
    }
    texts
}

/// Readings for every event of `range`, where any has one: an event without is as late as the one before it.
fn clock(trace: &Trace, range: &Range<usize>) -> Option<Clock> {
    let events = &trace.events[range.clone()];
    let first = events.iter().find_map(|event| event.time_ns)?;
    let mut latest = first;
    let readings = events
        .iter()
        .map(|event| {
            latest = latest.max(event.time_ns.unwrap_or(latest));
            latest
        })
        .collect();
    Some(Clock { first: range.start as i64, every: 1, readings })
}

/// What was reserved from which event of `range` on.
fn reserved(trace: &Trace, range: &Range<usize>) -> Vec<(i64, Bytes)> {
    let mut held = 0_u64;
    let mut curve: Vec<(i64, Bytes)> = Vec::new();
    for (row, event) in trace.events[..range.end].iter().enumerate() {
        match event.action {
            Action::Reserve { range } => held = held.saturating_add(trace.range(range).bytes.get()),
            Action::Release { range } => held = held.saturating_sub(trace.range(range).bytes.get()),
            _ => continue,
        }
        let time = row.max(range.start) as i64;
        if curve.last().is_some_and(|&(last, _)| last == time) {
            curve.pop();
        }
        curve.push((time, Bytes::new(held)));
    }
    curve
}

/// Where everything lay, where the recording says so for all: the addresses that the allocator had reserved at some time of
/// `range`, one range behind the other without what lay between them.
fn recorded(trace: &Trace, range: &Range<usize>, problem: &Problem, blocks: &[BlockIndex]) -> Option<Layout> {
    let extents: Vec<Range<u64>> = blocks.iter().map(|&block| extent(trace, block)).collect::<Option<_>>()?;
    let mut reserved = vec![RangeSet::new(); problem.pools.len()];
    let devices = Devices::of(trace);
    for (row, event) in trace.events[..range.end].iter().enumerate() {
        let own = &mut reserved[devices.pool(event.device).get()];
        match event.action {
            Action::Reserve { range } => own.insert(addresses(trace.range(range))?),
            Action::Release { range: released } if row < range.start => own.remove(addresses(trace.range(released))?),
            _ => 0,
        };
    }
    for (buffer, extent) in problem.buffers.iter().zip(&extents) {
        reserved[buffer.pool.get()].insert(extent.clone());
    }
    let floors: Vec<Floors> = reserved.iter().map(Floors::of).collect();
    let placements = problem.buffers.iter().zip(&extents).map(|(buffer, extent)| {
        let offset = floors[buffer.pool.get()].offset(extent.start);
        Placement { pool: buffer.pool, offset: Bytes::new(offset) }
    });
    let plan = Plan {
        placements: placements.collect(),
        heights: floors.iter().map(|floors| Bytes::new(floors.height)).collect(),
        lower_bound: Bytes::ZERO,
        proved: false,
    };
    Some(Layout { origin: Origin::Recorded, plan })
}

/// The addresses of a block, where they are known.
fn extent(trace: &Trace, block: BlockIndex) -> Option<Range<u64>> {
    let block = trace.block(block);
    addresses(&AddressRange { address: block.address, bytes: block.bytes })
}

fn addresses(range: &AddressRange) -> Option<Range<u64>> {
    let start = range.address?;
    Some(start..start.checked_add(range.bytes.get())?)
}

/// Ranges of addresses, put one behind the other.
struct Floors {
    /// Where each range starts, and the offset it is put at.
    starts: Vec<(u64, u64)>,
    height: u64,
}

impl Floors {
    fn of(ranges: &RangeSet) -> Self {
        let mut height = 0;
        let put = |range: Range<u64>| {
            let floor = height;
            height += range.end - range.start;
            (range.start, floor)
        };
        let starts = ranges.iter().map(put).collect();
        Self { starts, height }
    }

    fn offset(&self, address: u64) -> u64 {
        let after = self.starts.partition_point(|&(start, _)| start <= address);
        let (start, floor) = self.starts[..after].last().copied().unwrap_or((address, 0));
        floor + (address - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Block, Event, RangeIndex};

    /// A segment of 64 bytes at 1000 and one of 32 at 5000, with a block in each.
    fn two_segments() -> Trace {
        let block = |address| Block { name: TextIndex(0), bytes: Bytes::new(16), address: Some(address) };
        let range = |address, bytes| AddressRange { address: Some(address), bytes: Bytes::new(bytes) };
        let rows = [
            Action::Reserve { range: RangeIndex(0) },
            Action::Alloc { block: BlockIndex(0) },
            Action::Reserve { range: RangeIndex(1) },
            Action::Alloc { block: BlockIndex(1) },
            Action::Free { block: BlockIndex(0) },
            Action::Release { range: RangeIndex(0) },
            Action::Step { step: StepIndex(1) },
            Action::Record { block: BlockIndex(1) },
            Action::Free { block: BlockIndex(1) },
            Action::Step { step: StepIndex(2) },
        ];
        Trace {
            events: rows.into_iter().map(Event::new).collect(),
            blocks: vec![block(1032), block(5000)],
            ranges: vec![range(1000, 64), range(5000, 32)],
            texts: vec!["a".into()],
            ..Trace::default()
        }
    }

    #[test]
    fn a_recorded_layout_puts_what_was_reserved_one_behind_the_other() {
        let usage = run_usage(&two_segments());
        let [Layout { origin: Origin::Recorded, plan }] = &*usage.layouts else { panic!("{:?}", usage.layouts) };
        let offsets: Vec<u64> = plan.placements.iter().map(|placement| placement.offset.get()).collect();
        assert_eq!(offsets, [32, 64]);
        assert_eq!(plan.peak(), Bytes::new(96));
        let held: Vec<(i64, u64)> = usage.reserved.iter().map(|&(time, bytes)| (time, bytes.get())).collect();
        assert_eq!(held, [(0, 64), (2, 96), (5, 32)]);
        assert_eq!(usage.step_at(6), Some(StepIndex(1)));
        assert_eq!(usage.step_at(7), Some(StepIndex(2)));
    }

    #[test]
    fn a_step_shows_only_what_was_reserved_during_it() {
        let usage = step_usage(&two_segments(), StepIndex(2)).unwrap();
        assert_eq!(usage.problem.buffers.len(), 1);
        assert_eq!(usage.layouts[0].plan.peak(), Bytes::new(32));
        assert_eq!(usage.reserved, [(7, Bytes::new(32))]);
    }

    #[test]
    fn only_texts_that_say_something_of_a_buffer_are_kept() {
        let mut trace = two_segments();
        trace.texts = vec!["a".into(), "net.py:1 f".into(), "weights".into()];
        trace.events[1].site = Some(TextIndex(1));
        trace.events[3].site = Some(TextIndex(1));
        trace.events[3].category = Some(TextIndex(2));
        let usage = run_usage(&trace);
        assert_eq!(usage.texts, ["net.py:1 f".into(), Box::<str>::from("weights")]);
        let texts = |place: usize| {
            let label = usage.labels[place];
            [label.site, label.category].map(|text| text.map(|text| usage.text(text)))
        };
        assert_eq!([texts(0), texts(1)], [[Some("net.py:1 f"), None], [Some("net.py:1 f"), Some("weights")]]);
    }

    #[test]
    fn a_block_without_an_address_leaves_the_recorded_layout_out() {
        let mut trace = two_segments();
        trace.blocks[1].address = None;
        assert_eq!(run_usage(&trace).layouts, []);
    }

    #[test]
    fn when_the_program_let_go_is_kept_only_where_the_device_was_later() {
        let mut trace = two_segments();
        trace.events.push(Event::new(Action::Done { block: BlockIndex(0) }));
        let usage = run_usage(&trace);
        assert_eq!(usage.labels[0].freed, Some(4));
        assert_eq!(usage.problem.buffers[0].lifetime.upper, 10);
        assert_eq!(run_usage(&two_segments()).labels[0].freed, None);
    }

    #[test]
    fn without_reuse_everything_has_bytes_of_its_own() {
        use lowtide_core::{Align, Lifetime};
        let life = Lifetime { lower: 0, upper: 1 };
        let mut problem =
            Problem::new([8, 4, 16].map(|size| Buffer::new(size.to_string(), life, Bytes::new(size))).into());
        problem.buffers[2].align = Align::new(16).unwrap();
        let plan = unshared(&problem);
        let offsets: Vec<u64> = plan.placements.iter().map(|placement| placement.offset.get()).collect();
        assert_eq!((offsets, plan.peak()), (vec![0, 8, 16], Bytes::new(32)));
    }
}
