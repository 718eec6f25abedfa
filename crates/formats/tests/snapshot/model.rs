//! Random runs of a simple allocator on several devices, written as snapshots with a history that is cut as PyTorch cuts
//! it, against what the allocator itself knew at the cut, in between and at the end.

use std::collections::{BTreeMap, BTreeSet};

use lowtide_core::{Action, BlockIndex, Trace};
use lowtide_formats::{Input, Note, Snapshot, write_trace};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::pickle;
use crate::pickle::{Item, Style, annotation, block, event, frame, segment, snapshot};

const DEVICES: usize = 3;
const SLOT: u64 = 1 << 20;
const SLOTS_OF_A_SEGMENT: u64 = 3;
const STREAMS: [u64; 3] = [0, 356_102_112, 1 << 46];
const STACKS: [&[(&str, &str, u64)]; 4] = [
    &[],
    &[("forward", "model.py", 12), ("main; really", "run.py", 3)],
    &[("torch::unwind::unwind()", "??", 0), ("at::empty(long)", "??", 0)],
    &[("step", "torch/optim/sgd.py", 80)],
];
const SITES: [&str; 4] =
    ["", "model.py:12 forward; run.py:3 main, really", "at::empty(long)", "torch/optim/sgd.py:80 step"];

/// One call of the program or of its allocator.
#[derive(Clone, Debug)]
enum Call {
    Alloc {
        bytes: u64,
        stream: usize,
    },
    /// Lets go of a block; the device is done with it at once, or later.
    Free {
        which: Index,
        at_once: bool,
    },
    Done {
        which: Index,
    },
    /// Gives a segment back that nothing is in.
    Trim,
    Fail {
        bytes: u64,
    },
}

#[derive(Clone, Debug)]
struct Step {
    device: usize,
    call: Call,
    pause: u64,
    stack: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        6 => (1..SLOT, 0..STREAMS.len()).prop_map(|(bytes, stream)| Call::Alloc { bytes, stream }),
        5 => (any::<Index>(), any::<bool>()).prop_map(|(which, at_once)| Call::Free { which, at_once }),
        2 => any::<Index>().prop_map(|which| Call::Done { which }),
        1 => Just(Call::Trim),
        1 => (1..SLOT).prop_map(|bytes| Call::Fail { bytes }),
    ];
    (0..DEVICES, call, 0..3_u64, 0..STACKS.len()).prop_map(|(device, call, pause, stack)| Step {
        device,
        call,
        pause,
        stack,
    })
}

/// A block as the allocator knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Known {
    bytes: u64,
    stream: u64,
    stack: usize,
    is_freed: bool,
}

/// What an allocator knows of its device.
#[derive(Clone, Default)]
struct State {
    blocks: BTreeMap<u64, Known>,
    segments: BTreeSet<u64>,
}

/// An event of the history, in the words of a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Happened {
    time: u64,
    kind: &'static str,
    address: u64,
    bytes: u64,
    stream: u64,
    stack: usize,
}

#[derive(Clone, Default)]
struct Allocator {
    now: State,
    /// Every event with the state before it.
    history: Vec<(State, Happened)>,
}

impl Allocator {
    fn record(&mut self, time: u64, kind: &'static str, address: u64, known: Known) {
        let Known { bytes, stream, stack, .. } = known;
        self.history.push((self.now.clone(), Happened { time, kind, address, bytes, stream, stack }));
    }

    fn call(&mut self, call: &Call, time: u64, stack: usize) {
        let own = |bytes: u64| Known { bytes, stream: 0, stack, is_freed: false };
        match *call {
            Call::Alloc { bytes, stream } => {
                let known = Known { stream: STREAMS[stream], ..own(bytes) };
                let slots =
                    self.now.segments.iter().flat_map(|start| (0..SLOTS_OF_A_SEGMENT).map(move |n| start + n * SLOT));
                let free = slots.into_iter().find(|slot| !self.now.blocks.contains_key(slot));
                let address = free.unwrap_or_else(|| {
                    let starts = (1..).map(|number| number * SLOT * SLOTS_OF_A_SEGMENT);
                    let start = starts.into_iter().find(|start| !self.now.segments.contains(start)).expect("no end");
                    self.record(time, "segment_alloc", start, own(SLOT * SLOTS_OF_A_SEGMENT));
                    self.now.segments.insert(start);
                    start
                });
                self.record(time, "alloc", address, known);
                self.now.blocks.insert(address, known);
            }
            Call::Free { which, at_once } => {
                let Some((address, known)) = pick(&self.now, which, false) else { return };
                let known = Known { stack, ..known };
                self.record(time, "free_requested", address, known);
                self.now.blocks.get_mut(&address).expect("it was found").is_freed = true;
                if at_once {
                    self.record(time, "free_completed", address, known);
                    self.now.blocks.remove(&address);
                }
            }
            Call::Done { which } => {
                let Some((address, known)) = pick(&self.now, which, true) else { return };
                self.record(time, "free_completed", address, Known { stack, ..known });
                self.now.blocks.remove(&address);
            }
            Call::Trim => {
                let is_empty =
                    |start: &&u64| self.now.blocks.range(**start..**start + SLOT * SLOTS_OF_A_SEGMENT).next().is_none();
                let Some(&start) = self.now.segments.iter().find(is_empty) else { return };
                self.record(time, "segment_free", start, own(SLOT * SLOTS_OF_A_SEGMENT));
                self.now.segments.remove(&start);
            }
            Call::Fail { bytes } => self.record(time, "oom", 7, own(bytes)),
        }
    }
}

