//! The player: goes through a script row by row, passes each row to the pool of its device and counts what comes of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lowtide_core::{Action, Align, BlockIndex, Bytes, Event, StreamId, ThreadId};
use lowtide_memory::{Calls, Error as SourceError, Lag, Simulated, SimulatedOptions, Source};
use lowtide_pool::{Address, Error, Request};

use super::counts::{DeviceCounts, StepCounts};
use super::outcome::{DeviceReplay, PlanUse, Refusal, Replay, Warm};
use super::script::{Passage, Script};
use super::stopwatch::Stopwatch;
use super::strategy::{Running, Strategy};
use super::{ReplayError, ReplayOptions, ReplayProgress, Watch};

/// A stream that no recording has: who else used a block is not always known.
const OTHER_STREAM: StreamId = StreamId(u64::MAX);
/// What device allocators align to.
const ALIGN: u64 = 512;
/// Rows between two looks of the watcher.
const ROWS_BETWEEN_LOOKS: u64 = 1024;
/// Steps during which a strategy may learn.
const WARM_UP: usize = 2;

/// Plays `script` on `strategy`.
pub(super) fn play(
    script: &Script<'_>,
    strategy: &Strategy,
    options: &ReplayOptions,
    watch: Watch<'_>,
) -> Result<Replay, ReplayError> {
    let mut player = Player::new(script, strategy, options)?;
    let mut played = 0;
    for passage in script.passages() {
        player.begin_round(&passage)?;
        for event in passage.events.clone() {
            if played % ROWS_BETWEEN_LOOKS == 0
                && let ControlFlow::Break(()) = watch(ReplayProgress { played, of: script.rows() })
            {
                return Err(ReplayError::Stopped);
            }
            played += 1;
            player.row(&passage, event)?;
        }
    }
    Ok(player.finish())
}

/// One device with its pool.
struct Device {
    source: Arc<Simulated>,
    running: Running,
    counts: DeviceCounts,
    /// The counts of the whole run, which go on where nothing is served any more.
    bound: DeviceCounts,
}

/// Where a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    At(Address),
    /// It has no bytes, or came after the end of memory.
    Unserved,
    /// Freed, and the device is not done with it.
    Pending,
    /// Freed, and the device was done with it before its row, because an allocator waited for that.
    Done,
}

struct Player<'a> {
    script: &'a Script<'a>,
    devices: Vec<Device>,
    places: Vec<Place>,
    stopwatch: Stopwatch,
    /// The time that closing steps took.
    closing: Duration,
    align: Align,
    marks_steps: bool,
    /// Whether a step is over and not closed: that comes with the next allocation, as in a process. What the program lets go until then is
    /// the step's, such as gradients after the optimizer has made its step.
    is_step_over: bool,
    /// What waiting has held all later rows up.
    delay_ns: u64,
    /// When the device is done with blocks that were freed, the first first.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    out_of_memory: Option<Refusal>,
}

impl<'a> Player<'a> {
    fn new(script: &'a Script<'a>, strategy: &Strategy, options: &ReplayOptions) -> Result<Self, ReplayError> {
        let device = |_: &Option<u32>| {
            let (capacity, granularity) = (options.device_memory, options.page);
            let simulated = SimulatedOptions { capacity, granularity, ..SimulatedOptions::default() };
            let source = Arc::new(Simulated::new(simulated).map_err(Error::Source)?);
            source.set_lag(script.usual_lag());
            let running = strategy.open(source.clone(), script.closes_steps() && !options.unmarked)?;
            Ok(Device { source, running, counts: DeviceCounts::default(), bound: DeviceCounts::default() })
        };
        let devices: Result<Vec<Device>, Error> = script.devices.iter().map(device).collect();
        Ok(Self {
            script,
            devices: devices.map_err(|source| ReplayError::Failed { event: 0, source })?,
            places: vec![Place::Nowhere; script.trace.blocks.len()],
            stopwatch: Stopwatch::new(),
            closing: Duration::ZERO,
            align: Align::new(ALIGN).unwrap_or(Align::ONE),
            marks_steps: !options.unmarked,
            is_step_over: false,
            delay_ns: 0,
            due: BinaryHeap::new(),
            out_of_memory: None,
        })
    }

