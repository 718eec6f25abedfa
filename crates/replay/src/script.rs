//! A trace made ready to be played: when each row happens, when the device is done with each block, which steps repeat.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::Range;

use lowtide_core::{Action, Block, BlockIndex, StepIndex, Trace};
use lowtide_memory::Lag;

use super::error::ReplayError;

/// Between rows of a trace without times.
const ROW_NS: u64 = 20_000;
/// From a mark to the end of the work before it, in a trace without `done` rows.
const LAG_NS: u64 = 100_000_000;

/// When the device is done with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// The trace does not tell, or the block is never freed.
    Unknown,
    /// At a row before the next block is asked for.
    AtOnce(usize),
    /// At a later row: another stream uses it.
    Later(usize),
    /// Not in this trace: another stream uses it.
    NotYet,
}

/// What is known of a block before anything is played.
#[derive(Clone, Copy, Debug)]
struct Known {
    device: u32,
    fate: Fate,
    is_recorded: bool,
    /// Made in the first step and freed by none that is closed.
    stays: bool,
}

/// How a block is freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Freeing {
    /// When marks pass that are made there.
    pub(super) lag: Lag,
    /// Whether a stream that the trace does not name uses the block.
    pub(super) is_shared: bool,
}

/// A passage through a range of the trace's events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Passage {
    /// From one on.
    pub(super) round: u64,
    pub(super) events: Range<usize>,
    /// Added to the time of every row.
    pub(super) base_ns: u64,
}

/// A trace that can be played.
#[derive(Debug)]
pub(super) struct Script<'a> {
    pub(super) trace: &'a Trace,
    /// The numbers of the devices, in order.
    pub(super) devices: Vec<Option<u32>>,
    pub(super) has_done_rows: bool,
    times: Vec<u64>,
    known: Vec<Known>,
    /// The events that belong to closed steps.
    closed: usize,
    steps: Vec<(StepIndex, usize)>,
    repeat: u64,
}

impl<'a> Script<'a> {
    pub(super) fn new(trace: &'a Trace, repeat: NonZeroU64) -> Result<Self, ReplayError> {
        let steps: Vec<(StepIndex, usize)> = trace.steps().map(|(step, range)| (step, range.end)).collect();
        let closed = steps.last().map_or(0, |&(_, end)| end);
        if repeat.get() > 1 && closed == 0 {
            return Err(ReplayError::NoSteps);
        }
        let has_done_rows = trace.has_done_rows();
        let known =
            vec![Known { device: 0, fate: Fate::Unknown, is_recorded: false, stays: false }; trace.blocks.len()];
        let (devices, times, repeat) = (devices(trace), times(trace), repeat.get());
        let mut script = Self { trace, devices, has_done_rows, times, known, closed, steps, repeat };
        script.look_ahead()?;
        Ok(script)
    }

