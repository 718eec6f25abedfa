//! From a recorded run to a problem: each block of the trace becomes a buffer that lives from its allocation until
//! the device has finished with it.

use std::ops::Range;

use lowtide_core::{Action, Block, BlockIndex, Buffer, Class, Lifetime, Pool, PoolIndex, Problem, StepIndex, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why a step cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The trace closes no such step.
    #[error("the trace has no step {wanted}; {}", match .last {
        Some(last) => format!("it closes steps {} to {last}", .first.unwrap_or(*last)),
        None => "it closes none".to_owned(),
    })]
    NoSuchStep {
        /// The step asked for.
        wanted: StepIndex,
        /// The first that there is.
        first: Option<StepIndex>,
        /// The last that there is.
        last: Option<StepIndex>,
    },
}

/// The events of one step.
pub(crate) fn step_range(trace: &Trace, wanted: StepIndex) -> Result<Range<usize>, StepError> {
    let mut steps = trace.steps();
    steps.find(|&(step, _)| step == wanted).map(|(_, range)| range).ok_or_else(|| StepError::NoSuchStep {
        wanted,
        first: trace.steps().next().map(|(step, _)| step),
        last: trace.steps().last().map(|(step, _)| step),
    })
}

/// The devices of a trace, each a pool; those that are not told apart are one.
pub(crate) struct Devices(Vec<Option<u32>>);

impl Devices {
    pub fn of(trace: &Trace) -> Self {
        let mut devices: Vec<Option<u32>> = trace
            .events
            .iter()
            .filter_map(|event| match event.action {
                Action::Alloc { .. } => Some(event.device),
                _ => None,
            })
            .collect();
        devices.sort_unstable();
        devices.dedup();
        Self(devices)
    }

    /// The pool of `device`; the first where nothing was ever allocated on it.
    pub fn pool(&self, device: Option<u32>) -> PoolIndex {
        PoolIndex::new(self.0.binary_search(&device).unwrap_or(0))
    }

    fn pools(&self) -> Vec<Pool> {
        match &*self.0 {
            [] | [_] => vec![Pool::unlimited("main")],
            several => several
                .iter()
                .map(|device| {
                    Pool::unlimited(match device {
                        Some(device) => format!("device {device}"),
                        None => "no device".to_owned(),
                    })
                })
                .collect(),
        }
    }
}

/// Where each block begins and ends, as indices of events; the end of the trace where it does not end.
fn spans(trace: &Trace) -> Vec<Lifetime> {
    let end = trace.events.len() as i64;
    let until_done = trace.has_done_rows();
    let mut spans = vec![Lifetime { lower: 0, upper: end }; trace.blocks.len()];
    for (time, event) in trace.events.iter().enumerate() {
        match event.action {
            Action::Alloc { block } => spans[block.0 as usize].lower = time as i64,
            Action::Free { block } if !until_done => spans[block.0 as usize].upper = time as i64,
            Action::Done { block } => spans[block.0 as usize].upper = time as i64,
            _ => {}
        }
    }
    spans
}

/// What lives at some time within `range`, in a pool for each device where there are several, and the block that each
/// buffer is. What was there before the range and stays throughout is persistent; what was there before and ends within
/// is alive from its first event on.
pub(crate) fn problem_of(trace: &Trace, range: Range<usize>) -> (Problem, Vec<BlockIndex>) {
    let (start, end) = (range.start as i64, range.end as i64);
    let whole = start == 0 && range.end == trace.events.len();
    let devices = Devices::of(trace);
    let pools = pools_of_blocks(trace, &devices);
    let mut names = Names::new(trace);
    let (mut buffers, mut blocks) = (Vec::new(), Vec::new());
    for (place, (block, span)) in trace.blocks.iter().zip(spans(trace)).enumerate() {
        let name = names.next(block);
        let lifetime = Lifetime { lower: span.lower.max(start), upper: span.upper.min(end) };
        if lifetime.lower >= lifetime.upper {
            continue;
        }
        let mut buffer = Buffer::new(name, lifetime, block.bytes);
        if !whole && span.lower < start && span.upper >= end {
            buffer.class = Class::Persistent;
        }
        buffer.pool = pools.get(place).copied().unwrap_or_default();
        buffers.push(buffer);
        blocks.push(BlockIndex(place as u32));
    }
    (Problem { pools: devices.pools(), ..Problem::new(buffers) }, blocks)
}

/// The pool of each block; none where there is but one pool.
fn pools_of_blocks(trace: &Trace, devices: &Devices) -> Vec<PoolIndex> {
    if devices.0.len() < 2 {
        return Vec::new();
    }
    let mut pools = vec![PoolIndex::default(); trace.blocks.len()];
    for event in &trace.events {
        if let Action::Alloc { block } = event.action {
            pools[block.0 as usize] = devices.pool(event.device);
        }
    }
    pools
}