    /// Frees what the round before left, but for what stays; the device is done with everything by then.
    fn begin_round(&mut self, passage: &Passage) -> Result<(), ReplayError> {
        if passage.round == 1 {
            return Ok(());
        }
        self.set_time(passage.base_ns);
        for place in 0..self.places.len() {
            let block = BlockIndex(place as u32);
            if self.script.stays(block) {
                continue;
            }
            match std::mem::replace(&mut self.places[place], Place::Nowhere) {
                Place::Nowhere => {}
                place @ Place::At(address) => {
                    self.let_go(block, address, 0)?;
                    self.end(block, place);
                }
                place @ (Place::Unserved | Place::Pending | Place::Done) => self.end(block, place),
            }
        }
        Ok(())
    }

    fn row(&mut self, passage: &Passage, event: usize) -> Result<(), ReplayError> {
        let row = self.script.trace.events[event];
        self.set_time(self.script.time(passage, event));
        match row.action {
            Action::Alloc { block } if self.script.is_asked_for(block, passage.round) => {
                self.alloc(block, &row, (passage, event))
            }
            Action::Free { block } => self.free(block, (passage, event)),
            Action::Done { block } => {
                let place = std::mem::replace(&mut self.places[block.0 as usize], Place::Nowhere);
                self.end(block, place);
                Ok(())
            }
            Action::Record { block } => self.record(block, row.stream, event),
            Action::Step { .. } => {
                self.step();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn alloc(
        &mut self,
        block: BlockIndex,
        row: &Event,
        (passage, event): (&Passage, usize),
    ) -> Result<(), ReplayError> {
        let bytes = self.script.block(block).bytes;
        let place = self.script.device(block);
        self.devices[place].bound.begin(bytes);
        self.places[block.0 as usize] = Place::Unserved;
        if bytes == Bytes::ZERO || self.out_of_memory.is_some() {
            return Ok(());
        }
        self.close_step();
        let thread = ThreadId(row.thread.unwrap_or_default());
        let request = Request { bytes, align: self.align, stream: row.stream, thread };
        let device = &mut self.devices[place];
        match self.stopwatch.lap(|| device.running.pool().alloc(&request)) {
            Ok(address) => {
                self.expire();
                let device = &mut self.devices[place];
                device.counts.begin(bytes);
                self.places[block.0 as usize] = Place::At(address);
            }
            Err(error) if is_lack(&error) => {
                self.out_of_memory = Some(Refusal {
                    event,
                    block: self.script.block(block).name,
                    bytes,
                    step: self.script.step(event),
                    round: passage.round,
                    requested: device.counts.live(),
                    reserved: device.source.calls().committed,
                    device: self.script.devices[place],
                    error,
                });
            }
            Err(source) => return Err(ReplayError::Failed { event, source }),
        }
        self.look(place);
        Ok(())
    }

    fn free(&mut self, block: BlockIndex, (passage, event): (&Passage, usize)) -> Result<(), ReplayError> {
        let place = std::mem::replace(&mut self.places[block.0 as usize], Place::Pending);
        if let Place::At(address) = place
            && self.out_of_memory.is_none()
        {
            let freeing = self.script.freeing(block, passage, self.delay_ns);
            let device = &mut self.devices[self.script.device(block)];
            let failed = |source| ReplayError::Failed { event, source };
            if freeing.is_shared {
                device.running.pool().record(address, OTHER_STREAM).map_err(failed)?;
            }
            device.source.set_lag(freeing.lag);
            if let Lag::At(time) = freeing.lag {
                self.due.push(Reverse((time, block.0)));
            }
            self.let_go(block, address, event)?;
        }
        if !self.script.has_done_rows {
            self.places[block.0 as usize] = Place::Nowhere;
            self.end(block, Place::Pending);
        }
        Ok(())
    }

    /// Gives a block back to its pool; afterwards marks pass as they usually do.
    fn let_go(&mut self, block: BlockIndex, address: Address, event: usize) -> Result<(), ReplayError> {
        let place = self.script.device(block);
        let device = &mut self.devices[place];
        let freed = self.stopwatch.lap(|| device.running.pool().free(address));
        freed.map_err(|source| ReplayError::Failed { event, source })?;
        device.source.set_lag(self.script.usual_lag());
        self.look(place);
        Ok(())
    }

    fn record(&mut self, block: BlockIndex, stream: StreamId, event: usize) -> Result<(), ReplayError> {
        let Place::At(address) = self.places[block.0 as usize] else { return Ok(()) };
        if self.out_of_memory.is_some() {
            return Ok(());
        }
        let pool = self.devices[self.script.device(block)].running.pool();
        pool.record(address, stream).map_err(|source| ReplayError::Failed { event, source })
    }

    fn step(&mut self) {
        if self.out_of_memory.is_some() {
            return;
        }
        // One that nothing was allocated in is no step of the pool, as in a process; the recording counts it.
        if std::mem::replace(&mut self.is_step_over, true) {
            self.devices.iter_mut().for_each(|device| device.counts.close_step());
        }
    }

    /// Closes the step that is over, if one is.
    fn close_step(&mut self) {
        if !std::mem::take(&mut self.is_step_over) {
            return;
        }
        for place in 0..self.devices.len() {
            if self.marks_steps {
                let start = Instant::now();
                self.devices[place].running.pool().step();
                self.closing += start.elapsed();
                self.look(place);
            }
            self.devices[place].counts.close_step();
        }
    }

    /// A block that was asked for is no longer there.
    fn end(&mut self, block: BlockIndex, place: Place) {
        let bytes = self.script.block(block).bytes;
        let device = &mut self.devices[self.script.device(block)];
        device.bound.end(bytes);
        if self.out_of_memory.is_none() && place != Place::Done {
            device.counts.end(bytes);
        }
    }

    /// Ends blocks that the device is done with, where waiting has brought it further than the rows.
    fn expire(&mut self) {
        let now = self.devices.iter().map(|device| device.source.now_ns()).max().unwrap_or_default();
        while let Some(Reverse((_, block))) = self.due.peek().copied().filter(|Reverse((time, _))| *time <= now) {
            self.due.pop();
            if self.places[block as usize] == Place::Pending {
                self.places[block as usize] = Place::Done;
                let block = BlockIndex(block);
                self.devices[self.script.device(block)].counts.end(self.script.block(block).bytes);
            }
        }
    }

    fn set_time(&self, time_ns: u64) {
        let time_ns = time_ns.saturating_add(self.delay_ns);
        self.devices.iter().for_each(|device| device.source.set_time(time_ns));
    }

    /// Takes note of what a call did to a device. Where it waited, everything behind it comes later.
    fn look(&mut self, place: usize) {
        let device = &mut self.devices[place];
        let waited = device.source.calls().waited_ns - device.counts.calls().waited_ns;
        self.delay_ns = self.delay_ns.saturating_add(waited);
        device.counts.see(device.source.calls());
    }

    fn finish(mut self) -> Replay {
        self.close_step();
        let counts = || self.devices.iter().map(|device| &device.counts);
        let closed = self.devices.first().map_or(0, |device| device.counts.steps.len());
        let step = |place: usize| add(counts().filter_map(|counts| counts.steps.get(place).copied()));
        let tail = add(counts().map(DeviceCounts::open_step));
        let steps: Vec<StepCounts> = (0..closed).map(step).collect();
        let warm = warm(steps.iter().copied().skip(WARM_UP).chain([tail]));
        let devices = self.devices.iter().zip(&self.script.devices).map(|(device, &number)| DeviceReplay {
            device: number,
            peak_requested: device.counts.peak_live(),
            peak_reserved: device.counts.calls().peak_committed,
            calls: device.counts.calls(),
        });
        let devices: Vec<DeviceReplay> = devices.collect();
        let plan_uses = self.devices.iter().filter_map(|device| device.running.plan_use());
        Replay {
            peak_requested: sum(devices.iter().map(|device| device.peak_requested)),
            peak_reserved: sum(devices.iter().map(|device| device.peak_reserved)),
            bound: sum(self.devices.iter().map(|device| device.bound.peak_live())),
            steps: closed,
            driver_calls_per_step: steps.iter().map(|step| step.driver_calls).collect(),
            driver_calls_behind: tail.driver_calls,
            reserved_per_step: steps.iter().map(|step| Bytes::new(step.reserved)).collect(),
            requested_per_step: steps.iter().map(|step| Bytes::new(step.requested)).collect(),
            warm: warm.filter(|_| closed > WARM_UP),
            calls: add_calls(devices.iter().map(|device| device.calls)),
            operations: self.stopwatch.laps(),
            nanoseconds: self.stopwatch.nanoseconds(),
            closing_ns: self.closing.as_nanos() as u64,
            plan: plan_uses.reduce(|a, b| PlanUse { hits: a.hits + b.hits, misses: a.misses + b.misses }),
            out_of_memory: self.out_of_memory,
            devices,
        }
    }
}

/// Whether the device had too little memory: for the block, for all blocks now, or as work that never ends holds it.
fn is_lack(error: &Error) -> bool {
    matches!(
        error,
        Error::TooLarge { .. }
            | Error::OutOfMemory { .. }
            | Error::OverLimit { .. }
            | Error::Source(SourceError::OutOfMemory { .. } | SourceError::OutOfAddresses { .. })
    )
}

fn sum(amounts: impl Iterator<Item = Bytes>) -> Bytes {
    Bytes::new(amounts.fold(0, |sum, bytes| sum.saturating_add(bytes.get())))
}

fn add(counts: impl Iterator<Item = StepCounts>) -> StepCounts {
    counts.fold(StepCounts::default(), |sum, step| StepCounts {
        driver_calls: sum.driver_calls + step.driver_calls,
        reserved: sum.reserved.saturating_add(step.reserved),
        requested: sum.requested.saturating_add(step.requested),
    })
}

fn warm(steps: impl Iterator<Item = StepCounts>) -> Option<Warm> {
    let most = steps.reduce(|most, step| StepCounts {
        driver_calls: most.driver_calls.max(step.driver_calls),
        reserved: most.reserved.max(step.reserved),
        requested: most.requested.max(step.requested),
    })?;
    Some(Warm {
        peak_requested: Bytes::new(most.requested),
        peak_reserved: Bytes::new(most.reserved),
        most_driver_calls: most.driver_calls,
    })
}

fn add_calls(calls: impl Iterator<Item = Calls>) -> Calls {
    calls.fold(Calls::default(), |sum, calls| Calls {
        reserved: sum.reserved + calls.reserved,
        released: sum.released + calls.released,
        created: sum.created + calls.created,
        destroyed: sum.destroyed + calls.destroyed,
        mapped: sum.mapped + calls.mapped,
        unmapped: sum.unmapped + calls.unmapped,
        waits: sum.waits + calls.waits,
        waited_ns: sum.waited_ns + calls.waited_ns,
        holds: sum.holds + calls.holds,
        committed: sum.committed + calls.committed,
        peak_committed: sum.peak_committed + calls.peak_committed,
        nanoseconds: sum.nanoseconds + calls.nanoseconds,
    })
}