fn pick(state: &State, which: Index, is_freed: bool) -> Option<(u64, Known)> {
    let blocks: Vec<_> = state.blocks.iter().filter(|(_, known)| known.is_freed == is_freed).collect();
    (!blocks.is_empty()).then(|| *which.get(&blocks)).map(|(&address, &known)| (address, known))
}

fn frames(stack: usize) -> Item {
    let frames = STACKS[stack].iter().map(|&(name, file, line)| frame(name, file, line)).collect();
    Item::Shared(stack as u32, Box::new(Item::List(frames)))
}

fn segments(device: usize, state: &State) -> Vec<Item> {
    let of_segment = |&start: &u64| {
        let blocks = (0..SLOTS_OF_A_SEGMENT).map(|number| {
            let address = start + number * SLOT;
            match state.blocks.get(&address) {
                None => block(address, SLOT, 5, "inactive", frames(0)),
                Some(known) => {
                    let state = if known.is_freed { "active_pending_free" } else { "active_allocated" };
                    block(address, SLOT, known.bytes, state, frames(known.stack))
                }
            }
        });
        segment(device as u64, start, SLOT * SLOTS_OF_A_SEGMENT, 0, (0, 0), blocks.collect())
    };
    state.segments.iter().map(of_segment).collect()
}

/// A run, its snapshot, and how many events of each device the snapshot has.
#[derive(Clone)]
struct Recorded {
    allocators: Vec<Allocator>,
    kept: [usize; DEVICES],
    steps: Vec<u64>,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let events = |place: usize| self.events(place).collect::<Vec<_>>();
        f.debug_list().entries((0..DEVICES).map(events)).entry(&self.steps).finish()
    }
}

impl Recorded {
    fn events(&self, device: usize) -> impl Iterator<Item = Happened> + '_ {
        let history = &self.allocators[device].history;
        history[history.len() - self.kept[device]..].iter().map(|(_, happened)| *happened)
    }

    /// What a device had when its first kept event came.
    fn before(&self, device: usize) -> &State {
        let Allocator { now, history } = &self.allocators[device];
        history.get(history.len() - self.kept[device]).map_or(now, |(state, _)| state)
    }

    /// Whether a kept event tells when a device finished with a block. Without any, nothing tells that blocks were let go,
    /// since all of them are still in use at the end.
    fn tells_ends(&self) -> bool {
        (0..DEVICES).flat_map(|device| self.events(device)).any(|happened| happened.kind == "free_completed")
    }

    /// The events that rows stand for.
    fn shown(&self, device: usize) -> Vec<Happened> {
        let tells_ends = self.tells_ends();
        self.events(device).filter(|happened| tells_ends || happened.kind != "free_requested").collect()
    }

    fn item(&self) -> Item {
        let traces = (0..DEVICES).map(|device| {
            let item = |Happened { time, kind, address, bytes, stream, stack }| {
                event(kind, address, bytes, stream, time, frames(stack))
            };
            self.events(device).map(item).collect()
        });
        let all = self.allocators.iter().enumerate();
        let segments = all.flat_map(|(device, allocator)| segments(device, &allocator.now)).collect();
        let steps = self.steps.iter().map(|&time| annotation("END", "Optimizer.step#SGD.step", time)).collect();
        snapshot(segments, traces.collect(), steps)
    }

    fn first_time(&self) -> Option<u64> {
        (0..DEVICES).flat_map(|device| self.events(device)).map(|happened| happened.time).min()
    }
}

fn recorded() -> impl Strategy<Value = Recorded> {
    (vec(step(), 0..120), vec(any::<Index>(), DEVICES), vec(0..150_u64, 0..4)).prop_map(|(steps, cuts, ends)| {
        let mut allocators = vec![Allocator::default(); DEVICES];
        let mut time = 1_794_733_176_152_757;
        let start = time;
        for step in &steps {
            time += step.pause;
            allocators[step.device].call(&step.call, time, step.stack);
        }
        let mut kept = [0; DEVICES];
        for (device, cut) in cuts.iter().enumerate() {
            kept[device] = cut.index(allocators[device].history.len() + 1);
        }
        Recorded { allocators, kept, steps: ends.into_iter().map(|end| start + end).collect() }
    })
}