/// The names of blocks: a name that a program used again is numbered from its second use on, with numbers that make
/// no name the trace has.
struct Names<'a> {
    trace: &'a Trace,
    taken: FxHashSet<&'a str>,
    uses: FxHashMap<u32, u32>,
}

impl<'a> Names<'a> {
    fn new(trace: &'a Trace) -> Self {
        let taken = trace.blocks.iter().map(|block| trace.text(block.name)).collect();
        Self { trace, taken, uses: FxHashMap::default() }
    }

    fn next(&mut self, block: &Block) -> Box<str> {
        let name = self.trace.text(block.name);
        let uses = self.uses.entry(block.name.0).or_insert(0);
        loop {
            *uses += 1;
            if *uses == 1 {
                return name.into();
            }
            let numbered = format!("{name}#{uses}");
            if !self.taken.contains(&*numbered) {
                return numbered.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Bytes, Event, TextIndex};

    /// Blocks a, b, c; `rows` are the events.
    fn trace(rows: &[Action]) -> Trace {
        let block = |name| Block { name: TextIndex(name), bytes: Bytes::new(8), address: None };
        Trace {
            events: rows.iter().map(|&action| Event::new(action)).collect(),
            blocks: vec![block(0), block(1), block(0)],
            texts: vec!["a".into(), "b".into()],
            ..Trace::default()
        }
    }

    const fn alloc(block: u32) -> Action {
        Action::Alloc { block: BlockIndex(block) }
    }
    const fn free(block: u32) -> Action {
        Action::Free { block: BlockIndex(block) }
    }
    const fn done(block: u32) -> Action {
        Action::Done { block: BlockIndex(block) }
    }
    const fn step(step: u64) -> Action {
        Action::Step { step: StepIndex(step) }
    }

    fn whole_run(trace: &Trace) -> Problem {
        problem_of(trace, 0..trace.events.len()).0
    }

    fn one_step(trace: &Trace, step: u64) -> Result<Problem, StepError> {
        step_range(trace, StepIndex(step)).map(|range| problem_of(trace, range).0)
    }

    fn lives(problem: &Problem) -> Vec<(&str, i64, i64, Class)> {
        let life = |buffer: &'_ Buffer| (buffer.lifetime.lower, buffer.lifetime.upper, buffer.class);
        problem
            .buffers
            .iter()
            .map(|b| {
                let (l, u, c) = life(b);
                (&*b.id, l, u, c)
            })
            .collect()
    }

    #[test]
    fn a_block_lives_from_its_allocation_to_its_free_or_to_the_end() {
        let problem = whole_run(&trace(&[alloc(0), alloc(1), free(0), alloc(2), free(2)]));
        let t = Class::Transient;
        assert_eq!(lives(&problem), [("a", 0, 2, t), ("b", 1, 5, t), ("a#2", 3, 4, t)]);
    }

    #[test]
    fn a_number_never_makes_the_name_of_another_block() {
        let mut trace = trace(&[alloc(0), free(0), alloc(1), alloc(2)]);
        trace.texts[1] = "a#2".into();
        let ids: Vec<_> = whole_run(&trace).buffers.into_iter().map(|buffer| buffer.id).collect();
        assert_eq!(ids, ["a".into(), "a#2".into(), Box::<str>::from("a#3")]);
    }

    #[test]
    fn where_a_trace_says_when_the_device_is_done_a_block_lives_until_then() {
        let problem = whole_run(&trace(&[alloc(0), alloc(1), free(0), free(1), done(0), alloc(2)]));
        let t = Class::Transient;
        assert_eq!(lives(&problem), [("a", 0, 4, t), ("b", 1, 6, t), ("a#2", 5, 6, t)]);
    }

    #[test]
    fn what_outlives_a_step_on_both_sides_is_persistent_in_it() {
        let rows = [alloc(0), alloc(1), step(1), alloc(2), free(2), free(0), step(2), free(1)];
        let problem = one_step(&trace(&rows), 2).unwrap();
        let (p, t) = (Class::Persistent, Class::Transient);
        assert_eq!(lives(&problem), [("a", 3, 5, t), ("b", 3, 7, p), ("a#2", 3, 4, t)]);
        let missing = one_step(&trace(&rows), 7).unwrap_err();
        assert_eq!(missing.to_string(), "the trace has no step 7; it closes steps 1 to 2");
    }

    #[test]
    fn several_devices_are_pools_of_their_own() {
        let mut trace = trace(&[alloc(0), alloc(1), alloc(2)]);
        assert_eq!(whole_run(&trace).pools.len(), 1);
        trace.events[0].device = Some(3);
        trace.events[1].device = Some(1);
        trace.events[2].device = Some(3);
        let problem = whole_run(&trace);
        assert_eq!(problem.pools.iter().map(|pool| &*pool.name).collect::<Vec<_>>(), ["device 1", "device 3"]);
        assert_eq!(problem.buffers.iter().map(|buffer| buffer.pool.get()).collect::<Vec<_>>(), [1, 0, 1]);
    }
}
