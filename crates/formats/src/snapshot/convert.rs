//! From what a snapshot holds to a trace: what was there before the first event, then the events of all devices in
//! order of time, with the ends of steps between them.

mod before;
mod clock;
mod columns;
mod merge;
mod occupancy;
mod rows;
mod sites;
mod steps;
mod texts;

use std::collections::{BTreeMap, HashMap};

use lowtide_core::{Action, BlockIndex, Bytes, StepIndex};

use super::Snapshot;
use super::contents::{ABSENT, Contents, UNRECORDED};
use super::note::Note;
use crate::error::shorten::shorten;
use crate::snapshot::contents::unread::Unread;
use crate::snapshot::contents::words::Word;
use crate::{Error, ErrorKind, limits};
use before::{Amount, BlockBefore, Device, RangeBefore};
use clock::Clock;
use columns::is_private;
use merge::{Merge, Merged};
use occupancy::{Ended, Occupancy, Occupant};
use rows::{Row, Rows};
use steps::StepEnd;

/// The category of blocks that were there before the first event.
const BEFORE: &str = "before the recording";

pub(crate) fn convert(mut contents: Contents) -> Result<Snapshot, Error> {
    contents.close();
    let mut notes = Vec::new();
    let devices = before::find(&contents, &mut notes);
    let clock = Clock::of(&contents, &devices, &mut notes);
    let steps = steps::find(&contents, &mut notes);
    let (earlier, steps) = steps.split_at(clock.steps_before(&steps));
    notes.extend(clock.note_on(earlier));
    let columns = columns::filled(&contents);
    let events = std::mem::take(&mut contents.events);
    let rows = devices.values().map(Device::rows).sum::<u64>() + steps.len() as u64;
    if rows > limits::ROWS {
        return Err(Error::new(ErrorKind::TooManyRows { limit: limits::ROWS }));
    }
    let mut converter = Converter {
        rows: Rows::new(&contents, columns, rows as usize),
        contents: &contents,
        clock,
        devices: &devices,
        occupancies: HashMap::new(),
        has_completions: devices.values().any(|device| device.has_completions),
        has_done_rows: before::has_done_rows(&devices),
        step: 0,
        is_set_up: clock.has_times() && !earlier.is_empty(),
        counts: Counts::default(),
    };
    converter.write_before()?;
    converter.write_events(Merge::new(events, &devices), steps)?;
    let Converter { rows, counts, .. } = converter;
    let trace = rows.finish(&mut notes);
    counts.tell(&contents, &mut notes);
    let settings = contents.root.settings.map_or("", |text| contents.text_at(text)).to_owned();
    Ok(Snapshot { trace, notes, settings })
}

struct Converter<'a> {
    contents: &'a Contents,
    rows: Rows<'a>,
    clock: Clock,
    devices: &'a BTreeMap<u32, Device>,
    occupancies: HashMap<u32, Occupancy<BlockIndex>>,
    /// Whether some device tells when it finished with blocks, so that the trace has such rows.
    has_completions: bool,
    /// Whether the trace will have such rows: where it has none, its readers end blocks where they are let go.
    has_done_rows: bool,
    /// The steps that are closed.
    step: u64,
    /// Whether some step was over before the first event.
    is_set_up: bool,
    counts: Counts,
}