/// The rows of the trace that stand for events, and those before them.
fn split(trace: &Trace, recorded: &Recorded) -> (usize, Vec<Vec<Happened>>) {
    let mut rows = vec![Vec::new(); DEVICES];
    let events: usize = (0..DEVICES).map(|device| recorded.shown(device).len()).sum();
    let steps = trace.events.iter().filter(|event| matches!(event.action, Action::Step { .. })).count();
    let before = trace.events.len() - events - steps;
    let start = recorded.first_time().unwrap_or(0);
    for event in &trace.events[before..] {
        let of_block = |kind, block: BlockIndex| {
            let block = trace.block(block);
            (kind, block.address.expect("blocks have addresses"), block.bytes.get())
        };
        let of_range =
            |kind, range| (kind, trace.range(range).address.expect("so have ranges"), trace.range(range).bytes.get());
        let (kind, address, bytes) = match event.action {
            Action::Alloc { block } => of_block("alloc", block),
            Action::Free { block } => of_block("free_requested", block),
            Action::Done { block } => of_block("free_completed", block),
            Action::Reserve { range } => of_range("segment_alloc", range),
            Action::Release { range } => of_range("segment_free", range),
            Action::OutOfMemory { bytes } => ("oom", 7, bytes.get()),
            _ => continue,
        };
        let site = event.site.map_or("", |site| trace.text(site));
        rows[event.device.expect("events have devices") as usize].push(Happened {
            time: start + event.time_ns.expect("events have times") / 1_000,
            kind,
            address,
            bytes,
            stream: event.stream.0,
            stack: SITES.iter().position(|&known| known == site).expect("one of the sites"),
        });
    }
    (before, rows)
}

/// Blocks by their addresses, with their bytes and whether they are freed, and segments.
type Seen = (BTreeMap<u64, (u64, bool)>, BTreeSet<u64>);

/// The blocks and segments of each device after the first `count` rows.
fn state_after(trace: &Trace, count: usize) -> Vec<Seen> {
    let mut states = vec![(BTreeMap::new(), BTreeSet::new()); DEVICES];
    for event in &trace.events[..count] {
        let (blocks, ranges) = &mut states[event.device.expect("rows have devices") as usize];
        let address = |block: BlockIndex| trace.block(block).address.expect("blocks have addresses");
        match event.action {
            Action::Alloc { block } => drop(blocks.insert(address(block), (trace.block(block).bytes.get(), false))),
            Action::Free { block } => blocks.get_mut(&address(block)).expect("it is there").1 = true,
            Action::Done { block } => drop(blocks.remove(&address(block))),
            Action::Reserve { range } => assert!(ranges.insert(trace.range(range).address.expect("an address"))),
            Action::Release { range } => assert!(ranges.remove(&trace.range(range).address.expect("an address"))),
            _ => {}
        }
    }
    states
}

fn known(state: &State, tells_ends: bool) -> Seen {
    let blocks = state.blocks.iter().map(|(&address, known)| (address, (known.bytes, known.is_freed && tells_ends)));
    (blocks.collect(), state.segments.clone())
}

fn assert_steps_stand_in_time(trace: &Trace, before: usize, recorded: &Recorded) {
    let start = recorded.first_time();
    let expected = recorded.steps.iter().filter(|&&end| start.is_some_and(|start| end >= start)).count();
    assert_eq!(trace.steps().count(), expected);
    let times = trace.events[before..].iter().map(|event| (event.time_ns, matches!(event.action, Action::Step { .. })));
    assert!(times.is_sorted(), "rows are in order of time, and steps behind the events of their moment");
}

fn read(bytes: &[u8]) -> Snapshot {
    match Input::read(bytes).expect("what was written is read") {
        Input::Snapshot(snapshot) => snapshot,
        other => panic!("{} was read", other.what()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn snapshots_tell_what_the_allocator_knew(
        recorded in recorded(),
        style in select(&[Style::Python(2), Style::Python(4), Style::Python(5), Style::Native][..]),
    ) {
        let snapshot = read(&pickle::pickle(&recorded.item(), style));
        let trace = &snapshot.trace;
        let (before, rows) = split(trace, &recorded);
        for (device, rows) in rows.iter().enumerate() {
            prop_assert_eq!(rows, &recorded.shown(device), "device {}", device);
        }
        let at_cut = state_after(trace, before);
        let at_end = state_after(trace, trace.events.len());
        let tells_ends = recorded.tells_ends();
        for device in 0..DEVICES {
            prop_assert_eq!(&at_cut[device], &known(recorded.before(device), tells_ends), "before the events of device {}", device);
            prop_assert_eq!(&at_end[device], &known(&recorded.allocators[device].now, tells_ends), "at the end of device {}", device);
        }
        assert_steps_stand_in_time(trace, before, &recorded);
        let is_expected = |note: &Note| {
            matches!(
                note,
                Note::NoHistory
                    | Note::BlocksBefore { .. }
                    | Note::StepsBefore { .. }
                    | Note::StepsWithoutEvents { .. }
                    | Note::PendingFrees { .. }
            )
        };
        prop_assert!(snapshot.notes.iter().all(is_expected), "{:?}", snapshot.notes);

        let mut out = Vec::new();
        write_trace(trace, &mut out).unwrap();
        let Ok(Input::Trace(again)) = Input::read(out.as_slice()) else { panic!("no trace") };
        prop_assert_eq!(&again, trace);
    }
}