    /// Finds what becomes of each block.
    fn look_ahead(&mut self) -> Result<(), ReplayError> {
        let first_step = self.steps.first().map_or(0, |&(_, end)| end);
        let mut asked = 0_usize;
        let mut asked_at_free = vec![0; self.known.len()];
        let mut states = vec![State::Unborn; self.known.len()];
        for (event, row) in self.trace.events.iter().enumerate() {
            let mut turn = |block: BlockIndex, from: State, to: State| {
                let state = states.get_mut(block.0 as usize).filter(|state| **state == from);
                *state.ok_or(ReplayError::NotAlive { event })? = to;
                Ok(block.0 as usize)
            };
            match row.action {
                Action::Alloc { block } => {
                    let block = turn(block, State::Unborn, State::Alive)?;
                    asked += 1;
                    self.known[block].stays = event < first_step;
                    self.known[block].device = self.devices.binary_search(&row.device).unwrap_or_default() as u32;
                }
                Action::Free { block } => {
                    let block = turn(block, State::Alive, State::Freed)?;
                    asked_at_free[block] = asked;
                    let known = &mut self.known[block];
                    known.stays &= event >= self.closed;
                    known.fate = if self.has_done_rows { Fate::NotYet } else { Fate::Unknown };
                }
                Action::Done { block } => {
                    let block = turn(block, State::Freed, State::Done)?;
                    let is_at_once = asked_at_free[block] == asked;
                    self.known[block].fate = if is_at_once { Fate::AtOnce(event) } else { Fate::Later(event) };
                }
                Action::Record { block } => {
                    let block = turn(block, State::Alive, State::Alive)?;
                    self.known[block].is_recorded = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The passages in order: the closed steps as often as they repeat, the last time with all that follows.
    pub(super) fn passages(&self) -> impl Iterator<Item = Passage> + '_ {
        (1..=self.repeat).map(|round| {
            let end = if round == self.repeat { self.trace.events.len() } else { self.closed };
            Passage { round, events: 0..end, base_ns: self.round_ns().saturating_mul(round - 1) }
        })
    }

    /// Rows of all passages.
    pub(super) fn rows(&self) -> u64 {
        (self.closed as u64).saturating_mul(self.repeat - 1).saturating_add(self.trace.events.len() as u64)
    }

    /// How long a round takes.
    fn round_ns(&self) -> u64 {
        self.closed.checked_sub(1).map_or(0, |last| self.times[last].saturating_add(ROW_NS))
    }

    /// When a row happens.
    pub(super) fn time(&self, passage: &Passage, event: usize) -> u64 {
        passage.base_ns.saturating_add(self.times[event])
    }

    /// The place of a block's device in [`Self::devices`].
    pub(super) fn device(&self, block: BlockIndex) -> usize {
        self.known[block.0 as usize].device as usize
    }

    pub(super) fn block(&self, block: BlockIndex) -> &Block {
        self.trace.block(block)
    }

    /// Whether a block is asked for in `round`: what stays is asked for once.
    pub(super) fn is_asked_for(&self, block: BlockIndex, round: u64) -> bool {
        round == 1 || !self.stays(block)
    }

    /// Whether a block was made in the first step and is freed by no closed one.
    pub(super) fn stays(&self, block: BlockIndex) -> bool {
        self.known[block.0 as usize].stays
    }

    /// Whether the run says itself where steps end.
    pub(super) fn closes_steps(&self) -> bool {
        self.closed > 0
    }

    /// When marks pass that are made at no free.
    pub(super) fn usual_lag(&self) -> Lag {
        if self.has_done_rows { Lag::After(0) } else { Lag::After(LAG_NS) }
    }

    /// How a block is freed that is freed in `passage`, where all rows happen `delay` later.
    pub(super) fn freeing(&self, block: BlockIndex, passage: &Passage, delay: u64) -> Freeing {
        let known = self.known[block.0 as usize];
        let end = || passage.events.end.checked_sub(1).map_or(0, |last| self.time(passage, last)).saturating_add(1);
        let done = |event: usize| if passage.events.contains(&event) { self.time(passage, event) } else { end() };
        let at = |time: u64| Lag::At(time.saturating_add(delay));
        match known.fate {
            Fate::Unknown => Freeing { lag: self.usual_lag(), is_shared: false },
            Fate::AtOnce(event) => Freeing { lag: at(done(event)), is_shared: false },
            Fate::Later(event) => Freeing { lag: at(done(event)), is_shared: !known.is_recorded },
            // The device is done with everything when steps are played again.
            Fate::NotYet if passage.round < self.repeat => Freeing { lag: at(end()), is_shared: !known.is_recorded },
            Fate::NotYet => Freeing { lag: Lag::Never, is_shared: !known.is_recorded },
        }
    }

    /// The step that an event belongs to, where it belongs to a closed one.
    pub(super) fn step(&self, event: usize) -> Option<StepIndex> {
        let place = self.steps.partition_point(|&(_, end)| end <= event);
        self.steps.get(place).map(|&(step, _)| step)
    }
}

/// Whether every closed step after the first asks for the same blocks in the same order: what a plan is best for.
///
/// False where fewer than two such steps are closed.
pub fn is_repeating(trace: &Trace) -> bool {
    let asked = |range: Range<usize>| {
        trace.events[range].iter().filter_map(|event| match event.action {
            Action::Alloc { block } => Some((trace.block(block).bytes, event.stream, event.device, event.thread)),
            _ => None,
        })
    };
    let steps: Vec<Range<usize>> = trace.steps().map(|(_, range)| range).skip(1).collect();
    steps.len() > 1 && steps.windows(2).all(|pair| asked(pair[0].clone()).eq(asked(pair[1].clone())))
}

/// A block's way through a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unborn,
    Alive,
    Freed,
    Done,
}

/// The numbers of the devices on which blocks are asked for, in order; one without a number where there are none.
fn devices(trace: &Trace) -> Vec<Option<u32>> {
    let asked = trace.events.iter().filter(|event| matches!(event.action, Action::Alloc { .. }));
    let devices: BTreeSet<Option<u32>> = asked.map(|event| event.device).collect();
    if devices.is_empty() { vec![None] } else { devices.into_iter().collect() }
}

/// When each row happens, from the first one on: later than all before it, so that nothing is done before its row.
fn times(trace: &Trace) -> Vec<u64> {
    let first = trace.events.iter().find_map(|event| event.time_ns);
    let mut earliest = 0_u64;
    let rows = trace.events.iter().enumerate().map(|(row, event)| {
        let time = match first {
            Some(first) => event.time_ns.map_or(0, |time| time.saturating_sub(first)),
            None => ROW_NS.saturating_mul(row as u64),
        };
        let time = time.max(earliest);
        earliest = time.saturating_add(1);
        time
    });
    rows.collect()
}