impl Converter<'_> {
    fn write_before(&mut self) -> Result<(), Error> {
        for (&number, device) in self.devices {
            for &RangeBefore { address, bytes, stream, stack } in &device.ranges {
                let range = self.rows.range(address, bytes);
                let row = Row { stack, ..self.row_before(number, stream, address) };
                self.rows.push(Action::Reserve { range }, row)?;
            }
            let mut freed = Vec::new();
            for &BlockBefore { address, bytes, stream, stack, is_freed } in &device.blocks {
                let category = if self.clock.has_history() { Some(BEFORE) } else { self.rows.category(stack, true) };
                let row = Row { category, stack, ..self.row_before(number, stream, address) };
                let block = self.rows.alloc(address, bytes, row)?;
                let held = if is_freed { Occupant::Freed(block) } else { Occupant::Live(block) };
                self.occupancies.entry(number).or_default().put(address, held);
                if is_freed && self.has_done_rows {
                    freed.push((block, self.row_before(number, stream, address)));
                } else if is_freed {
                    self.counts.pending.add(bytes);
                }
            }
            for (block, row) in freed {
                self.rows.push(Action::Free { block }, row)?;
            }
        }
        Ok(())
    }

    fn write_events(&mut self, events: Merge, steps: &[StepEnd]) -> Result<(), Error> {
        let mut steps = steps.iter().peekable();
        for merged in events {
            while let Some(&end) = steps.next_if(|end| end.time_us < merged.reached_us) {
                self.write_step(end)?;
            }
            self.write_event(merged)?;
        }
        steps.try_for_each(|&end| self.write_step(end))
    }

    fn write_step(&mut self, end: StepEnd) -> Result<(), Error> {
        self.step += 1;
        let row = Row::new(end.device, 0, self.clock.time_ns(end.time_us)?);
        self.rows.push(Action::Step { step: StepIndex(self.step) }, row)
    }

    fn write_event(&mut self, merged: Merged) -> Result<(), Error> {
        let event = merged.event;
        self.counts.falling_times += u64::from(event.time_us < merged.reached_us);
        let row = self.row(merged)?;
        match Word::at(event.action) {
            Some(Word::Alloc) => self.alloc(merged, row),
            Some(Word::FreeRequested) => self.let_go(merged, row),
            Some(Word::FreeCompleted) => self.complete(merged, row),
            Some(Word::SegmentAlloc | Word::SegmentMap) => {
                let range = self.rows.range(event.address, event.bytes);
                self.rows.push(Action::Reserve { range }, row)
            }
            Some(Word::SegmentFree | Word::SegmentUnmap) => {
                let range = self.rows.range(event.address, event.bytes);
                self.rows.push(Action::Release { range }, row)
            }
            Some(Word::OutOfMemory) => {
                let row = Row { device_free: event.address, pool: ABSENT, ..row };
                self.rows.push(Action::OutOfMemory { bytes: Bytes::new(event.bytes) }, row)
            }
            _ => {
                self.counts.without_row.count("an event", event.action);
                Ok(())
            }
        }
    }

    /// A block begins. What its address held and nobody freed must have ended before.
    fn alloc(&mut self, merged: Merged, row: Row) -> Result<(), Error> {
        let Merged { device, event, .. } = merged;
        let held = self.occupancy(device).at(event.address);
        let has_completions = self.devices[&device].has_completions;
        if let Some(Occupant::Live(block)) = held {
            self.counts.unrecorded_frees += 1;
            self.free(device, block, row)?;
        }
        if let Some(Occupant::Live(block) | Occupant::Freed(block)) = held
            && has_completions
        {
            self.counts.unrecorded_frees += u64::from(held == Some(Occupant::Freed(block)));
            self.rows.push(Action::Done { block }, row)?;
        }
        let category = self.rows.category(event.stack, self.step == 0 && !self.is_set_up);
        let block = self.rows.alloc(event.address, event.bytes, Row { category, ..row })?;
        self.occupancy(device).put(event.address, Occupant::Live(block));
        Ok(())
    }

    /// The program asks to free a block.
    fn let_go(&mut self, merged: Merged, row: Row) -> Result<(), Error> {
        let Ok(block) = self.occupancy(merged.device).free(merged.event.address) else {
            self.counts.strays += 1;
            return Ok(());
        };
        if !self.devices[&merged.device].pending.contains(&merged.place) {
            return self.free(merged.device, block, row);
        }
        if self.has_done_rows {
            return self.rows.push(Action::Free { block }, row);
        }
        self.counts.pending.add(self.rows.bytes(block));
        Ok(())
    }

    /// The device has finished with a block, which the program must have let go of before.
    fn complete(&mut self, merged: Merged, row: Row) -> Result<(), Error> {
        let Ok(Ended { block, was_live }) = self.occupancy(merged.device).end(merged.event.address) else {
            self.counts.strays += 1;
            return Ok(());
        };
        if was_live {
            self.rows.push(Action::Free { block }, row)?;
        }
        self.rows.push(Action::Done { block }, row)
    }

    /// The program let go of a block. Where its device does not tell when it finishes and others do, that is at once.
    fn free(&mut self, device: u32, block: BlockIndex, row: Row) -> Result<(), Error> {
        self.rows.push(Action::Free { block }, row)?;
        if self.has_completions && !self.devices[&device].has_completions {
            self.rows.push(Action::Done { block }, row)?;
        }
        Ok(())
    }

    fn occupancy(&mut self, device: u32) -> &mut Occupancy<BlockIndex> {
        self.occupancies.entry(device).or_default()
    }

    fn row(&self, merged: Merged) -> Result<Row, Error> {
        let Merged { device, event, .. } = merged;
        let time_ns = if event.time_us == UNRECORDED { None } else { self.clock.time_ns(event.time_us)? };
        let context = self.contents.contexts.get(event.context);
        let own_pool = Some(context.pool).filter(|&pool| is_private(self.contents, pool));
        let pool = own_pool.unwrap_or_else(|| self.pool(device, event.address));
        let row = Row::new(device, event.stream, time_ns);
        Ok(Row { stack: event.stack, context: Some(context), pool, ..row })
    }

    fn row_before(&self, device: u32, stream: u64, address: u64) -> Row {
        Row { pool: self.pool(device, address), ..Row::new(device, stream, self.clock.start_ns()) }
    }

    fn pool(&self, device: u32, address: u64) -> u32 {
        if self.rows.has_pools() { self.devices[&device].pool(self.contents, address) } else { ABSENT }
    }
}

/// What became of no row, or of more than one.
#[derive(Default)]
struct Counts {
    /// Blocks that the program let go of and the device has not finished with, without a row that says so.
    pending: Amount,
    /// Events with an earlier time than one before them on their device.
    falling_times: u64,
    strays: u64,
    unrecorded_frees: u64,
    without_row: Unread,
}

impl Counts {
    fn tell(&self, contents: &Contents, notes: &mut Vec<Note>) {
        let shown = |text| shorten(contents.text_at(text));
        notes.extend(self.pending.some().map(|(count, bytes)| Note::PendingFrees { count, bytes }));
        if self.falling_times > 0 {
            notes.push(Note::FallingTimes { count: self.falling_times });
        }
        if self.strays > 0 {
            notes.push(Note::FreesOfNothing { count: self.strays });
        }
        if self.unrecorded_frees > 0 {
            notes.push(Note::UnrecordedFrees { count: self.unrecorded_frees });
        }
        let is_known = |text| matches!(Word::at(text), Some(Word::Snapshot | Word::Annotate));
        let event = |(_, kind, count)| Note::EventsWithoutRow { kind: shown(kind), count, known: is_known(kind) };
        notes.extend(self.without_row.named().map(event));
        if self.without_row.others() > 0 {
            let kind = "…".to_owned();
            notes.push(Note::EventsWithoutRow { kind, count: self.without_row.others(), known: false });
        }
        if contents.root.host > 0 {
            notes.push(Note::HostMemory { count: contents.root.host });
        }
        let key = |(record, key, count)| Note::UnreadKey { record, key: shown(key), count };
        notes.extend(contents.unread.named().map(key));
        if contents.unread.others() > 0 {
            notes.push(Note::UnreadKeys { count: contents.unread.others() });
        }
    }
}
